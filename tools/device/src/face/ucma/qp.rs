//! What INIT_QP_ATTR answers (rdma_init_qp_attr(3)): the attributes that the connection manager knows for the state that a queue
//! pair is to be moved to, and which these are. The program, or librdmacm for it, hands them to uverbs.

use super::abi::{self, qp_type};
use super::id::{Id, State};
use super::{answer, command, Done, Ids, Net, Then};
use crate::abi::{AhAttr, QpAttr};
use crate::machine::Asker;
use bytemuck::Zeroable;
use nic::cm::{Phase, UDP_QKEY};
use nic::qp::mask;
use rustix::io::Errno;

/// `ibv_qp_state`.
const INIT: u32 = 1;
const RTR: u32 = 2;
const RTS: u32 = 3;
const ERR: u32 = 6;

impl Ids {
    /// rdma_init_qp_attr(3): what the connection manager knows of the state that a queue pair is to be moved to.
    pub(super) fn init_qp_attr(&mut self, net: &mut Net, asker: &Asker) -> Result<Done, Errno> {
        let command: abi::InitQpAttr = command(asker)?;
        if command.qp_state > ERR {
            return Err(Errno::INVAL);
        }
        let id = self.id_with_device(asker.file, command.id)?;
        let mut attr = QpAttr {
            qp_attr_mask: mask::STATE | mask::PKEY_INDEX | mask::PORT,
            qp_state: command.qp_state,
            port_num: 1,
            ..QpAttr::zeroed()
        };
        match id.connection {
            _ if id.is_datagrams() => (attr.qp_attr_mask, attr.qkey) = (attr.qp_attr_mask | mask::QKEY, UDP_QKEY),
            Some(local) => connected(net, id, local, &mut attr)?,
            None if id.state == State::Listen => return Err(Errno::INVAL),
            None => attr.qp_attr_mask |= mask::ACCESS_FLAGS,
        }
        answer(command.response, &attr, Then::Nothing)
    }
}

/// The attributes for a queue pair that is or gets connected, and which these are (`ib_cm_init_qp_attr`).
fn connected(net: &mut Net, id: &Id, local: u32, attr: &mut QpAttr) -> Result<(), Errno> {
    let connection = net.cm.get(local).filter(|connection| connection.is_alive()).ok_or(Errno::INVAL)?;
    let (known, is_asking) = (connection.attributes(), connection.phase == Phase::ReqSent);
    let is_rc = id.qp_type == qp_type::RC;
    match attr.qp_state {
        INIT => {
            attr.qp_attr_mask |= mask::ACCESS_FLAGS;
            attr.qp_access_flags = known.access.0;
        }
        RTR if !is_asking => {
            attr.qp_attr_mask = mask::STATE | mask::AV | mask::PATH_MTU | mask::DEST_QPN | mask::RQ_PSN;
            attr.ah_attr = AhAttr::to(connection.peer, known.class);
            // As a code: 1 is 256 bytes.
            attr.path_mtu = (known.mtu >> 7).trailing_zeros();
            (attr.dest_qp_num, attr.rq_psn) = (known.dest_qp, known.rq_psn.get());
            if is_rc {
                attr.qp_attr_mask |= mask::MAX_DEST_RD_ATOMIC | mask::MIN_RNR_TIMER;
                attr.max_dest_rd_atomic = known.max_dest_rd_atomic;
            }
        }
        RTS if !is_asking => {
            (attr.qp_attr_mask, attr.sq_psn) = (mask::STATE | mask::SQ_PSN, known.sq_psn.get());
            if is_rc {
                attr.qp_attr_mask |= mask::TIMEOUT | mask::RETRY_CNT | mask::RNR_RETRY | mask::MAX_QP_RD_ATOMIC;
                attr.timeout = id.options.ack_timeout.unwrap_or(known.timeout);
                (attr.retry_cnt, attr.rnr_retry) = (known.retries, known.rnr_retries);
                attr.max_rd_atomic = known.max_rd_atomic;
            }
        }
        _ => return Err(Errno::INVAL),
    }
    Ok(())
}
