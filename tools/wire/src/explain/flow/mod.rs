//! The requests of one side: what it sent, and what it sent again. Memory is bounded: what is [answered](answers) is forgotten.

mod answers;
mod traffic;

use super::cause::{Blame, Cause};
use super::finding::Findings;
use super::names::Names;
use roce::opcode::Operation;
use roce::packet::{Packet, Remote};
use roce::track::{span, Connection, Membership, Side};
use std::collections::VecDeque;
pub(super) use traffic::{milliseconds, Traffic};

/// So many packets without an answer are remembered; the oldest are given up first.
const MOST_OPEN: usize = 1024;
/// A packet that comes again sooner than this was doubled on its way, where the requester's timer is not known.
const SOON_NS: u64 = 2_000_000;

/// Each network carries packets with this payload.
const SURELY_FITS: usize = 1024;

/// What the responder says by an RNR NAK: only SENDs and immediate data need a receive.
pub(super) fn lacked(name: &str) -> &'static str {
    let needs_receive = name.contains("Send") || name.contains("Immediate") || name == "request";
    if needs_receive {
        "had no receive for"
    } else {
        "was not ready for"
    }
}

/// A packet in its capture.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moment {
    pub frame: u64,
    pub time_ns: Option<u64>,
}

impl Moment {
    /// Nanoseconds since another; None without times.
    pub(super) fn since(self, other: Moment) -> Option<u64> {
        Some(self.time_ns?.saturating_sub(other.time_ns?))
    }
}

/// A request's packet that has no answer yet.
#[derive(Debug, Default)]
struct Unanswered {
    /// The PSNs that it takes: a READ takes one for each packet of its response.
    psn: i64,
    end: i64,
    name: &'static str,
    remote: Option<Remote>,
    length: u64,
    is_read: bool,
    /// It occupies one of the responder's resources for READs and atomics.
    is_deep: bool,
    /// Bytes of payload in this packet.
    payload: usize,
    /// Its ICRC doesn't fit.
    is_damaged: bool,
    first: Moment,
    last: Moment,
    /// The responder has asked for it again, or for one before it.
    is_asked_for: bool,
    /// How often a timer sent it again, and the frames of that.
    times: u32,
    again: Vec<u64>,
    /// The response that comes next.
    response: i64,
    /// Where it shows that a packet of the response isn't in the capture.
    hole: Option<Moment>,
}

impl Unanswered {
    fn has(&self, psn: i64) -> bool {
        (self.psn..self.end).contains(&psn)
    }
}

/// A request that was answered, and sent again all the same.
#[derive(Debug, Default)]
pub(super) struct Disbelieved {
    pub psn: i64,
    pub name: &'static str,
    pub frames: Vec<u64>,
}

/// A request that was sent again, and had no answer before that.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resent {
    pub name: &'static str,
    pub psn: i64,
    pub first: Moment,
    pub again: Moment,
    pub count: u64,
}

/// One side's requests.
#[derive(Debug, Default)]
pub(super) struct Flow {
    /// Whose they are.
    side: Side,
    names: Names,
    pub packets: u64,
    pub traffic: Traffic,
    /// Answers to them, of any kind.
    pub answers: u64,
    /// Answers that are cut before the byte that says yes or no.
    pub unread: u64,
    open: VecDeque<Unanswered>,
    /// The frame of the newest request that's no repetition.
    pub newest: u64,
    /// All before is answered.
    answered: Option<i64>,
    /// PSNs that were never seen, and the frame that left them out.
    missing: VecDeque<(i64, u64)>,
    /// The responder waits for this PSN: it has sent a NAK.
    gap: Option<(i64, u64)>,
    /// The responder expects this PSN, and no packet has had it.
    expected: Option<i64>,
    /// No receive was posted for this PSN.
    not_ready: Option<(i64, u64)>,
    /// A NAK that ends the queue pair: its PSN and frame.
    fatal: Option<(i64, u64)>,
    /// A PSN that is answered, and is sent again all the same.
    disbelieved: Disbelieved,
    /// The first that was sent again by a timer, and how many were.
    pub resent: Option<Resent>,
    /// The frame of the first request that came twice.
    pub doubled: Option<u64>,
    /// The frame of the last request that was there before: its answers come again.
    again_at: u64,
    /// Packets that the responder answered although their ICRC doesn't fit, and the frame of the first.
    pub accepted_damaged: (u64, u64),
    /// Packets that were answered, so they were on the wire, and that the capture lacks.
    pub unrecorded: u64,
    /// Bytes of the longest packet that was answered.
    longest_answered: usize,
    /// Keys that the responder accepted.
    accepted: Vec<Accepted>,
    /// Keys that a SEND with invalidate ended, and its frame.
    invalidated: Vec<(u32, u64)>,
    /// The path MTU, if the ConnectRequest says it.
    pub agreed_mtu: Option<u32>,
    /// What the connection manager's messages agreed on: READs at a time, this side's own queue pair.
    pub agreed_reads: Option<u64>,
    pub agreed_qp: Option<u32>,
    /// What comes again sooner than this was not sent again: half of the requester's timer.
    pub soon_ns: Option<u64>,
    /// The last answer: its PSN, its syndrome, and where it is.
    last_answer: Option<(i64, u8, Moment)>,
    /// The queue pair to which it goes.
    answered_to: u32,
}

/// A request to remote memory that the responder carried out.
#[derive(Debug)]
struct Accepted {
    name: &'static str,
    remote: Remote,
    length: u64,
    frame: u64,
}

/// What is under way at the end.
pub(super) struct Left {
    pub name: &'static str,
    pub first: u64,
    pub again: Vec<u64>,
    pub refused: Option<u64>,
    pub last: Moment,
    /// Nanoseconds between the first and the last time that it was sent.
    pub tried_ns: Option<u64>,
    /// Its payload, if it's longer than that of each packet that was answered.
    pub longer: Option<usize>,
}

impl Flow {
    pub(super) fn new(side: Side, names: Names) -> Flow {
        Flow { side, names, ..Flow::default() }
    }

    /// Who sends these requests.
    fn me(&self) -> &str {
        &self.names[self.side]
    }

    /// Who answers them.
    fn peer(&self) -> &str {
        &self.names[self.side.other()]
    }

    /// A request's packet.
    pub(super) fn request(
        &mut self,
        packet: &Packet,
        (psn, seen): (i64, Membership),
        ends: &Connection,
        is_damaged: bool,
        place: Moment,
        findings: &mut Findings,
    ) {
        const MOST_KEYS: usize = 64;
        self.packets += 1;
        let (side, row) = (self.side, packet.opcode);
        if let Some(key) = packet.invalidated_key().filter(|_| self.invalidated.len() < MOST_KEYS) {
            self.invalidated.push((key, place.frame));
        }
        // So the requester knows it: the capture began too late, or lacks a packet.
        if self.expected == Some(psn) {
            self.expected = None;
            findings.forget(Cause::WrongPsn);
            let text = format!("{}'s {} of PSN {psn:+} was sent again on demand", self.me(), row.name);
            findings.add(Cause::Lost, side, text, &[place.frame]);
        }
        if !seen.again {
            if self.newest > 0 {
                self.leaves_out(psn - seen.skipped, psn, place);
            }
            self.traffic.count(packet);
            self.newest = place.frame;
            self.add(packet, psn, ends.mtu, is_damaged, place);
        } else if let Some(at) = self.missing.iter().position(|(missing, _)| *missing == psn) {
            let (_, left_out) = self.missing.remove(at).unwrap_or_default();
            self.add(packet, psn, ends.mtu, is_damaged, place);
            let (cause, what) = match self.gap {
                None => (Cause::Overtaken, "is recorded after a later one"),
                Some(_) => (Cause::Lost, "was lost before the recorder"),
            };
            let text = format!("{}'s {} of PSN +{psn} {what}", self.me(), row.name);
            findings.add(cause, side, text, &[left_out, place.frame]);
        } else {
            self.again(packet, psn, place, findings);
        }
    }

    /// A datagram has no number that counts.
    pub(super) fn datagram(&mut self, packet: &Packet) {
        self.packets += 1;
        self.traffic.count(packet);
    }

    fn add(&mut self, packet: &Packet, psn: i64, mtu: Option<u32>, is_damaged: bool, place: Moment) {
        let is_read = packet.opcode.operation == Operation::ReadRequest;
        let length = packet.dma_length().unwrap_or(packet.payload_length() as u32);
        let span = if is_read { span(length, mtu.unwrap_or(1024)) } else { 1 };
        if self.open.len() == MOST_OPEN {
            self.open.pop_front();
        }
        let sent = Unanswered {
            psn,
            end: psn + span,
            name: packet.opcode.name,
            remote: packet.remote(),
            length: length.into(),
            is_read,
            is_deep: is_read || matches!(packet.opcode.operation, Operation::CompareSwap | Operation::FetchAdd),
            payload: packet.payload_length(),
            is_damaged,
            first: place,
            last: place,
            response: psn,
            ..Unanswered::default()
        };
        let at = self.open.iter().rposition(|open| open.psn < psn).map_or(0, |at| at + 1);
        self.open.insert(at, sent);
        self.traffic.waits(self.open.len());
    }

    /// PSNs that the capture lacks. Of very many it is the capture's own fault.
    fn leaves_out(&mut self, next: i64, psn: i64, place: Moment) {
        const MOST: i64 = 64;
        if psn - next <= MOST {
            self.missing.extend((next..psn).map(|psn| (psn, place.frame)));
            while self.missing.len() > MOST as usize {
                self.missing.pop_front();
            }
        }
    }

    /// A packet whose PSN was there before.
    fn again(&mut self, packet: &Packet, psn: i64, place: Moment, findings: &mut Findings) {
        let (name, side) = (packet.opcode.name, self.side);
        self.again_at = place.frame;
        let Some(sent) = self.open.iter_mut().find(|sent| sent.has(psn)) else {
            // An answer that can't be read may have asked for it.
            if self.answered.is_some_and(|answered| psn < answered) && self.unread == 0 {
                self.disbelieve(name, psn, place.frame);
                let behind = "the answer was lost after the recorder, or came late";
                let text = format!(
                    "{} sent {name} of PSN +{psn} again, though its answer is in the capture: {behind}",
                    self.me()
                );
                findings.add(Cause::AnswerLost, side, text, &[place.frame]);
            }
            return;
        };
        let (first, since) = (sent.first, place.since(sent.last));
        sent.last = place;
        if std::mem::take(&mut sent.is_asked_for) {
            return;
        }
        if sent.response > sent.psn || psn > sent.psn || sent.hole.take().is_some() {
            let text = format!(
                "a part of the response to the {} of frame {} did not come: the rest was asked for again",
                sent.name, first.frame
            );
            findings.add(Cause::AnswerLost, side, text, &[first.frame, place.frame]);
        } else if since.is_some_and(|since| since < self.soon_ns.unwrap_or(SOON_NS)) && sent.times == 0 {
            let text = format!("{}'s {name} of PSN +{psn} came twice", self.me());
            self.doubled.get_or_insert(place.frame);
            findings.add(Cause::Doubled, side, text, &[first.frame, place.frame]);
        } else {
            sent.times += 1;
            if sent.again.len() < 16 {
                sent.again.push(place.frame);
            }
            let resent = self.resent.get_or_insert(Resent { name, psn, first, again: place, count: 0 });
            resent.count += 1;
        }
    }

    /// The responder wants this PSN, and with it come all behind it.
    fn ask_for(&mut self, psn: i64) {
        self.open.iter_mut().filter(|sent| sent.end > psn).for_each(|sent| sent.is_asked_for = true);
    }

    /// The requester asks for what was answered before.
    fn disbelieve(&mut self, name: &'static str, psn: i64, frame: u64) {
        if self.disbelieved.psn != psn || self.disbelieved.frames.is_empty() {
            self.disbelieved = Disbelieved { psn, name, frames: Vec::new() };
        }
        self.disbelieved.frames.push(frame);
        self.disbelieved.frames.truncate(16);
    }

    /// A request that was answered three times or more, and sent again each time to the end.
    pub(super) fn not_taken(&self) -> Option<(&Disbelieved, u32)> {
        let last = *self.disbelieved.frames.last()?;
        let is_to_the_end = self.disbelieved.frames.len() >= 3 && self.newest < last;
        is_to_the_end.then_some((&self.disbelieved, self.answered_to))
    }

    /// The frame of the NAK that has ended the queue pair.
    pub(super) fn fatal(&self) -> Option<u64> {
        self.fatal.map(|(_, frame)| frame)
    }

    /// READs whose response the capture lacks in part, though nobody asked for it again. If the capture goes on long enough after
    /// that, the requester had it, and only the recorder missed it.
    pub(super) fn settle(&mut self, end: Moment, findings: &mut Findings) {
        const LONG_NS: u64 = 1_000_000_000;
        while let Some((hole, sent)) = self.open.front().and_then(|sent| Some((sent.hole?, sent))) {
            if end.since(hole).is_some_and(|since| since >= LONG_NS) || self.answered > Some(sent.end + 3) {
                self.unrecorded += 1;
            } else {
                let text = format!(
                    "a part of the response to the {} of frame {} is missing: it was lost, or the recorder missed it",
                    sent.name, sent.first.frame
                );
                let frames = [sent.first.frame, hole.frame];
                findings.add(Cause::AnswerLost, self.side, text, &frames).blame(Blame::Unknown).is_not_mended();
            }
            self.open.pop_front();
            while self.open.front().is_some_and(|sent| Some(sent.end) <= self.answered && sent.hole.is_none()) {
                self.open.pop_front();
            }
        }
    }

    /// The oldest request without an answer.
    pub(super) fn left(&self) -> Option<Left> {
        let sent = self.open.front().filter(|_| self.fatal.is_none())?;
        let refused = self.not_ready.filter(|(at, _)| *at == sent.psn).map(|(_, frame)| frame);
        let last = self.open.iter().map(|sent| sent.last).max_by_key(|place| place.frame)?;
        Some(Left {
            name: sent.name,
            first: sent.first.frame,
            again: sent.again.clone(),
            refused,
            last,
            tried_ns: sent.last.since(sent.first),
            longer: Some(sent.payload).filter(|payload| *payload > SURELY_FITS.max(self.longest_answered)),
        })
    }
}
