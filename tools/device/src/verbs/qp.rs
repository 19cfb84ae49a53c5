//! Queue pairs: making, moving, asking.

use super::cq::Queue;
use super::device::most;
use super::{object, verb};
use crate::rim::bell::locked;
use crate::rim::{Device, Face, QpEntry};
use libc::c_int;
use nic::cm::{address_in, gid};
use nic::errno::Errno;
use nic::memory::Access;
use nic::outside::Ctx;
use nic::psn::Psn;
use nic::qp::{mask, Attributes, Limits, Qp, Settings, State};
use rdma_sys::{ibv_pd, ibv_qp, ibv_qp_attr, ibv_qp_cap, ibv_qp_init_attr, ibv_qp_type};
use std::sync::Arc;

/// `ibv_create_qp(3)`: reliable connections only.
#[no_mangle]
pub unsafe extern "C" fn ibv_create_qp(pd: *mut ibv_pd, init: *mut ibv_qp_init_attr) -> *mut ibv_qp {
    object(|device| unsafe {
        let init = &*init;
        if init.qp_type != ibv_qp_type::IBV_QPT_RC {
            return Err(libc::EOPNOTSUPP);
        }
        let limits = limits(&init.cap)?;
        if init.send_cq.is_null() || init.recv_cq.is_null() {
            return Err(libc::EINVAL);
        }
        let mut nic = device.lock();
        let number = nic.qp_number();
        let mut c: ibv_qp = std::mem::zeroed();
        (c.context, c.pd, c.qp_context, c.srq) = ((*pd).context, pd, init.qp_context, init.srq);
        (c.send_cq, c.recv_cq, c.qp_type) = (init.send_cq, init.recv_cq, init.qp_type);
        (c.qp_num, c.handle) = (number, number);
        let face = Box::into_raw(Box::new(c));
        let srq = (!init.srq.is_null()).then(|| (*init.srq).handle);
        let (pd, signal_all) = ((*pd).handle, init.sq_sig_all != 0);
        let qp = Qp::new(Settings { number, pd, limits, signal_all, uses_shared: srq.is_some() });
        let (send_cq, receive_cq) = (Arc::clone(Queue::own(init.send_cq)), Arc::clone(Queue::own(init.recv_cq)));
        nic.qps.insert(number, QpEntry { qp, send_cq, receive_cq, srq, face: face as Face });
        Ok(face)
    })
}

/// What a program asks for, if it is not too much.
fn limits(cap: &ibv_qp_cap) -> Result<Limits, c_int> {
    let requests = cap.max_send_wr.max(cap.max_recv_wr);
    let sge = cap.max_send_sge.max(cap.max_recv_sge);
    if requests > most::QUEUE || sge > most::SGE || cap.max_inline_data > most::INLINE {
        return Err(libc::EINVAL);
    }
    Ok(Limits {
        send: cap.max_send_wr,
        receive: cap.max_recv_wr,
        send_sge: cap.max_send_sge,
        receive_sge: cap.max_recv_sge,
        inline: cap.max_inline_data,
    })
}

/// `ibv_destroy_qp(3)`: its completions go with it. Waits until its async events are acknowledged.
#[no_mangle]
pub unsafe extern "C" fn ibv_destroy_qp(face: *mut ibv_qp) -> c_int {
    verb(|device| unsafe {
        let number = (*face).qp_num;
        let entry = device.lock().qps.remove(&number).ok_or(libc::EINVAL)?;
        locked(&entry.send_cq.queue).forget(number);
        locked(&entry.receive_cq.queue).forget(number);
        device.settle(entry.face);
        drop(Box::from_raw(face));
        Ok(())
    })
}

/// `ibv_modify_qp(3)`.
#[no_mangle]
pub unsafe extern "C" fn ibv_modify_qp(face: *mut ibv_qp, attr: *mut ibv_qp_attr, mask: c_int) -> c_int {
    verb(|device| unsafe {
        let (attr, mask) = (&*attr, mask as u32);
        let unchanged = mask & mask::STATE == 0;
        let state = if unchanged { Some(State::Reset) } else { State::from_number(attr.qp_state) };
        let is_possible = (mask & mask::PORT == 0 || attr.port_num == 1)
            && (mask & mask::PKEY_INDEX == 0 || attr.pkey_index == 0)
            && (mask & mask::AV == 0 || (attr.ah_attr.is_global == 1 && attr.ah_attr.grh.sgid_index == 0))
            && (mask & mask::MAX_QP_RD_ATOMIC == 0 || attr.max_rd_atomic <= most::READS)
            && (mask & mask::MAX_DEST_RD_ATOMIC == 0 || attr.max_dest_rd_atomic <= most::READS);
        let state = state.filter(|_| is_possible).ok_or(libc::EINVAL)?;
        modify(device, face, mask, state, &from_c(attr, mask))
    })
}

/// Moves a queue pair, and tells it what `mask` names.
pub(crate) unsafe fn modify(
    device: &Device,
    face: *mut ibv_qp,
    mask: u32,
    state: State,
    wanted: &Attributes,
) -> Result<(), c_int> {
    let mut nic = device.lock();
    let moved = |qp: &mut Qp, ctx: &mut Ctx| qp.modify(mask, state, wanted, ctx).map(|()| qp.state());
    let state = nic.with_qp(unsafe { (*face).qp_num }, moved).unwrap_or(Err(Errno::EINVAL))?;
    // Under the lock: another thread may move it, too.
    unsafe { (*face).state = state as u32 };
    device.ring();
    Ok(())
}

fn from_c(attr: &ibv_qp_attr, mask: u32) -> Attributes {
    // SAFETY: a GID is sixteen bytes, however it is looked at.
    let dgid = unsafe { attr.ah_attr.grh.dgid.raw };
    Attributes {
        access: Access(attr.qp_access_flags & 0xf),
        peer: (mask & mask::AV != 0).then(|| address_in(dgid)),
        mtu: mtu_bytes(attr.path_mtu),
        dest_qp: attr.dest_qp_num & 0xff_ffff,
        rq_psn: Psn::new(attr.rq_psn),
        sq_psn: Psn::new(attr.sq_psn),
        timeout: attr.timeout & 0x1f,
        retries: attr.retry_cnt & 7,
        rnr_retries: attr.rnr_retry & 7,
        min_rnr_timer: attr.min_rnr_timer & 0x1f,
        max_rd_atomic: attr.max_rd_atomic,
        max_dest_rd_atomic: attr.max_dest_rd_atomic,
        notify_drained: attr.en_sqd_async_notify != 0,
    }
}

/// The bytes of an `ibv_mtu`: 1 is 256, 5 is 4096.
fn mtu_bytes(code: u32) -> u32 {
    if (1..=5).contains(&code) {
        128 << code
    } else {
        0
    }
}

/// A queue pair's attributes as C has them.
pub(crate) fn to_c(state: State, known: &Attributes) -> ibv_qp_attr {
    // SAFETY: zeroes are a valid struct of numbers.
    let mut attr: ibv_qp_attr = unsafe { std::mem::zeroed() };
    (attr.qp_state, attr.cur_qp_state) = (state as u32, state as u32);
    (attr.path_mtu, attr.dest_qp_num) = ((known.mtu / 128).ilog2(), known.dest_qp);
    (attr.rq_psn, attr.sq_psn) = (known.rq_psn.get(), known.sq_psn.get());
    (attr.qp_access_flags, attr.port_num) = (known.access.0, 1);
    (attr.timeout, attr.retry_cnt, attr.rnr_retry) = (known.timeout, known.retries, known.rnr_retries);
    attr.min_rnr_timer = known.min_rnr_timer;
    (attr.max_rd_atomic, attr.max_dest_rd_atomic) = (known.max_rd_atomic, known.max_dest_rd_atomic);
    if let Some(peer) = known.peer {
        (attr.ah_attr.is_global, attr.ah_attr.port_num) = (1, 1);
        (attr.ah_attr.grh.dgid.raw, attr.ah_attr.grh.hop_limit) = (gid(peer), 64);
    }
    attr
}

/// `ibv_query_qp(3)`.
#[no_mangle]
pub unsafe extern "C" fn ibv_query_qp(
    face: *mut ibv_qp,
    to: *mut ibv_qp_attr,
    _mask: c_int,
    init: *mut ibv_qp_init_attr,
) -> c_int {
    verb(|device| unsafe {
        let nic = device.lock();
        let qp = &nic.qps.get(&(*face).qp_num).ok_or(libc::EINVAL)?.qp;
        let Limits { send, receive, send_sge, receive_sge, inline } = qp.settings().limits;
        let mut attr = to_c(qp.state(), qp.attributes());
        (attr.cap.max_send_wr, attr.cap.max_recv_wr, attr.cap.max_inline_data) = (send, receive, inline);
        (attr.cap.max_send_sge, attr.cap.max_recv_sge) = (send_sge, receive_sge);
        let mut made: ibv_qp_init_attr = std::mem::zeroed();
        (made.qp_context, made.send_cq, made.recv_cq) = ((*face).qp_context, (*face).send_cq, (*face).recv_cq);
        (made.srq, made.qp_type, made.cap) = ((*face).srq, (*face).qp_type, attr.cap);
        made.sq_sig_all = c_int::from(qp.settings().signal_all);
        to.write(attr);
        init.write(made);
        Ok(())
    })
}
