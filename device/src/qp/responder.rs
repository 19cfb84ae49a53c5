//! The responder: carries out what the peer's requester asks for, in the order of its PSNs, and answers
//! (specification, volume 1, 9.7.4 and 9.7.5; errors 9.9.3).
//!
//! It answers: Send, RDMA Write, RDMA Read Request, Compare Swap, Fetch Add. Each packet passes the same gates, in this
//! order: is it the expected one, does it continue what came before, may the peer do this at all, is there a receive, does
//! the key open the memory. The first gate that is shut decides what is answered.

use super::answers::Answer;
use super::{packets, Qp, State};
use crate::completion::{Completion, Done, Status};
use crate::memory::{Claim, Rights};
use crate::outside::{AsyncEvent, Effect, Outside};
use crate::packet::{code, syndrome, Packet, Reth};
use crate::psn::Psn;
use crate::work::ReceiveRequest;
use std::collections::VecDeque;
use wire::aeth::Syndrome;
use wire::opcode::{Operation, Part};

/// A message of several packets, as far as it has come.
#[derive(Debug)]
struct Message {
    /// Where a WRITE goes; None for a SEND.
    write: Option<Reth>,
    /// Bytes that have arrived.
    arrived: u32,
}

#[derive(Debug, Default)]
pub(super) struct Responder {
    pub(super) expected: Psn,
    pub(super) msn: u32,
    /// A first request has come.
    pub(super) heard: bool,
    /// A gap, or a missing receive, has been told: once is enough.
    nak_sent: bool,
    message: Option<Message>,
    /// The receive that a SEND under way is filling.
    receive: Option<ReceiveRequest>,
    /// Atomics that were carried out, with what stood there: asked for again, they must not be carried out again.
    pub(super) atomics: VecDeque<(Psn, u64)>,
    /// What still has to be sent.
    pub(super) answers: VecDeque<Answer>,
}

/// What to say to a request that cannot be carried out.
pub(super) struct No {
    syndrome: u8,
    why: String,
    /// The receive that it spoils, with its status.
    spoils: Option<Status>,
}

impl No {
    pub(super) fn new(syndrome: u8, why: impl Into<String>) -> No {
        No { syndrome, why: why.into(), spoils: None }
    }
}

impl Responder {
    pub(super) fn start(&mut self, first: Psn) {
        self.expected = first;
    }

    /// Nothing is received or answered any more. Gives back the receive that was being filled.
    pub(super) fn stop(&mut self) -> Option<ReceiveRequest> {
        self.message = None;
        // A NAK is the last word: what stands before it in the queue is still sent.
        let is_nak = |answer: &Answer| matches!(answer, Answer::Packet(last) if last.syndrome != syndrome::ACK);
        if !self.answers.back().is_some_and(is_nak) {
            self.answers.clear();
        }
        self.receive.take()
    }
}

impl Qp {
    pub(super) fn request(&mut self, packet: Packet, out: &mut Outside) {
        let expected = self.responder.expected;
        match packet.psn.since(expected) {
            0 => self.responder.nak_sent = false,
            gap if gap > 0 => {
                if !std::mem::replace(&mut self.responder.nak_sent, true) {
                    out.say(|| {
                        format!("responder: PSN {} came, {expected} expected; NAK, PSN sequence error", packet.psn)
                    });
                    self.acknowledge(expected, syndrome::PSN_SEQUENCE_ERROR, out);
                }
                return;
            }
            _ => return self.duplicate(packet, out),
        }
        let (psn, msn, name) = (packet.psn, self.responder.msn, packet.row().name);
        let cause = out.effects.len();
        let done = match packet.row().operation {
            _ if packet.row().headers.iter().any(|header| header.name == "IETH") => {
                Err(No::new(syndrome::INVALID_REQUEST, "SEND with invalidate is not supported"))
            }
            Operation::Send | Operation::Write => self.carry(packet, out),
            Operation::ReadRequest => self.begin_read(&packet),
            Operation::CompareSwap | Operation::FetchAdd => self.atomic(&packet, out),
            _ => Err(No::new(syndrome::INVALID_REQUEST, "not supported")),
        };
        match done {
            Ok(what) => {
                let done =
                    if self.responder.msn == msn { String::new() } else { format!(", MSN {}", self.responder.msn) };
                out.say_at(cause, || format!("responder: PSN {psn} expected, {name}: {what}{done}"));
                self.send_answers(out);
            }
            Err(no) => self.refuse(psn, name, no, out),
        }
    }

    pub(super) fn refuse(&mut self, psn: Psn, name: &str, no: No, out: &mut Outside) {
        let nak = Syndrome::from(no.syndrome);
        out.say(|| format!("responder: PSN {psn} expected, {name}: {}; {nak}", no.why));
        self.acknowledge(psn, no.syndrome, out);
        if no.syndrome & syndrome::PSN_SEQUENCE_ERROR == syndrome::RNR_NAK {
            // The packets behind it are on their way; they are dropped without a word.
            self.responder.nak_sent = true;
            return;
        }
        match (no.spoils, self.responder.receive.take()) {
            (Some(status), Some(receive)) => self.received(&receive, status, out),
            (_, receive) => self.responder.receive = receive,
        }
        if no.spoils.is_none() {
            let access = no.syndrome == syndrome::REMOTE_ACCESS_ERROR;
            out.push(Effect::Raise(if access { AsyncEvent::QpAccessError } else { AsyncEvent::QpRequestError }));
        }
        self.enter(State::Err, out);
    }

    /// One packet of a SEND or WRITE: places its bytes; the last one completes the message.
    fn carry(&mut self, packet: Packet, out: &mut Outside) -> Result<String, No> {
        let (row, mtu) = (packet.row(), self.attributes.mtu);
        let begins = matches!(row.part, Part::First | Part::Only);
        let ends = matches!(row.part, Part::Last | Part::Only);
        let is_write = row.operation == Operation::Write;
        let immediate = row.headers.iter().any(|header| header.name == "ImmDt").then_some(packet.immediate);
        let invalid = |why: &str| No::new(syndrome::INVALID_REQUEST, why);

        let continues = self.responder.message.as_ref().map(|message| message.write.is_some());
        if (begins && continues.is_some()) || (!begins && continues != Some(is_write)) {
            return Err(invalid("it does not continue what came before"));
        }
        let length = packet.payload.len() as u32;
        let fits = match row.part {
            Part::First | Part::Middle => length == mtu,
            Part::Last => (1..=mtu).contains(&length),
            Part::Only => length <= mtu,
        };
        if !fits {
            return Err(invalid(&format!("{length} bytes are no payload of such a packet")));
        }
        if is_write && !self.attributes.access.allow(Rights::REMOTE_WRITE) {
            return Err(invalid("this QP does not allow WRITEs"));
        }
        if self.responder.receive.is_none() && ((begins && !is_write) || immediate.is_some()) {
            let taken = out.take_receive(&mut self.receives);
            let timer = syndrome::RNR_NAK | self.attributes.min_rnr_timer & 0x1f;
            self.responder.receive = Some(taken.ok_or_else(|| No::new(timer, "no receive is posted"))?);
        }
        let (write, arrived) = match &self.responder.message {
            Some(message) => (message.write, message.arrived),
            None => (is_write.then_some(packet.reth), 0),
        };
        let placed = match write {
            Some(reth) => self.place_write(reth, arrived, ends, &packet, out)?,
            None => self.place_send(arrived, &packet, out)?,
        };
        let arrived = arrived + length;
        self.responder.expected = packet.psn.plus(1);
        self.responder.message = (!ends).then_some(Message { write, arrived });
        if ends {
            self.responder.msn = (self.responder.msn + 1) & 0xff_ffff;
        }
        // First the ACK, then the completion: a program that has seen it may end, and its device with it.
        if packet.ack_request {
            self.acknowledge(packet.psn, syndrome::ACK, out);
        }
        let receive = if ends { self.responder.receive.take() } else { None };
        if let Some(receive) = &receive {
            let done = if is_write { Done::ReceiveWithImmediate } else { Done::Receive };
            let completion = self.completion(receive.wr_id, Status::Success, done);
            let solicited = packet.solicited;
            out.push(Effect::Received(Completion { length: arrived, immediate, solicited, ..completion }));
        }
        let ack = if packet.ack_request { ", ACK" } else { "" };
        let completes = receive.map_or(String::new(), |receive| format!(", completes receive wr_id={}", receive.wr_id));
        Ok(format!("{placed}{ack}{completes}"))
    }

    fn place_write(&self, reth: Reth, at: u32, ends: bool, packet: &Packet, out: &Outside) -> Result<String, No> {
        let length = packet.payload.len() as u32;
        let sum = at + length;
        if reth.length > Qp::LONGEST {
            return Err(No::new(syndrome::INVALID_REQUEST, "longer than a message can be"));
        }
        if sum > reth.length || (ends && sum != reth.length) {
            let why = format!("{sum} bytes have come, {} were announced", reth.length);
            return Err(No::new(syndrome::INVALID_REQUEST, why));
        }
        let (domain, needed) = (self.settings.domain, Rights::REMOTE_WRITE);
        // The whole message is checked with its first packet: a WRITE that does not fit changes nothing.
        let whole = Claim { domain, key: reth.rkey, address: reth.va, length: reth.length, needed };
        let here = Claim { address: reth.va.wrapping_add(at.into()), length, ..whole };
        let placed = out.memory.check(whole).and_then(|()| out.memory.write(here, &packet.payload));
        placed.map_err(|refusal| {
            let why = format!("rkey {:#x}, {} bytes at {:#x}: {refusal}", reth.rkey, reth.length, reth.va);
            No::new(syndrome::REMOTE_ACCESS_ERROR, why)
        })?;
        Ok(format!("rkey {:#x} ok, {sum} of {} bytes in bounds and placed", reth.rkey, reth.length))
    }

    fn place_send(&self, at: u32, packet: &Packet, out: &Outside) -> Result<String, No> {
        let Some(receive) = &self.responder.receive else {
            return Err(No::new(syndrome::REMOTE_OPERATIONAL_ERROR, "the receive is gone"));
        };
        let (sum, room) = (u64::from(at) + packet.payload.len() as u64, receive.room());
        if sum > Qp::LONGEST.into() {
            return Err(No::new(syndrome::INVALID_REQUEST, "longer than a message can be"));
        }
        if sum > room {
            let why = format!("{sum} bytes have come, the receive has room for {room}");
            return Err(No { spoils: Some(Status::LocLenErr), ..No::new(syndrome::INVALID_REQUEST, why) });
        }
        // The shared receive queue may be in another protection domain than this queue pair.
        let pd = out.shared.as_deref().unwrap_or(&self.receives).pd();
        let placed = out.memory.scatter(pd, &receive.pieces, at, &packet.payload);
        placed.map_err(|refusal| {
            let no = No::new(syndrome::REMOTE_OPERATIONAL_ERROR, format!("the receive's own memory: {refusal}"));
            No { spoils: Some(Status::LocProtErr), ..no }
        })?;
        Ok(format!("receive wr_id={} has room, {sum} of {room} bytes placed", receive.wr_id))
    }

    /// Checks a READ, and puts its responses in the queue of answers. They use up the PSNs behind the request's.
    fn begin_read(&mut self, packet: &Packet) -> Result<String, No> {
        self.may_read(packet, Rights::REMOTE_READ)?;
        let reth = packet.reth;
        if reth.length > Qp::LONGEST {
            return Err(No::new(syndrome::INVALID_REQUEST, "longer than a message can be"));
        }
        let count = packets(reth.length, self.attributes.mtu);
        self.responder.expected = packet.psn.plus(count);
        self.responder.msn = (self.responder.msn + 1) & 0xff_ffff;
        self.queue_read(reth, packet.psn, false);
        Ok(format!("rkey {:#x}, {} bytes, {count} responses", reth.rkey, reth.length))
    }

    /// READs and atomics need room for their answers, and the queue pair's leave.
    fn may_read(&mut self, packet: &Packet, needed: Rights) -> Result<(), No> {
        if self.responder.message.is_some() {
            return Err(No::new(syndrome::INVALID_REQUEST, "it does not continue what came before"));
        }
        if !self.attributes.access.allow(needed) || self.attributes.max_dest_rd_atomic == 0 {
            let why = format!("this QP does not allow {}s", packet.row().name);
            return Err(No::new(syndrome::INVALID_REQUEST, why));
        }
        if !self.has_room_for_read() {
            return Err(No::new(syndrome::INVALID_REQUEST, "more READs are under way than agreed on"));
        }
        Ok(())
    }

    /// Carries out an atomic operation, once.
    fn atomic(&mut self, packet: &Packet, out: &mut Outside) -> Result<String, No> {
        self.may_read(packet, Rights::REMOTE_ATOMIC)?;
        let (asked, domain, needed) = (packet.atomic, self.settings.domain, Rights::REMOTE_ATOMIC);
        if asked.va % 8 != 0 {
            return Err(No::new(syndrome::INVALID_REQUEST, "the address is no multiple of 8"));
        }
        let claim = Claim { domain, key: asked.rkey, address: asked.va, length: 8, needed };
        let changed = if packet.opcode == code::FETCH_ADD {
            out.memory.update(claim, |old| Some(old.wrapping_add(asked.swap_add)))
        } else {
            out.memory.update(claim, |old| (old == asked.compare).then_some(asked.swap_add))
        };
        let original = changed.map_err(|refusal| {
            No::new(syndrome::REMOTE_ACCESS_ERROR, format!("rkey {:#x}, {:#x}: {refusal}", asked.rkey, asked.va))
        })?;
        self.responder.expected = packet.psn.plus(1);
        self.responder.msn = (self.responder.msn + 1) & 0xff_ffff;
        self.responder.atomics.push_back((packet.psn, original));
        if self.responder.atomics.len() > usize::from(self.attributes.max_dest_rd_atomic) {
            self.responder.atomics.pop_front();
        }
        let response = Packet { original, ..self.response(code::ATOMIC_ACKNOWLEDGE, packet.psn) };
        self.reply(response, out);
        Ok(format!("rkey {:#x} ok, {original:#x} stood there", asked.rkey))
    }
}
