//! Two queue pairs in memory, joined by a wire that may lose, double and reorder, and a clock that stands still until nothing
//! else can happen.

#![allow(clippy::unwrap_used)] // A test may end with a panic.

pub mod managers;

use crate::program::Buffer;
pub use crate::program::PD;
use nic::completion::{Completion, Status};
use nic::congestion::Link;
use nic::datagram::Route;
use nic::errno::Errno;
use nic::memory::{Access, Memory, Region, Sge};
use nic::outside::{AsyncEvent, Ctx, Effect};
use nic::packet::Packet;
use nic::psn::Psn;
pub use nic::qp::Attributes;
use nic::qp::{mask, Limits, Qp, Service, Settings, State};
use nic::time::Time;
use nic::work::{Local, ReceiveQueue, ReceiveRequest, SendRequest, Work};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

pub const MTU: u32 = 256;
pub const OURS: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
pub const PEERS: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 3));

/// What the wire does to one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Pass,
    Drop,
    Duplicate,
    /// It comes after so many packets that were sent later.
    Late(u8),
}

/// What happens to less than so many packets: each passes so many times as often as it has one of the faults.
pub fn faults(passes: u32, most: usize) -> impl Strategy<Value = Vec<Fault>> {
    let late = (1..6u8).prop_map(Fault::Late);
    let fault =
        prop_oneof![passes => Just(Fault::Pass), 1 => Just(Fault::Drop), 1 => Just(Fault::Duplicate), 1 => late];
    proptest::collection::vec(fault, 0..most)
}

/// One side: a queue pair, its memory, and what it has told.
pub struct Side {
    pub qp: Qp,
    pub memory: Memory,
    /// The shared receive queue, if it has one.
    pub shared: Option<ReceiveQueue>,
    buffer: Buffer,
    pub key: u32,
    pub sent: Vec<Completion>,
    pub received: Vec<Completion>,
    pub raised: Vec<AsyncEvent>,
    /// Decisions, for a test that fails.
    pub said: Vec<String>,
    out: VecDeque<Packet>,
    /// The link that it sends on, if that has a rate.
    pub link: Option<Link>,
    /// What its clock says.
    pub now: Time,
    /// Whether it tells its decisions.
    pub talks: bool,
    /// Where it has sent its last packet.
    pub last_to: Option<IpAddr>,
}

impl Side {
    /// A queue pair of a reliable connection in RTS with a buffer of so many bytes, which the peer may do anything to.
    pub fn new(number: u32, peer: u32, size: usize, attributes: Attributes) -> Side {
        Side::of(Service::Rc, number, peer, size, attributes)
    }

    /// The same of any service.
    pub fn of(service: Service, number: u32, peer: u32, size: usize, attributes: Attributes) -> Side {
        let (mut memory, all) = (Memory::default(), Access(15 | Access::FLUSH_GLOBAL.0));
        let buffer = Buffer::new(&mut memory, number as usize, size, all);
        let key = buffer.key;
        let limits = Limits { send: 64, receive: 64, send_sge: 4, receive_sge: 128, inline: 64 };
        let settings = Settings { number, service, pd: PD, limits, signal_all: true, uses_shared: false };
        let (shared, sent, received, raised, said, out, link, last_to) = Default::default();
        let (qp, now) = (Qp::new(settings), Time::START);
        let mut side = Side {
            qp,
            memory,
            shared,
            buffer,
            key,
            sent,
            received,
            raised,
            said,
            out,
            link,
            now,
            talks: true,
            last_to,
        };
        let attributes = Attributes { access: all, dest_qp: peer, ..attributes };
        for state in [State::Init, State::Rtr, State::Rts] {
            let bits = mask::STATE | state.needs(service).unwrap();
            side.act(|qp, out| qp.modify(bits, state, &attributes, out)).unwrap();
        }
        side
    }

    /// The address of a byte of the buffer.
    pub fn address(&self, offset: usize) -> u64 {
        self.buffer.address + offset as u64
    }

    /// A region of the buffer, as it is not registered yet.
    pub fn region(&self, pd: u32, length: u64, access: Access) -> Region {
        self.buffer.region(length, access, pd)
    }

    pub fn piece(&self, offset: usize, length: usize) -> Sge {
        Sge { address: self.address(offset), length: length as u32, ..self.buffer.piece() }
    }

    /// What is in the buffer there.
    pub fn bytes(&self, offset: usize, length: usize) -> Vec<u8> {
        self.buffer.bytes(self.address(offset), length)
    }

    pub fn fill(&self, offset: usize, bytes: &[u8]) {
        self.buffer.fill(self.address(offset), bytes);
    }

    /// Whether nothing outside the buffer was written.
    pub fn guards_stand(&self) -> bool {
        self.buffer.guards_stand()
    }

    /// A receive into this part of the buffer.
    pub fn post_receive(&mut self, wr_id: u64, offset: usize, length: usize) -> Result<(), Errno> {
        let sge = vec![self.piece(offset, length)];
        self.act(|qp, out| qp.post_receive(ReceiveRequest { wr_id, sge }, out))
    }

    /// A request whose bytes are, or come to, this part of the buffer.
    pub fn post(&mut self, wr_id: u64, work: Work, offset: usize, length: usize) {
        self.post_send(request(wr_id, work, self.piece(offset, length)));
    }

    pub fn post_send(&mut self, request: SendRequest) {
        self.act(|qp, out| qp.post_send(request, out)).unwrap();
    }

    pub fn receive(&mut self, packet: Packet) {
        self.act(|qp, out| qp.receive(Route { from: PEERS, to: OURS }, packet, out));
    }

    /// What it has sent since it was asked last.
    pub fn take_out(&mut self) -> Vec<Packet> {
        self.out.drain(..).collect()
    }

    /// The same, after its turn.
    pub fn sends(&mut self) -> Vec<Packet> {
        self.act(Qp::tick);
        self.take_out()
    }

    pub fn act<R>(&mut self, act: impl FnOnce(&mut Qp, &mut Ctx) -> R) -> R {
        let mut out = Ctx::new(self.now, &mut self.memory);
        (out.talks, out.shared, out.link) = (self.talks, self.shared.as_mut(), self.link.as_ref());
        let result = act(&mut self.qp, &mut out);
        for effect in out.effects {
            match effect {
                Effect::Send(to, packet) => {
                    self.out.push_back(packet);
                    self.last_to = Some(to);
                }
                Effect::Sent(completion) => self.sent.push(completion),
                Effect::Received(completion) => self.received.push(completion),
                Effect::Raise(event) => self.raised.push(event),
                Effect::Say(decision) => self.said.push(decision),
            }
        }
        result
    }
}

/// How requests or receives ended, each by its number.
pub fn ended(told: &[Completion]) -> Vec<(u64, Status)> {
    told.iter().map(|wc| (wc.wr_id, wc.status)).collect()
}

/// A request whose bytes are, or come to, this piece.
pub fn request(wr_id: u64, work: Work, piece: Sge) -> SendRequest {
    let (local, length) = (Local::SgList(vec![piece]), piece.length);
    SendRequest { wr_id, work, local, length, immediate: None, signaled: true, solicited: false, fence: false }
}

/// Looks at so many cases.
pub fn hold<S: Strategy>(cases: u32, inputs: S, look: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let config = ProptestConfig { failure_persistence: None, max_shrink_iters: 2_000, cases, ..Default::default() };
    TestRunner::new(config).run(&inputs, look).unwrap_or_else(|error| panic!("{error}"));
}

/// Attributes for tests: short time-outs, and any PSN.
pub fn attributes(ours: u32, peers: u32, retries: u8, rnr_retries: u8) -> Attributes {
    Attributes {
        peer: Some(PEERS),
        sq_psn: Psn::new(ours),
        rq_psn: Psn::new(peers),
        mtu: MTU,
        timeout: 14,
        retries,
        rnr_retries,
        min_rnr_timer: 12,
        max_rd_atomic: 2,
        max_dest_rd_atomic: 2,
        ..Attributes::default()
    }
}

pub const SERVER: usize = 0;
pub const CLIENT: usize = 1;

/// What happens to packets or messages, in their order; those behind the end pass.
pub struct Wire<T> {
    faults: VecDeque<Fault>,
    /// Under way: to whom, and how many others pass before.
    items: VecDeque<(usize, u8, T)>,
}

impl<T: Clone> Wire<T> {
    pub fn new(faults: Vec<Fault>) -> Wire<T> {
        Wire { faults: faults.into(), items: VecDeque::new() }
    }

    pub fn send(&mut self, to: usize, item: T) {
        let copies = match self.faults.pop_front().unwrap_or(Fault::Pass) {
            Fault::Pass => vec![0],
            Fault::Drop => vec![],
            Fault::Duplicate => vec![0, 0],
            Fault::Late(later) => vec![later],
        };
        self.items.extend(copies.into_iter().map(|later| (to, later, item.clone())));
    }

    /// The next one that may arrive: a late one lets others pass, as long as there are any.
    pub fn take(&mut self) -> Option<(usize, T)> {
        let ready = self.items.iter().position(|(_, later, _)| *later == 0).unwrap_or(0);
        self.items.iter_mut().take(ready).for_each(|(_, later, _)| *later = later.saturating_sub(1));
        self.items.remove(ready).map(|(to, _, item)| (to, item))
    }
}

/// Two sides and the wire between them.
pub struct Pair {
    pub client: Side,
    pub server: Side,
    wire: Wire<Packet>,
}

impl Pair {
    pub fn new(client: Side, server: Side, faults: Vec<Fault>) -> Pair {
        Pair { client, server, wire: Wire::new(faults) }
    }

    /// Lets happen what can happen, and time go on when nothing can. Before time goes on, `idle` is asked for more to do.
    /// False if it is not over after very many steps.
    pub fn run(&mut self, mut idle: impl FnMut(&mut Pair)) -> bool {
        for _ in 0..200_000 {
            self.collect();
            if let Some((to, packet)) = self.wire.take() {
                let side = if to == SERVER { &mut self.server } else { &mut self.client };
                side.receive(packet);
                continue;
            }
            idle(self);
            for side in [&mut self.client, &mut self.server] {
                side.act(Qp::tick);
            }
            let is_busy = [&self.client, &self.server].iter().any(|side| side.qp.is_busy() || !side.out.is_empty());
            match self.client.qp.deadline().into_iter().chain(self.server.qp.deadline()).min() {
                _ if is_busy => {}
                Some(next) => self.goes_on(next.max(self.client.now + Duration::from_micros(1))),
                None => return true,
            }
        }
        false
    }

    /// Both clocks say this now.
    pub fn goes_on(&mut self, now: Time) {
        (self.client.now, self.server.now) = (now, now);
    }

    fn collect(&mut self) {
        self.client.take_out().into_iter().for_each(|packet| self.wire.send(SERVER, packet));
        self.server.take_out().into_iter().for_each(|packet| self.wire.send(CLIENT, packet));
    }
}
