//! Shared receive queues.

use super::device::most;
use super::null;
use super::post::receive_request;
use crate::nic::{device, Face, Srq};
use crate::work::ReceiveQueue;
use libc::c_int;
use rdma_sys::{ibv_pd, ibv_recv_wr, ibv_srq, ibv_srq_attr, ibv_srq_attr_mask, ibv_srq_init_attr};

/// The number of the queue behind a face.
pub(super) unsafe fn number_of(face: *mut ibv_srq) -> u32 {
    unsafe { (*face).handle }
}

/// `ibv_create_srq(3)`.
#[no_mangle]
pub unsafe extern "C" fn ibv_create_srq(pd: *mut ibv_pd, init: *mut ibv_srq_init_attr) -> *mut ibv_srq {
    let Some(device) = device() else { return null(libc::ENODEV) };
    let (attr, srq_context) = unsafe { ((*init).attr, (*init).srq_context) };
    if attr.max_wr == 0 || attr.max_wr > most::QUEUE || attr.max_sge > most::PIECES {
        return null(libc::EINVAL);
    }
    let mut nic = device.lock();
    let mut face: Box<ibv_srq> = unsafe { Box::new(std::mem::zeroed()) };
    unsafe { (face.context, face.pd) = ((*pd).context, pd) };
    (face.srq_context, face.handle) = (srq_context, nic.number());
    let (number, domain) = (face.handle, unsafe { (*pd).handle });
    let face = Box::into_raw(face);
    let queue = ReceiveQueue::new(attr.max_wr as usize);
    nic.srqs.insert(number, Srq { queue, domain, pieces: attr.max_sge, face: face as Face });
    face
}

/// `ibv_modify_srq(3)`: the limit; the size stays.
#[no_mangle]
pub unsafe extern "C" fn ibv_modify_srq(face: *mut ibv_srq, attr: *mut ibv_srq_attr, mask: c_int) -> c_int {
    let Some(device) = device() else { return libc::ENODEV };
    let mut nic = device.lock();
    let Some(srq) = nic.srqs.get_mut(&unsafe { number_of(face) }) else { return libc::EINVAL };
    let limit = unsafe { (*attr).srq_limit } as usize;
    if mask as u32 & ibv_srq_attr_mask::IBV_SRQ_MAX_WR.0 != 0 {
        return libc::EOPNOTSUPP;
    }
    if limit > srq.queue.capacity() {
        return libc::EINVAL;
    }
    if mask as u32 & ibv_srq_attr_mask::IBV_SRQ_LIMIT.0 != 0 {
        srq.queue.arm_limit(limit);
    }
    0
}

/// `ibv_query_srq(3)`.
#[no_mangle]
pub unsafe extern "C" fn ibv_query_srq(face: *mut ibv_srq, attr: *mut ibv_srq_attr) -> c_int {
    let Some(device) = device() else { return libc::ENODEV };
    let nic = device.lock();
    let Some(srq) = nic.srqs.get(&unsafe { number_of(face) }) else { return libc::EINVAL };
    let (max_wr, srq_limit) = (srq.queue.capacity() as u32, srq.queue.limit() as u32);
    unsafe { attr.write(ibv_srq_attr { max_wr, max_sge: srq.pieces, srq_limit }) };
    0
}

/// `ibv_destroy_srq(3)`: refused while a queue pair uses it.
#[no_mangle]
pub unsafe extern "C" fn ibv_destroy_srq(face: *mut ibv_srq) -> c_int {
    let Some(device) = device() else { return libc::ENODEV };
    let mut nic = device.lock();
    let number = unsafe { number_of(face) };
    if nic.qps.values().any(|entry| entry.srq == Some(number)) {
        return libc::EBUSY;
    }
    nic.srqs.remove(&number);
    device.raised.take_out(|raised| raised.face == face as Face);
    drop(unsafe { Box::from_raw(face) });
    0
}

/// `ibv_post_srq_recv(3)`.
pub(super) unsafe extern "C" fn post_srq_recv(
    face: *mut ibv_srq,
    mut wr: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
) -> c_int {
    let Some(device) = device() else { return libc::ENODEV };
    let mut nic = device.lock();
    let Some(srq) = nic.srqs.get_mut(&unsafe { number_of(face) }) else { return libc::EINVAL };
    while !wr.is_null() {
        let request = unsafe { receive_request(&*wr) };
        let errno = match () {
            () if request.pieces.len() > srq.pieces as usize => libc::EINVAL,
            () if !srq.queue.post(request) => libc::ENOMEM,
            () => 0,
        };
        if errno != 0 {
            unsafe { *bad = wr };
            return errno;
        }
        wr = unsafe { (*wr).next };
    }
    0
}
