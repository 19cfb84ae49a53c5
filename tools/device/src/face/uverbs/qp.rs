//! Queue pairs, and the doorbell of their send queues.

use super::device::most;
use super::{Answer, Command, Done, Object};
use crate::abi::*;
use crate::node::pipe::Notices;
use crate::node::{errno, Nic, QpEntry};
use bytemuck::Zeroable;
use nic::cm::address_in;
use nic::fact::Fact;
use nic::memory::Access;
use nic::outside::Ctx;
use nic::psn::Psn;
use nic::qp::{mask, Attributes, Limits, Qp, Service, Settings, State};
use rustix::io::Errno;
use std::mem::size_of;

/// By the numbers of `ibv_qp_type`. As rdma_rxe it has no RAW_PACKET and no XRC_SEND, and none of a driver's own (255).
fn service(kind: u8) -> Result<Service, Errno> {
    match kind {
        2 => Ok(Service::Rc),
        3 => Ok(Service::Uc),
        4 => Ok(Service::Ud),
        8 | 9 | 255 => Err(Errno::OPNOTSUPP),
        _ => Err(Errno::INVAL),
    }
}

pub fn create(nic: &mut Nic, command: &mut Command) -> Answer {
    let input: CreateQp = command.input();
    let (file, pd, is_shared) = (command.file, input.pd_handle, input.is_srq != 0);
    nic.pds.get(file, pd)?;
    let service = service(input.qp_type)?;
    if command.extended && input.create_flags != 0 {
        return Err(Errno::OPNOTSUPP);
    }
    nic.cqs.get(file, input.send_cq_handle).and(nic.cqs.get(file, input.recv_cq_handle))?;
    if is_shared {
        nic.srqs.get(file, input.srq_handle)?;
    }
    let mut cap = input.cap;
    if cap.max_send_wr.max(cap.max_recv_wr) > most::QUEUE
        || cap.max_send_sge.max(cap.max_recv_sge) > most::SGE
        || cap.max_inline_data > most::INLINE
    {
        return Err(Errno::INVAL);
    }
    // Pieces of memory and inline bytes are in the same place.
    let sge_bytes = |count: u32| count as usize * size_of::<RxeSge>();
    let tail = sge_bytes(cap.max_send_sge).max(cap.max_inline_data as usize);
    let receives = match is_shared {
        true => None,
        false => Some(command.ring(nic, cap.max_recv_wr, size_of::<RecvWqe>() + sge_bytes(cap.max_recv_sge))?),
    };
    let sends = command.ring(nic, cap.max_send_wr, size_of::<SendWqe>() + tail)?;
    let place = receives.as_ref().map_or(MmInfo::zeroed(), |ring| ring.place());
    let places = [place, sends.place()];
    cap.max_send_wr = sends.capacity();
    cap.max_recv_wr = receives.as_ref().map_or(0, |ring| ring.capacity());
    // Whoever asks for room for bytes has room for pieces, and the other way round.
    cap.max_inline_data = tail as u32;
    cap.max_send_sge = (tail / size_of::<RxeSge>()) as u32;
    let number = nic.qp_number();
    let limits = Limits {
        send: cap.max_send_wr,
        receive: cap.max_recv_wr,
        send_sge: cap.max_send_sge,
        receive_sge: cap.max_recv_sge,
        inline: cap.max_inline_data,
    };
    let settings = Settings { number, service, pd, limits, signal_all: input.sq_sig_all != 0, uses_shared: is_shared };
    let entry = QpEntry {
        qp: Qp::new(settings),
        send_cq: input.send_cq_handle,
        receive_cq: input.recv_cq_handle,
        srq: is_shared.then_some(input.srq_handle),
        events: Notices::new(input.user_handle, command.context(nic)?.events.clone()),
        sends,
        receives,
        cap,
        asked: Zeroable::zeroed(),
        due: None,
    };
    nic.qps.insert_as(number, file, entry);
    let done = command.done(&CreateQpResp { qp_handle: number, qpn: number, cap, reserved: 0 }).and(&places);
    Ok(done.made(Object::Qp, number))
}

pub fn modify(nic: &mut Nic, command: &mut Command) -> Answer {
    let input: ModifyQp = command.input();
    let bits = input.attr_mask;
    nic.qps.get(command.file, input.qp_handle)?;
    let state = match bits & mask::STATE {
        0 => Some(State::Reset),
        _ => State::from_number(input.state.qp_state.into()),
    };
    let is_possible = (bits & mask::PORT == 0 || input.state.port_num == 1)
        && (bits & mask::PKEY_INDEX == 0 || input.state.pkey_index == 0)
        && (bits & mask::ACCESS_FLAGS == 0 || Access(input.state.qp_access_flags).suit_queue_pairs())
        && (bits & mask::AV == 0 || (input.dest.is_global == 1 && input.dest.sgid_index == 0))
        && (bits & mask::MAX_QP_RD_ATOMIC == 0 || input.state.max_rd_atomic <= most::READS)
        && (bits & mask::MAX_DEST_RD_ATOMIC == 0 || input.state.max_dest_rd_atomic <= most::READS);
    let state = state.filter(|_| is_possible).ok_or(Errno::INVAL)?;
    let moved = |entry: &mut QpEntry, ctx: &mut Ctx| {
        entry.qp.modify(bits, state, &attributes(&input), ctx)?;
        take_over(&mut entry.asked, &input);
        if bits & mask::STATE != 0 && state == State::Reset {
            entry.clear();
        }
        Ok(entry.qp.state())
    };
    let state = nic.with_qp(input.qp_handle, moved).unwrap_or(Err(nic::errno::Errno::EINVAL)).map_err(errno)?;
    if matches!(state, State::Rts | State::Err) {
        nic.doorbell(input.qp_handle);
    }
    Ok(command.done(&()))
}

/// What MODIFY_QP asks for; of a queue pair that gets connected, also into how many regions of its domain its device may write.
pub fn asks(call: Fact, nic: &Nic, command: &Command) -> Fact {
    let input: ModifyQp = command.input();
    let state = State::from_number(input.state.qp_state.into()).filter(|_| input.attr_mask & mask::STATE != 0);
    match (state, nic.qps.get(command.file, input.qp_handle)) {
        (Some(State::Rtr), Ok(entry)) => {
            let writable = nic.memory.count(entry.qp.settings().pd, Access::LOCAL_WRITE);
            call.with("to", State::Rtr).with("writable", writable)
        }
        (Some(state), _) => call.with("to", state),
        _ => call,
    }
}

fn attributes(input: &ModifyQp) -> Attributes {
    Attributes {
        access: Access(input.state.qp_access_flags),
        peer: (input.attr_mask & mask::AV != 0).then(|| address_in(input.dest.dgid)),
        class: input.dest.traffic_class,
        mtu: mtu_bytes(input.state.path_mtu),
        dest_qp: input.state.dest_qp_num & 0xff_ffff,
        qkey: input.state.qkey,
        rq_psn: Psn::new(input.state.rq_psn),
        sq_psn: Psn::new(input.state.sq_psn),
        timeout: input.state.timeout & 0x1f,
        retries: input.state.retry_cnt & 7,
        rnr_retries: input.state.rnr_retry & 7,
        min_rnr_timer: input.state.min_rnr_timer & 0x1f,
        max_rd_atomic: input.state.max_rd_atomic,
        max_dest_rd_atomic: input.state.max_dest_rd_atomic,
        notify_drained: input.state.en_sqd_async_notify != 0,
    }
}

/// What a queue pair was told, for those who ask.
fn take_over(mine: &mut ModifyQp, told: &ModifyQp) {
    macro_rules! take {
        ($($bit:ident $($field:ident).+,)*) => {$(
            if told.attr_mask & mask::$bit != 0 {
                mine.$($field).+ = told.$($field).+;
            }
        )*};
    }
    take! {
        AV dest, ALT_PATH alt_dest, ALT_PATH state.alt_port_num, ALT_PATH state.alt_pkey_index, ALT_PATH state.alt_timeout,
        QKEY state.qkey, RQ_PSN state.rq_psn, SQ_PSN state.sq_psn, DEST_QPN state.dest_qp_num,
        ACCESS_FLAGS state.qp_access_flags, PKEY_INDEX state.pkey_index, PORT state.port_num, PATH_MTU state.path_mtu,
        PATH_MIG_STATE state.path_mig_state, MAX_QP_RD_ATOMIC state.max_rd_atomic,
        MAX_DEST_RD_ATOMIC state.max_dest_rd_atomic, MIN_RNR_TIMER state.min_rnr_timer, TIMEOUT state.timeout,
        RETRY_CNT state.retry_cnt, RNR_RETRY state.rnr_retry,
    }
}

/// The bytes of an `ibv_mtu`: 1 is 256, 5 is 4096.
fn mtu_bytes(code: u8) -> u32 {
    if (1..=5).contains(&code) {
        128 << code
    } else {
        0
    }
}

pub fn query(nic: &mut Nic, command: &mut Command) -> Answer {
    let entry = nic.qps.get(command.file, command.input::<QueryQp>().qp_handle)?;
    let (state, sq_sig_all) = (entry.qp.state() as u8, entry.qp.settings().signal_all.into());
    let ModifyQp { dest, alt_dest, state: asked, .. } = entry.asked;
    let state = QpState { qp_state: state, cur_qp_state: state, sq_sig_all, ..asked };
    Ok(Done::with(&QueryQpResp { dest, alt_dest, cap: entry.cap, state, reserved: 0 }))
}

/// Refused while it is in a multicast group.
pub fn destroy(nic: &mut Nic, command: &mut Command) -> Answer {
    let number = command.handle();
    let entry = nic.qps.get(command.file, number)?;
    if !nic.groups.of(number).is_empty() {
        return Err(Errno::BUSY);
    }
    Ok(Done::with(&entry.events.seen::<AsyncEventDesc>()).dooms(Object::Qp, number))
}

/// The doorbell. The requests are in the ring already.
pub fn post_send(nic: &mut Nic, command: &mut Command) -> Answer {
    let number = command.handle();
    let state = nic.qps.get(command.file, number)?.qp.state();
    if matches!(state, State::Reset | State::Init | State::Rtr) {
        return Err(Errno::INVAL);
    }
    nic.rung(number);
    Ok(Done::default())
}
