//! A queue pair of the learner's NIC with its program and its memory, without a network: what it does comes out as data.

use crate::came;
use crate::program::{Buffer, PD};
use nic::completion::Completion;
use nic::congestion::Link;
use nic::datagram::Route;
use nic::memory::{Access, Memory, Program, Region, Sge};
use nic::outside::{AsyncEvent, Ctx, Effect};
use nic::packet::{code, Packet, Reth};
use nic::psn::Psn;
use nic::qp::{mask, Attributes, Limits, Qp, Settings, State};
use nic::time::Time;
use nic::work::{Local, ReceiveQueue, ReceiveRequest, Remote, SendRequest, Work};
use roce::aeth::Syndrome;
use roce::opcode::Service;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

/// The size of its memory.
pub const SIZE: usize = 1 << 17;
/// Of the shared receive queue.
pub const PD_OF_SHARED: u32 = 2;
/// All that a peer may do.
pub const ALL: Access = Access(15);
/// The smallest there is: short messages have many packets.
pub const MTU: u32 = 256;
/// The code of the time-out for answers: 4.096 µs × 2^14, which is 67 ms.
pub const TIMEOUT: u8 = 14;
/// That time.
pub const TIME: Duration = Duration::from_nanos(4096 << TIMEOUT);
pub const NUMBER: u32 = 17;
const OURS: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
const PEERS: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 3));

/// Memory that has no end, and keeps nothing.
#[derive(Debug)]
struct Endless;

impl Program for Endless {
    fn read(&self, _address: u64, into: &mut [u8]) -> bool {
        into.fill(0);
        true
    }

    fn write(&self, _address: u64, _bytes: &[u8]) -> bool {
        true
    }
}

pub struct End {
    pub qp: Qp,
    memory: Memory,
    buffer: Buffer,
    pub sent: Vec<Completion>,
    pub received: Vec<Completion>,
    pub raised: Vec<AsyncEvent>,
    /// Its decisions.
    pub said: Vec<String>,
    pub out: VecDeque<Packet>,
    /// Where the last of these goes.
    pub to: Option<IpAddr>,
    /// The shared receive queue, if it has one.
    pub shared: Option<ReceiveQueue>,
    /// The link that it sends on. Without one, packets take no time.
    pub link: Option<Link>,
    /// Whether it says what it decides, and what it was given is noted. That takes its time.
    pub is_watched: bool,
    /// What its clock says.
    pub now: Time,
}

impl End {
    /// In RTS, of a reliable connection; the peer may do anything to its memory.
    pub fn new(attributes: Attributes) -> End {
        End::of(Service::Rc, attributes)
    }

    /// The same of another service.
    pub fn of(service: Service, attributes: Attributes) -> End {
        let mut side = End::ready(service, attributes, false);
        side.moves(State::Rts, &attributes);
        side
    }

    /// In RTR: it can receive, and not send. Perhaps with a shared receive queue, which is of another protection domain.
    pub fn ready(service: Service, attributes: Attributes, uses_shared: bool) -> End {
        let mut memory = Memory::default();
        let buffer = Buffer::new(&mut memory, 0, SIZE, ALL);
        let limits = Limits { send: 64, receive: 64, send_sge: 1, receive_sge: 4, inline: 0 };
        let settings = Settings { number: NUMBER, service, pd: PD, limits, signal_all: true, uses_shared };
        let shared = uses_shared.then(|| ReceiveQueue::new(64, PD_OF_SHARED));
        let (sent, received, raised, said, out, to) = Default::default();
        let (qp, now) = (Qp::new(settings), Time::START);
        let link = None;
        let mut side =
            End { qp, memory, buffer, sent, received, raised, said, out, to, shared, link, is_watched: true, now };
        side.moves(State::Init, &attributes);
        side.moves(State::Rtr, &attributes);
        side.said.clear();
        side
    }

    /// Moves on, on the way to RTS.
    pub fn moves(&mut self, state: State, attributes: &Attributes) {
        let attributes = Attributes { access: ALL, dest_qp: NUMBER, ..*attributes };
        let bits = mask::STATE | state.needs(self.qp.settings().service).unwrap_or_default();
        // If it cannot get there, it will send nothing: that is seen.
        let _ = self.act(|qp, ctx| qp.modify(bits, state, &attributes, ctx));
        self.said.clear();
    }

    /// Registers its memory once more, with other rights, as if so many bytes were there, or in another domain.
    pub fn register(&mut self, access: Access, length: u64, pd: u32) -> u32 {
        self.memory.register(self.buffer.region(length, access, pd), 7)
    }

    /// Registers memory from address 0 on that takes whatever is written.
    pub fn register_endless(&mut self, length: u64) -> u32 {
        self.memory.register(Region { program: Arc::new(Endless), start: 0, va: 0, length, access: ALL, pd: PD }, 7)
    }

    /// The program deregisters memory.
    pub fn deregister(&mut self, key: u32) {
        self.memory.deregister(key);
    }

    /// Does something to the queue pair, and keeps what it leaves behind.
    pub fn act<R>(&mut self, act: impl FnOnce(&mut Qp, &mut Ctx) -> R) -> R {
        let mut ctx = Ctx::new(self.now, &mut self.memory);
        ctx.talks = self.is_watched;
        ctx.shared = self.shared.as_mut();
        ctx.link = self.link.as_ref();
        let result = act(&mut self.qp, &mut ctx);
        for effect in ctx.effects {
            match effect {
                Effect::Send(to, packet) => {
                    self.to = Some(to);
                    self.out.push_back(packet);
                }
                Effect::Sent(completion) => self.sent.push(completion),
                Effect::Received(completion) => self.received.push(completion),
                Effect::Raise(event) => self.raised.push(event),
                Effect::Say(decision) => self.said.push(decision),
            }
        }
        result
    }

    pub fn receive(&mut self, packet: Packet) {
        if self.is_watched {
            came::now(format!("{} came", shown(&packet)));
        }
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
        self.qp.deadline().map(|then| then.since(self.now))
    }

    /// Posts a request whose bytes are, or come to, this part of its memory; it is sent in its turn.
    pub fn post(&mut self, wr_id: u64, work: Work, offset: usize, length: usize) {
        let local = Local::SgList(vec![self.piece(offset, length)]);
        self.post_local(wr_id, work, local, length);
    }

    /// The same with another list of pieces, or bytes inline.
    pub fn post_local(&mut self, wr_id: u64, work: Work, local: Local, length: usize) {
        let (length, immediate, signaled, solicited) = (length as u32, None, true, false);
        self.post_request(SendRequest { wr_id, work, local, length, immediate, signaled, solicited, fence: false });
    }

    pub fn post_request(&mut self, request: SendRequest) {
        came::now(format!("a {} of {} bytes was posted", request.work, request.length));
        // What is refused is not sent: that is seen.
        let _ = self.act(|qp, ctx| qp.post_send(request, ctx));
    }

    pub fn post_receive(&mut self, wr_id: u64, offset: usize, length: usize) {
        let sge = vec![self.piece(offset, length)];
        self.post_receives(wr_id, sge);
    }

    /// The same with a list of pieces.
    pub fn post_receives(&mut self, wr_id: u64, sge: Vec<Sge>) {
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
        Remote { address: self.buffer.address + offset as u64, rkey: self.buffer.key }
    }

    /// So many bytes there, as a peer asks for them.
    pub fn reth(&self, offset: usize, length: u32) -> Reth {
        let Remote { address: va, rkey } = self.remote(offset);
        Reth { va, rkey, length }
    }

    pub fn piece(&self, offset: usize, length: usize) -> Sge {
        Sge { address: self.buffer.address + offset as u64, length: length as u32, lkey: self.buffer.key }
    }

    pub fn bytes(&self, offset: usize, length: usize) -> Vec<u8> {
        self.buffer.bytes(self.buffer.address + offset as u64, length)
    }

    pub fn fill(&self, offset: usize, bytes: &[u8]) {
        self.buffer.fill(self.buffer.address + offset as u64, bytes);
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
