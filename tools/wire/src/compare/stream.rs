//! The requests of one direction of a connection, put together from their packets and from the answers.
//!
//! The memory that a direction takes has a limit: the first [`KEPT`] requests are compared one by one. Those after them
//! are counted, and what they do goes into one number.

use super::capture::Recorded;
use super::request::{Outcome, Request};
use roce::aeth::{Nak, Syndrome};
use roce::packet::Remote;
use roce::track::Membership;
use rustc_hash::{FxHashMap, FxHasher};
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
    /// A number that is another one if what they do is something else.
    pub sum: u64,
    /// For each key its number, in the order of use, and the address that it was used with first.
    keys: FxHashMap<u32, (usize, u64)>,
}

impl Rest {
    fn add(&mut self, request: &Request) {
        self.count += 1;
        self.frame = if self.count == 1 { request.frame } else { self.frame };
        let mut hash = FxHasher::default();
        (self.sum, request.name(), request.service, request.length(), request.outcome).hash(&mut hash);
        (request.immediate, request.operands, request.solicited).hash(&mut hash);
        if let Some(Remote { va, r_key }) = request.remote {
            let number = self.keys.len();
            let (number, start) = *self.keys.entry(r_key).or_insert((number, va));
            (number, va.wrapping_sub(start)).hash(&mut hash);
        }
        self.sum = hash.finish();
    }
}

/// All requests of one direction.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// The first of them, in the order of their PSNs.
    pub requests: Vec<Request>,
    pub rest: Rest,
    /// The first answer to packets that were not recorded.
    missed: Option<u64>,
    /// PSN of a packet that was not recorded, and the frame of the one after it.
    gap: Option<(i64, u64)>,
    /// PSN that the receiver asked for again, because it missed it as well.
    asked_for: Option<i64>,
    /// Everything before this PSN has arrived.
    answered: i64,
}

impl Stream {
    /// A packet of a request.
    pub(super) fn request(&mut self, recorded: &Recorded, mtu: Option<u32>) {
        let (packet, seen) = (recorded.packet, recorded.seen);
        let Some((psn, of)) = seen.psn.zip(seen.request) else {
            // Datagrams have no numbers.
            let first = self.requests.last().map_or(0, |last| last.first + 1);
            return self.add(Request::new(recorded, first), mtu);
        };
        let is_reliable = packet.opcode.service.is_reliable();
        // After a refusal the queue pairs are at their end. If they are started again, their numbers begin anywhere.
        let is_anew = self.requests.last().is_some_and(|last| matches!(last.outcome, Outcome::Refused(_)));
        let is_early = seen.skipped > 0 && is_reliable && !is_anew;
        if is_early {
            self.gap.get_or_insert((psn - seen.skipped, recorded.number));
        }
        self.gap = self.gap.filter(|(missing, _)| *missing != psn);
        if !of.begins {
            self.of(seen).into_iter().for_each(|request| request.take(packet, psn));
        } else if !is_early || packet.opcode.is_first() {
            // A message that has lost its first packet is dropped by the receiver, which asks for all of it.
            self.add(Request::new(recorded, psn), mtu);
        }
    }

    /// Whether a datagram is the last one again: no device does so, but a program may ask once more, in the same words.
    pub(super) fn asks_again(&mut self, recorded: &Recorded) -> bool {
        let last = self.requests.last_mut().filter(|last| last.says_the_same(recorded.packet));
        last.map(|last| last.again += 1).is_some()
    }

    fn add(&mut self, request: Request, mtu: Option<u32>) {
        let before = self.requests.iter().rposition(|known| known.first < request.first);
        self.requests.insert(before.map_or(0, |at| at + 1), request);
        // What came this many requests ago is answered, or never will be.
        if self.requests.len() == 3 * KEPT {
            self.settle(KEPT..2 * KEPT, mtu);
        }
    }

    /// What was answered so far is done, and of some requests only their sum is kept.
    fn settle(&mut self, old: Range<usize>, mtu: Option<u32>) {
        let mut end = self.requests.last().map_or(0, |last| last.end(mtu));
        for request in self.requests.iter_mut().rev() {
            if request.is_open() && end <= self.answered {
                request.outcome = Outcome::Done;
            }
            end = request.first;
        }
        self.requests.drain(old).for_each(|request| self.rest.add(&request));
    }

    /// The capture is at its end.
    pub(super) fn end(&mut self, mtu: Option<u32>) {
        self.settle(self.requests.len().min(KEPT)..self.requests.len(), mtu);
        self.requests.shrink_to_fit();
    }

    /// The request that a packet is part of, or answers.
    fn of(&mut self, seen: Membership) -> Option<&mut Request> {
        let first = seen.request?.first;
        let at = self.requests.binary_search_by_key(&first, |request| request.first).ok()?;
        self.requests.get_mut(at)
    }

    /// A packet that answers a request of this direction.
    pub(super) fn response(&mut self, recorded: &Recorded) {
        let Recorded { packet, number: frame, seen, .. } = *recorded;
        let (psn, verdict) = (seen.psn.unwrap_or(0), packet.aeth().map(|aeth| aeth.verdict()));
        // A sequence error names the packet that the receiver waits for, so it may be one that was never recorded.
        if seen.skipped > i64::from(verdict == Some(Syndrome::Nak(Nak::PsnSequence))) {
            self.missed.get_or_insert(frame);
            return;
        }
        let is_answered = psn < self.answered;
        let request = self.of(seen);
        let arrived = match (verdict, request) {
            (Some(Syndrome::Nak(Nak::PsnSequence)), _) => {
                self.asked_for = Some(psn);
                psn
            }
            (Some(Syndrome::Nak(nak)), Some(request)) if !is_answered => {
                (request.outcome, request.answer) = (Outcome::Refused(nak), Some(frame));
                psn
            }
            (Some(Syndrome::RnrNak { .. }), Some(request)) => {
                request.not_ready += 1;
                psn
            }
            (Some(Syndrome::Ack { .. }) | None, request) => {
                // Of a READ response that is sent again, the bytes count once.
                if let Some(request) = request.filter(|request| request.gets_data() && request.response == psn) {
                    request.payload.extend(packet.payload());
                    request.response += 1;
                }
                psn + 1
            }
            _ => psn,
        };
        self.answered = self.answered.max(arrived);
    }

    /// A frame that does not follow on what was recorded before, though the receiver missed nothing.
    pub(super) fn gap(&self) -> Option<u64> {
        let gap = self.gap.filter(|(missing, _)| self.asked_for != Some(*missing));
        gap.map(|(_, frame)| frame).or(self.missed)
    }
}
