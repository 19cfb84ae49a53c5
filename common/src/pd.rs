//! `ibv_pd`, the protection domain: which memory regions a QP may use (man 3 ibv_alloc_pd).
//!
//! A QP reaches only the regions of its own domain, so one client's QP cannot touch another client's memory. The
//! permissions themselves belong to each region. Drop returns the domain when its last QP and region are gone.

use std::rc::Rc;

use rdma_sys::{ibv_alloc_pd, ibv_dealloc_pd, ibv_pd};

use crate::buffer::Buffer;
use crate::context::Context;
use crate::error::{null, positive_errno, Result};
use crate::mr::{Access, MemoryRegion};
use crate::qp::QueuePair;
use crate::qp_init::QpInitAttr;
use crate::srq::SharedReceiveQueue;
use crate::{narrate, slow};

/// A protection domain.
pub struct ProtectionDomain(Rc<Inner>);

struct Inner {
    raw: *mut ibv_pd,
    /// Keeps the device open.
    context: Context,
}

impl ProtectionDomain {
    /// `ibv_alloc_pd`.
    ///
    /// # Errors
    /// `Error::Call`, ENOMEM, if the device has no more.
    pub fn alloc(context: &Context) -> Result<Self> {
        slow!("ibv_alloc_pd");
        // SAFETY: the device is open, and kept so.
        let raw = null("ibv_alloc_pd", unsafe { ibv_alloc_pd(context.raw()) })?;
        Ok(Self(Rc::new(Inner { raw, context: context.share() })))
    }

    /// `ibv_reg_mr`: allocates `len` zeroed bytes, pins them, and lets the device use them as `access` says.
    ///
    /// # Errors
    /// `Error::Call`: EINVAL for no bytes, or for REMOTE_WRITE without LOCAL_WRITE; ENOMEM for more than may be locked (`ulimit
    /// -l`). `Error::Content` if there is not so much memory.
    pub fn reg_mr(&self, len: usize, access: Access) -> Result<MemoryRegion> {
        MemoryRegion::register(self, &Buffer::zeroed(len)?, len, access)
    }

    /// `ibv_reg_mr` of memory that the caller has: the first `len` bytes of the buffer.
    ///
    /// # Errors
    /// As [`reg_mr`](Self::reg_mr); `Kind::OutOfRange` if the buffer is shorter.
    pub fn reg_buffer(&self, buffer: &Buffer, len: usize, access: Access) -> Result<MemoryRegion> {
        MemoryRegion::register(self, buffer, len, access)
    }

    /// `ibv_create_qp`: a queue pair without the connection manager, in the state RESET. (With it: [`QueuePair::create`].)
    ///
    /// # Errors
    /// `Error::Call`: EINVAL for more than the device has, ENOMEM without the memory. `Kind::Misuse` if the parts are of several
    /// devices.
    pub fn create_qp(&self, attr: &QpInitAttr) -> Result<QueuePair> {
        QueuePair::create_alone(self, attr)
    }

    /// `ibv_create_srq`: a receive queue for several queue pairs, with room for `max_wr` receives of up to `max_sge` pieces.
    ///
    /// # Errors
    /// `Error::Call`: EINVAL for more than the device has, ENOMEM without the memory.
    pub fn create_srq(&self, max_wr: u32, max_sge: u32) -> Result<SharedReceiveQueue> {
        SharedReceiveQueue::create(self, max_wr, max_sge)
    }

    pub(crate) fn raw(&self) -> *mut ibv_pd {
        self.0.raw
    }

    pub(crate) fn context(&self) -> &Context {
        &self.0.context
    }

    /// Another handle on the same domain, for its QPs and regions.
    pub(crate) fn share(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        slow!("ibv_dealloc_pd");
        // SAFETY: from ibv_alloc_pd; every QP and region shares Inner, so none is left.
        if let Err(error) = positive_errno("ibv_dealloc_pd", unsafe { ibv_dealloc_pd(self.raw) }) {
            narrate::failure(&error.to_string());
        }
    }
}
