//! A queue pair with its program and its memory, without a network: what it does comes out as data.

use crate::memory::{Buffer, PD};
use crate::{MTU, OURS, PEERS};
use nic::completion::Completion;
use nic::congestion::Link;
use nic::datagram::Route;
use nic::errno::Errno;
use nic::memory::{Access, Memory, Sge};
use nic::outside::{AsyncEvent, Ctx, Effect};
use nic::packet::{code, Packet, Reth};
use nic::psn::Psn;
use nic::qp::{mask, Attributes, Limits, Qp, Settings, State};
use nic::time::Time;
use nic::work::{Local, ReceiveQueue, ReceiveRequest, Remote, SendRequest, Work};
use roce::aeth::Syndrome;
use roce::opcode::Service;
use std::net::IpAddr;
use std::time::Duration;

/// The protection domain of a shared receive queue: not the one of the memory.
pub const PD_OF_SHARED: u32 = 2;

/// How an end is made.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub service: Service,
    pub number: u32,
    pub peer: u32,
    /// Bytes of its buffer, and what a peer may do to them.
    pub size: usize,
    pub access: Access,
    pub limits: Limits,
    pub uses_shared: bool,
}

#[derive(Debug)]
pub struct End {
    pub qp: Qp,
    pub memory: Memory,
    pub buffer: Buffer,
    pub sent: Vec<Completion>,
    pub received: Vec<Completion>,
    pub raised: Vec<AsyncEvent>,
    /// Its decisions, if it talks. That takes its time.
    pub said: Vec<String>,
    pub talks: bool,
    /// Who is told what the queue pair is given, before it is.
    pub given: fn(&dyn Fn() -> String),
    pub out: Vec<Packet>,
    /// Where the last of these goes.
    pub to: Option<IpAddr>,
    /// The shared receive queue, if it has one.
    pub shared: Option<ReceiveQueue>,
    /// The link that it sends on. Without one, packets take no time.
    pub link: Option<Link>,
    pub now: Time,
}

impl End {
    /// In RTS, if it gets there. One that doesn't will send nothing.
    pub fn new(setup: Setup, attributes: &Attributes) -> End {
        End::at(State::Rts, setup, attributes)
    }

    /// As far as this on the way to RTS. In RTR it can receive, and not send.
    pub fn at(state: State, setup: Setup, attributes: &Attributes) -> End {
        let attributes = Attributes { access: setup.access, dest_qp: setup.peer, ..*attributes };
        let mut end = End::reset(setup);
        let way = [State::Init, State::Rtr, State::Rts];
        let length = way.iter().position(|next| *next == state).map_or(0, |at| at + 1);
        for next in &way[..length] {
            let _ = end.moves(*next, &attributes);
        }
        end.said.clear();
        end
    }

    /// Moves on, on the way to RTS.
    ///
    /// # Errors
    /// The queue pair refuses.
    pub fn moves(&mut self, state: State, attributes: &Attributes) -> Result<(), Errno> {
        let bits = mask::STATE | state.needs(self.qp.settings().service).unwrap_or_default();
        self.act(|qp, ctx| qp.modify(bits, state, attributes, ctx))
    }

    fn reset(setup: Setup) -> End {
        let Setup { service, number, limits, uses_shared, .. } = setup;
        let mut memory = Memory::default();
        let buffer = Buffer::new(&mut memory, number as usize, setup.size, setup.access);
        let qp = Qp::new(Settings { number, service, pd: PD, limits, signal_all: true, uses_shared });
        End {
            qp,
            memory,
            buffer,
            sent: Vec::new(),
            received: Vec::new(),
            raised: Vec::new(),
            said: Vec::new(),
            talks: true,
            given: |_| {},
            out: Vec::new(),
            to: None,
            shared: uses_shared.then(|| ReceiveQueue::new(limits.receive as usize, PD_OF_SHARED)),
            link: None,
            now: Time::START,
        }
    }

    /// Does something to the queue pair, and keeps what it leaves behind.
    pub fn act<R>(&mut self, act: impl FnOnce(&mut Qp, &mut Ctx) -> R) -> R {
        let mut ctx = Ctx::new(self.now, &mut self.memory);
        (ctx.talks, ctx.shared, ctx.link) = (self.talks, self.shared.as_mut(), self.link.as_ref());
        let result = act(&mut self.qp, &mut ctx);
        for effect in ctx.effects {
            match effect {
                Effect::Send(to, packet) => {
                    self.to = Some(to);
                    self.out.push(packet);
                }
                Effect::Sent(completion) => self.sent.push(completion),
                Effect::Received(completion) => self.received.push(completion),
                Effect::Raise(event) => self.raised.push(event),
                Effect::Say(decision) => self.said.push(decision.to_string()),
            }
        }
        result
    }

    pub fn receive(&mut self, packet: Packet) {
        (self.given)(&|| format!("{} came", shown(&packet)));
        self.act(|qp, ctx| qp.receive(Route { from: PEERS, to: OURS }, packet, ctx));
    }

    /// An Acknowledge packet comes: an ACK, an RNR NAK or a NAK.
    pub fn acknowledge(&mut self, psn: u32, syndrome: Syndrome) {
        let (opcode, dest_qp) = (code::ACKNOWLEDGE, self.qp.settings().number);
        let mut packet = Packet { opcode, dest_qp, psn: Psn::new(psn), ..Packet::default() };
        packet.aeth.syndrome = syndrome.byte();
        self.receive(packet);
    }

    /// Registers the buffer once more, with other rights, as if this many bytes were there, or in another domain.
    pub fn register(&mut self, access: Access, length: u64, pd: u32) -> u32 {
        self.memory.register(self.buffer.region(length, access, pd), 7)
    }

    /// The last decision, for whoever looks for the fault.
    pub fn decided(&self) -> String {
        self.said.last().map_or(String::new(), |said| format!("\nIt decided: {said}."))
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

    /// Posts a request whose bytes are, or come to, this part of the buffer. It's sent in its turn.
    ///
    /// # Errors
    /// The queue pair refuses, as with all that is posted.
    pub fn post(&mut self, wr_id: u64, work: Work, offset: usize, length: usize) -> Result<(), Errno> {
        self.post_send(request(wr_id, work, self.piece(offset, length)))
    }

    pub fn post_send(&mut self, request: SendRequest) -> Result<(), Errno> {
        (self.given)(&|| format!("a {} of {} bytes was posted", request.work, request.length));
        self.act(|qp, ctx| qp.post_send(request, ctx))
    }

    /// A receive into this part of the buffer.
    pub fn post_receive(&mut self, wr_id: u64, offset: usize, length: usize) -> Result<(), Errno> {
        self.post_receives(wr_id, vec![self.piece(offset, length)])
    }

    /// The same with a list of pieces.
    pub fn post_receives(&mut self, wr_id: u64, sge: Vec<Sge>) -> Result<(), Errno> {
        self.act(|qp, ctx| qp.post_receive(ReceiveRequest { wr_id, sge }, ctx))
    }

    /// What it has sent since it was asked last.
    pub fn take_out(&mut self) -> Vec<Packet> {
        std::mem::take(&mut self.out)
    }

    /// The same, after its turn.
    pub fn sends(&mut self) -> Vec<Packet> {
        self.act(Qp::tick);
        self.take_out()
    }

    /// The same, each with its name and PSN.
    pub fn shows(&mut self) -> Vec<String> {
        self.sends().iter().map(shown).collect()
    }

    /// The address of a byte of the buffer.
    pub fn address(&self, offset: usize) -> u64 {
        self.buffer.address + offset as u64
    }

    /// This part of the buffer, as a peer names it.
    pub fn remote(&self, offset: usize) -> Remote {
        Remote { address: self.address(offset), rkey: self.buffer.key }
    }

    /// This many bytes there, as a peer asks for them.
    pub fn reth(&self, offset: usize, length: u32) -> Reth {
        Reth { va: self.address(offset), rkey: self.buffer.key, length }
    }

    pub fn piece(&self, offset: usize, length: usize) -> Sge {
        Sge { address: self.address(offset), length: length as u32, lkey: self.buffer.key }
    }

    /// What is in the buffer there.
    pub fn bytes(&self, offset: usize, length: usize) -> Vec<u8> {
        self.buffer.bytes(self.address(offset), length)
    }

    pub fn fill(&self, offset: usize, bytes: &[u8]) {
        self.buffer.fill(self.address(offset), bytes);
    }
}

/// A request whose bytes are, or come to, this piece.
pub fn request(wr_id: u64, work: Work, piece: Sge) -> SendRequest {
    let (local, length) = (Local::SgList(vec![piece]), piece.length);
    SendRequest { wr_id, work, local, length, immediate: None, signaled: true, solicited: false, fence: false }
}

/// Attributes of one end, with short time-outs: the first PSN of its requests and of the peer's, and how often it tries again.
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
