//! `ibv_srq`, the shared receive queue: receives that any of several queue pairs may use (man 3 ibv_create_srq,
//! ibv_post_srq_recv, ibv_modify_srq).
//!
//! A server with a receive queue for each client must provide for the worst of all of them at once. With an SRQ the next
//! message takes the next receive, no matter who sends it. The completion's `qp_num` names the sender.
//!
//! Hidden: the list of the receives' memory, which the QPs share. Poll what's done before you destroy a QP, because a receive that it
//! has taken and not reported keeps its memory until the SRQ goes. Drop destroys the SRQ after its last QP.

use std::ops::Range;
use std::rc::Rc;

use rdma_sys::*;

use crate::context::Context;
use crate::error::{null, positive_errno, Result};
use crate::ledger::ReceiveLedger;
use crate::mr::MemoryRegion;
use crate::pd::ProtectionDomain;
use crate::sge::{recv_wr, sges, show_sges, total_len, Piece};
use crate::wr_id::next_wr_id;
use crate::{fast, narrate, slow};

/// A shared receive queue.
pub struct SharedReceiveQueue(Rc<Inner>);

struct Inner {
    raw: *mut ibv_srq,
    pd: ProtectionDomain,
    max_sge: u32,
    ledger: Rc<ReceiveLedger>,
}

impl ProtectionDomain {
    /// `ibv_create_srq`: a receive queue for several queue pairs, with room for `max_wr` receives of up to `max_sge` pieces.
    ///
    /// # Errors
    /// `Error::Call`: EINVAL for more than the device has, ENOMEM without the memory.
    #[track_caller]
    pub fn create_srq(&self, max_wr: u32, max_sge: u32) -> Result<SharedReceiveQueue> {
        slow!("ibv_create_srq max_wr={max_wr} max_sge={max_sge}");
        let attr = ibv_srq_attr { max_wr, max_sge, srq_limit: 0 };
        let mut init = ibv_srq_init_attr { srq_context: std::ptr::null_mut(), attr };
        // SAFETY: the PD is alive, and kept.
        let raw = null("ibv_create_srq", unsafe { ibv_create_srq(self.raw(), &mut init) })?;
        let (pd, max_sge) = (self.share(), init.attr.max_sge);
        Ok(SharedReceiveQueue(Rc::new(Inner { raw, pd, max_sge, ledger: Rc::default() })))
    }
}

impl SharedReceiveQueue {
    /// `ibv_post_srq_recv`: lends `range` of the region, in bytes from its start, for one incoming SEND to any of the
    /// QPs. Returns its number.
    ///
    /// # Errors
    /// `Error::Call`, ENOMEM, if the SRQ is full; `Kind::OutOfRange` for a range outside the region.
    #[track_caller]
    pub fn post_recv(&self, region: &MemoryRegion, range: Range<usize>) -> Result<u64> {
        self.post_recv_pieces(&[(region, range)])
    }

    /// The same with several pieces, or none.
    ///
    /// # Errors
    /// As [`post_recv`](Self::post_recv); also `Kind::Misuse` for more than `max_sge` pieces.
    #[track_caller]
    pub fn post_recv_pieces(&self, pieces: &[Piece]) -> Result<u64> {
        let mut sges = sges(pieces, self.0.max_sge)?;
        let wr_id = next_wr_id();
        fast!("ibv_post_srq_recv wr_id={wr_id} len={}", total_len(&sges));
        show_sges(&sges);
        self.0.ledger.add(wr_id, pieces.iter().map(|(region, _)| region.keep()).collect());
        let (mut wr, mut bad) = (recv_wr(wr_id, &mut sges), std::ptr::null_mut());
        // SAFETY: the SRQ is alive. The request and its SGEs live across the call, which copies them; the ledger keeps the
        // memory until the completion is polled or the SRQ is gone.
        let result = unsafe { ibv_post_srq_recv(self.raw(), &mut wr, &mut bad) };
        positive_errno("ibv_post_srq_recv", result).map(|()| wr_id).map_err(|error| {
            // Refused, and forgotten: the device holds no such receive.
            self.0.ledger.complete(wr_id);
            error
        })
    }

    /// `ibv_modify_srq`: reports, once, when fewer than `limit` receives are left
    /// ([`IBV_EVENT_SRQ_LIMIT_REACHED`](crate::AsyncEvent)): time to post more.
    ///
    /// # Errors
    /// `Error::Call`, EINVAL, for more than the SRQ has room for.
    #[track_caller]
    pub fn arm_limit(&self, limit: u32) -> Result<()> {
        slow!("ibv_modify_srq srq_limit={limit}");
        let mut attr = ibv_srq_attr { max_wr: 0, max_sge: 0, srq_limit: limit };
        let mask = ibv_srq_attr_mask::IBV_SRQ_LIMIT.0 as i32;
        // SAFETY: the SRQ is alive; the call copies the attributes.
        positive_errno("ibv_modify_srq", unsafe { ibv_modify_srq(self.raw(), &mut attr, mask) })
    }

    pub(crate) fn raw(&self) -> *mut ibv_srq {
        self.0.raw
    }

    pub(crate) fn context(&self) -> &Context {
        self.0.pd.context()
    }

    pub(crate) fn ledger(&self) -> Rc<ReceiveLedger> {
        Rc::clone(&self.0.ledger)
    }

    /// Another handle on the same queue, for its QPs.
    pub(crate) fn share(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        slow!("ibv_destroy_srq");
        // SAFETY: from ibv_create_srq; every QP on it shares Inner, so none is left.
        if let Err(error) = positive_errno("ibv_destroy_srq", unsafe { ibv_destroy_srq(self.raw) }) {
            // Still there: the device may use the memory, so it must stay, for ever.
            std::mem::forget(Rc::clone(&self.ledger));
            narrate::failure(&error.to_string());
        }
    }
}
