//! The requests of one direction of a connection, put together from their packets and from the answers.
//!
//! Their packets are numbered without gaps; a number that was there before is a retransmission; a READ takes as many
//! numbers as its response has packets (IBTA 9.7).
//!
//! The memory that a direction takes has a limit: the first [`KEPT`] requests are compared one by one. Those after them
//! are counted, and what they do goes into one number.

use super::capture::Recorded;
use super::request::{Outcome, Request};
use roce::aeth::{Nak, Syndrome};
use roce::opcode::{Operation, Part};
use roce::packet::Remote;
use roce::track::Membership;
use rustc_hash::FxHashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::ops::Range;

/// So many requests of a direction are compared one by one.
pub(super) const KEPT: usize = 4096;

/// The requests after those that are kept.
#[derive(Debug, Default)]
pub(super) struct Rest {
    pub count: u64,
    /// Frame of the first.
    pub frame: u64,
    /// Of all that is to be the same.
    hash: DefaultHasher,
    /// For each key its number, in the order of use, and the address that it was used with first.
    keys: FxHashMap<u32, (usize, u64)>,
}

impl Rest {
    fn add(&mut self, request: &Request) {
        self.count += 1;
        self.frame = if self.count == 1 { request.frame } else { self.frame };
        (request.name(), request.service, request.length(), request.outcome).hash(&mut self.hash);
        (request.immediate, request.operands, request.solicited).hash(&mut self.hash);
        if let Some(Remote { va, r_key }) = request.remote {
            let number = self.keys.len();
            let (number, start) = *self.keys.entry(r_key).or_insert((number, va));
            (number, va.wrapping_sub(start)).hash(&mut self.hash);
        }
    }

    /// A number that is another one if what they do is something else.
    pub(super) fn sum(&self) -> u64 {
        self.hash.finish()
    }
}

/// All requests of one direction.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// The first of them.
    pub requests: Vec<Request>,
    pub rest: Rest,
    /// The first answer to packets that were not recorded.
    missed: Option<u64>,
    /// Position of the next new packet.
    next: i64,
    /// Position and frame of the first packet that came too early, after one that was lost on the wire.
    early: Option<(i64, u64)>,
    /// Position that the receiver asked for again, because it missed it as well.
    asked_for: Option<i64>,
    /// Everything before this position has arrived.
    answered: i64,
}

/// The least and the largest path MTU: a READ takes this many numbers at most and at least, as long as none was seen.
const MTUS: [u32; 2] = [256, 4096];

impl Stream {
    /// A packet of a request, with its PSN counted from the first of this direction; datagrams have none.
    pub(super) fn request(&mut self, recorded: &Recorded, seen: Membership, mtu: &mut Option<u32>) {
        let position = seen.psn.unwrap_or(self.next);
        let is_reliable = recorded.packet.opcode.service.is_reliable();
        let last = self.requests.last();
        // After a refusal the queue pairs are at their end. If they are started again, their numbers begin anywhere.
        let is_anew = last.is_some_and(|last| matches!(last.outcome, Outcome::Refused(_)));
        // Without an MTU, a READ may take many.
        let read = last.filter(|last| mtu.is_none() && last.is_read());
        let farthest = read.map_or(self.next, |read| read.first + read.read_span(MTUS[0]));
        if position < self.next {
            self.of(seen).into_iter().for_each(|request| request.again += 1);
        } else if is_reliable && !is_anew && position > farthest {
            // The receiver also drops it, and will ask for the missing one.
            self.early.get_or_insert((position, recorded.number));
        } else {
            // Unreliable: what was lost is lost.
            self.next = position;
            self.accept(recorded, mtu);
            self.early = self.early.filter(|(position, _)| *position >= self.next);
        }
    }

    /// Whether a datagram is the last one again: no device does so, but a program may ask once more, in the same words.
    pub(super) fn asks_again(&mut self, recorded: &Recorded) -> bool {
        let last = self.requests.last_mut().filter(|last| last.says_the_same(recorded.packet));
        last.map(|last| last.again += 1).is_some()
    }

    fn accept(&mut self, recorded: &Recorded, mtu: &mut Option<u32>) {
        let packet = recorded.packet;
        if matches!(packet.opcode.part, Part::First | Part::Middle) {
            mtu.get_or_insert(packet.payload_length() as u32);
        }
        let follows = matches!(packet.opcode.part, Part::Middle | Part::Last);
        match self.requests.last_mut() {
            Some(last) if follows && !last.complete && last.operation == packet.opcode.operation => {
                last.extend(packet);
                self.next += 1;
            }
            _ => {
                let request = Request::new(recorded, self.next);
                self.next += if request.is_read() { request.read_span(mtu.unwrap_or(MTUS[1])) } else { 1 };
                self.requests.push(request);
            }
        }
        // What came this many requests ago is answered, or never will be.
        if self.requests.len() == 3 * KEPT {
            self.settle(KEPT..2 * KEPT);
        }
    }

    /// What was answered so far is done, and of some requests only their sum is kept.
    fn settle(&mut self, old: Range<usize>) {
        let starts = self.requests.iter().skip(1).map(|request| request.first).chain([self.next]);
        let ends: Vec<i64> = starts.collect();
        let open = |(request, _): &(&mut Request, i64)| request.outcome == Outcome::Unanswered;
        for (request, end) in self.requests.iter_mut().zip(ends).filter(open) {
            if request.complete && request.service.is_reliable() && end <= self.answered {
                request.outcome = Outcome::Done;
            }
        }
        self.requests.drain(old).for_each(|request| self.rest.add(&request));
    }

    /// The capture is at its end.
    pub(super) fn end(&mut self) {
        self.settle(self.requests.len().min(KEPT)..self.requests.len());
    }

    /// The request that a packet is part of, or answers.
    fn of(&mut self, seen: Membership) -> Option<&mut Request> {
        let first = seen.request?.first;
        let at = self.requests.binary_search_by_key(&first, |request| request.first).ok()?;
        self.requests.get_mut(at)
    }

    /// A packet that answers a request of this direction.
    pub(super) fn response(&mut self, recorded: &Recorded, seen: Membership, mtu: &mut Option<u32>) {
        let (packet, frame, position) = (recorded.packet, recorded.number, seen.psn.unwrap_or(0));
        if mtu.is_none() && packet.opcode.operation == Operation::ReadResponse && packet.opcode.part == Part::First {
            let seen = packet.payload_length() as u32;
            *mtu = Some(seen);
            // Now it is known how many numbers the last READ takes.
            if let Some(read) = self.requests.last().filter(|last| last.is_read()) {
                self.next = read.first + read.read_span(seen);
            }
        }
        let verdict = packet.aeth().map(|aeth| aeth.verdict());
        // A sequence error names the packet that the receiver waits for, so it may be one that was never recorded.
        let limit = self.next + i64::from(verdict == Some(Syndrome::Nak(Nak::PsnSequence)));
        if position >= limit {
            self.missed.get_or_insert(frame);
            return;
        }
        let is_answered = position < self.answered;
        let request = self.of(seen);
        let arrived = match (verdict, request) {
            (Some(Syndrome::Nak(Nak::PsnSequence)), _) => {
                self.asked_for = Some(position);
                position
            }
            (Some(Syndrome::Nak(nak)), Some(request)) if !is_answered => {
                (request.outcome, request.answer) = (Outcome::Refused(nak), Some(frame));
                position
            }
            (Some(Syndrome::RnrNak { .. }), Some(request)) => {
                request.not_ready += 1;
                position
            }
            (Some(Syndrome::Ack { .. }) | None, request) => {
                // Of a READ response that is sent again, the bytes count once.
                if let Some(request) = request.filter(|request| request.gets_data() && request.response == position) {
                    request.payload.extend(packet.payload());
                    request.response += 1;
                }
                position + 1
            }
            _ => position,
        };
        self.answered = self.answered.max(arrived);
    }

    /// A frame that does not follow on what was recorded before, though the receiver missed nothing.
    pub(super) fn gap(&self) -> Option<u64> {
        let early = self.early.filter(|_| self.asked_for != Some(self.next));
        early.map(|(_, frame)| frame).or(self.missed)
    }
}
