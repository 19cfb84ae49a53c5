//! Completion channels and completion queues.

use super::device::most;
use super::{minus_one, null};
use crate::completion::{Armed, Completion, CompletionQueue};
use crate::nic::bell::{locked, BellQueue, Unacked};
use crate::nic::{device, Cq, Face};
use libc::{c_int, c_void};
use rdma_sys::{ibv_comp_channel, ibv_context, ibv_cq, ibv_wc, ibv_wc_flags};
use std::sync::{Arc, Mutex};

/// A completion channel, as the library knows it.
#[repr(C)]
struct ChannelFace {
    c: ibv_comp_channel,
    rang: Arc<BellQueue<Face>>,
}

/// A completion queue, as the library knows it.
#[repr(C)]
struct CqFace {
    c: ibv_cq,
    cq: Arc<Cq>,
}

/// The queue behind a face. What of the face belongs to the program is not looked at: another thread may be writing there.
pub(super) unsafe fn cq_of<'a>(face: *mut ibv_cq) -> &'a Arc<Cq> {
    unsafe { &(*face.cast::<CqFace>()).cq }
}

/// `ibv_create_comp_channel(3)`.
#[no_mangle]
pub unsafe extern "C" fn ibv_create_comp_channel(context: *mut ibv_context) -> *mut ibv_comp_channel {
    let Ok(rang) = BellQueue::new() else { return null(libc::EMFILE) };
    let c = ibv_comp_channel { context, fd: rang.fd(), refcnt: 0 };
    Box::into_raw(Box::new(ChannelFace { c, rang: Arc::new(rang) })).cast()
}

/// `ibv_destroy_comp_channel(3)`: refused while a queue uses it.
#[no_mangle]
pub unsafe extern "C" fn ibv_destroy_comp_channel(channel: *mut ibv_comp_channel) -> c_int {
    if unsafe { Arc::strong_count(&(*channel.cast::<ChannelFace>()).rang) } > 1 {
        return libc::EBUSY;
    }
    drop(unsafe { Box::from_raw(channel.cast::<ChannelFace>()) });
    0
}

/// `ibv_create_cq(3)`.
#[no_mangle]
pub unsafe extern "C" fn ibv_create_cq(
    context: *mut ibv_context,
    cqe: c_int,
    cq_context: *mut c_void,
    channel: *mut ibv_comp_channel,
    vector: c_int,
) -> *mut ibv_cq {
    let Some(device) = device() else { return null(libc::ENODEV) };
    if !(1..=most::COMPLETIONS).contains(&cqe) || vector != 0 {
        return null(libc::EINVAL);
    }
    let rang = (!channel.is_null()).then(|| unsafe { Arc::clone(&(*channel.cast::<ChannelFace>()).rang) });
    let mut c: ibv_cq = unsafe { std::mem::zeroed() };
    (c.context, c.channel, c.cq_context, c.cqe, c.handle) = (context, channel, cq_context, cqe, device.lock().number());
    let mut face = Box::new(std::mem::MaybeUninit::<CqFace>::uninit());
    let queue = Mutex::new(CompletionQueue::new(cqe as usize));
    let cq = Cq { queue, channel: rang, face: face.as_ptr() as Face, unacked: Unacked::default() };
    face.write(CqFace { c, cq: Arc::new(cq) });
    Box::into_raw(face).cast()
}

/// `ibv_destroy_cq(3)`: refused while a queue pair uses it; waits until its events are acknowledged.
#[no_mangle]
pub unsafe extern "C" fn ibv_destroy_cq(face: *mut ibv_cq) -> c_int {
    let Some(device) = device() else { return libc::ENODEV };
    let cq = unsafe { Arc::clone(cq_of(face)) };
    let uses = |other: &Arc<Cq>| Arc::ptr_eq(other, &cq);
    if device.lock().qps.values().any(|entry| uses(&entry.send_cq) || uses(&entry.receive_cq)) {
        return libc::EBUSY;
    }
    if let Some(channel) = &cq.channel {
        channel.take_out(|rang| *rang == cq.face);
    }
    device.raised.take_out(|raised| raised.face == cq.face);
    cq.unacked.wait_for_all();
    drop(unsafe { Box::from_raw(face.cast::<CqFace>()) });
    0
}

/// `ibv_get_cq_event(3)`: blocks, or not, as the channel's descriptor is set.
#[no_mangle]
pub unsafe extern "C" fn ibv_get_cq_event(
    channel: *mut ibv_comp_channel,
    cq: *mut *mut ibv_cq,
    cq_context: *mut *mut c_void,
) -> c_int {
    let rang = unsafe { Arc::clone(&(*channel.cast::<ChannelFace>()).rang) };
    match rang.pop(|face| unsafe { cq_of(*face as *mut ibv_cq) }.unacked.add()) {
        Ok(face) => unsafe {
            let face = face as *mut ibv_cq;
            (*cq, *cq_context) = (face, (*face).cq_context);
            0
        },
        Err(errno) => minus_one(errno),
    }
}

/// `ibv_ack_cq_events(3)`.
#[no_mangle]
pub unsafe extern "C" fn ibv_ack_cq_events(cq: *mut ibv_cq, events: u32) {
    // With this the queue may be destroyed at once, by another thread.
    let cq = unsafe { Arc::clone(cq_of(cq)) };
    cq.unacked.acknowledge(events);
}

/// `ibv_req_notify_cq(3)`.
pub(super) unsafe extern "C" fn req_notify_cq(cq: *mut ibv_cq, solicited_only: c_int) -> c_int {
    let armed = if solicited_only == 0 { Armed::Any } else { Armed::Solicited };
    locked(&unsafe { cq_of(cq) }.queue).arm(armed);
    0
}

/// `ibv_poll_cq(3)`.
pub(super) unsafe extern "C" fn poll_cq(cq: *mut ibv_cq, most: c_int, to: *mut ibv_wc) -> c_int {
    let mut queue = locked(&unsafe { cq_of(cq) }.queue);
    let mut count = 0;
    while count < most {
        let Some(completion) = queue.pop() else { break };
        unsafe { to.add(count as usize).write(to_c(&completion)) };
        count += 1;
    }
    // What was lost in an overflow cannot be told any other way.
    if count == 0 && queue.is_broken() {
        return -1;
    }
    count
}

fn to_c(completion: &Completion) -> ibv_wc {
    // SAFETY: zeroes are a valid struct of numbers.
    let mut wc: ibv_wc = unsafe { std::mem::zeroed() };
    (wc.wr_id, wc.status, wc.opcode) = (completion.wr_id, completion.status as u32, completion.done as u32);
    (wc.byte_len, wc.qp_num, wc.src_qp) = (completion.length, completion.qp, completion.src_qp);
    if let Some(immediate) = completion.immediate {
        wc.imm_data_invalidated_rkey_union.imm_data = immediate.to_be();
        wc.wc_flags = ibv_wc_flags::IBV_WC_WITH_IMM.0;
    }
    wc
}
