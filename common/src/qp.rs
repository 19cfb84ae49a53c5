//! `ibv_qp`, the queue pair: a send queue and a receive queue (man 3 rdma_create_qp, ibv_create_qp, ibv_post_send,
//! ibv_post_recv, ibv_modify_qp, ibv_query_qp).
//!
//! With an id, the connection manager moves the QP through its states: RESET → INIT in `rdma_create_qp`, INIT → RTR → RTS
//! when the connection is made, → ERR in `rdma_disconnect`. Without one, [`QueuePair::modify`] does, by hand.
//! [`QueuePair::dump`] shows where it is.
//!
//! Drop destroys the QP first of all, and then lets go of the memory of requests that never completed.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use rdma_sys::*;
use smallvec::SmallVec;

use crate::cm::id::CmId;
use crate::cq::CompletionQueue;
use crate::error::{minus_one, null, positive_errno, Error, Kind, Result};
use crate::ledger::{ReceiveLedger, SendLedger};
use crate::mr::MemoryRegion;
use crate::pd::ProtectionDomain;
use crate::qp_attr::{self, QpAttr};
use crate::qp_init::{QpCap, QpInitAttr};
use crate::qp_modify::ModifyQp;
use crate::srq::SharedReceiveQueue;
use crate::wr::{dump_sge, recv_wr, sges, total_len, Piece, SendWr};
use crate::{data, fast, info, narrate, slow};

/// The next work request's number. One count for the whole program: it names a request among all that are under way.
static NEXT_WR_ID: AtomicU64 = AtomicU64::new(1);

pub(crate) fn next_wr_id() -> u64 {
    next_wr_ids(1).start
}

/// So many of them, one behind the other.
fn next_wr_ids(count: usize) -> Range<u64> {
    let first = NEXT_WR_ID.fetch_add(count as u64, Ordering::Relaxed);
    first..first + count as u64
}

/// Lists of up to so many requests are posted without an allocation.
const LIST: usize = 16;

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
    sent: Rc<SendLedger>,
    /// Those of the SRQ, if there is one: then they belong to several QPs.
    received: Rc<ReceiveLedger>,
    /// What the last dump showed.
    shown: RefCell<Option<QpAttr>>,
}

impl QueuePair {
    /// `rdma_create_qp`: a QP for the connection `id`. It is in the state INIT.
    ///
    /// # Errors
    /// `Kind::NoDevice` if the id has none; `Error::Call`: EINVAL for more than the device has, or if the id has a QP; ENOMEM
    /// without the memory. `Kind::Misuse` if the parts are of several devices.
    pub fn create(id: &CmId, pd: &ProtectionDomain, attr: &QpInitAttr) -> Result<Self> {
        slow!("rdma_create_qp {attr}");
        attr.check(&id.verbs()?, pd)?;
        let mut init = attr.to_c();
        // SAFETY: id, PD, CQs and SRQ are alive, of one device, and kept by the result.
        minus_one("rdma_create_qp", unsafe { rdma_create_qp(id.raw(), pd.raw(), &mut init) })?;
        // SAFETY: the id is alive, and rdma_create_qp has stored the QP there.
        let raw = unsafe { (*id.raw()).qp };
        Ok(Self::new(raw, Some(id.clone()), pd, attr, &init))
    }

    /// `ibv_create_qp`: a QP without the connection manager. It is in the state RESET; called by
    /// [`ProtectionDomain::create_qp`].
    pub(crate) fn create_alone(pd: &ProtectionDomain, attr: &QpInitAttr) -> Result<Self> {
        slow!("ibv_create_qp {attr}");
        attr.check(pd.context(), pd)?;
        let mut init = attr.to_c();
        // SAFETY: PD, CQs and SRQ are alive, of one device, and kept by the result.
        let raw = null("ibv_create_qp", unsafe { ibv_create_qp(pd.raw(), &mut init) })?;
        Ok(Self::new(raw, None, pd, attr, &init))
    }

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

    /// `ibv_post_recv`: lends `range` of the region, in bytes from its start, to the device for one incoming SEND. Post before the peer sends, or
    /// the device answers "receiver not ready". Returns the request's number.
    ///
    /// # Errors
    /// `Error::Call`: ENOMEM if the queue is full, EINVAL in RESET. `Kind::OutOfRange` for a range outside the region,
    /// `Kind::Misuse` if the QP has an SRQ.
    pub fn post_recv(&self, region: &MemoryRegion, range: Range<usize>) -> Result<u64> {
        self.post_recv_pieces(&[(region, range)])
    }

    /// The same with several pieces, which one SEND fills one after the other; or with none, for a WRITE with immediate.
    ///
    /// # Errors
    /// As [`post_recv`](Self::post_recv); `Kind::Misuse` for more than `max_recv_sge` pieces, too.
    pub fn post_recv_pieces(&self, pieces: &[Piece]) -> Result<u64> {
        if self.srq.is_some() {
            return Err(Error::of(Kind::Misuse, "this QP receives from an SRQ", "Post the receive to the SRQ"));
        }
        let mut sges = sges(pieces, self.cap.max_recv_sge)?;
        let wr_id = next_wr_id();
        fast!("ibv_post_recv wr_id={wr_id} len={}", total_len(&sges));
        sges.iter().for_each(|sge| info!("SGE: {}", dump_sge(sge)));
        self.received.add(wr_id, pieces.iter().map(|(region, _)| region.keep()).collect());
        let (mut wr, mut bad) = (recv_wr(wr_id, &mut sges), std::ptr::null_mut());
        // SAFETY: the QP is alive. The request and its SGEs live across the call, which copies them; the ledger keeps the
        // memory until the completion is polled or the QP is gone.
        let result = unsafe { ibv_post_recv(self.raw, &mut wr, &mut bad) };
        positive_errno("ibv_post_recv", result).map(|()| wr_id).map_err(|error| {
            // Refused, and forgotten: the device holds no such receive.
            self.received.complete(wr_id);
            error
        })
    }

    /// `ibv_post_send`: hands a request to the device, and returns before anything is sent. Leave the region alone until
    /// the completion. Returns the request's number.
    ///
    /// # Errors
    /// `Error::Call`: ENOMEM if the queue is full, EINVAL before RTS. `Kind::OutOfRange` for a range outside its region,
    /// `Kind::Misuse` for what the operation or the QP cannot carry. Nothing is posted then.
    pub fn post_send(&self, request: &SendWr) -> Result<u64> {
        let mut sges = request.sges(self.cap.max_send_sge, self.cap.max_inline_data)?;
        let mut wr = self.show(next_wr_id(), request, &mut sges);
        let mut bad = std::ptr::null_mut();
        // SAFETY: the QP is alive. The request and its SGEs live across the call, which copies them; from then on the ledger
        // keeps the memory until a completion says that the request is done, or the QP is reset or gone. It keeps nothing of a
        // request that is refused: rdma_rxe (Linux 6.1) has that in its queue all the same, and tries to send it later; but
        // its key opens nothing any more once the region is dropped.
        positive_errno("ibv_post_send", unsafe { ibv_post_send(self.raw, &mut wr, &mut bad) })?;
        // By now the request is on its way.
        self.note(wr.wr_id, request);
        Ok(wr.wr_id)
    }

    /// `ibv_post_send` with a list: one call for all requests. If the device refuses one, those before it are under way:
    /// so this returns the numbers of those that are, and what stopped the next.
    pub fn post_send_all(&self, requests: &[SendWr]) -> (Range<u64>, Result<()>) {
        let sges = requests.iter().map(|request| request.sges(self.cap.max_send_sge, self.cap.max_inline_data));
        let mut sges: SmallVec<[_; LIST]> = match sges.collect::<Result<_>>() {
            Ok(sges) => sges,
            Err(error) => return (0..0, Err(error)),
        };
        let wr_ids = next_wr_ids(requests.len());
        let numbered = wr_ids.clone().zip(requests).zip(&mut sges);
        let mut wrs: SmallVec<[_; LIST]> =
            numbered.map(|((wr_id, request), sges)| self.show(wr_id, request, sges)).collect();
        let mut next = std::ptr::null_mut();
        for wr in wrs.iter_mut().rev() {
            wr.next = next;
            next = wr;
        }
        if next.is_null() {
            return (wr_ids, Ok(()));
        }
        let mut bad = std::ptr::null_mut();
        // SAFETY: as in post_send; `next` is the first of the list, all of which lives across the call.
        let result = positive_errno("ibv_post_send", unsafe { ibv_post_send(self.raw, next, &mut bad) });
        let count = match result {
            Ok(()) => wrs.len(),
            Err(_) => wrs.iter().position(|wr| std::ptr::eq(wr, bad)).unwrap_or(0),
        };
        let taken = wr_ids.start..wr_ids.start + count as u64;
        taken.clone().zip(requests).for_each(|(wr_id, request)| self.note(wr_id, request));
        (taken, result)
    }

    /// Shows the request and its number, in C's form.
    fn show(&self, wr_id: u64, request: &SendWr, sges: &mut [ibv_sge]) -> ibv_send_wr {
        data!("ibv_post_send {} wr_id={wr_id} len={}", request.name(), total_len(sges));
        sges.iter().for_each(|sge| info!("SGE: {}", dump_sge(sge)));
        info!("WR: {}", request.dump(wr_id, sges.len()));
        request.to_c(wr_id, sges)
    }

    /// Notes the memory of a request that was posted.
    fn note(&self, wr_id: u64, request: &SendWr) {
        self.sent.add(wr_id, request.is_signaled() || self.sq_sig_all, request.memory());
    }

    /// `ibv_modify_qp`: moves the QP to another state. With an id, the connection manager does that.
    ///
    /// # Errors
    /// `Error::Call`, EINVAL, if the state cannot be reached from here, or an attribute does not fit.
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

    /// How much room the device gave, in requests, pieces and bytes.
    pub fn cap(&self) -> QpCap {
        self.cap
    }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
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
