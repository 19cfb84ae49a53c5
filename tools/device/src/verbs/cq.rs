//! Completion queues, and the channels that wake a program when something lies in them (specification, volume 1, 10.2.2).

use super::device::most;
use super::{call, object, verb, Object};
use crate::rim::bell::{locked, BellQueue, Unacked};
use crate::rim::{Cq, Face};
use libc::{c_int, c_void};
use nic::completion::{Armed, Completion, CompletionQueue};
use rdma_sys::{ibv_comp_channel, ibv_context, ibv_cq, ibv_wc, ibv_wc_flags};
use std::sync::{Arc, Mutex};

/// A completion channel, with the queues that have rung.
type Channel = Object<ibv_comp_channel, Arc<BellQueue<Face>>>;
/// A completion queue.
pub(super) type Queue = Object<ibv_cq, Arc<Cq>>;

/// `ibv_create_comp_channel(3)`.
#[no_mangle]
pub unsafe extern "C" fn ibv_create_comp_channel(context: *mut ibv_context) -> *mut ibv_comp_channel {
    object(|_| {
        let rang = BellQueue::new().map_err(|_| libc::EMFILE)?;
        Ok(Channel::give(ibv_comp_channel { context, fd: rang.fd(), refcnt: 0 }, |_| Arc::new(rang)))
    })
}

/// `ibv_destroy_comp_channel(3)`: refused while a queue uses it.
#[no_mangle]
pub unsafe extern "C" fn ibv_destroy_comp_channel(channel: *mut ibv_comp_channel) -> c_int {
    if Arc::strong_count(unsafe { Channel::own(channel) }) > 1 {
        return libc::EBUSY;
    }
    drop(unsafe { Channel::take_back(channel) });
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
    object(|device| unsafe {
        if !(1..=most::COMPLETIONS).contains(&cqe) || vector != 0 {
            return Err(libc::EINVAL);
        }
        let rang = (!channel.is_null()).then(|| Arc::clone(Channel::own(channel)));
        let queue = Mutex::new(CompletionQueue::new(cqe as usize));
        let mut c: ibv_cq = std::mem::zeroed();
        (c.context, c.channel, c.cq_context, c.cqe) = (context, channel, cq_context, cqe);
        c.handle = device.lock().number();
        Ok(Queue::give(c, |face| Arc::new(Cq { queue, channel: rang, face, unacked: Unacked::default() })))
    })
}

/// `ibv_destroy_cq(3)`: refused while a queue pair uses it; waits until its events are acknowledged.
#[no_mangle]
pub unsafe extern "C" fn ibv_destroy_cq(face: *mut ibv_cq) -> c_int {
    verb(|device| unsafe {
        let cq = Arc::clone(Queue::own(face));
        let uses = |other: &Arc<Cq>| Arc::ptr_eq(other, &cq);
        if device.lock().qps.values().any(|entry| uses(&entry.send_cq) || uses(&entry.receive_cq)) {
            return Err(libc::EBUSY);
        }
        if let Some(channel) = &cq.channel {
            channel.take_out(|rang| *rang == cq.face);
        }
        device.settle(cq.face);
        cq.unacked.wait_for_all();
        drop(Queue::take_back(face));
        Ok(())
    })
}

/// `ibv_get_cq_event(3)`: blocks, or not, as the channel's descriptor is set.
#[no_mangle]
pub unsafe extern "C" fn ibv_get_cq_event(
    channel: *mut ibv_comp_channel,
    cq: *mut *mut ibv_cq,
    cq_context: *mut *mut c_void,
) -> c_int {
    call(|_| unsafe {
        let rang = Arc::clone(Channel::own(channel));
        let face = rang.pop(|face| Queue::own(*face as *mut ibv_cq).unacked.add())? as *mut ibv_cq;
        (*cq, *cq_context) = (face, (*face).cq_context);
        Ok(())
    })
}

/// `ibv_ack_cq_events(3)`.
#[no_mangle]
pub unsafe extern "C" fn ibv_ack_cq_events(cq: *mut ibv_cq, events: u32) {
    // With this the queue may be destroyed at once, by another thread.
    let cq = unsafe { Arc::clone(Queue::own(cq)) };
    cq.unacked.acknowledge(events);
}

/// `ibv_req_notify_cq(3)`.
pub(super) unsafe extern "C" fn req_notify_cq(cq: *mut ibv_cq, solicited_only: c_int) -> c_int {
    let armed = if solicited_only == 0 { Armed::Any } else { Armed::Solicited };
    locked(&unsafe { Queue::own(cq) }.queue).arm(armed);
    0
}

/// `ibv_poll_cq(3)`.
pub(super) unsafe extern "C" fn poll_cq(cq: *mut ibv_cq, most: c_int, to: *mut ibv_wc) -> c_int {
    let mut queue = locked(&unsafe { Queue::own(cq) }.queue);
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
    (wc.wr_id, wc.status, wc.opcode) = (completion.wr_id, completion.status as u32, completion.opcode as u32);
    (wc.byte_len, wc.qp_num, wc.src_qp) = (completion.length, completion.qp, completion.src_qp);
    if let Some(immediate) = completion.immediate {
        wc.imm_data_invalidated_rkey_union.imm_data = immediate.to_be();
        wc.wc_flags = ibv_wc_flags::IBV_WC_WITH_IMM.0;
    }
    wc
}
