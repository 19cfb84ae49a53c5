//! `ibv_qp`, the queue pair: a send queue and a receive queue (man 3 rdma_create_qp, ibv_create_qp, ibv_modify_qp,
//! ibv_query_qp). What is posted there: qp/post.rs.
//!
//! With an id, the connection manager moves the QP through its states: RESET → INIT in `rdma_create_qp`, INIT → RTR → RTS
//! when the connection is made, → ERR in `rdma_disconnect`. Without one, [`QueuePair::modify`] does, by hand.
//! [`QueuePair::dump`] shows where it is.
//!
//! Drop destroys the QP first of all, and then lets go of the memory of requests that never completed.

mod datagrams;
mod post;

use std::cell::{RefCell, RefMut};
use std::net::SocketAddr;
use std::rc::Rc;

use rdma_sys::*;

use crate::cm::id::CmId;
use crate::cq::CompletionQueue;
use crate::error::{minus_one, null, positive_errno, Result};
use crate::ledger::{ReceiveLedger, SendLedger};
use crate::pd::ProtectionDomain;
use crate::qp_attr::{self, QpAttr};
use crate::qp_cap::QpCap;
use crate::qp_init::{QpInitAttr, QpType};
use crate::qp_modify::ModifyQp;
use crate::srq::SharedReceiveQueue;
use crate::{info, narrate, slow};

/// A queue pair.
pub struct QueuePair {
    raw: *mut ibv_qp,
    /// The connection, if the connection manager made the QP.
    id: Option<CmId>,
    send_cq: CompletionQueue,
    recv_cq: CompletionQueue,
    srq: Option<SharedReceiveQueue>,
    _pd: ProtectionDomain,
    /// What the device gave: at least what was asked for.
    cap: QpCap,
    sq_sig_all: bool,
    qp_type: QpType,
    /// Multicast groups that it has joined.
    groups: RefCell<Vec<SocketAddr>>,
    sent: Rc<SendLedger>,
    /// Those of the SRQ, if there is one: then they belong to several QPs.
    received: Rc<ReceiveLedger>,
    /// What the last dump showed.
    shown: RefCell<Option<QpAttr>>,
}

impl CmId {
    /// `rdma_create_qp`: a QP for this connection, in the state INIT. A QP for datagrams needs no peer, so it's already in RTS.
    ///
    /// # Errors
    /// `Kind::NoDevice` if the id has none; `Error::Call`: EINVAL for more than the device has, or if the id has a QP; ENOMEM
    /// without the memory. `Kind::Misuse` if the parts are of several devices.
    #[track_caller]
    pub fn create_qp(&self, pd: &ProtectionDomain, attr: &QpInitAttr) -> Result<QueuePair> {
        slow!("rdma_create_qp {attr}");
        attr.check(&self.verbs()?, pd)?;
        let mut init = attr.to_c();
        // SAFETY: id, PD, CQs and SRQ are alive, of one device, and kept by the result.
        minus_one("rdma_create_qp", unsafe { rdma_create_qp(self.raw(), pd.raw(), &mut init) })?;
        // SAFETY: the id is alive, and rdma_create_qp has stored the QP there.
        let raw = unsafe { (*self.raw()).qp };
        Ok(QueuePair::new(raw, Some(self.clone()), pd, attr, &init))
    }
}

impl ProtectionDomain {
    /// `ibv_create_qp`: a queue pair without the connection manager, in the state RESET. (With it: [`CmId::create_qp`].)
    ///
    /// # Errors
    /// `Error::Call`: EINVAL for more than the device has, ENOMEM without the memory. `Kind::Misuse` if the parts are of several
    /// devices.
    #[track_caller]
    pub fn create_qp(&self, attr: &QpInitAttr) -> Result<QueuePair> {
        slow!("ibv_create_qp {attr}");
        attr.check(self.context(), self)?;
        let mut init = attr.to_c();
        // SAFETY: PD, CQs and SRQ are alive, of one device, and kept by the result.
        let raw = null("ibv_create_qp", unsafe { ibv_create_qp(self.raw(), &mut init) })?;
        Ok(QueuePair::new(raw, None, self, attr, &init))
    }
}

impl QueuePair {
    fn new(raw: *mut ibv_qp, id: Option<CmId>, pd: &ProtectionDomain, attr: &QpInitAttr, c: &ibv_qp_init_attr) -> Self {
        let qp = Self {
            raw,
            id,
            send_cq: attr.send_cq.share(),
            recv_cq: attr.recv_cq.share(),
            srq: attr.srq.map(SharedReceiveQueue::share),
            _pd: pd.share(),
            cap: QpCap::from_c(&c.cap),
            sq_sig_all: attr.sq_sig_all,
            qp_type: attr.qp_type,
            groups: RefCell::default(),
            sent: Rc::default(),
            received: attr.srq.map(SharedReceiveQueue::ledger).unwrap_or_default(),
            shown: RefCell::default(),
        };
        // SAFETY: the QP is alive, and drop takes the routes away.
        unsafe {
            qp.send_cq.routes().add_sends(raw, &qp.sent);
            qp.recv_cq.routes().add_receives(raw, &qp.received);
        }
        qp
    }

    /// `ibv_modify_qp`: moves the QP to another state. With an id, the connection manager does that.
    ///
    /// # Errors
    /// `Error::Call`, EINVAL, if the state cannot be reached from here, or an attribute does not fit.
    #[track_caller]
    pub fn modify(&self, to: &ModifyQp) -> Result<()> {
        slow!("ibv_modify_qp {to:?}");
        // SAFETY: the QP is alive.
        let qp_type = unsafe { (*self.raw).qp_type };
        let (mut attr, mask) = to.to_c(qp_type);
        // SAFETY: the QP is alive; the call copies the attributes.
        positive_errno("ibv_modify_qp", unsafe { ibv_modify_qp(self.raw, &mut attr, mask) })?;
        if *to == ModifyQp::Reset {
            // The device has forgotten what was posted. What an SRQ holds, is its own.
            self.sent.clear();
            if self.srq.is_none() {
                self.received.clear();
            }
        }
        Ok(())
    }

    /// `ibv_query_qp`: the QP's state and attributes.
    ///
    /// # Errors
    /// `Error::Call` if the device does not answer.
    pub fn query(&self) -> Result<QpAttr> {
        // SAFETY: the QP is alive.
        unsafe { qp_attr::query(self.raw) }
    }

    /// Logs the QP's state, and of its attributes those that changed since the last time; MTU in bytes, times in ms.
    #[track_caller]
    pub fn dump(&self) {
        match self.query() {
            Ok(attr) => {
                info!("QP: qpn={} {}", self.qp_num(), attr.changes(self.shown.borrow().as_ref()));
                self.shown.replace(Some(attr));
            }
            Err(error) => narrate::failure(&error.to_string()),
        }
    }

    /// The number, 24 bits, that the peer's packets carry as destination QP.
    pub fn qp_num(&self) -> u32 {
        // SAFETY: the QP is alive.
        unsafe { (*self.raw).qp_num }
    }

    pub(crate) fn id(&self) -> Option<&CmId> {
        self.id.as_ref()
    }

    pub(crate) fn groups(&self) -> RefMut<'_, Vec<SocketAddr>> {
        self.groups.borrow_mut()
    }

    /// How much room the device gave, in requests, pieces and bytes.
    pub fn cap(&self) -> QpCap {
        self.cap
    }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        self.leave_groups();
        let qp_num = self.qp_num();
        slow!("{}", if self.id.is_some() { "rdma_destroy_qp" } else { "ibv_destroy_qp" });
        // rdma_destroy_qp is ibv_destroy_qp, and the id forgets the QP (librdmacm/cma.c). But it keeps the result to itself,
        // and whether the memory may go depends on that.
        // SAFETY: from rdma_create_qp or ibv_create_qp; nobody else uses it.
        match positive_errno("ibv_destroy_qp", unsafe { ibv_destroy_qp(self.raw) }) {
            Ok(()) => {
                if let Some(id) = &self.id {
                    // SAFETY: the id is alive.
                    unsafe { (*id.raw()).qp = std::ptr::null_mut() };
                }
            }
            Err(error) => {
                // Still there: the device may use the memory, so it must stay, for ever.
                std::mem::forget((Rc::clone(&self.sent), Rc::clone(&self.received)));
                narrate::failure(&error.to_string());
            }
        }
        // If the QP is gone, the device writes nowhere any more.
        for cq in [&self.send_cq, &self.recv_cq] {
            cq.routes().remove(qp_num);
        }
    }
}
