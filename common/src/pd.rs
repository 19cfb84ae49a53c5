//! `ibv_pd`, the protection domain: which memory regions a QP may use (man 3 ibv_alloc_pd).
//!
//! A QP reaches only the regions of its own domain, so one client's QP cannot touch another client's memory. The
//! permissions themselves belong to each region. Drop returns the domain when its last QP and region are gone.

use std::rc::Rc;

use rdma_sys::{ibv_alloc_pd, ibv_dealloc_pd, ibv_pd};

use crate::context::Context;
use crate::error::{null, positive_errno, Result};
use crate::{narrate, slow};

/// A protection domain.
pub struct ProtectionDomain(Rc<Inner>);

struct Inner {
    raw: *mut ibv_pd,
    /// Keeps the device open.
    context: Context,
}

impl Context {
    /// `ibv_alloc_pd`.
    ///
    /// # Errors
    /// `Error::Call`, ENOMEM, if the device has no more.
    #[track_caller]
    pub fn alloc_pd(&self) -> Result<ProtectionDomain> {
        slow!("ibv_alloc_pd");
        // SAFETY: the device is open, and kept so.
        let raw = null("ibv_alloc_pd", unsafe { ibv_alloc_pd(self.raw()) })?;
        Ok(ProtectionDomain(Rc::new(Inner { raw, context: self.share() })))
    }
}

impl ProtectionDomain {
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
