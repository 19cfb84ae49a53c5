//! One side of a recorded conversation: our queue pair, and its program, which posts what the recorded one posted. It gets what the
//! peer sent; it has to send what rdma_rxe sent, and to complete what was done.

mod answers;
mod asks;

use crate::came;
use crate::doorbell::{Hole, BYTES, LATER, MOVES, READ, RECEIVE, SEND, WRITE};
use crate::dump::{difference, differing};
use crate::packets::field_at;
use crate::states;
use crate::talk::{End, Frame, Talk};
use nic::completion::Completion;
use nic::datagram::Route;
use nic::memory::{Access, Memory};
use nic::outside::{Ctx, Effect};
use nic::packet::{Packet, Reth};
use nic::psn::Psn;
use nic::qp::{Attributes, Limits, Qp, Service, Settings};
use nic::time::Time;
use nic::work::Work;
use pair::{Buffer, PD};
use roce::aeth::{Nak, Syndrome};
use roce::bth::ACK_REQ;
use roce::icrc;
use roce::opcode::Operation;
use std::collections::{BTreeMap, VecDeque};

/// What a difference is a fault of, and the difference in words.
pub type Fault = (Hole, String);

/// All that peers may do.
const OF_PEERS: Access = Access(Access::LOCAL_WRITE.0 | Access::REMOTE_WRITE.0 | Access::REMOTE_READ.0);

/// A request that the program has posted.
struct Posted {
    last: Psn,
    work: Work,
    /// Where its bytes are, or come to.
    buffer: Buffer,
    /// What a READ has to bring.
    brings: Vec<u8>,
}

/// A message of the peer's, as far as it has come.
#[derive(Default)]
struct Incoming {
    reth: Reth,
    bytes: Vec<u8>,
}

pub struct Side<'a> {
    talk: &'a Talk<'a>,
    me: End,
    peer: End,
    qp: Qp,
    memory: Memory,
    /// What the peer was told of, by the recorded key.
    told: BTreeMap<u32, Buffer>,
    buffers: usize,
    now: Time,
    requests: VecDeque<Packet>,
    answers: VecDeque<Packet>,
    /// What has come of the last thing that happened.
    effects: Vec<Effect>,
    posted: Vec<Posted>,
    /// How many of them have to be complete.
    answered: usize,
    completed: Vec<Completion>,
    /// The PSN of our next request, and of the peer's.
    next: Psn,
    expected: Psn,
    message: Incoming,
    receive: Option<Buffer>,
    is_over: bool,
    /// Packets that were as they had to be.
    pub same: usize,
}

impl<'a> Side<'a> {
    pub fn new(talk: &'a Talk<'a>, me: End) -> Result<Self, Fault> {
        let peer = if me == talk.client { talk.server } else { talk.client };
        let limits = Limits { send: 256, receive: 256, send_sge: 1, receive_sge: 1, inline: 0 };
        let settings =
            Settings { number: me.qpn, service: Service::Rc, pd: PD, limits, signal_all: true, uses_shared: false };
        let mut side = Side {
            talk,
            me,
            peer,
            qp: Qp::new(settings),
            memory: Memory::default(),
            told: BTreeMap::new(),
            buffers: 0,
            now: Time::START,
            requests: VecDeque::new(),
            answers: VecDeque::new(),
            effects: Vec::new(),
            posted: Vec::new(),
            answered: 0,
            completed: Vec::new(),
            next: me.first,
            expected: peer.first,
            message: Incoming::default(),
            receive: None,
            is_over: false,
            same: 0,
        };
        side.tell_of_memory();
        side.connect()?;
        Ok(side)
    }

    /// The memory that the peer has used without harm was its to use.
    fn tell_of_memory(&mut self) {
        let mut used: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for (index, frame) in self.talk.frames.iter().enumerate() {
            let uses = matches!(frame.packet.row().operation, Operation::Write | Operation::ReadRequest);
            let is_refused = self.answer_to(index).is_some_and(|answer| nak(answer) == Some(Nak::RemoteAccess));
            if frame.from == self.peer.address && uses && frame.begins() && !is_refused {
                let Reth { va, rkey, length } = frame.packet.reth;
                let (start, end) = used.entry(rkey).or_insert((va, va));
                (*start, *end) = ((*start).min(va), (*end).max(va + u64::from(length)));
            }
        }
        for (key, (start, end)) in used {
            let buffer = Buffer::at(&mut self.memory, start, (end - start) as usize, OF_PEERS, PD);
            self.told.insert(key, buffer);
        }
    }

    /// The connection manager has moved the queue pair, with what REQ and REP said.
    fn connect(&mut self) -> Result<(), Fault> {
        let rnr_timer = self.talk.frames.iter().filter(|frame| frame.from == self.me.address).find_map(rnr_timer);
        let attributes = Attributes {
            access: OF_PEERS,
            peer: Some(self.peer.address),
            mtu: self.talk.mtu,
            dest_qp: self.peer.qpn,
            rq_psn: self.peer.first,
            sq_psn: self.me.first,
            timeout: self.talk.timeout,
            retries: self.talk.retries,
            rnr_retries: self.talk.rnr_retries,
            min_rnr_timer: rnr_timer.unwrap_or_default(),
            max_rd_atomic: 16,
            max_dest_rd_atomic: 16,
            ..Attributes::default()
        };
        for (from, to) in states::WAY {
            let mask = states::needed(from, to);
            let moved = self.act(|qp, out| qp.modify(mask, to, &attributes, out));
            moved.map_err(|_| (MOVES, states::refused(from, to)))?;
        }
        Ok(())
    }

    /// Plays it as far as the holes up to this one lead.
    pub fn replay(&mut self, hole: Hole) -> Result<(), Fault> {
        let talk = self.talk;
        for (index, frame) in talk.frames.iter().enumerate() {
            let verb = if frame.from == self.me.address { "should be sent" } else { "came" };
            came::now(format!("{}: {} {verb}", frame.name(), name(&frame.packet)));
            // What the holes of later lessons do is not this one's: it may panic, or have no end.
            let needs = if self.disturbs(frame) { LATER } else { self.needs(frame) };
            if needs > hole {
                return Err((needs, String::new()));
            }
            match (frame.from == self.me.address, frame.packet.row().is_response()) {
                (true, false) => self.has_to_ask(index),
                (true, true) => self.has_to_answer(frame),
                (false, false) => self.request_comes(index),
                (false, true) => self.answer_comes(frame),
            }?;
            if self.is_over {
                return Ok(());
            }
        }
        let role = if self.me == talk.server { "server" } else { "client" };
        let capture = talk.frames.first().map_or("", |frame| &frame.recorded.capture);
        self.skip_unasked(self.expected);
        match (self.requests.pop_front(), self.answers.pop_front()) {
            (None, None) => Ok(()),
            (Some(more), _) => {
                Err((SEND, format!("{capture}, as the {role}: at the end yours sends {}.", name(&more))))
            }
            (_, Some(more)) => {
                Err((RECEIVE, format!("{capture}, as the {role}: at the end yours answers {}.", name(&more))))
            }
        }
    }

    /// The hole of lesson 17 that this needs, if any.
    fn needs(&self, frame: &Frame) -> Hole {
        match frame.packet.row().operation {
            _ if frame.from == self.me.address => 0,
            Operation::Write => WRITE,
            Operation::ReadRequest => READ,
            Operation::ReadResponse => BYTES,
            _ => 0,
        }
    }

    /// Whether it is lost, comes once more or too soon, or asks for that.
    fn disturbs(&self, frame: &Frame) -> bool {
        let next = if frame.from == self.me.address { self.next } else { self.expected };
        let is_in_order = frame.packet.row().is_response() || frame.packet.psn == next;
        let asks_again = nak(frame) == Some(Nak::PsnSequence) || rnr_timer(frame).is_some();
        frame.recorded.is_lost || !is_in_order || asks_again
    }

    fn act<R>(&mut self, act: impl FnOnce(&mut Qp, &mut Ctx) -> R) -> R {
        let mut out = Ctx::new(self.now, &mut self.memory);
        out.talks = true;
        let result = act(&mut self.qp, &mut out);
        let effects = out.effects;
        for effect in &effects {
            match effect {
                Effect::Send(_, packet) if packet.row().is_response() => self.answers.push_back(packet.clone()),
                Effect::Send(_, packet) => self.requests.push_back(packet.clone()),
                Effect::Sent(completion) => self.completed.push(*completion),
                _ => {}
            }
        }
        self.effects.extend(effects);
        result
    }

    /// A packet of the peer's comes.
    fn hear(&mut self, packet: Packet) {
        let route = Route { from: self.peer.address, to: self.me.address };
        self.effects.clear();
        self.act(|qp, out| qp.receive(route, packet, out));
        // READ responses go out a batch at a time.
        for _ in 0..16 {
            if self.qp.is_busy() {
                self.act(Qp::tick);
            }
        }
    }

    /// What it has decided since.
    fn decided(&self) -> String {
        let said = self.effects.iter().filter_map(|effect| match effect {
            Effect::Say(said) => Some(said.to_string()),
            _ => None,
        });
        let said: Vec<String> = said.collect();
        if said.is_empty() {
            String::new()
        } else {
            format!("\nIt decided: {}.", said.join("; "))
        }
    }

    fn buffer(&mut self, length: usize, access: Access) -> Buffer {
        self.buffers += 1;
        Buffer::new(&mut self.memory, self.buffers, length, access)
    }
}

impl Side<'_> {
    fn packets(&self, length: u32) -> u32 {
        length.div_ceil(self.talk.mtu).max(1)
    }

    /// Compares the bytes on the wire.
    fn compare(&mut self, frame: &Frame, ours: &Packet) -> Result<(), String> {
        self.same += 1;
        let Some(theirs) = frame.recorded.packet() else { return Ok(()) };
        let (start, end) = (theirs.bth_offset(), theirs.datagram.wire_length - icrc::LENGTH);
        let (mut wanted, yours) = (theirs.datagram.ip[start..end].to_vec(), ours.encode());
        // In the middle of a message it may ask for an ACK where rdma_rxe doesn't.
        if !ours.row().is_response() && !frame.ends() {
            let (at, bit) = (ACK_REQ.span().0, 0x80 >> (ACK_REQ.bit % 8));
            wanted[at] = wanted[at] & !bit | yours.get(at).unwrap_or(&0) & bit;
        }
        let Some(at) = difference(&wanted, &yours) else { return Ok(()) };
        let verb = if ours.row().is_response() { "answered" } else { "sent" };
        let (wanted_name, place) = (name(&frame.packet), frame.name());
        let dump = differing("rdma_rxe", &wanted, &yours, at, &field_at(&theirs, start + at));
        let said = format!("{place}: rdma_rxe {verb} {wanted_name}. Yours: {}.", name(ours));
        Err(format!("{said}{}\n{dump}", self.decided()))
    }
}

/// As `RC Acknowledge: ACK, PSN 5, MSN 2`.
pub fn name(packet: &Packet) -> String {
    let row = packet.row();
    let psn = format!("PSN {}", packet.psn);
    if row.operation == Operation::Acknowledge {
        return format!("{}: {}, {psn}, MSN {}", row.name, packet.aeth.verdict(), packet.aeth.msn);
    }
    format!("{}, {psn}, {} bytes", row.name, packet.payload.len())
}

/// Why a request was refused.
fn nak(frame: &Frame) -> Option<Nak> {
    match frame.packet.aeth.verdict() {
        Syndrome::Nak(nak) if frame.packet.row().operation == Operation::Acknowledge => Some(nak),
        _ => None,
    }
}

/// After it the queue pairs are in ERR.
fn is_fatal(frame: &Frame) -> bool {
    nak(frame).is_some_and(|nak| nak != Nak::PsnSequence)
}

/// The code of the time that an RNR NAK asks for.
fn rnr_timer(frame: &Frame) -> Option<u8> {
    let is_it = matches!(frame.packet.aeth.verdict(), Syndrome::RnrNak { .. });
    let is_ack = frame.packet.row().operation == Operation::Acknowledge;
    (is_it && is_ack).then_some(frame.packet.aeth.syndrome & 0x1f)
}
