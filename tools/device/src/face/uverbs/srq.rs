//! Shared receive queues.

use super::device::most;
use super::{Answer, Command, Done, Object};
use crate::abi::*;
use crate::node::pipe::Notices;
use crate::node::{Nic, Srq};
use nic::work::ReceiveQueue;
use rustix::io::Errno;
use std::mem::size_of;

pub fn create(nic: &mut Nic, command: &mut Command) -> Answer {
    const BASIC: u32 = 0;
    const XRC: u32 = 1;
    let input: CreateXsrq = if command.number == command::CREATE_XSRQ {
        command.input()
    } else {
        let CreateSrq { user_handle, pd_handle, max_wr, max_sge, srq_limit } = command.input();
        CreateXsrq { user_handle, pd_handle, max_wr, max_sge, srq_limit, ..bytemuck::Zeroable::zeroed() }
    };
    match input.srq_type {
        BASIC => {}
        // Its domain is none: there are none.
        XRC => return Err(Errno::INVAL),
        _ => return Err(Errno::OPNOTSUPP),
    }
    nic.pds.get(command.file, input.pd_handle)?;
    if input.max_wr == 0 || input.max_wr > most::QUEUE || input.max_sge > most::SRQ_SGE {
        return Err(Errno::INVAL);
    }
    let size = size_of::<RecvWqe>() + input.max_sge as usize * size_of::<RxeSge>();
    let ring = command.ring(nic, input.max_wr, size)?;
    let (place, max_wr, max_sge) = (ring.place(), ring.capacity(), input.max_sge);
    let mut queue = ReceiveQueue::new(max_wr as usize, input.pd_handle);
    queue.arm_limit(input.srq_limit as usize);
    let events = Notices::new(input.user_handle, command.context(nic)?.events.clone());
    let handle = nic.srqs.insert(command.file, Srq { queue, ring, max_sge, events });
    let told = CreateSrqResp { srq_handle: handle, max_wr, max_sge, srqn: handle };
    Ok(Done::with(&told).and(&place).and(&[handle, 0]).made(Object::Srq, handle))
}

/// Another size, in a new ring, or another limit. Nothing is changed if one of them is refused.
pub fn modify(nic: &mut Nic, command: &mut Command) -> Answer {
    const MAX_WR: u32 = 1;
    const LIMIT: u32 = 2;
    let input: ModifySrq = command.input();
    let srq = nic.srqs.get_mut(command.file, input.srq_handle)?;
    srq.draw();
    let (resizes, limits) = (input.attr_mask & MAX_WR != 0, input.attr_mask & LIMIT != 0);
    let limit = if limits { input.srq_limit as usize } else { srq.queue.limit() };
    let fits = |most: u32| limit.max(srq.queue.len()) <= most as usize;
    if !(if resizes {
        (1..=most::QUEUE).contains(&input.max_wr) && fits(input.max_wr)
    } else {
        fits(srq.ring.capacity())
    }) {
        return Err(Errno::INVAL);
    }
    if resizes {
        let size = srq.ring.slot_bytes() as usize;
        let ring = command.ring(nic, input.max_wr, size)?;
        command.process.write(input.mmap_info_addr, bytemuck::bytes_of(&ring.place()))?;
        nic.srqs.get_mut(command.file, input.srq_handle)?.move_to(ring);
    }
    if limits {
        nic.srqs.get_mut(command.file, input.srq_handle)?.queue.arm_limit(limit);
    }
    Ok(Done::default())
}

pub fn query(nic: &mut Nic, command: &mut Command) -> Answer {
    let srq = nic.srqs.get(command.file, command.handle())?;
    let (max_wr, srq_limit) = (srq.queue.capacity() as u32, srq.queue.limit() as u32);
    Ok(Done::with(&QuerySrqResp { max_wr, max_sge: srq.max_sge, srq_limit, reserved: 0 }))
}

/// Refused while a queue pair uses it.
pub fn destroy(nic: &mut Nic, command: &mut Command) -> Answer {
    let handle = command.handle();
    let srq = nic.srqs.get(command.file, handle)?;
    if nic.qps.values().any(|entry| entry.srq == Some(handle)) {
        return Err(Errno::BUSY);
    }
    Ok(Done::with(&srq.events.seen::<AsyncEventDesc>()).dooms(Object::Srq, handle))
}
