//! `ibv_qp_init_attr`: what a queue pair is made of (man 3 ibv_create_qp).

use std::fmt;

use rdma_sys::*;

use crate::context::Context;
use crate::cq::CompletionQueue;
use crate::error::{Error, Kind, Result};
use crate::pd::ProtectionDomain;
use crate::qp_cap::QpCap;
use crate::srq::SharedReceiveQueue;

/// `ibv_qp_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QpType {
    /// Reliable connected: every packet is acknowledged, or sent again.
    #[default]
    Rc,
    /// Unreliable connected: SEND and WRITE only, and what is lost is lost.
    Uc,
    /// Unreliable datagram: SEND only, at most the MTU, each request to whom it names ([`SendWr::to`](crate::SendWr::to)).
    Ud,
}

/// What a QP is made of.
pub struct QpInitAttr<'a> {
    /// Reports what becomes of the send queue's requests.
    pub send_cq: &'a CompletionQueue,
    /// Reports what becomes of the receives.
    pub recv_cq: &'a CompletionQueue,
    /// Where receives come from, if not from a queue of the QP's own.
    pub srq: Option<&'a SharedReceiveQueue>,
    /// Room in the queues.
    pub cap: QpCap,
    /// The transport.
    pub qp_type: QpType,
    /// Every request of the send queue makes a completion when it succeeds, whatever its own flags say. Without it only those
    /// that are signaled do. One that fails makes a completion in any case.
    pub sq_sig_all: bool,
}

impl<'a> QpInitAttr<'a> {
    /// A reliable connected QP with one CQ for both queues.
    pub fn new(cq: &'a CompletionQueue, cap: QpCap) -> Self {
        Self { send_cq: cq, recv_cq: cq, srq: None, cap, qp_type: QpType::Rc, sq_sig_all: false }
    }

    /// All parts must live on one device.
    pub(crate) fn check(&self, context: &Context, pd: &ProtectionDomain) -> Result<()> {
        let srq = self.srq.map_or(context, SharedReceiveQueue::context);
        let parts = [pd.context(), self.send_cq.context(), self.recv_cq.context(), srq];
        match parts.iter().all(|part| part.raw() == context.raw()) {
            true => Ok(()),
            false => Err(Error::of(
                Kind::Misuse,
                "PD, CQs and SRQ are not all of the QP's own device",
                "Make them from one Context: that of the id, or, without an id, one that was opened by name",
            )),
        }
    }

    /// The C struct. It names the queues, which must live as long.
    pub(crate) fn to_c(&self) -> ibv_qp_init_attr {
        // SAFETY: plain data, for which zero is a value: no SRQ, no context.
        let mut init: ibv_qp_init_attr = unsafe { std::mem::zeroed() };
        init.send_cq = self.send_cq.raw();
        init.recv_cq = self.recv_cq.raw();
        init.srq = self.srq.map_or(std::ptr::null_mut(), SharedReceiveQueue::raw);
        init.cap.max_send_wr = self.cap.max_send_wr;
        init.cap.max_recv_wr = self.cap.max_recv_wr;
        init.cap.max_send_sge = self.cap.max_send_sge;
        init.cap.max_recv_sge = self.cap.max_recv_sge;
        init.cap.max_inline_data = self.cap.max_inline_data;
        init.qp_type = match self.qp_type {
            QpType::Rc => ibv_qp_type::IBV_QPT_RC,
            QpType::Uc => ibv_qp_type::IBV_QPT_UC,
            QpType::Ud => ibv_qp_type::IBV_QPT_UD,
        };
        init.sq_sig_all = i32::from(self.sq_sig_all);
        init
    }
}

impl fmt::Display for QpInitAttr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let qp_type = match self.qp_type {
            QpType::Rc => "RC",
            QpType::Uc => "UC",
            QpType::Ud => "UD",
        };
        write!(f, "{qp_type} max_send_wr={} max_recv_wr={}", self.cap.max_send_wr, self.cap.max_recv_wr)?;
        f.write_str(if self.srq.is_some() { " with an SRQ" } else { "" })
    }
}
