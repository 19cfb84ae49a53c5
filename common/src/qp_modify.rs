//! `ibv_modify_qp`: moving a queue pair from state to state by hand, without the connection manager (man 3 ibv_modify_qp).

use std::net::Ipv6Addr;

use rdma_sys::{ibv_gid, ibv_qp_attr, ibv_qp_attr_mask as mask, ibv_qp_state, ibv_qp_type};

use crate::mr::Access;
use crate::mtu::Mtu;

/// The states to which you can move a QP, with what the device must know for it. [`ModifyQp::Reset`] and [`ModifyQp::Err`] need nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModifyQp {
    /// From any state: forgets everything.
    Reset,
    /// From RESET: receives may be posted.
    Init {
        /// The device's port; 1 is the first.
        port: u8,
        /// What the peer may do to regions that also allow it.
        access: Access,
    },
    /// From INIT: ready to receive.
    Rtr {
        /// The most payload in a packet: 256, 512, 1024, 2048 or 4096 bytes.
        path_mtu: Mtu,
        /// The number of the peer's QP: 24 bits, as each PSN.
        dest_qp_num: u32,
        /// The number of the peer's first packet: its `sq_psn`.
        rq_psn: u32,
        /// The peer's GID.
        dgid: Ipv6Addr,
        /// The peer's LID; 0 on Ethernet.
        dlid: u16,
        /// The place of our own GID in the port's table.
        sgid_index: u8,
        /// The port, as in INIT.
        port: u8,
        /// READs and atomics of the peer that are answered at a time. Reliable QPs only, as the next.
        max_dest_rd_atomic: u8,
        /// How long the peer should wait when no receive is posted, as a code, 0 to 31 ([`QpAttr::min_rnr_timer`](crate::QpAttr)): 12 is
        /// 0.64 ms.
        min_rnr_timer: u8,
    },
    /// From RTR: now also ready to send.
    Rts {
        /// The number of our first packet.
        sq_psn: u32,
        /// How long to wait for an ACK: 4.096 µs × 2^n, 0 to 31; 0 is for ever. Reliable QPs only, as all that follow.
        timeout: u8,
        /// How often a packet without an answer is sent again, 0 to 7.
        retry_cnt: u8,
        /// How often to try again when the peer has no receive posted, 0 to 7; 7 is for ever.
        rnr_retry: u8,
        /// READs and atomics of ours that are under way at a time.
        max_rd_atomic: u8,
    },
    /// From any state but RESET: what is posted is flushed.
    Err,
}

impl ModifyQp {
    /// The C struct, and which of its fields count.
    pub(crate) fn to_c(&self, qp_type: u32) -> (ibv_qp_attr, i32) {
        // SAFETY: plain data, for which zero is a value.
        let mut attr: ibv_qp_attr = unsafe { std::mem::zeroed() };
        let (mut always, mut if_reliable) = (vec![mask::IBV_QP_STATE], vec![]);
        match *self {
            Self::Reset => attr.qp_state = ibv_qp_state::IBV_QPS_RESET,
            Self::Err => attr.qp_state = ibv_qp_state::IBV_QPS_ERR,
            Self::Init { port, access } => {
                attr.qp_state = ibv_qp_state::IBV_QPS_INIT;
                (attr.port_num, attr.qp_access_flags) = (port, access.bits());
                always.extend([mask::IBV_QP_PKEY_INDEX, mask::IBV_QP_PORT, mask::IBV_QP_ACCESS_FLAGS]);
            }
            Self::Rtr { path_mtu, dest_qp_num, rq_psn, dgid, dlid, sgid_index, port, .. } => {
                attr.qp_state = ibv_qp_state::IBV_QPS_RTR;
                (attr.path_mtu, attr.dest_qp_num, attr.rq_psn) = (path_mtu.0, dest_qp_num, rq_psn);
                (attr.ah_attr.is_global, attr.ah_attr.dlid, attr.ah_attr.port_num) = (1, dlid, port);
                attr.ah_attr.grh.dgid = ibv_gid { raw: dgid.octets() };
                (attr.ah_attr.grh.sgid_index, attr.ah_attr.grh.hop_limit) = (sgid_index, 64);
                always.extend([mask::IBV_QP_AV, mask::IBV_QP_PATH_MTU, mask::IBV_QP_DEST_QPN, mask::IBV_QP_RQ_PSN]);
            }
            Self::Rts { sq_psn, .. } => {
                (attr.qp_state, attr.sq_psn) = (ibv_qp_state::IBV_QPS_RTS, sq_psn);
                always.push(mask::IBV_QP_SQ_PSN);
            }
        }
        if let Self::Rtr { max_dest_rd_atomic, min_rnr_timer, .. } = *self {
            (attr.max_dest_rd_atomic, attr.min_rnr_timer) = (max_dest_rd_atomic, min_rnr_timer);
            if_reliable.extend([mask::IBV_QP_MAX_DEST_RD_ATOMIC, mask::IBV_QP_MIN_RNR_TIMER]);
        }
        if let Self::Rts { timeout, retry_cnt, rnr_retry, max_rd_atomic, .. } = *self {
            (attr.timeout, attr.retry_cnt, attr.rnr_retry) = (timeout, retry_cnt, rnr_retry);
            attr.max_rd_atomic = max_rd_atomic;
            if_reliable.extend([mask::IBV_QP_TIMEOUT, mask::IBV_QP_RETRY_CNT, mask::IBV_QP_RNR_RETRY]);
            if_reliable.push(mask::IBV_QP_MAX_QP_RD_ATOMIC);
        }
        if qp_type == ibv_qp_type::IBV_QPT_RC {
            always.append(&mut if_reliable);
        }
        (attr, always.iter().fold(0, |bits, bit| bits | bit.0) as i32)
    }
}
