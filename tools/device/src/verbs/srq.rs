//! Shared receive queues. A face's handle is its queue's number.

use super::device::most;
use super::post::receive_request;
use super::{object, verb};
use crate::rim::{Face, Nic, Srq};
use libc::c_int;
use nic::work::ReceiveQueue;
use rdma_sys::{ibv_pd, ibv_recv_wr, ibv_srq, ibv_srq_attr, ibv_srq_attr_mask, ibv_srq_init_attr};

/// `ibv_create_srq(3)`.
#[no_mangle]
pub unsafe extern "C" fn ibv_create_srq(pd: *mut ibv_pd, init: *mut ibv_srq_init_attr) -> *mut ibv_srq {
    object(|device| unsafe {
        let (attr, srq_context) = ((*init).attr, (*init).srq_context);
        if attr.max_wr == 0 || attr.max_wr > most::QUEUE || attr.max_sge > most::SGE {
            return Err(libc::EINVAL);
        }
        let mut nic = device.lock();
        let number = nic.number();
        let mut c: ibv_srq = std::mem::zeroed();
        (c.context, c.pd, c.srq_context, c.handle) = ((*pd).context, pd, srq_context, number);
        let face = Box::into_raw(Box::new(c));
        let queue = ReceiveQueue::new(attr.max_wr as usize, (*pd).handle);
        nic.srqs.insert(number, Srq { queue, max_sge: attr.max_sge, face: face as Face });
        Ok(face)
    })
}

/// `ibv_modify_srq(3)`: the limit; the size stays.
#[no_mangle]
pub unsafe extern "C" fn ibv_modify_srq(face: *mut ibv_srq, attr: *mut ibv_srq_attr, mask: c_int) -> c_int {
    verb(|device| unsafe {
        let mut nic = device.lock();
        let srq = nic.srqs.get_mut(&(*face).handle).ok_or(libc::EINVAL)?;
        let limit = (*attr).srq_limit as usize;
        if mask as u32 & ibv_srq_attr_mask::IBV_SRQ_MAX_WR.0 != 0 {
            return Err(libc::EOPNOTSUPP);
        }
        if limit > srq.queue.capacity() {
            return Err(libc::EINVAL);
        }
        if mask as u32 & ibv_srq_attr_mask::IBV_SRQ_LIMIT.0 != 0 {
            srq.queue.arm_limit(limit);
        }
        Ok(())
    })
}

/// `ibv_query_srq(3)`.
#[no_mangle]
pub unsafe extern "C" fn ibv_query_srq(face: *mut ibv_srq, attr: *mut ibv_srq_attr) -> c_int {
    verb(|device| unsafe {
        let nic = device.lock();
        let srq = nic.srqs.get(&(*face).handle).ok_or(libc::EINVAL)?;
        let (max_wr, srq_limit) = (srq.queue.capacity() as u32, srq.queue.limit() as u32);
        attr.write(ibv_srq_attr { max_wr, max_sge: srq.max_sge, srq_limit });
        Ok(())
    })
}

/// `ibv_destroy_srq(3)`: refused while a queue pair uses it; waits until its async events are acknowledged.
#[no_mangle]
pub unsafe extern "C" fn ibv_destroy_srq(face: *mut ibv_srq) -> c_int {
    verb(|device| unsafe {
        forget(&mut device.lock(), (*face).handle)?;
        device.settle(face as Face);
        drop(Box::from_raw(face));
        Ok(())
    })
}

/// The device forgets a queue, unless a queue pair uses it.
fn forget(nic: &mut Nic, number: u32) -> Result<(), c_int> {
    if nic.qps.values().any(|entry| entry.srq == Some(number)) {
        return Err(libc::EBUSY);
    }
    nic.srqs.remove(&number);
    Ok(())
}

/// `ibv_post_srq_recv(3)`.
pub(super) unsafe extern "C" fn post_srq_recv(
    face: *mut ibv_srq,
    mut wr: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
) -> c_int {
    verb(|device| unsafe {
        let mut nic = device.lock();
        let srq = nic.srqs.get_mut(&(*face).handle).ok_or(libc::EINVAL)?;
        while !wr.is_null() {
            let request = receive_request(&*wr);
            let fits = request.sge.len() <= srq.max_sge as usize;
            if !fits || !srq.queue.post(request) {
                *bad = wr;
                return Err(if fits { libc::ENOMEM } else { libc::EINVAL });
            }
            wr = (*wr).next;
        }
        Ok(())
    })
}
