//! The requests of one direction of a connection, put together from their packets and from the answers.
//!
//! A request is what one work request put on the wire: a SEND, WRITE, READ or atomic operation, however many packets it
//! took. Its packets are numbered without gaps; a number that was there before is a retransmission; a READ takes as
//! many numbers as its response has packets (IBTA 9.7.2 and 9.7.5).

use super::capture::Recorded;
use crate::aeth::{Nak, Syndrome};
use crate::opcode::{Operation, Part, Service};
use crate::packet::{Packet, Remote};
use crate::psn::distance;

/// How a request ended, as far as the capture tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// No answer.
    Unanswered,
    /// Acknowledged, or the data came.
    Done,
    /// Refused.
    Refused(Nak),
}

/// One request with its answer.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub service: Service,
    pub operation: Operation,
    pub solicited: bool,
    pub immediate: Option<u32>,
    pub invalidated: Option<u32>,
    pub remote: Option<Remote>,
    /// Swap or add data, and compare data.
    pub operands: Option<(u64, u64)>,
    /// Length that the RETH names, in bytes.
    pub announced: Option<u32>,
    /// What its packets carry, or what the READ's responses do.
    pub payload: Vec<u8>,
    /// Packets the request itself took.
    pub packets: u32,
    /// Frame of the first packet.
    pub frame: u64,
    /// The comment of that frame.
    pub comment: Option<&'a str>,
    /// Frame of the answer that decided the outcome.
    pub answer: Option<u64>,
    pub outcome: Outcome,
    /// Packets that were sent more than once.
    pub again: u32,
    /// How often no receive was posted.
    pub not_ready: u32,
    /// Position of the first packet in its direction, and how many positions it takes.
    first: i64,
    span: i64,
    /// Position of the READ response packet that comes next.
    response: i64,
    complete: bool,
}

impl<'a> Request<'a> {
    fn new(recorded: &Recorded<'a>, first: i64, span: i64) -> Request<'a> {
        let packet = &recorded.packet;
        Request {
            service: packet.opcode.service,
            operation: packet.opcode.operation,
            solicited: packet.bth.se,
            immediate: packet.immediate(),
            invalidated: packet.invalidated_key(),
            remote: packet.remote(),
            operands: packet.atomic_operands(),
            announced: packet.dma_length(),
            payload: packet.payload().to_vec(),
            packets: 1,
            frame: recorded.number,
            comment: recorded.comment,
            answer: None,
            outcome: Outcome::Unanswered,
            again: 0,
            not_ready: 0,
            first,
            span,
            response: first,
            complete: matches!(packet.opcode.part, Part::Only | Part::Last),
        }
    }

    /// Takes in a Middle or Last packet.
    fn extend(&mut self, packet: &Packet) {
        self.payload.extend_from_slice(packet.payload());
        self.packets += 1;
        self.span += 1;
        self.solicited |= packet.bth.se;
        self.immediate = self.immediate.or(packet.immediate());
        self.invalidated = self.invalidated.or(packet.invalidated_key());
        self.complete = packet.opcode.part == Part::Last;
    }

    /// Bytes that are moved.
    pub(super) fn length(&self) -> u64 {
        self.announced.map_or(self.payload.len() as u64, u64::from)
    }

    /// The verb's name for it, as a teacher writes it.
    pub(super) fn name(&self) -> &'static str {
        match (self.operation, self.immediate, self.invalidated) {
            (Operation::Send, Some(_), _) => "SEND with immediate",
            (Operation::Send, _, Some(_)) => "SEND with invalidate",
            (Operation::Send, ..) => "SEND",
            (Operation::Write, Some(_), _) => "WRITE with immediate",
            (Operation::Write, ..) => "WRITE",
            (Operation::ReadRequest, ..) => "READ",
            (Operation::CompareSwap, ..) => "compare-and-swap",
            (Operation::FetchAdd, ..) => "fetch-and-add",
            _ => "request of an unknown kind",
        }
    }

    /// True if the request takes a receive from the peer's queue.
    pub(super) fn takes_receive(&self) -> bool {
        self.operation == Operation::Send || self.immediate.is_some()
    }
}

/// All requests of one direction.
#[derive(Debug, Default)]
pub(super) struct Stream<'a> {
    pub requests: Vec<Request<'a>>,
    /// Answers to packets that were not recorded.
    missed: Vec<u64>,
    /// PSN of position 0.
    start: Option<u32>,
    /// Position of the next new packet.
    next: i64,
    /// Position and frame of packets that came too early, after one that was lost on the wire.
    early: Vec<(i64, u64)>,
    /// Position that the receiver asked for again, for it missed it, too.
    asked_for: Option<i64>,
    /// Requests before this index need no ACK any more.
    open: usize,
}

impl<'a> Stream<'a> {
    /// The first request will carry this PSN.
    pub(super) fn starts_at(&mut self, psn: u32) {
        self.start = Some(psn);
    }

    /// How far a PSN is from the newest one of this direction; None before the first.
    pub(super) fn distance(&self, psn: u32) -> Option<u32> {
        Some((self.position(psn)? - self.next).unsigned_abs() as u32)
    }

    fn position(&self, psn: u32) -> Option<i64> {
        let expected = (i64::from(self.start?) + self.next) as u32 & 0xff_ffff;
        Some(self.next + i64::from(distance(psn, expected)))
    }

    /// A packet of a request. READs take one number for each `mtu` bytes.
    pub(super) fn request(&mut self, recorded: &Recorded<'a>, mtu: u32) {
        let packet = &recorded.packet;
        let service = packet.opcode.service;
        if service == Service::Ud {
            // Datagrams are not in sequence.
            self.requests.push(Request::new(recorded, self.next, 1));
            return;
        }
        self.start.get_or_insert(packet.bth.psn);
        let Some(position) = self.position(packet.bth.psn) else { return };
        if position < self.next {
            if let Some(request) = self.at(position) {
                request.again += 1;
            }
            return;
        }
        if position > self.next {
            if service == Service::Rc {
                // The receiver drops it, too, and will ask for the missing one.
                self.early.push((position, recorded.number));
                return;
            }
            // Unreliable: what was lost is lost.
            self.next = position;
        }
        self.accept(recorded, mtu);
        let next = self.next;
        self.early.retain(|(position, _)| *position >= next);
    }

    fn accept(&mut self, recorded: &Recorded<'a>, mtu: u32) {
        let packet = &recorded.packet;
        let follows = matches!(packet.opcode.part, Part::Middle | Part::Last);
        match self.requests.last_mut() {
            Some(last) if follows && !last.complete && last.operation == packet.opcode.operation => {
                last.extend(packet);
                self.next += 1;
            }
            _ => {
                let responses = packet.dma_length().unwrap_or(0).div_ceil(mtu.max(1)).max(1);
                let span = if packet.opcode.operation == Operation::ReadRequest { i64::from(responses) } else { 1 };
                self.requests.push(Request::new(recorded, self.next, span));
                self.next += span;
            }
        }
    }

    /// The request that a position belongs to.
    fn at(&mut self, position: i64) -> Option<&mut Request<'a>> {
        let after = self.requests.partition_point(|request| request.first <= position);
        let request = self.requests.get_mut(after.checked_sub(1)?)?;
        (position < request.first + request.span).then_some(request)
    }

    /// A packet that answers a request of this direction.
    pub(super) fn response(&mut self, recorded: &Recorded<'a>) {
        let (packet, frame) = (&recorded.packet, recorded.number);
        let Some(position) = self.position(packet.bth.psn) else { return };
        let verdict = packet.aeth().map(|aeth| aeth.verdict());
        // A sequence error names the packet that the receiver waits for, so it may be one that was never recorded.
        let limit = self.next + i64::from(verdict == Some(Syndrome::Nak(Nak::PsnSequence)));
        if position >= limit {
            self.missed.push(frame);
            return;
        }
        match (packet.opcode.operation, verdict) {
            (Operation::ReadResponse, _) => self.read_response(packet, position, frame),
            (Operation::AtomicAcknowledge, _) => self.finish(position, frame, Outcome::Done),
            (_, Some(Syndrome::Ack { .. })) => self.done_before(position + 1, frame),
            (_, Some(Syndrome::Nak(Nak::PsnSequence))) => {
                self.asked_for = Some(position);
                self.done_before(position, frame);
            }
            (_, Some(Syndrome::Nak(nak))) => self.finish(position, frame, Outcome::Refused(nak)),
            (_, Some(Syndrome::RnrNak { .. })) => {
                self.done_before(position, frame);
                if let Some(request) = self.at(position) {
                    request.not_ready += 1;
                }
            }
            _ => {}
        }
    }

    /// Everything before `position` has arrived. READs and atomics are done only when their data comes.
    fn done_before(&mut self, position: i64, frame: u64) {
        for request in &mut self.requests[self.open..] {
            if !request.complete || request.first + request.span > position {
                break;
            }
            self.open += 1;
            let acknowledged = matches!(request.operation, Operation::Send | Operation::Write);
            if acknowledged && request.outcome == Outcome::Unanswered {
                request.outcome = Outcome::Done;
                request.answer = Some(frame);
            }
        }
    }

    fn finish(&mut self, position: i64, frame: u64, outcome: Outcome) {
        if let Some(first) = self.at(position).map(|request| request.first) {
            self.done_before(first, frame);
        }
        if let Some(request) = self.at(position).filter(|request| request.outcome == Outcome::Unanswered) {
            request.outcome = outcome;
            request.answer = Some(frame);
        }
    }

    fn read_response(&mut self, packet: &Packet, position: i64, frame: u64) {
        let Some(request) = self.at(position).filter(|request| request.operation == Operation::ReadRequest) else {
            return;
        };
        if position == request.response {
            request.payload.extend_from_slice(packet.payload());
            request.response += 1;
        }
        let (first, end) = (request.first, request.first + request.span);
        self.done_before(first, frame);
        if position + 1 == end {
            self.finish(position, frame, Outcome::Done);
        }
    }

    /// Frames that do not follow on what was recorded before, though the receiver missed nothing.
    pub(super) fn gaps(&self) -> impl Iterator<Item = u64> + '_ {
        let early = self.early.first().filter(|_| self.asked_for != Some(self.next));
        early.map(|(_, frame)| *frame).into_iter().chain(self.missed.iter().copied())
    }
}
