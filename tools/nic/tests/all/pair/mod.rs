//! Two queue pairs in memory, joined by a wire that may lose, double and reorder, and a clock that stands still until nothing
//! else can happen.

#![allow(dead_code, clippy::unwrap_used)] // Each test uses its part; a test may end with a panic.

use nic::completion::Completion;
use nic::errno::Errno;
use nic::memory::{Access, Memory, Sge};
use nic::outside::{AsyncEvent, Ctx, Effect};
use nic::packet::Packet;
use nic::psn::Psn;
pub use nic::qp::Attributes;
use nic::qp::{mask, Limits, Qp, Settings, State};
use nic::work::{Local, ReceiveQueue, ReceiveRequest, SendRequest, Work};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::cell::Cell;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Bytes around a side's buffer that nobody may touch.
const GUARD: usize = 64;
const CANARY: u8 = 0xc5;
pub const PD: u32 = 1;
pub const MTU: u32 = 256;

/// What the wire does to one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Pass,
    Drop,
    Duplicate,
    /// It comes after so many packets that were sent later.
    Late(u8),
}

/// One side: a queue pair, its memory, and what it has told.
pub struct Side {
    pub qp: Qp,
    pub memory: Memory,
    /// The shared receive queue, if it has one.
    pub shared: Option<ReceiveQueue>,
    /// With guards at both ends. Cells: the device writes here through a pointer that it got at the beginning.
    numbers: Vec<Cell<u64>>,
    pub key: u32,
    pub sent: Vec<Completion>,
    pub received: Vec<Completion>,
    pub raised: Vec<AsyncEvent>,
    /// Decisions, for a test that fails.
    pub said: Vec<String>,
    out: VecDeque<Packet>,
}

impl Side {
    /// A queue pair in RTS with a buffer of so many bytes, which the peer may do anything to.
    pub fn new(number: u32, peer: u32, size: usize, attributes: Attributes) -> Side {
        assert_eq!(size % 8, 0, "a buffer is made of numbers, so that it is aligned");
        let numbers = vec![Cell::new(0); (size + 2 * GUARD) / 8];
        let cells = cells(&numbers);
        cells[..GUARD].iter().chain(&cells[GUARD + size..]).for_each(|guard| guard.set(CANARY));
        let start = cells[GUARD..].as_ptr() as *mut u8;
        let mut memory = Memory::default();
        let all = Access(15);
        let key = memory.register(PD, start, size as u64, all, number as u8);
        let limits = Limits { send: 64, receive: 64, send_sge: 4, receive_sge: 128, inline: 64 };
        let settings = Settings { number, pd: PD, limits, signal_all: true, uses_shared: false };
        let (shared, sent, received, raised, said, out) = Default::default();
        let mut side = Side { qp: Qp::new(settings), memory, shared, numbers, key, sent, received, raised, said, out };
        let attributes = Attributes { access: all, dest_qp: peer, ..attributes };
        for state in [State::Init, State::Rtr, State::Rts] {
            let bits = mask::STATE | state.needs().unwrap();
            side.act(Instant::now(), |qp, out| qp.modify(bits, state, &attributes, out)).unwrap();
        }
        side
    }

    /// The address of a byte of the buffer.
    pub fn address(&self, offset: usize) -> u64 {
        cells(&self.numbers)[GUARD + offset..].as_ptr() as u64
    }

    pub fn piece(&self, offset: usize, length: usize) -> Sge {
        Sge { address: self.address(offset), length: length as u32, lkey: self.key }
    }

    /// What is in the buffer there.
    pub fn bytes(&self, offset: usize, length: usize) -> Vec<u8> {
        cells(&self.numbers)[GUARD + offset..][..length].iter().map(Cell::get).collect()
    }

    pub fn fill(&self, offset: usize, bytes: &[u8]) {
        cells(&self.numbers)[GUARD + offset..].iter().zip(bytes).for_each(|(cell, byte)| cell.set(*byte));
    }

    /// Whether nothing outside the buffer was written.
    pub fn guards_stand(&self) -> bool {
        let cells = cells(&self.numbers);
        cells[..GUARD].iter().chain(&cells[cells.len() - GUARD..]).all(|guard| guard.get() == CANARY)
    }

    pub fn post_receive(&mut self, now: Instant, wr_id: u64, piece: Sge) -> Result<(), Errno> {
        self.act(now, |qp, out| qp.post_receive(ReceiveRequest { wr_id, sge: vec![piece] }, out))
    }

    pub fn post_send(&mut self, now: Instant, request: SendRequest) {
        self.act(now, |qp, out| qp.post_send(request, out)).unwrap();
    }

    pub fn receive(&mut self, now: Instant, packet: Packet) {
        self.act(now, |qp, out| qp.receive(packet, out));
    }

    /// What it has sent since it was asked last.
    pub fn take_out(&mut self) -> Vec<Packet> {
        self.out.drain(..).collect()
    }

    pub fn act<R>(&mut self, now: Instant, act: impl FnOnce(&mut Qp, &mut Ctx) -> R) -> R {
        let mut out = Ctx::new(now, &self.memory);
        (out.talks, out.shared) = (true, self.shared.as_mut());
        let result = act(&mut self.qp, &mut out);
        for effect in out.effects {
            match effect {
                Effect::Send(packet) => self.out.push_back(packet),
                Effect::Sent(completion) => self.sent.push(completion),
                Effect::Received(completion) => self.received.push(completion),
                Effect::Raise(event) => self.raised.push(event),
                Effect::Say(decision) => self.said.push(decision),
            }
        }
        result
    }
}

/// A request whose bytes are, or come to, this piece.
pub fn request(wr_id: u64, work: Work, piece: Sge) -> SendRequest {
    let (local, length) = (Local::SgList(vec![piece]), piece.length);
    SendRequest { wr_id, work, local, length, immediate: None, signaled: true, solicited: false, fence: false }
}

/// Looks at so many cases; under Miri, which is a thousand times slower, at some.
pub fn hold<S: Strategy>(cases: u32, inputs: S, look: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let cases = if cfg!(miri) { 20 } else { cases };
    let config = ProptestConfig { failure_persistence: None, max_shrink_iters: 2_000, cases, ..Default::default() };
    TestRunner::new(config).run(&inputs, look).unwrap_or_else(|error| panic!("{error}"));
}

/// The bytes of numbers.
fn cells(numbers: &[Cell<u64>]) -> &[Cell<u8>] {
    // SAFETY: as many bytes, which live as long and may be changed by whoever sees them.
    unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast(), numbers.len() * 8) }
}

/// Attributes for tests: short time-outs, and any PSN.
pub fn attributes(ours: u32, peers: u32, retries: u8, rnr_retries: u8) -> Attributes {
    Attributes {
        peer: Some([127, 0, 0, 9].into()),
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
    pub now: Instant,
    wire: Wire<Packet>,
}

impl Pair {
    pub fn new(client: Side, server: Side, faults: Vec<Fault>) -> Pair {
        Pair { client, server, now: Instant::now(), wire: Wire::new(faults) }
    }

    /// Lets happen what can happen, and time go on when nothing can. Before time goes on, `idle` is asked for more to do.
    /// False if it is not over after very many steps.
    pub fn run(&mut self, mut idle: impl FnMut(&mut Pair)) -> bool {
        for _ in 0..200_000 {
            self.collect();
            if let Some((to, packet)) = self.wire.take() {
                let side = if to == SERVER { &mut self.server } else { &mut self.client };
                side.receive(self.now, packet);
                continue;
            }
            idle(self);
            for side in [&mut self.client, &mut self.server] {
                side.act(self.now, Qp::tick);
            }
            let is_busy = [&self.client, &self.server].iter().any(|side| side.qp.is_busy() || !side.out.is_empty());
            match self.client.qp.deadline().into_iter().chain(self.server.qp.deadline()).min() {
                _ if is_busy => {}
                Some(next) => self.now = next.max(self.now + Duration::from_micros(1)),
                None => return true,
            }
        }
        false
    }

    fn collect(&mut self) {
        self.client.take_out().into_iter().for_each(|packet| self.wire.send(SERVER, packet));
        self.server.take_out().into_iter().for_each(|packet| self.wire.send(CLIENT, packet));
    }
}
