//! Completion queues, and the channels that wake a program for them.

use super::device::{most, VECTORS};
use super::{Answer, Command, Done, Object};
use crate::abi::*;
use crate::node::pipe::{Notices, Pipe};
use crate::node::{Cq, Nic};
use crate::ring::Ring;
use nic::completion::{Alarm, Armed, WcOpcode};
use nic::fact::Fact;
use rustix::io::Errno;
use std::mem::size_of;
use std::rc::Rc;

pub fn create_channel(nic: &mut Nic, command: &mut Command) -> Answer {
    let (channel, descriptor) = Pipe::new()?;
    let number = command.give(&descriptor)?;
    let handle = nic.channels.insert(command.file, Rc::new(channel));
    Ok(Done::with(&number).made(Object::Channel, handle))
}

/// What CREATE_CQ asks for, in words.
pub fn asks(call: Fact, command: &Command) -> Fact {
    let CreateCq { cqe, comp_channel, .. } = command.input();
    call.with("cqe", cqe).maybe("channel", (comp_channel >= 0).then_some(1))
}

/// How many completions are in a queue that the program has not taken; how many of them tell of a success, as the others are
/// echoes of the end, perhaps; and how many of a receive.
pub fn waiting(call: Fact, nic: &Nic, command: &Command) -> Fact {
    let Ok(cq) = nic.cqs.get(command.file, command.handle()) else { return call };
    let count = |is_it: fn(&Wc) -> bool| cq.ring.entries().filter(|index| is_it(&cq.ring.read(*index, 0))).count();
    let (successes, receives) = (count(|wc| wc.status == 0), count(|wc| wc.opcode >= WcOpcode::Recv as u32));
    call.with("untaken", cq.ring.waiting()).with("successes", successes).with("receives", receives)
}

/// The channel behind a descriptor of the program.
fn channel(nic: &Nic, command: &Command, descriptor: i32) -> Result<Option<Rc<Pipe>>, Errno> {
    if descriptor < 0 {
        return Ok(None);
    }
    let inode = command.process.inode(descriptor)?;
    let mut own = nic.channels.of(command.file).into_iter().filter_map(|handle| nic.channels.any(handle));
    own.find(|channel| channel.inode() == inode).map(|channel| Some(Rc::clone(channel))).ok_or(Errno::INVAL)
}

pub fn create(nic: &mut Nic, command: &mut Command) -> Answer {
    let input: CreateCq = command.input();
    if input.cqe == 0 || input.cqe > most::COMPLETIONS || input.comp_vector >= VECTORS {
        return Err(Errno::INVAL);
    }
    if command.extended && input.flags != 0 {
        return Err(Errno::OPNOTSUPP);
    }
    let channel = channel(nic, command, input.comp_channel)?;
    let ring = command.ring(nic, input.cqe, size_of::<Wc>())?;
    let (place, cqe) = (ring.place(), ring.capacity());
    let user = input.user_handle;
    let (channel, events) = (Notices::new(user, channel), Notices::new(user, command.context(nic)?.events.clone()));
    let cq = Cq { ring, alarm: Alarm::default(), is_broken: false, channel, events };
    let handle = nic.cqs.insert(command.file, cq);
    let done = command.done(&CreateCqResp { cq_handle: handle, cqe }).and(&place);
    Ok(done.made(Object::Cq, handle))
}

/// What is in the old ring moves to the new one.
pub fn resize(nic: &mut Nic, command: &mut Command) -> Answer {
    let ResizeCq { cq_handle, cqe } = command.input();
    let waiting = nic.cqs.get(command.file, cq_handle)?.ring.waiting();
    if cqe == 0 || cqe > most::COMPLETIONS || cqe < waiting {
        return Err(Errno::INVAL);
    }
    let ring = command.ring(nic, cqe, size_of::<Wc>())?;
    let cq = nic.cqs.get_mut(command.file, cq_handle)?;
    ring.take_over(&cq.ring);
    cq.ring = ring;
    Ok(Done::with(&ResizeCqResp { cqe: cq.ring.capacity(), reserved: 0 }).and(&cq.ring.place()))
}

pub fn request_notification(nic: &mut Nic, command: &mut Command) -> Answer {
    let ReqNotifyCq { cq_handle, solicited_only } = command.input();
    let cq = nic.cqs.get_mut(command.file, cq_handle)?;
    cq.alarm.arm(if solicited_only == 0 { Armed::Any } else { Armed::Solicited });
    Ok(Done::default())
}

/// Says how many events the program has been told of, so that libibverbs waits until all of
/// them are acknowledged.
pub fn destroy(nic: &mut Nic, command: &mut Command) -> Answer {
    let handle = command.handle();
    let cq = nic.cqs.get(command.file, handle)?;
    if nic.qps.values().any(|entry| entry.send_cq == handle || entry.receive_cq == handle) {
        return Err(Errno::BUSY);
    }
    let (comp_events_reported, async_events_reported) = (cq.channel.seen::<u64>(), cq.events.seen::<AsyncEventDesc>());
    // How often the program was woken by it: what a log can tell of its sleep.
    nic.crossing = nic.crossing.take().map(|call| call.with("events", comp_events_reported));
    Ok(Done::with(&DestroyCqResp { comp_events_reported, async_events_reported }).dooms(Object::Cq, handle))
}

impl Command<'_> {
    /// A new ring in the pages of the open device.
    pub fn ring(&mut self, nic: &mut Nic, entries: u32, size: usize) -> Result<Ring, Errno> {
        let context = self.context(nic)?;
        let ring = Ring::new(self.machine.files.pages(self.file).ok_or(Errno::INVAL)?, context.free, entries, size)?;
        context.unmapped.insert(context.free, ring.end() - context.free);
        context.free = ring.end();
        Ok(ring)
    }
}
