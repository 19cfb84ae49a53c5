//! A queue pair of the learner's NIC with its program and its memory, without a network: what it does comes out as data.

use nic::completion::Completion;
use nic::datagram::Route;
use nic::memory::{Access, Memory, Program, Region, Sge};
use nic::outside::{AsyncEvent, Ctx, Effect};
use nic::packet::{code, Packet};
use nic::psn::Psn;
use nic::qp::{mask, Attributes, Limits, Qp, Settings, State};
use nic::work::{Local, ReceiveRequest, Remote, SendRequest, Work};
use roce::aeth::Syndrome;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The size of its memory, and where that begins in its program: a multiple of eight.
pub const SIZE: usize = 1 << 17;
const START: u64 = 0x5_0000_0000;
const PD: u32 = 1;
/// The smallest there is: short messages have many packets.
pub const MTU: u32 = 256;
/// The code of the time-out for answers: 4.096 µs × 2^14, which is 67 ms.
pub const TIMEOUT: u8 = 14;
pub const NUMBER: u32 = 17;
const OURS: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
const PEERS: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 3));

/// Its program's memory.
#[derive(Debug)]
struct Ram(Mutex<Vec<u8>>);

impl Ram {
    fn with(&self, address: u64, length: usize, act: impl FnOnce(&mut [u8])) -> bool {
        let at = address.checked_sub(START).and_then(|at| usize::try_from(at).ok());
        let Ok(mut bytes) = self.0.lock() else { return false };
        let there = at.and_then(|at| bytes.get_mut(at..at.checked_add(length)?));
        there.map(act).is_some()
    }
}

impl Program for Ram {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        self.with(address, into.len(), |bytes| into.copy_from_slice(bytes))
    }

    fn write(&self, address: u64, bytes: &[u8]) -> bool {
        self.with(address, bytes.len(), |own| own.copy_from_slice(bytes))
    }
}

pub struct End {
    pub qp: Qp,
    memory: Memory,
    ram: Arc<Ram>,
    pub key: u32,
    pub sent: Vec<Completion>,
    pub received: Vec<Completion>,
    pub raised: Vec<AsyncEvent>,
    /// Its decisions.
    pub said: Vec<String>,
    pub out: VecDeque<Packet>,
    /// What its clock says.
    pub now: Instant,
}

impl End {
    /// In RTS; the peer may do anything to its memory.
    pub fn new(attributes: Attributes) -> End {
        End::of(attributes, false)
    }

    /// The same, perhaps with a shared receive queue.
    pub fn of(attributes: Attributes, uses_shared: bool) -> End {
        let (ram, all) = (Arc::new(Ram(Mutex::new(vec![0; SIZE]))), Access(15));
        let mut memory = Memory::default();
        let region = Region { program: ram.clone(), start: START, va: START, length: SIZE as u64, access: all, pd: PD };
        let key = memory.register(region, 7);
        let limits = Limits { send: 64, receive: 64, send_sge: 1, receive_sge: 1, inline: 0 };
        let settings =
            Settings { number: NUMBER, pd: PD, limits, signal_all: true, uses_shared, ..Settings::default() };
        let (sent, received, raised, said, out) = Default::default();
        let (qp, now) = (Qp::new(settings), Instant::now());
        let mut side = End { qp, memory, ram, key, sent, received, raised, said, out, now };
        let attributes = Attributes { access: all, dest_qp: NUMBER, ..attributes };
        for state in [State::Init, State::Rtr, State::Rts] {
            let bits = mask::STATE | state.needs(settings.service).unwrap_or_default();
            // If it cannot get there, it will send nothing: that is seen.
            let _ = side.act(|qp, ctx| qp.modify(bits, state, &attributes, ctx));
        }
        side.said.clear();
        side
    }

    /// Does something to the queue pair, and keeps what it leaves behind.
    pub fn act<R>(&mut self, act: impl FnOnce(&mut Qp, &mut Ctx) -> R) -> R {
        let mut ctx = Ctx::new(self.now, &mut self.memory);
        ctx.talks = true;
        let result = act(&mut self.qp, &mut ctx);
        for effect in ctx.effects {
            match effect {
                Effect::Send(_, packet) => self.out.push_back(packet),
                Effect::Sent(completion) => self.sent.push(completion),
                Effect::Received(completion) => self.received.push(completion),
                Effect::Raise(event) => self.raised.push(event),
                Effect::Say(decision) => self.said.push(decision),
            }
        }
        result
    }

    pub fn receive(&mut self, packet: Packet) {
        self.act(|qp, ctx| qp.receive(Route { from: PEERS, to: OURS }, packet, ctx));
    }

    /// An Acknowledge packet comes: an ACK, an RNR NAK or a NAK.
    pub fn acknowledge(&mut self, psn: u32, syndrome: Syndrome) {
        let mut packet = Packet { opcode: code::ACKNOWLEDGE, dest_qp: NUMBER, psn: Psn::new(psn), ..Packet::default() };
        packet.aeth.syndrome = syndrome.byte();
        self.receive(packet);
    }

    /// Time passes: its turn comes then.
    pub fn wait(&mut self, time: Duration) {
        self.now += time;
        self.act(Qp::tick);
    }

    /// How long it is to the next thing that is due.
    pub fn due(&self) -> Option<Duration> {
        self.qp.deadline().map(|then| then.saturating_duration_since(self.now))
    }

    /// Posts a request whose bytes are, or come to, this part of its memory; it is sent in its turn.
    pub fn post(&mut self, wr_id: u64, work: Work, offset: usize, length: usize) {
        let local = Local::SgList(vec![self.piece(offset, length)]);
        let (immediate, length) = (None, length as u32);
        let request =
            SendRequest { wr_id, work, local, length, immediate, signaled: true, solicited: false, fence: false };
        // What is refused is not sent: that is seen.
        let _ = self.act(|qp, ctx| qp.post_send(request, ctx));
    }

    pub fn post_receive(&mut self, wr_id: u64, offset: usize, length: usize) {
        let sge = vec![self.piece(offset, length)];
        let _ = self.act(|qp, ctx| qp.post_receive(ReceiveRequest { wr_id, sge }, ctx));
    }

    /// What it has sent since it was asked last: each with its name and PSN.
    pub fn sends(&mut self) -> Vec<String> {
        self.act(Qp::tick);
        self.out.drain(..).map(|packet| shown(&packet)).collect()
    }

    /// The last decision, for whoever looks for the fault.
    pub fn decided(&self) -> String {
        self.said.last().map_or(String::new(), |said| format!("\nIt decided: {said}."))
    }

    /// This part of its memory, as a peer names it.
    pub fn remote(&self, offset: usize) -> Remote {
        Remote { address: START + offset as u64, rkey: self.key }
    }

    fn piece(&self, offset: usize, length: usize) -> Sge {
        Sge { address: START + offset as u64, length: length as u32, lkey: self.key }
    }

    pub fn bytes(&self, offset: usize, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.ram.read(START + offset as u64, &mut bytes);
        bytes
    }

    pub fn fill(&self, offset: usize, bytes: &[u8]) {
        self.ram.write(START + offset as u64, bytes);
    }
}

/// Attributes of one side: the first PSN of its requests and of the peer's, and how often it tries again.
pub fn attributes(ours: u32, peers: u32, retries: u8, rnr_retries: u8) -> Attributes {
    Attributes {
        peer: Some(PEERS),
        sq_psn: Psn::new(ours),
        rq_psn: Psn::new(peers),
        mtu: MTU,
        timeout: TIMEOUT,
        retries,
        rnr_retries,
        min_rnr_timer: 12,
        max_rd_atomic: 2,
        max_dest_rd_atomic: 2,
        ..Attributes::default()
    }
}

/// A packet in words: what it is, and its PSN.
pub fn shown(packet: &Packet) -> String {
    let name = packet.row().name.trim_start_matches("RC ").to_owned();
    let name = match packet.aeth.verdict() {
        _ if packet.opcode != code::ACKNOWLEDGE => name,
        Syndrome::Ack { .. } => "ACK".to_owned(),
        syndrome => syndrome.to_string(),
    };
    format!("{name}, PSN {}", packet.psn)
}

/// A list in words.
pub fn listed(items: &[String]) -> String {
    if items.is_empty() {
        "nothing".to_owned()
    } else {
        items.join("; ")
    }
}
