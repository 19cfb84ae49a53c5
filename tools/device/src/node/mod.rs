//! A node: its NIC, which is the core of the crate `nic` with a socket, and all that programs have made on it.
//!
//! One thread serves a node, so nothing here is locked. What programs see of it is in [`face`](crate::face).

pub mod clock;
pub mod line;
pub mod pipe;
#[allow(unsafe_code)]
pub mod port;
mod queues;
pub mod table;
pub mod tap;

use crate::abi::{AsyncEventDesc, Cap, ModifyQp, Wc};
use crate::machine::{FileId, Process};
use crate::ring::Ring;
use clock::Clock;
use nic::cm::{Cm, CmEffect, Event};
use nic::completion::{Alarm, Completion};
use nic::congestion::Link;
use nic::datagram::Route;
use nic::fact::Fact;
use nic::memory::Memory;
use nic::multicast::Groups;
use nic::outside::{AsyncEvent, Ctx, Effect};
use nic::packet::Packet;
use nic::psn::Psn;
use nic::qp::Qp;
use nic::time::Time;
use nic::work::ReceiveQueue;
use pipe::{Notices, Pipe};
use port::Port;
use roce::pause;
use run::switch::Lot;
use rustix::io::Errno;
use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{BuildHasher, Hasher};
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;
use table::Table;

/// How long a NIC that reads late lets a program's requests lie.
const LATE_READ: Duration = Duration::from_millis(150);

/// An open `/dev/infiniband/uverbs0`.
#[derive(Debug)]
pub struct Context {
    /// Whose memory its regions are in.
    pub process: Process,
    /// Async events.
    pub events: Option<Rc<Pipe>>,
    /// Where in its pages there is room for the next ring.
    pub free: u64,
    /// Rings that the program has been told of and has not mapped yet: where each begins, and its length.
    pub unmapped: BTreeMap<u64, u64>,
}

/// Where datagrams go to.
#[derive(Debug)]
pub struct AddressHandle {
    pub pd: u32,
    pub address: IpAddr,
    /// The traffic class of what goes there.
    pub class: u8,
}

#[derive(Debug)]
pub struct Cq {
    pub ring: Ring,
    pub alarm: Alarm,
    /// A completion was lost.
    pub is_broken: bool,
    pub channel: Notices,
    pub events: Notices,
}

/// A queue pair with its rings: for sends, and for receives if they are its own.
#[derive(Debug)]
pub struct QpEntry {
    pub qp: Qp,
    pub send_cq: u32,
    pub receive_cq: u32,
    pub srq: Option<u32>,
    pub events: Notices,
    pub sends: Ring,
    /// None: they come from a shared queue.
    pub receives: Option<Ring>,
    /// How much it holds, as programs are told.
    pub cap: Cap,
    /// The attributes that were set last.
    pub asked: ModifyQp,
    /// When it must be looked at again.
    pub due: Option<Time>,
}

#[derive(Debug)]
pub struct Srq {
    pub queue: ReceiveQueue,
    pub ring: Ring,
    pub max_sge: u32,
    pub events: Notices,
}

/// The connection manager at this moment.
pub struct Net<'a> {
    pub cm: &'a mut Cm,
    pub now: Time,
    pub out: &'a mut Vec<CmEffect>,
    /// 64 random bits.
    pub random: u64,
}

#[derive(Debug)]
pub struct Nic {
    pub port: Port,
    pub clock: Clock,
    /// What it sends on; None: on nothing with a rate.
    pub link: Option<Link>,
    /// The random numbers if time is virtual, which are always the same.
    lot: Lot,
    /// A program was told something since this was looked at.
    pub has_told: bool,
    pub memory: Memory,
    pub cm: Cm,
    /// Connection manager events that nobody has been told of yet.
    pub cm_events: Vec<Event>,
    cm_psn: Psn,
    /// Pipes of completion channels that the program has closed; None if nobody asks.
    pub closed_pipes: Option<BTreeSet<u64>>,
    /// Queue pairs whose doorbell was rung, and from when on their requests are read; None: at once.
    late_bells: Option<VecDeque<(Time, u32)>>,
    /// The system call that is carried out: its line comes before what the device does for it.
    pub crossing: Option<Fact>,
    pub contexts: BTreeMap<FileId, Context>,
    pub pds: Table<()>,
    /// Memory regions and windows by their keys: what is behind these is in [`Nic::memory`].
    pub regions: Table<u32>,
    pub windows: Table<u32>,
    pub channels: Table<Rc<Pipe>>,
    pub cqs: Table<Cq>,
    pub srqs: Table<Srq>,
    pub handles: Table<AddressHandle>,
    pub groups: Groups,
    /// By queue pair number.
    pub qps: Table<QpEntry>,
    next_qp: u32,
}

impl Nic {
    pub fn new(port: Port, clock: Clock, link: Option<Link>) -> Nic {
        // Numbers begin somewhere else each time: a peer may still rest from the last program that ran here.
        let mut lot = Lot::from(if clock.is_real() { random() } else { number_of(port.address()) });
        Nic {
            next_qp: 17 + lot.bits() as u32 % 0xff_0000,
            lot,
            clock,
            link,
            has_told: false,
            cm: Cm::new(port.address()),
            port,
            memory: Memory::default(),
            cm_events: Vec::new(),
            cm_psn: Psn::default(),
            closed_pipes: None,
            late_bells: None,
            crossing: None,
            contexts: BTreeMap::new(),
            pds: Table::default(),
            regions: Table::default(),
            windows: Table::default(),
            channels: Table::default(),
            cqs: Table::default(),
            srqs: Table::default(),
            handles: Table::default(),
            groups: Groups::default(),
            qps: Table::default(),
        }
    }

    /// Whether a program may map this part of an open uverbs0: as with rdma_rxe a ring that it was told of, and once.
    pub fn may_map(&mut self, file: FileId, offset: u64, length: u64) -> bool {
        let Some(context) = self.contexts.get_mut(&file) else { return false };
        let is_there = context.unmapped.get(&offset).is_some_and(|ring| length <= *ring);
        is_there && context.unmapped.remove(&offset).is_some()
    }

    /// Our address, which is also the only GID.
    pub fn address(&self) -> IpAddr {
        self.port.address()
    }

    /// A number for a queue pair: 24 bits, none of the reserved ones, never one in use.
    pub fn qp_number(&mut self) -> u32 {
        loop {
            self.next_qp = (self.next_qp + 1) & 0xff_ffff;
            if self.next_qp > 16 && self.next_qp != 0xff_ffff && self.qps.any(self.next_qp).is_none() {
                return self.next_qp;
            }
        }
    }

    /// Does something with a queue pair, and carries out the effects. None if there is no such queue pair.
    pub fn with_qp<R>(&mut self, number: u32, act: impl FnOnce(&mut QpEntry, &mut Ctx) -> R) -> Option<R> {
        let entry = self.qps.any_mut(number)?;
        let mut shared = entry.srq.and_then(|srq| self.srqs.any_mut(srq));
        let now = self.clock.now();
        let mut ctx = Ctx::new(now, &mut self.memory);
        ctx.talks = self.port.tap.talks;
        ctx.link = self.link.as_ref();
        entry.draw_receives(&mut ctx);
        ctx.shared = shared.as_mut().map(|srq| {
            srq.draw();
            &mut srq.queue
        });
        let result = act(entry, &mut ctx);
        let effects = ctx.effects;
        // First the slots: who sees a completion may post the next request.
        entry.release();
        shared.iter().for_each(|srq| srq.release());
        entry.due = entry.next_look(self.clock);
        self.carry_out(number, effects);
        Some(result)
    }

    /// From now on what a program has posted is read some time after its doorbell, as by a NIC that has much to do.
    pub fn read_late(&mut self) {
        self.late_bells = Some(VecDeque::new());
    }

    /// A program has rung the doorbell of a queue pair.
    pub fn rung(&mut self, number: u32) {
        let until = self.clock.now() + LATE_READ;
        match &mut self.late_bells {
            Some(bells) => bells.push_back((until, number)),
            None => self.doorbell(number),
        }
    }

    /// Takes over what a program has posted to a queue pair, and sends what can be sent.
    pub fn doorbell(&mut self, number: u32) {
        // Requests name address handles: the table is read while all else here may be changed.
        let handles = std::mem::take(&mut self.handles);
        self.with_qp(number, |entry, ctx| {
            entry.draw_sends(&handles, ctx);
            entry.qp.tick(ctx);
        });
        self.handles = handles;
    }

    /// Tells the system call that is carried out, and its answer; once.
    pub fn tell_crossing(&mut self, answer: impl FnOnce(Fact) -> Fact) {
        if let Some(call) = self.crossing.take() {
            self.port.tap.say(|| answer(call));
        }
    }

    fn carry_out(&mut self, number: u32, effects: Vec<Effect>) {
        if !effects.is_empty() {
            self.tell_crossing(|call| call.with("result", 0));
        }
        let mut is_lost = false;
        self.has_told |= effects.iter().any(|effect| !matches!(effect, Effect::Send(..) | Effect::Say(_)));
        for effect in effects {
            let Some(entry) = self.qps.any_mut(number) else { return };
            match effect {
                Effect::Send(to, packet) => self.port.send(to, &packet),
                Effect::Sent(completion) => is_lost |= !complete(self.cqs.any_mut(entry.send_cq), completion),
                Effect::Received(completion) => is_lost |= !complete(self.cqs.any_mut(entry.receive_cq), completion),
                Effect::Raise(event) => {
                    let srq = entry.srq.and_then(|srq| self.srqs.any_mut(srq));
                    match srq.filter(|_| event == AsyncEvent::SrqLimitReached) {
                        Some(srq) => raise(event, &mut srq.events),
                        None => raise(event, &mut entry.events),
                    }
                }
                Effect::Say(decision) => self.port.tap.say(|| decision),
            }
        }
        if is_lost {
            self.with_qp(number, |entry, ctx| entry.qp.lost_completion(ctx));
        }
    }

    /// Does something with the connection manager, and carries out the effects. Events are left in [`Nic::cm_events`].
    pub fn with_cm<R>(&mut self, act: impl FnOnce(&mut Net) -> R) -> R {
        let mut effects = Vec::new();
        let (now, random) = (self.clock.now(), self.random());
        let mut net = Net { cm: &mut self.cm, now, out: &mut effects, random };
        let result = act(&mut net);
        for effect in effects {
            match effect {
                CmEffect::Send(to, mad) => {
                    self.port.send(to, &mad.packet(self.cm_psn));
                    self.cm_psn = self.cm_psn.plus(1);
                }
                CmEffect::Event(event) => {
                    self.has_told = true;
                    self.cm_events.push(event);
                }
                CmEffect::Say(decision) => self.port.tap.say(|| decision),
            }
        }
        result
    }

    /// Takes a packet from the network.
    pub fn receive(&mut self, route: Route, packet: Packet) {
        let from = route.from;
        if route.to != self.address() {
            for number in self.groups.receivers(route, &packet, self.address()) {
                self.with_qp(number, |entry, ctx| entry.qp.receive(route, packet.clone(), ctx));
            }
            return;
        }
        if packet.dest_qp == nic::cm::QP1 {
            if packet.deth.qkey == nic::cm::QKEY {
                self.with_cm(|net| net.cm.receive(from, &packet.payload, net.random, net.now, net.out));
            }
            return;
        }
        let (number, name) = (packet.dest_qp, packet.row().name);
        match self.qps.any(number) {
            Some(_) => {
                self.with_qp(number, |entry, ctx| entry.qp.receive(route, packet, ctx));
            }
            None => {
                let fact = || Fact::new("no_qp").with("packet", name).with("from", from).with("qp", number);
                self.port.tap.say(fact)
            }
        }
    }

    /// The other end of the link says what not to send, or that it may go on.
    pub fn paused(&mut self, pause: &pause::Frame) {
        let Some(link) = &mut self.link else { return };
        link.pause.heard(pause, link.rate, self.clock.now());
        for number in self.qps.iter().map(|(number, _)| number).collect::<Vec<_>>() {
            self.with_qp(number, |entry, ctx| entry.qp.tick(ctx));
        }
    }

    /// Does all that is due.
    pub fn turn(&mut self) {
        let now = self.clock.now();
        let bells = self.late_bells.iter_mut().flat_map(|bells| {
            let heard = bells.iter().take_while(|(until, _)| *until <= now).count();
            bells.drain(..heard)
        });
        for (_, number) in bells.collect::<Vec<_>>() {
            self.doorbell(number);
        }
        let due = self.qps.iter().filter(|(_, entry)| entry.due.is_some_and(|due| due <= now));
        for number in due.map(|(number, _)| number).collect::<Vec<_>>() {
            self.with_qp(number, |entry, ctx| entry.qp.tick(ctx));
        }
        if self.cm.deadline().is_some_and(|due| due <= now) {
            self.with_cm(|net| net.cm.tick(net.now, net.out));
        }
    }

    /// When something is due; None if nothing is until something happens.
    pub fn due(&self) -> Option<Time> {
        let dues = self.qps.iter().filter_map(|(_, entry)| entry.due);
        let bell = self.late_bells.as_ref().and_then(|bells| bells.front()).map(|(until, _)| *until);
        dues.chain(bell).chain(self.cm.deadline()).min()
    }

    /// Does all that is due while time stands still, and looks for receives that were posted without a doorbell.
    pub fn turn_until_nothing_is_due(&mut self) {
        let late = self.qps.iter().filter(|(_, entry)| entry.awaits_receives());
        for number in late.map(|(number, _)| number).collect::<Vec<_>>() {
            self.with_qp(number, |entry, ctx| entry.qp.tick(ctx));
        }
        while self.due().is_some_and(|due| due <= self.clock.now()) {
            self.turn();
        }
    }

    /// 64 bits that nobody can guess; the same ones each time if time is virtual.
    pub fn random(&mut self) -> u64 {
        if self.clock.is_real() {
            random()
        } else {
            self.lot.bits()
        }
    }

    pub fn forget_qp(&mut self, number: u32) {
        self.qps.remove(number);
        for group in self.groups.of(number) {
            if self.groups.detach(group, number) == Ok(true) {
                self.port.leave(group);
            }
        }
    }
}

/// Puts a completion in its queue, and wakes the program if it has asked for that. False if it is lost.
fn complete(cq: Option<&mut Cq>, completion: Completion) -> bool {
    const GRH: u32 = 1;
    const WITH_IMM: u32 = 2;
    const WITH_INV: u32 = 8;
    let Some(cq) = cq else { return true };
    let wc = Wc {
        wr_id: completion.wr_id,
        status: completion.status as u32,
        opcode: completion.opcode as u32,
        byte_len: completion.length,
        ex: completion.invalidated.unwrap_or(completion.immediate.unwrap_or_default().to_be()),
        qp_num: completion.qp,
        src_qp: completion.src_qp,
        wc_flags: completion.immediate.map_or(0, |_| WITH_IMM)
            | completion.invalidated.map_or(0, |_| WITH_INV)
            | if completion.grh { GRH } else { 0 },
        port_num: 1,
        ..bytemuck::Zeroable::zeroed()
    };
    if !cq.ring.push(bytemuck::bytes_of(&wc)) {
        if !std::mem::replace(&mut cq.is_broken, true) {
            raise(AsyncEvent::CqError, &mut cq.events);
        }
        return false;
    }
    if cq.alarm.rings(&completion) {
        cq.channel.send(&{ cq.channel.user });
    }
    true
}

fn raise(event: AsyncEvent, about: &mut Notices) {
    about.send(&AsyncEventDesc { element: about.user, event_type: event as u32, reserved: 0 });
}

pub fn errno(errno: nic::errno::Errno) -> Errno {
    Errno::from_raw_os_error(errno.into())
}

/// A number that no other node of a run has.
fn number_of(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => u128::from(address) as u64,
    }
}

/// 64 bits that nobody can guess: the keys of Rust's hash tables are.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
