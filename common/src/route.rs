//! Who reports to a completion queue: its QPs in the order of their numbers, each with what is posted there.
//!
//! A completion names its QP and its request, and nothing else for certain. Here it finds the list that keeps the request's
//! memory; and a wait finds out whether what it waits for can still come.

use std::rc::Rc;

use rdma_sys::ibv_qp;

use crate::error::Result;
use crate::ledger::{ReceiveLedger, SendLedger};
use crate::qp_attr::{self, QpState};

/// The QPs of one CQ.
#[derive(Default)]
pub(crate) struct Routes(Vec<Route>);

/// A QP, and which of its queues reports here. The other queue may have its own CQ.
struct Route {
    qp_num: u32,
    /// Alive: a QP takes its route away when it is dropped.
    qp: *mut ibv_qp,
    send: Option<Rc<SendLedger>>,
    receive: Option<Rc<ReceiveLedger>>,
}

impl Routes {
    /// From now on completions of this QP's send queue may come.
    ///
    /// # Safety
    /// The QP must live until [`remove`](Self::remove) is called for it.
    pub unsafe fn add_sends(&mut self, qp: *mut ibv_qp, ledger: &Rc<SendLedger>) {
        // SAFETY: the caller's promise.
        unsafe { self.route(qp) }.send = Some(Rc::clone(ledger));
    }

    /// From now on completions of this QP's receives may come.
    ///
    /// # Safety
    /// The QP must live until [`remove`](Self::remove) is called for it.
    pub unsafe fn add_receives(&mut self, qp: *mut ibv_qp, ledger: &Rc<ReceiveLedger>) {
        // SAFETY: the caller's promise.
        unsafe { self.route(qp) }.receive = Some(Rc::clone(ledger));
    }

    /// # Safety
    /// The QP must live until [`remove`](Self::remove) is called for it.
    unsafe fn route(&mut self, qp: *mut ibv_qp) -> &mut Route {
        // SAFETY: the QP is alive.
        let qp_num = unsafe { (*qp).qp_num };
        let at = self.position(qp_num).unwrap_or_else(|at| {
            self.0.insert(at, Route { qp_num, qp, send: None, receive: None });
            at
        });
        &mut self.0[at]
    }

    fn position(&self, qp_num: u32) -> std::result::Result<usize, usize> {
        self.0.binary_search_by_key(&qp_num, |route| route.qp_num)
    }

    /// The QP is gone: so is the need for the memory of its unfinished requests.
    pub fn remove(&mut self, qp_num: u32) {
        self.0.retain(|route| route.qp_num != qp_num);
    }

    /// The device is done with this request's memory.
    pub fn complete(&self, qp_num: u32, wr_id: u64) {
        if let Ok(at) = self.position(qp_num) {
            self.0[at].complete(wr_id);
        }
    }

    /// The QPs that may report this request: one, or, if it is a receive of an SRQ, all that share it. Empty if none will.
    pub fn posted_to(&self, wr_id: u64) -> Vec<u32> {
        self.0.iter().filter(|route| route.will_complete(wr_id)).map(|route| route.qp_num).collect()
    }

    /// True if these QPs share an SRQ, and none of them takes receives from it any more. In ERR a device flushes what is in a
    /// QP's own queues, but what an SRQ holds it leaves there.
    pub fn have_left_their_srq(&self, qp_nums: &[u32]) -> Result<bool> {
        for at in qp_nums.iter().filter_map(|qp_num| self.position(*qp_num).ok()) {
            if !self.0[at].has_left_its_srq()? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Route {
    /// A completion with this number has come. An error status hides which queue it is of, but no number is used twice.
    fn complete(&self, wr_id: u64) {
        if !self.receive.as_ref().is_some_and(|receive| receive.complete(wr_id)) {
            self.send.iter().for_each(|send| send.complete(wr_id));
        }
    }

    /// True if a completion with this number will come.
    fn will_complete(&self, wr_id: u64) -> bool {
        self.receive.as_ref().is_some_and(|receive| receive.will_complete(wr_id))
            || self.send.as_ref().is_some_and(|send| send.will_complete(wr_id))
    }

    fn has_left_its_srq(&self) -> Result<bool> {
        // SAFETY: the QP is alive, for its route is here.
        let (has_srq, attr) = unsafe { (!(*self.qp).srq.is_null(), qp_attr::query(self.qp)) };
        Ok(has_srq && matches!(attr?.state, QpState::ERR | QpState::RESET))
    }
}
