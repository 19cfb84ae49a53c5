//! One side of a recorded conversation: our queue pair, and its program, which posts what the recorded one posted. It gets what the
//! peer sent; it has to send what rdma_rxe sent, and to complete what was done.

use crate::came;
use crate::doorbell::{Hole, ACK, BYTES, LATER, MOVES, PACKET, PLACE, READ, RECEIVE, SEND, WRITE};
use crate::dump::{difference, differing};
use crate::packets::field_at;
use crate::program::{Buffer, PD};
use crate::states;
use crate::talk::{End, Frame, Talk};
use nic::completion::{Completion, Status};
use nic::datagram::Route;
use nic::memory::{Access, Memory};
use nic::outside::{Ctx, Effect};
use nic::packet::{Packet, Reth};
use nic::psn::Psn;
use nic::qp::{Attributes, Limits, Qp, Service, Settings};
use nic::work::{Local, ReceiveRequest, Remote, SendRequest, Work};
use roce::aeth::{Nak, Syndrome};
use roce::icrc;
use roce::opcode::Operation;
use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

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
struct Message {
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
    now: Instant,
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
    message: Message,
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
            now: Instant::now(),
            requests: VecDeque::new(),
            answers: VecDeque::new(),
            effects: Vec::new(),
            posted: Vec::new(),
            answered: 0,
            completed: Vec::new(),
            next: me.first,
            expected: peer.first,
            message: Message::default(),
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
            let verb = if frame.from == self.me.address { "has to be sent" } else { "came" };
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
            Effect::Say(said) => Some(said.as_str()),
            _ => None,
        });
        let said: Vec<&str> = said.collect();
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

/// Our requests.
impl Side<'_> {
    /// rdma_rxe asked: the program has posted something, or time has passed without an answer.
    fn has_to_ask(&mut self, index: usize) -> Result<(), Fault> {
        let frame = &self.talk.frames[index];
        if self.requests.is_empty() {
            self.effects.clear();
            if frame.begins() {
                self.post(index);
            }
        }
        let is_read = frame.packet.row().operation == Operation::ReadRequest;
        self.next = self.next.plus(if is_read { self.packets(frame.packet.reth.length) } else { 1 });
        let ours = self.requests.pop_front();
        let Some(ours) = ours.clone().filter(|ours| ours.psn == frame.packet.psn) else {
            let (wanted, yours) = (name(&frame.packet), ours.as_ref().map_or("nothing".to_owned(), name));
            let said = format!("{}: rdma_rxe sent {wanted}. Yours: {yours}.{}", frame.name(), self.decided());
            return Err((SEND, said));
        };
        self.compare(frame, &ours).map_err(|said| (PACKET, said))?;
        if self.talk.timeout > 0 && self.qp.deadline().is_none() {
            let said = format!(
                "{}: {} is sent, and no timer runs: who notices if no answer comes?",
                frame.name(),
                name(&ours)
            );
            return Err((SEND, said));
        }
        let told = self.completed.len();
        if told > self.answered {
            let said = format!("{}: the program is told that {told} requests are done; ", frame.name());
            return Err((SEND, format!("{said}answers to {} have come.", self.answered)));
        }
        Ok(())
    }

    /// The program posts the message that begins there.
    fn post(&mut self, index: usize) {
        let frame = &self.talk.frames[index];
        let (first, reth) = (frame.packet.psn, frame.packet.reth);
        let remote = Remote { address: reth.va, rkey: reth.rkey };
        let work = match frame.packet.row().operation {
            Operation::ReadRequest => Work::Read(remote),
            Operation::Write => Work::Write(remote),
            _ => Work::Send,
        };
        let (mut bytes, mut last) = (Vec::new(), &frame.packet);
        let mut psn = first;
        for other in self.talk.frames[index..].iter().filter(|other| other.from == self.me.address) {
            if other.packet.psn == psn && !other.packet.row().is_response() {
                bytes.extend_from_slice(&other.packet.payload);
                (last, psn) = (&other.packet, psn.plus(1));
                if other.ends() {
                    break;
                }
            }
        }
        let mut brings = Vec::new();
        let mut end = last.psn;
        if let Work::Read(_) = work {
            brings = self.brought(index);
            bytes = vec![0; reth.length as usize];
            end = first.plus(self.packets(reth.length) - 1);
        }
        let buffer = self.buffer(bytes.len(), Access::LOCAL_WRITE);
        buffer.fill(buffer.address, &bytes);
        let request = SendRequest {
            wr_id: self.posted.len() as u64,
            work,
            local: Local::SgList(vec![buffer.piece()]),
            length: bytes.len() as u32,
            immediate: last.brings_immediate().then_some(last.immediate),
            signaled: true,
            solicited: last.solicited,
            fence: false,
        };
        self.posted.push(Posted { last: end, work, buffer, brings });
        // If it is refused, nothing is sent, and that is told.
        let _ = self.act(|qp, out| qp.post_send(request, out));
        self.act(Qp::tick);
    }

    /// The bytes that have answered a READ.
    fn brought(&self, index: usize) -> Vec<u8> {
        let request = &self.talk.frames[index].packet;
        let mut bytes = vec![0; request.reth.length as usize];
        for (at, answer) in self.responses(index) {
            if let Some(place) = bytes.get_mut(at..at + answer.payload.len()) {
                place.copy_from_slice(&answer.payload);
            }
        }
        bytes
    }

    /// The READ responses to a request, each with the place of its bytes.
    fn responses(&self, index: usize) -> impl Iterator<Item = (usize, &Packet)> {
        let (asks, mtu) = (&self.talk.frames[index], self.talk.mtu);
        let count = self.packets(asks.packet.reth.length) as i32;
        self.talk.frames[index..].iter().filter_map(move |frame| {
            let at = frame.packet.psn.since(asks.packet.psn);
            let is_one = frame.from != asks.from && frame.packet.row().operation == Operation::ReadResponse;
            (is_one && (0..count).contains(&at)).then(|| (at as usize * mtu as usize, &frame.packet))
        })
    }

    /// The peer has answered: what it answers is complete.
    fn answer_comes(&mut self, frame: &Frame) -> Result<(), Fault> {
        self.hear(frame.packet.clone());
        if is_fatal(frame) {
            self.is_over = true;
            return Ok(());
        }
        let before = self.answered;
        while self.posted.get(self.answered).is_some_and(|posted| is_answered(posted, frame)) {
            self.answered += 1;
        }
        let ends_read = self.posted[before..self.answered].iter().any(|posted| matches!(posted.work, Work::Read(_)));
        let is_ack = frame.packet.row().operation == Operation::Acknowledge;
        let hole = if ends_read || !is_ack { BYTES } else { ACK };
        let came = format!("{}: {} came", frame.name(), name(&frame.packet));
        let (has, told, decided) = (self.answered, self.completed.len(), self.decided());
        if told < has {
            let work = self.posted[told].work;
            let wr_id = format!("wr_id {told}, a {work}");
            return Err((
                hole,
                format!("{came}; the program has to be told that {wr_id}, is done. Yours: nothing.{decided}"),
            ));
        }
        if told > has {
            return Err((
                hole,
                format!("{came}; yours tells the program of {told} requests, of which {has} are done.{decided}"),
            ));
        }
        for (at, completion) in self.completed.iter().enumerate().skip(before) {
            if (completion.wr_id, completion.status) != (at as u64, Status::Success) {
                let (wr_id, status) = (completion.wr_id, completion.status.name());
                return Err((hole, format!("{came}; wr_id {at} is done. Yours: wr_id {wr_id}, {status}.{decided}")));
            }
        }
        for posted in &self.posted[before..self.answered] {
            let yours = posted.buffer.bytes(posted.buffer.address, posted.brings.len());
            if let Some(at) = difference(&posted.brings, &yours) {
                let dump = differing("rdma_rxe", &posted.brings, &yours, at, " of the program's buffer");
                return Err((BYTES, format!("{came}; the READ is done, and has brought:\n{dump}")));
            }
        }
        Ok(())
    }
}

/// The peer's requests.
impl Side<'_> {
    fn request_comes(&mut self, index: usize) -> Result<(), Fault> {
        let frame = &self.talk.frames[index];
        let (operation, answer) = (frame.packet.row().operation, self.answer_to(index));
        let is_ready = !answer.is_some_and(|answer| rnr_timer(answer).is_some());
        let is_refused = answer.is_some_and(is_fatal);
        if is_refused && operation == Operation::Send {
            // What was wrong with the receive, no packet tells.
            self.is_over = true;
            return Ok(());
        }
        let carries = matches!(operation, Operation::Send | Operation::Write);
        let is_new = frame.packet.psn == self.expected && is_ready && !is_refused;
        if is_new {
            self.take(index);
        }
        let key = frame.packet.reth.rkey;
        let reth = Reth { rkey: self.told.get(&key).map_or(key, |buffer| buffer.key), ..frame.packet.reth };
        self.hear(Packet { reth, ..frame.packet.clone() });
        let ends = is_new && carries && frame.ends();
        self.fills_receive(frame, ends && (operation == Operation::Send || frame.packet.brings_immediate()))?;
        if ends && operation == Operation::Write {
            self.placed(frame)?;
        }
        Ok(())
    }

    /// What has to be there before a request comes: a receive for a SEND, bytes for a READ.
    fn take(&mut self, index: usize) {
        let frame = &self.talk.frames[index];
        let packet = &frame.packet;
        let is_read = packet.row().operation == Operation::ReadRequest;
        self.expected = self.expected.plus(if is_read { self.packets(packet.reth.length) } else { 1 });
        if is_read {
            let bytes = self.brought(index);
            if let Some(buffer) = self.told.get(&packet.reth.rkey) {
                buffer.fill(packet.reth.va, &bytes);
            }
            return;
        }
        if frame.begins() {
            self.message = Message { reth: packet.reth, bytes: Vec::new() };
        }
        self.message.bytes.extend_from_slice(&packet.payload);
        if (frame.begins() && packet.row().operation == Operation::Send) || packet.brings_immediate() {
            let buffer = self.buffer(1 << 12, Access::LOCAL_WRITE);
            let request = ReceiveRequest { wr_id: self.buffers as u64, sge: vec![buffer.piece()] };
            // If it is refused, nothing is received, and that is told.
            let _ = self.act(|qp, out| qp.post_receive(request, out));
            self.receive = Some(buffer);
        }
    }

    /// Whether the program is told of a message, once it is whole.
    fn fills_receive(&mut self, frame: &Frame, has_to: bool) -> Result<(), Fault> {
        let came = format!("{}: {} came", frame.name(), name(&frame.packet));
        let at = |is_it: fn(&Effect) -> bool| self.effects.iter().position(is_it);
        let told = at(|effect| matches!(effect, Effect::Received(_)));
        let sent = at(|effect| matches!(effect, Effect::Send(..)));
        let decided = self.decided();
        match (has_to, told) {
            (false, None) => return Ok(()),
            (false, Some(_)) => {
                return Err((
                    RECEIVE,
                    format!("{came}: nothing for the program. Yours tells it of a message.{decided}"),
                ))
            }
            (true, None) => {
                let yours = if sent.is_some() { "only the answer" } else { "nothing" };
                let has_to = "it has to be answered, and the program told of a message";
                // A WRITE has to be placed before.
                let hole = if frame.packet.row().operation == Operation::Write { WRITE } else { RECEIVE };
                return Err((hole, format!("{came}; {has_to}. Yours: {yours}.{decided}")));
            }
            (true, Some(told)) if sent.is_some_and(|sent| sent > told) => {
                let said = "yours tells the program first, and sends the ACK then. A program that ends now takes its ACK with it";
                return Err((RECEIVE, format!("{came}; {said}.")));
            }
            _ => {}
        }
        if let (Operation::Send, Some(buffer)) = (frame.packet.row().operation, self.receive.take()) {
            let (wanted, yours) = (&self.message.bytes, buffer.bytes(buffer.address, self.message.bytes.len()));
            if let Some(at) = difference(wanted, &yours) {
                let dump = differing("rdma_rxe", wanted, &yours, at, " of the program's buffer");
                return Err((PLACE, format!("{came}; in the receive stands then:\n{dump}")));
            }
            if !buffer.guards_stand() {
                return Err((PLACE, format!("{came}; yours has written outside the receive.")));
            }
        }
        Ok(())
    }

    /// Whether a WRITE stands where it has to.
    fn placed(&self, frame: &Frame) -> Result<(), Fault> {
        let Message { reth, bytes } = &self.message;
        let Some(buffer) = self.told.get(&reth.rkey) else { return Ok(()) };
        let yours = buffer.bytes(reth.va, bytes.len());
        let Some(at) = difference(bytes, &yours) else { return Ok(()) };
        let dump = differing("rdma_rxe", bytes, &yours, at, " of the program's buffer");
        let came = format!("{}: {} came", frame.name(), name(&frame.packet));
        Err((WRITE, format!("{came}; in memory stands then:\n{dump}")))
    }

    /// rdma_rxe answered: ours has done so already.
    fn has_to_answer(&mut self, frame: &Frame) -> Result<(), Fault> {
        let hole = match self.asked(frame) {
            Some(Operation::Write) => WRITE,
            Some(Operation::ReadRequest) => READ,
            _ => RECEIVE,
        };
        self.is_over = is_fatal(frame);
        let Some(ours) = self.answers.pop_front() else {
            let (place, wanted, decided) = (frame.name(), name(&frame.packet), self.decided());
            return Err((hole, format!("{place}: rdma_rxe answered {wanted}. Yours: nothing.{decided}")));
        };
        // Which NAK it is, lesson 19 says.
        let is_refused = self.is_over && matches!(ours.aeth.verdict(), Syndrome::Nak(_));
        self.compare(frame, &ours).map_err(|said| (if is_refused { LATER } else { hole }, said))
    }

    /// What this accepts, refuses or brings. A gap that it tells of is no answer.
    fn asked(&self, answer: &Frame) -> Option<Operation> {
        if answer.packet.row().operation == Operation::ReadResponse {
            return Some(Operation::ReadRequest);
        }
        let is_its = |frame: &&Frame| frame.from == self.peer.address && frame.packet.psn == answer.packet.psn;
        let asks = self.talk.frames.iter().find(is_its).filter(|_| nak(answer) != Some(Nak::PsnSequence));
        asks.map(|asks| asks.packet.row().operation)
    }

    /// The first answer to a request that comes behind it.
    fn answer_to(&self, index: usize) -> Option<&Frame<'_>> {
        let asks = &self.talk.frames[index];
        let is_it = |frame: &&Frame| {
            frame.from != asks.from && frame.packet.row().is_response() && frame.packet.psn == asks.packet.psn
        };
        self.talk.frames[index..].iter().find(is_it)
    }

    fn packets(&self, length: u32) -> u32 {
        length.div_ceil(self.talk.mtu).max(1)
    }

    /// Compares the bytes on the wire.
    fn compare(&mut self, frame: &Frame, ours: &Packet) -> Result<(), String> {
        self.same += 1;
        let Some(theirs) = frame.recorded.packet() else { return Ok(()) };
        let (start, end) = (theirs.bth_offset(), theirs.datagram.wire_length - icrc::LENGTH);
        let (wanted, yours) = (&theirs.datagram.ip[start..end], ours.encode());
        let Some(at) = difference(wanted, &yours) else { return Ok(()) };
        let verb = if ours.row().is_response() { "answered" } else { "sent" };
        let (wanted_name, place) = (name(&frame.packet), frame.name());
        let dump = differing("rdma_rxe", wanted, &yours, at, &field_at(&theirs, start + at));
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

/// Whether a posted request is done with this answer: all before a NAK is, and a READ with its last response.
fn is_answered(posted: &Posted, frame: &Frame) -> bool {
    let is_ack = matches!(frame.packet.aeth.verdict(), Syndrome::Ack { .. });
    let is_response = frame.packet.row().operation == Operation::ReadResponse;
    let psn = if is_ack || is_response { frame.packet.psn } else { frame.packet.psn.before() };
    match posted.work {
        Work::Read(_) => is_response && psn == posted.last,
        _ => psn.since(posted.last) >= 0,
    }
}
