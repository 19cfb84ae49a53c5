//! The C face of librdmacm. Each function has its manual page, section 3.
//!
//! What is in the kernel's part and what in the library's is drawn where Linux draws it: it is the *library* that moves the
//! client's queue pair to RTS and lets the RTU go, inside `rdma_get_cm_event`, when it hands out what was a ConnectReply.
//! So a client that does not fetch its event never tells the server that it is ready.
//!
//! # Safety
//! As for [`crate::verbs`].
#![allow(clippy::missing_safety_doc, clippy::undocumented_unsafe_blocks)]

mod address;
pub mod channel;
pub mod connect;
pub mod id;
pub mod qp;
pub mod strangers;

pub use channel::deliver;

use crate::cm::Param;
use crate::nic::bell::Unacked;
use rdma_sys::rdma_cm_id;
use std::sync::Arc;

/// An id, as the library knows it.
#[repr(C)]
pub(crate) struct Id {
    pub c: rdma_cm_id,
    /// Its connection's number; 0 if it has none.
    pub connection: u32,
    /// What the program has asked for, or accepted.
    pub param: Param,
    /// How long a requester shall wait for an ACK, if the program has said so.
    pub ack_timeout: Option<u8>,
    /// The protection domain was made by the library.
    pub owns_pd: bool,
    /// Events that the program has got and not acknowledged.
    pub unacked: Arc<Unacked>,
}

impl Id {
    /// The id behind a face.
    ///
    /// # Safety
    /// The pointer is one that this library has given out, and not destroyed.
    pub unsafe fn of<'a>(face: *mut rdma_cm_id) -> &'a mut Id {
        unsafe { &mut *face.cast::<Id>() }
    }
}
