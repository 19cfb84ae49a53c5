//! One request: what one work request (SEND, WRITE, READ, atomic) put on the wire, however many packets it took.

use super::capture::Recorded;
use roce::aeth::Nak;
use roce::opcode::{Operation, Part, Service};
use roce::packet::{Packet, Remote};
use roce::track::span;

/// How a request ended, as far as the capture tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Outcome {
    /// No answer.
    Unanswered,
    /// Acknowledged, or the data came.
    Done,
    /// Refused.
    Refused(Nak),
}

/// What a message says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Payload {
    /// In bytes.
    pub length: u64,
    /// The bytes it begins with.
    pub head: Vec<u8>,
    /// CRC-32 of all bytes.
    pub sum: u32,
}

impl Payload {
    pub(super) fn extend(&mut self, bytes: &[u8]) {
        const HEAD: usize = 64;
        let mut sum = crc32fast::Hasher::new_with_initial_len(self.sum, self.length);
        sum.update(bytes);
        self.sum = sum.finalize();
        self.length += bytes.len() as u64;
        self.head.extend_from_slice(&bytes[..bytes.len().min(HEAD - self.head.len())]);
    }

    /// Its beginning and the sum of all, but for the number of the process that says it: in a short text that ends in
    /// " pid " and digits these are left out.
    pub(super) fn said(&self) -> (&[u8], u32) {
        const MARK: &[u8] = b" pid ";
        let is_number = |bytes: &[u8]| bytes.iter().all(|byte| byte.is_ascii_digit() || *byte == b' ');
        let mark = self.head.windows(MARK.len()).rposition(|part| part == MARK);
        match mark.map(|at| self.head.split_at(at + MARK.len())) {
            Some((text, pid)) if self.length == self.head.len() as u64 && is_number(pid) => (text, 0),
            _ => (&self.head, self.sum),
        }
    }
}

/// One request with its answer.
#[derive(Debug)]
pub(super) struct Request {
    pub service: Service,
    pub operation: Operation,
    pub solicited: bool,
    pub immediate: Option<u32>,
    pub invalidated: Option<u32>,
    pub remote: Option<Remote>,
    /// Swap or add data, and compare data; of a FLUSH its selectivity level and placement type.
    pub operands: Option<(u64, u64)>,
    /// Length that the RETH names, in bytes.
    pub announced: Option<u32>,
    /// What its packets carry, or what the READ's responses do.
    pub payload: Payload,
    /// Frame of the first packet.
    pub frame: u64,
    /// The step of the lesson.
    pub step: Option<String>,
    /// Frame of the answer that decided the outcome.
    pub answer: Option<u64>,
    pub outcome: Outcome,
    /// Packets that were sent more than once.
    pub again: u32,
    /// How often no receive was posted.
    pub not_ready: u32,
    /// PSN of its first packet, counted from the first of the direction.
    pub first: i64,
    /// PSN of its packet that comes next.
    next: i64,
    /// PSN of the READ response packet that comes next.
    pub response: i64,
    /// All its packets were seen.
    complete: bool,
}

impl Request {
    pub(super) fn new(recorded: &Recorded, first: i64) -> Request {
        let packet = recorded.packet;
        let mut payload = Payload::default();
        payload.extend(packet.payload());
        Request {
            service: packet.opcode.service,
            operation: packet.opcode.operation,
            solicited: packet.bth.se,
            immediate: packet.immediate(),
            invalidated: packet.invalidated_key(),
            remote: packet.remote(),
            // An addition has one operand: the field of the other holds anything.
            operands: match packet.opcode.operation {
                Operation::FetchAdd => packet.atomic_operands().map(|(add, _)| (add, 0)),
                _ => packet.atomic_operands().or(packet.flush()),
            },
            announced: packet.dma_length(),
            payload,
            frame: recorded.number,
            step: recorded.step.clone(),
            answer: None,
            outcome: Outcome::Unanswered,
            again: 0,
            not_ready: 0,
            first,
            next: first + 1,
            response: first,
            complete: matches!(packet.opcode.part, Part::Only | Part::Last),
        }
    }

    /// True if the packet is the same request again.
    pub(super) fn says_the_same(&self, packet: &Packet) -> bool {
        let mut payload = Payload::default();
        payload.extend(packet.payload());
        (self.operation, self.immediate, &self.payload) == (packet.opcode.operation, packet.immediate(), &payload)
    }

    /// One more of its packets, or one that comes again. A receiver that misses one drops those after it, unless they are unreliable.
    pub(super) fn take(&mut self, packet: &Packet, psn: i64) {
        if self.complete || psn < self.next {
            self.again += 1;
        } else if psn == self.next || !self.service.is_reliable() {
            self.extend(packet);
            self.next = psn + 1;
        }
    }

    /// Takes in a Middle or Last packet.
    fn extend(&mut self, packet: &Packet) {
        self.payload.extend(packet.payload());
        self.solicited |= packet.bth.se;
        self.immediate = self.immediate.or(packet.immediate());
        self.invalidated = self.invalidated.or(packet.invalidated_key());
        self.complete = packet.opcode.part == Part::Last;
    }

    /// True if an answer was due and it was not a good one. Datagrams and unreliable connections get no answers.
    pub(super) fn failed(&self) -> bool {
        self.service.is_reliable() && self.outcome != Outcome::Done
    }

    /// Bytes that are moved.
    pub(super) fn length(&self) -> u64 {
        self.announced.map_or(self.payload.length, u64::from)
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
            (Operation::Flush, ..) => "FLUSH",
            (Operation::AtomicWrite, ..) => "atomic WRITE",
            _ => "request of an unknown kind",
        }
    }

    /// True if the request takes a receive from the peer's queue.
    pub(super) fn takes_receive(&self) -> bool {
        self.operation == Operation::Send || self.immediate.is_some()
    }

    /// True if a READ response answers it.
    pub(super) fn gets_data(&self) -> bool {
        matches!(self.operation, Operation::ReadRequest | Operation::Flush | Operation::AtomicWrite)
    }

    /// All of it was sent, and nobody has said yet how it ended.
    pub(super) fn is_open(&self) -> bool {
        self.complete && self.service.is_reliable() && self.outcome == Outcome::Unanswered
    }

    /// The PSN after its last one.
    pub(super) fn end(&self, mtu: Option<u32>) -> i64 {
        let read = self.announced.filter(|_| self.operation == Operation::ReadRequest);
        read.map_or(self.next, |bytes| self.first + span(bytes, mtu.unwrap_or(4096)))
    }
}
