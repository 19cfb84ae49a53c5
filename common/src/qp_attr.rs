//! `ibv_qp_attr`: a queue pair's state and attributes, as `ibv_query_qp` tells them (man 3 ibv_query_qp).

use std::fmt;

use rdma_sys::{
    ibv_qp, ibv_qp_attr, ibv_qp_attr_mask as mask, ibv_qp_init_attr, ibv_qp_state, ibv_query_qp, ibv_transport_type,
};

use crate::error::{positive_errno, Result};
use crate::mtu::Mtu;
use crate::qp_cap::QpCap;

/// `ibv_qp_state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QpState(pub u32);

impl QpState {
    /// New, and silent.
    pub const RESET: Self = Self(ibv_qp_state::IBV_QPS_RESET);
    /// Receives may be posted.
    pub const INIT: Self = Self(ibv_qp_state::IBV_QPS_INIT);
    /// Ready to receive.
    pub const RTR: Self = Self(ibv_qp_state::IBV_QPS_RTR);
    /// Ready to send.
    pub const RTS: Self = Self(ibv_qp_state::IBV_QPS_RTS);
    /// At its end: everything is flushed.
    pub const ERR: Self = Self(ibv_qp_state::IBV_QPS_ERR);
    /// The driver doesn't say.
    pub const UNKNOWN: Self = Self(u32::MAX);
}

impl fmt::Display for QpState {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        const NAMES: [&str; 7] = ["RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"];
        match NAMES.get(self.0 as usize) {
            Some(name) => f.write_str(name),
            None if *self == Self::UNKNOWN => f.write_str("unknown"),
            None => write!(f, "state {}", self.0),
        }
    }
}

/// What `ibv_query_qp` tells; docs/qp_states.md explains each. Before the state RTR only `state` and `cap` hold anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QpAttr {
    /// Where the QP is.
    pub state: QpState,
    /// Room in its queues, in requests, pieces and bytes.
    pub cap: QpCap,
    /// The most payload in a packet: 256, 512, 1024, 2048 or 4096 bytes.
    pub path_mtu: Mtu,
    /// The peer's `qp_num`: 24 bits, as each PSN.
    pub dest_qp_num: u32,
    /// The number of this side's next packet.
    pub sq_psn: u32,
    /// The number that the peer's next packet must have.
    pub rq_psn: u32,
    /// READs and atomics that this side may have under way at a time.
    pub max_rd_atomic: u8,
    /// READs and atomics of the peer that this side answers at a time.
    pub max_dest_rd_atomic: u8,
    /// How often a packet without an answer is sent again, 0 to 7.
    pub retry_cnt: u8,
    /// How often to try again when the peer has no receive posted, 0 to 7; 7 is for ever.
    pub rnr_retry: u8,
    /// How long to wait for an ACK: 4.096 µs × 2^n, 0 to 31; 0 is for ever.
    pub timeout: u8,
    /// How long the peer should wait when no receive is posted, as a code, 0 to 31 (IBTA volume 1, table 45): 12 is 0.64 ms, 0 is
    /// 655.36 ms.
    pub min_rnr_timer: u8,
    /// Whether the QP is one of iWARP. Then TCP numbers, repeats and waits, so most of these mean nothing, and Linux's siw leaves
    /// them as they were in the kernel's memory; before Linux 6.8 the state as well. We show them as unknown.
    pub is_iwarp: bool,
}

impl QpAttr {
    /// Exactly what `from_c` reads: a device need not fill in anything else.
    const MASK: i32 = (mask::IBV_QP_STATE.0
        | mask::IBV_QP_CAP.0
        | mask::IBV_QP_PATH_MTU.0
        | mask::IBV_QP_DEST_QPN.0
        | mask::IBV_QP_SQ_PSN.0
        | mask::IBV_QP_RQ_PSN.0
        | mask::IBV_QP_MAX_QP_RD_ATOMIC.0
        | mask::IBV_QP_MAX_DEST_RD_ATOMIC.0
        | mask::IBV_QP_RETRY_CNT.0
        | mask::IBV_QP_RNR_RETRY.0
        | mask::IBV_QP_TIMEOUT.0
        | mask::IBV_QP_MIN_RNR_TIMER.0) as i32;

    fn from_c(attr: &ibv_qp_attr, is_iwarp: bool) -> Self {
        let all = Self {
            state: QpState(attr.qp_state),
            cap: QpCap::from_c(&attr.cap),
            path_mtu: Mtu(attr.path_mtu),
            dest_qp_num: attr.dest_qp_num,
            sq_psn: attr.sq_psn,
            rq_psn: attr.rq_psn,
            max_rd_atomic: attr.max_rd_atomic,
            max_dest_rd_atomic: attr.max_dest_rd_atomic,
            retry_cnt: attr.retry_cnt,
            rnr_retry: attr.rnr_retry,
            timeout: attr.timeout,
            min_rnr_timer: attr.min_rnr_timer,
            is_iwarp,
        };
        if !is_iwarp {
            return all;
        }
        let state = QpState::UNKNOWN;
        let (dest_qp_num, sq_psn, rq_psn, retry_cnt, rnr_retry, timeout, min_rnr_timer) = Default::default();
        Self { state, dest_qp_num, sq_psn, rq_psn, retry_cnt, rnr_retry, timeout, min_rnr_timer, ..all }
    }

    /// The state, and those attributes that it has set and that were not in `before`.
    pub(crate) fn changes(&self, before: Option<&Self>) -> String {
        let known = before.map(Self::fields).unwrap_or_default();
        let new = self.fields().into_iter().filter(|field| !known.contains(field));
        std::iter::once(format!("state={}", self.state)).chain(new).collect::<Vec<_>>().join(" ")
    }

    fn fields(&self) -> Vec<String> {
        let cap = &self.cap;
        let mut fields = vec![
            format!("max_send_wr={} max_recv_wr={}", cap.max_send_wr, cap.max_recv_wr),
            format!("max_sge={{{},{}}}", cap.max_send_sge, cap.max_recv_sge),
        ];
        // Before RTR the fields hold anything.
        if self.state.0 >= QpState::RTR.0 {
            let infiniband = |text: String| if self.is_iwarp { "unknown".to_owned() } else { text };
            fields.extend([
                format!("mtu={} B", self.path_mtu.bytes()),
                format!("dest_qpn={}", infiniband(self.dest_qp_num.to_string())),
                format!("sq_psn={}", infiniband(self.sq_psn.to_string())),
                format!("rq_psn={}", infiniband(self.rq_psn.to_string())),
                format!("max_rd_atomic={}", self.max_rd_atomic),
                format!("max_dest_rd_atomic={}", self.max_dest_rd_atomic),
                format!("retry_cnt={}", infiniband(self.retry_cnt.to_string())),
                format!("rnr_retry={}", infiniband(self.rnr_retry.to_string())),
                format!("timeout={}", infiniband(timeout_text(self.timeout))),
                format!("min_rnr_timer={}", infiniband(format!("{} ms", rnr_timer_ms(self.min_rnr_timer)))),
            ]);
        }
        fields
    }
}

/// `ibv_query_qp`.
///
/// # Safety
/// The QP must be alive.
pub(crate) unsafe fn query(qp: *mut ibv_qp) -> Result<QpAttr> {
    // SAFETY: plain data, for which zero is a value.
    let (mut attr, mut init): (ibv_qp_attr, ibv_qp_init_attr) = unsafe { std::mem::zeroed() };
    // SAFETY: the QP is alive; both structs are written.
    let result = unsafe { ibv_query_qp(qp, &mut attr, QpAttr::MASK, &mut init) };
    // SAFETY: a QP's context and device are alive as long as it is.
    let is_iwarp = unsafe { (*(*(*qp).context).device).transport_type == ibv_transport_type::IBV_TRANSPORT_IWARP };
    positive_errno("ibv_query_qp", result).map(|()| QpAttr::from_c(&attr, is_iwarp))
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
        assert_eq!((timeout_text(0).as_str(), timeout_text(19).as_str()), ("none", "2147.5 ms"));
        assert_eq!((rnr_timer_ms(0), rnr_timer_ms(31)), (655.36, 491.52));
    }

    #[test]
    fn only_what_the_state_has_set_and_what_is_new_is_shown() {
        // SAFETY: plain data, for which zero is a value.
        let mut attr = QpAttr::from_c(&unsafe { std::mem::zeroed() }, false);
        attr.state = QpState::INIT;
        let init = attr.clone();
        assert_eq!(init.changes(None), "state=INIT max_send_wr=0 max_recv_wr=0 max_sge={0,0}");
        attr.state = QpState::RTS;
        let text = attr.changes(Some(&init));
        assert!(text.starts_with("state=RTS mtu=0 B dest_qpn=0 sq_psn=0"), "{text}");
        let ended = QpAttr { state: QpState::ERR, sq_psn: 7, ..attr.clone() };
        assert_eq!(ended.changes(Some(&attr)), "state=ERR sq_psn=7");
    }

    /// What siw of Linux 6.1 once handed out as it was in the kernel's memory.
    #[test]
    fn what_iwarp_leaves_undefined_is_unknown() {
        // SAFETY: plain data, for which zero is a value.
        let mut raw: ibv_qp_attr = unsafe { std::mem::zeroed() };
        (raw.qp_state, raw.dest_qp_num, raw.sq_psn, raw.timeout, raw.max_rd_atomic) = (161, 3_211_265, 7, 31, 1);
        let attr = QpAttr::from_c(&raw, true);
        let text = attr.changes(None);
        assert!(text.starts_with("state=unknown max_send_wr=0"), "{text}");
        assert!(text.contains(" dest_qpn=unknown sq_psn=unknown rq_psn=unknown max_rd_atomic=1 "), "{text}");
        assert!(text.ends_with(" retry_cnt=unknown rnr_retry=unknown timeout=unknown min_rnr_timer=unknown"), "{text}");
        raw.qp_state = 4;
        assert_eq!(QpAttr::from_c(&raw, true).changes(Some(&attr)), "state=unknown");
    }

    #[test]
    fn states_by_name_and_unknown_ones_by_number() {
        assert_eq!((QpState::RTS.to_string(), QpState(4711).to_string()), ("RTS".into(), "state 4711".into()));
    }
}
