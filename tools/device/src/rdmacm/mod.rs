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

use crate::rim::bell::Unacked;
use crate::verbs::Object;
use rdma_sys::rdma_cm_id;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Mutex};

/// An id.
type Id = Object<rdma_cm_id, Kept>;

/// How far an id has come on the way to a connection: it says which calls may follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Step {
    #[default]
    New,
    Bound,
    Listening,
    /// The peer's address is known.
    HasAddress,
    /// And how to reach it.
    HasRoute,
    /// It has asked for a connection, or was asked.
    Connecting,
}

/// What only the library knows of an id. Several threads may call with one id at a time: so nothing of it is changed but
/// through a shared reference, and of the program's part there is no reference at all.
pub(crate) struct Kept {
    /// Where its events go.
    pub events: Mutex<Arc<channel::Events>>,
    pub step: Mutex<Step>,
    /// Its connection's number; 0 if it has none.
    pub connection: AtomicU32,
    /// How long a requester shall wait for an ACK, if the program has said so.
    pub ack_timeout: Mutex<Option<u8>>,
    /// The protection domain was made by the library.
    pub owns_pd: AtomicBool,
    /// Events that the program has got and not acknowledged.
    pub unacked: Arc<Unacked>,
}

impl Kept {
    fn new(events: Arc<channel::Events>) -> Kept {
        Kept {
            events: Mutex::new(events),
            step: Mutex::default(),
            connection: AtomicU32::default(),
            ack_timeout: Mutex::default(),
            owns_pd: AtomicBool::default(),
            unacked: Arc::default(),
        }
    }
}

/// The number of an id's connection.
unsafe fn connection(id: *mut rdma_cm_id) -> u32 {
    unsafe { Id::own(id) }.connection.load(Relaxed)
}
