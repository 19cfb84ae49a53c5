//! Queue pairs: making, moving, asking.

use super::cq::cq_of;
use super::device::most;
use super::srq::number_of;
use super::{code, null};
use crate::cm::{address_in, gid};
use crate::memory::Rights;
use crate::nic::bell::locked;
use crate::nic::{device, Device, Face, QpEntry};
use crate::outside::Outside;
use crate::psn::Psn;
use crate::qp::{mask, Attributes, Limits, Qp, Settings, State};
use libc::c_int;
use rdma_sys::{ibv_pd, ibv_qp, ibv_qp_attr, ibv_qp_cap, ibv_qp_init_attr, ibv_qp_type};
use std::sync::Arc;

/// `ibv_create_qp(3)`: reliable connections only.
#[no_mangle]
pub unsafe extern "C" fn ibv_create_qp(pd: *mut ibv_pd, init: *mut ibv_qp_init_attr) -> *mut ibv_qp {
    let Some(device) = device() else { return null(libc::ENODEV) };
    let init = unsafe { &*init };
    if init.qp_type != ibv_qp_type::IBV_QPT_RC {
        return null(libc::EOPNOTSUPP);
    }
    let limits = limits(&init.cap);
    let pieces = limits.send_pieces.max(limits.receive_pieces);
    let too_much = limits.send.max(limits.receive) > most::QUEUE || pieces > most::PIECES;
    if too_much || limits.inline > most::INLINE || init.send_cq.is_null() || init.recv_cq.is_null() {
        return null(libc::EINVAL);
    }
    let srq = (!init.srq.is_null()).then(|| unsafe { number_of(init.srq) });
    let mut nic = device.lock();
    let number = nic.qp_number();
    let mut face: Box<ibv_qp> = unsafe { Box::new(std::mem::zeroed()) };
    unsafe { (face.context, face.pd) = ((*pd).context, pd) };
    (face.qp_context, face.send_cq, face.recv_cq, face.srq) = (init.qp_context, init.send_cq, init.recv_cq, init.srq);
    (face.qp_num, face.handle, face.qp_type) = (number, number, init.qp_type);
    let face = Box::into_raw(face);
    let (domain, signal_all) = (unsafe { (*pd).handle }, init.sq_sig_all != 0);
    let settings = Settings { number, domain, limits, signal_all, uses_shared: srq.is_some() };
    let (send_cq, receive_cq) = unsafe { (Arc::clone(cq_of(init.send_cq)), Arc::clone(cq_of(init.recv_cq))) };
    let entry = QpEntry { qp: Qp::new(settings), send_cq, receive_cq, srq, face: face as Face };
    nic.qps.insert(number, entry);
    face
}

fn limits(cap: &ibv_qp_cap) -> Limits {
    Limits {
        send: cap.max_send_wr,
        receive: cap.max_recv_wr,
        send_pieces: cap.max_send_sge,
        receive_pieces: cap.max_recv_sge,
        inline: cap.max_inline_data,
    }
}

/// `ibv_destroy_qp(3)`: its completions go with it.
#[no_mangle]
pub unsafe extern "C" fn ibv_destroy_qp(face: *mut ibv_qp) -> c_int {
    let Some(device) = device() else { return libc::ENODEV };
    let number = unsafe { (*face).qp_num };
    let Some(entry) = device.lock().qps.remove(&number) else { return libc::EINVAL };
    locked(&entry.send_cq.queue).forget(number);
    locked(&entry.receive_cq.queue).forget(number);
    device.raised.take_out(|raised| raised.face == entry.face);
    drop(unsafe { Box::from_raw(face) });
    0
}

/// `ibv_modify_qp(3)`.
#[no_mangle]
pub unsafe extern "C" fn ibv_modify_qp(face: *mut ibv_qp, attr: *mut ibv_qp_attr, mask: c_int) -> c_int {
    let Some(device) = device() else { return libc::ENODEV };
    code(unsafe { modify(device, face, &*attr, mask as u32) })
}

unsafe fn modify(device: &Device, face: *mut ibv_qp, attr: &ibv_qp_attr, mask: u32) -> Result<(), c_int> {
    let unchanged = mask & mask::STATE == 0;
    let state = if unchanged { Some(State::Reset) } else { State::from_number(attr.qp_state) };
    let is_possible = (mask & mask::PORT == 0 || attr.port_num == 1)
        && (mask & mask::PKEY_INDEX == 0 || attr.pkey_index == 0)
        && (mask & mask::AV == 0 || (attr.ah_attr.is_global == 1 && attr.ah_attr.grh.sgid_index == 0))
        && attr.max_rd_atomic.max(attr.max_dest_rd_atomic) <= most::READS;
    let (Some(state), true) = (state, is_possible) else { return Err(libc::EINVAL) };
    let wanted = from_c(attr, mask);
    let mut nic = device.lock();
    let moved = |qp: &mut Qp, out: &mut Outside| qp.modify(mask, state, &wanted, out).map(|()| qp.state());
    let state = nic.with_qp(unsafe { (*face).qp_num }, moved).unwrap_or(Err(libc::EINVAL))?;
    // Under the lock: another thread may move it, too.
    unsafe { (*face).state = state as u32 };
    device.ring();
    Ok(())
}

fn from_c(attr: &ibv_qp_attr, mask: u32) -> Attributes {
    // SAFETY: a GID is sixteen bytes, however it is looked at.
    let dgid = unsafe { attr.ah_attr.grh.dgid.raw };
    Attributes {
        access: Rights(attr.qp_access_flags & 0xf),
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
pub(crate) fn mtu_bytes(code: u32) -> u32 {
    if (1..=5).contains(&code) {
        128 << code
    } else {
        0
    }
}

/// `ibv_query_qp(3)`.
#[no_mangle]
pub unsafe extern "C" fn ibv_query_qp(
    face: *mut ibv_qp,
    to: *mut ibv_qp_attr,
    _mask: c_int,
    init: *mut ibv_qp_init_attr,
) -> c_int {
    let Some(device) = device() else { return libc::ENODEV };
    let nic = device.lock();
    let Some(entry) = nic.qps.get(&unsafe { (*face).qp_num }) else { return libc::EINVAL };
    let (told, settings) = (entry.qp.attributes(), entry.qp.settings());
    let mut attr: ibv_qp_attr = unsafe { std::mem::zeroed() };
    (attr.qp_state, attr.cur_qp_state) = (entry.qp.state() as u32, entry.qp.state() as u32);
    (attr.path_mtu, attr.dest_qp_num) = ((told.mtu / 128).ilog2(), told.dest_qp);
    (attr.rq_psn, attr.sq_psn) = (told.rq_psn.get(), told.sq_psn.get());
    (attr.qp_access_flags, attr.port_num) = (told.access.0, 1);
    (attr.timeout, attr.retry_cnt, attr.rnr_retry) = (told.timeout, told.retries, told.rnr_retries);
    attr.min_rnr_timer = told.min_rnr_timer;
    (attr.max_rd_atomic, attr.max_dest_rd_atomic) = (told.max_rd_atomic, told.max_dest_rd_atomic);
    if let Some(peer) = told.peer {
        (attr.ah_attr.is_global, attr.ah_attr.port_num) = (1, 1);
        (attr.ah_attr.grh.dgid.raw, attr.ah_attr.grh.hop_limit) = (gid(peer), 64);
    }
    let Limits { send, receive, send_pieces, receive_pieces, inline } = settings.limits;
    (attr.cap.max_send_wr, attr.cap.max_recv_wr, attr.cap.max_inline_data) = (send, receive, inline);
    (attr.cap.max_send_sge, attr.cap.max_recv_sge) = (send_pieces, receive_pieces);
    unsafe {
        let mut made: ibv_qp_init_attr = std::mem::zeroed();
        (made.qp_context, made.send_cq, made.recv_cq) = ((*face).qp_context, (*face).send_cq, (*face).recv_cq);
        (made.srq, made.qp_type, made.sq_sig_all) = ((*face).srq, (*face).qp_type, c_int::from(settings.signal_all));
        made.cap = attr.cap;
        to.write(attr);
        init.write(made);
    }
    0
}
