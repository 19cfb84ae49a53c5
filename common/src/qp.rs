//! `ibv_qp`, the queue pair: a send queue and a receive queue (man 3 rdma_create_qp, ibv_post_send, ibv_post_recv,
//! ibv_query_qp).
//!
//! The connection manager moves the QP through its states: RESET → INIT in `rdma_create_qp`, INIT → RTR → RTS when the
//! connection is made, → ERR in `rdma_disconnect`. [`QueuePair::dump`] shows where it is.
//!
//! Drop destroys the QP first of all, and then lets go of the memory of requests that never completed.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use rdma_sys::*;

use crate::cm::id::CmId;
use crate::cq::CompletionQueue;
use crate::error::{minus_one, positive_errno, Error, Result};
use crate::mr::MemoryRegion;
use crate::pd::ProtectionDomain;
use crate::wr::{dump_sge, recv_wr, sge, SendWr};
use crate::{data, info, narrate, slow};

/// The next work request's number. One count for the whole program: it names a request among all that are under way.
static NEXT_WR_ID: AtomicU64 = AtomicU64::new(1);

/// `ibv_qp_cap`: how much room the queues need. The device may round up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QpCap {
    /// Requests that may wait in the send queue.
    pub max_send_wr: u32,
    /// Requests that may wait in the receive queue.
    pub max_recv_wr: u32,
    /// Scatter/gather elements of a request in the send queue.
    pub max_send_sge: u32,
    /// Scatter/gather elements of a receive.
    pub max_recv_sge: u32,
    /// Bytes that a request may carry inline.
    pub max_inline_data: u32,
}

impl QpCap {
    /// One request in each queue, one piece of memory in each request, nothing inline: to be changed field by field.
    pub const SMALL: Self =
        Self { max_send_wr: 1, max_recv_wr: 1, max_send_sge: 1, max_recv_sge: 1, max_inline_data: 0 };
}

/// `ibv_qp_init_attr`: what a QP is made of.
#[derive(Debug, Clone)]
pub struct QpInitAttr<'a> {
    /// Reports what becomes of the send queue's requests.
    pub send_cq: &'a CompletionQueue,
    /// Reports what becomes of the receives.
    pub recv_cq: &'a CompletionQueue,
    /// Room in the queues.
    pub cap: QpCap,
}

impl<'a> QpInitAttr<'a> {
    /// One CQ for both queues.
    pub fn new(cq: &'a CompletionQueue, cap: QpCap) -> Self {
        Self { send_cq: cq, recv_cq: cq, cap }
    }
}

/// A reliable connected (RC) queue pair.
pub struct QueuePair {
    id: CmId,
    cq: CompletionQueue,
    _pd: ProtectionDomain,
}

impl QueuePair {
    /// `rdma_create_qp`: an RC QP for the connection `id`, with one CQ for both queues. It is in the state INIT.
    pub fn create(id: &CmId, pd: &ProtectionDomain, attr: &QpInitAttr) -> Result<Self> {
        let (cq, cap) = (attr.send_cq, attr.cap);
        slow!("rdma_create_qp RC max_send_wr={} max_recv_wr={}", cap.max_send_wr, cap.max_recv_wr);
        if cq.context().raw() != id.verbs()?.raw() {
            let next = "Create PD, CQ and QP from the same id";
            return Err(Error::content("the completion queue belongs to another device than the id", next));
        }
        // SAFETY: plain data, for which zero is a value: no SRQ, no inline data, no context.
        let mut init: ibv_qp_init_attr = unsafe { std::mem::zeroed() };
        init.qp_type = ibv_qp_type::IBV_QPT_RC;
        init.send_cq = cq.raw();
        init.recv_cq = cq.raw();
        init.cap.max_send_wr = cap.max_send_wr;
        init.cap.max_recv_wr = cap.max_recv_wr;
        init.cap.max_send_sge = 1;
        init.cap.max_recv_sge = 1;
        // SAFETY: id, PD and CQ are alive and kept by the result.
        minus_one("rdma_create_qp", unsafe { rdma_create_qp(id.raw(), pd.raw(), &mut init) })?;
        Ok(Self { id: id.share(), cq: cq.share(), _pd: pd.share() })
    }

    /// `ibv_post_recv`: lends `range` of the region to the device for one incoming SEND. Post before the peer sends, or
    /// the device answers "receiver not ready". Returns the request's number.
    pub fn post_recv(&self, region: &MemoryRegion, range: Range<usize>) -> Result<u64> {
        let mut sge = sge(region, range)?;
        let wr_id = NEXT_WR_ID.fetch_add(1, Ordering::Relaxed);
        data!("ibv_post_recv wr_id={wr_id} len={}", sge.length);
        info!("SGE: {}", dump_sge(&sge));
        self.cq.keep(wr_id, self.qp_num(), region.keep());
        let (mut wr, mut bad) = (recv_wr(wr_id, &mut sge), std::ptr::null_mut());
        // SAFETY: the QP is alive. The request and its SGE live across the call, which copies them; the CQ keeps the
        // memory until the completion is polled or the QP is gone, even if the call fails: SoftRoCE holds on to a request
        // that it has refused, and flushes it later.
        let result = unsafe { ibv_post_recv(self.raw(), &mut wr, &mut bad) };
        positive_errno("ibv_post_recv", result).map(|()| wr_id)
    }

    /// `ibv_post_send`: hands a request to the device, and returns before anything is sent. Leave the region alone until
    /// the completion. Returns the request's number.
    pub fn post_send(&self, request: &SendWr) -> Result<u64> {
        let mut sge = request.sge()?;
        let wr_id = NEXT_WR_ID.fetch_add(1, Ordering::Relaxed);
        data!("ibv_post_send {} wr_id={wr_id} len={}", request.name(), request.len());
        info!("SGE: {}", dump_sge(&sge));
        info!("WR: {}", request.dump(wr_id));
        self.cq.keep(wr_id, self.qp_num(), request.region.keep());
        let (mut wr, mut bad) = (request.to_c(wr_id, &mut sge), std::ptr::null_mut());
        // SAFETY: as in post_recv.
        let result = unsafe { ibv_post_send(self.raw(), &mut wr, &mut bad) };
        positive_errno("ibv_post_send", result).map(|()| wr_id)
    }

    /// `ibv_query_qp`: logs the QP's state and attributes, MTU in bytes and times in ms.
    pub fn dump(&self) {
        // SAFETY: plain data, for which zero is a value.
        let (mut attr, mut init): (ibv_qp_attr, ibv_qp_init_attr) = unsafe { std::mem::zeroed() };
        let mask = [
            ibv_qp_attr_mask::IBV_QP_STATE,
            ibv_qp_attr_mask::IBV_QP_PATH_MTU,
            ibv_qp_attr_mask::IBV_QP_TIMEOUT,
            ibv_qp_attr_mask::IBV_QP_CAP,
        ];
        let mask = mask.iter().fold(0, |mask, bit| mask | bit.0);
        // SAFETY: the QP is alive; both structs are written.
        let result = unsafe { ibv_query_qp(self.raw(), &mut attr, mask as i32, &mut init) };
        match positive_errno("ibv_query_qp", result) {
            Ok(()) => info!("QP: qpn={} {}", self.qp_num(), describe(&attr)),
            Err(error) => narrate::failure(&error.to_string()),
        }
    }

    /// The number that the peer's packets carry as destination QP.
    pub fn qp_num(&self) -> u32 {
        // SAFETY: the QP is alive.
        unsafe { (*self.raw()).qp_num }
    }

    fn raw(&self) -> *mut ibv_qp {
        // SAFETY: the id is alive, and rdma_create_qp stored the QP there.
        unsafe { (*self.id.raw()).qp }
    }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        slow!("rdma_destroy_qp");
        let qp_num = self.qp_num();
        // SAFETY: from rdma_create_qp; nobody else uses it.
        unsafe { rdma_destroy_qp(self.id.raw()) };
        // The QP is gone: the device writes nowhere any more.
        self.cq.release_all(qp_num);
    }
}

/// State and attributes in words: those that the state has set, for before that the fields hold anything.
fn describe(attr: &ibv_qp_attr) -> String {
    let state = state_name(attr.qp_state);
    if attr.qp_state < ibv_qp_state::IBV_QPS_RTR {
        let cap = &attr.cap;
        return format!("state={state} max_send_wr={} max_recv_wr={}", cap.max_send_wr, cap.max_recv_wr);
    }
    format!(
        "state={state} mtu={} B dest_qpn={} sq_psn={} rq_psn={} max_rd_atomic={} max_dest_rd_atomic={} retry_cnt={} \
         rnr_retry={} timeout={} min_rnr_timer={} ms",
        mtu_bytes(attr.path_mtu),
        attr.dest_qp_num,
        attr.sq_psn,
        attr.rq_psn,
        attr.max_rd_atomic,
        attr.max_dest_rd_atomic,
        attr.retry_cnt,
        attr.rnr_retry,
        timeout_text(attr.timeout),
        rnr_timer_ms(attr.min_rnr_timer)
    )
}

/// `ibv_qp_state` without its prefix.
fn state_name(state: u32) -> String {
    const NAMES: [&str; 7] = ["RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"];
    NAMES.get(state as usize).map_or_else(|| format!("state {state}"), |name| name.to_string())
}

/// `ibv_mtu` is an exponent: 1 is 256 bytes, 5 is 4096. 0: not set yet.
fn mtu_bytes(mtu: u32) -> u32 {
    match mtu {
        1..=5 => 128 << mtu,
        _ => 0,
    }
}

/// The ACK time-out is 4.096 µs × 2^n; 0 means for ever (IBTA volume 1, section 11.2.5.2).
fn timeout_text(timeout: u8) -> String {
    match timeout {
        0 => "none".into(),
        n => format!("{:.1} ms", 0.004_096 * f64::from(n.min(31)).exp2()),
    }
}

/// The RNR NAK timer field in ms (IBTA volume 1, table 45).
fn rnr_timer_ms(code: u8) -> f64 {
    const MS: [f64; 32] = [
        655.36, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.16, 0.24, 0.32, 0.48, 0.64, 0.96, 1.28, 1.92, 2.56, 3.84,
        5.12, 7.68, 10.24, 15.36, 20.48, 30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52,
    ];
    MS[usize::from(code & 31)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_in_units() {
        assert_eq!((mtu_bytes(3), mtu_bytes(5), mtu_bytes(0), mtu_bytes(77)), (1024, 4096, 0, 0));
        assert_eq!((timeout_text(0).as_str(), timeout_text(19).as_str()), ("none", "2147.5 ms"));
        assert_eq!((rnr_timer_ms(0), rnr_timer_ms(31)), (655.36, 491.52));
    }

    #[test]
    fn only_what_the_state_has_set_is_shown() {
        // SAFETY: plain data, for which zero is a value.
        let mut attr: ibv_qp_attr = unsafe { std::mem::zeroed() };
        attr.qp_state = ibv_qp_state::IBV_QPS_INIT;
        assert_eq!(describe(&attr), "state=INIT max_send_wr=0 max_recv_wr=0");
        attr.qp_state = ibv_qp_state::IBV_QPS_RTS;
        assert!(describe(&attr).starts_with("state=RTS mtu=0 B dest_qpn=0"), "{}", describe(&attr));
    }

    #[test]
    fn states_by_name_and_unknown_ones_by_number() {
        assert_eq!(state_name(3), "RTS");
        assert_eq!(state_name(4711), "state 4711");
    }
}
