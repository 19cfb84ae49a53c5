//! The requests of one side: what it sent, and what it sent again. Memory is bounded: what is [answered](answers) is forgotten.

mod answers;
mod traffic;

use super::cause::Cause;
use super::finding::Findings;
use roce::opcode::{Operation, Part};
use roce::packet::{Packet, Remote};
use roce::track::Side;
use std::collections::VecDeque;
pub(super) use traffic::{milliseconds, Traffic};

/// So many packets without an answer are remembered; the oldest are given up first.
const MOST_OPEN: usize = 1024;
/// A packet that comes again sooner than this was doubled on its way, where the requester's timer is not known.
const SOON_NS: u64 = 2_000_000;

/// A packet in its capture.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    pub frame: u64,
    pub time_ns: Option<u64>,
}

impl Place {
    /// Nanoseconds since another; None without times.
    pub(super) fn since(self, other: Place) -> Option<u64> {
        Some(self.time_ns?.saturating_sub(other.time_ns?))
    }
}

/// A request's packet that has no answer yet.
#[derive(Debug, Default)]
struct Sent {
    /// The PSNs that it takes: a READ takes one for each packet of its response.
    psn: i64,
    end: i64,
    name: &'static str,
    remote: Option<Remote>,
    length: u64,
    is_read: bool,
    first: Place,
    last: Place,
    /// The responder has asked for it again, or for one before it.
    is_asked_for: bool,
    /// How often a timer sent it again, and the frames of that.
    times: u32,
    again: Vec<u64>,
    /// The response that comes next.
    response: i64,
}

impl Sent {
    fn has(&self, psn: i64) -> bool {
        (self.psn..self.end).contains(&psn)
    }
}

/// One side's requests.
#[derive(Debug, Default)]
pub(super) struct Flow {
    /// Whose they are.
    side: Side,
    pub packets: u64,
    pub traffic: Traffic,
    /// Answers to them, of any kind.
    pub answers: u64,
    open: VecDeque<Sent>,
    /// The PSN behind the newest request.
    next: Option<i64>,
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
    /// A PSN that is answered, and is sent again all the same: the frames of that.
    disbelieved: (i64, Vec<u64>),
    /// Bytes of a packet that is not the last of its message.
    pub mtu: Option<u32>,
    /// What comes again sooner than this was not sent again: half of the requester's timer.
    pub soon_ns: Option<u64>,
    /// The last answer: its PSN, its syndrome, and where it is.
    last_answer: Option<(i64, u8, Place)>,
    /// The queue pair to which it goes.
    answered_to: u32,
}

/// What is under way at the end.
pub(super) struct Left {
    pub name: &'static str,
    pub first: u64,
    pub again: Vec<u64>,
    pub refused: Option<u64>,
    pub last: Place,
    /// Nanoseconds between the first and the last time that it was sent.
    pub tried_ns: Option<u64>,
}

impl Flow {
    pub(super) fn new(side: Side) -> Flow {
        Flow { side, ..Flow::default() }
    }

    /// A request's packet.
    pub(super) fn request(&mut self, packet: &Packet, psn: i64, place: Place, findings: &mut Findings) {
        self.packets += 1;
        let (side, row) = (self.side, packet.opcode);
        if matches!(row.part, Part::First | Part::Middle) {
            self.mtu = self.mtu.or(Some(packet.payload_length() as u32));
        }
        // So the requester knows it: the capture began too late, or lacks a packet.
        if self.expected == Some(psn) {
            self.expected = None;
            findings.forget(Cause::WrongPsn);
            let text = format!("the {side}'s {} of PSN {psn:+} was sent again on demand", row.name);
            findings.add(Cause::Lost, side, text, &[place.frame]);
        }
        let next = self.next.unwrap_or(psn);
        if psn >= next {
            self.traffic.count(packet);
            self.next = Some(self.add(packet, psn, place));
            self.leaves_out(next, psn, place);
        } else if let Some(at) = self.missing.iter().position(|(missing, _)| *missing == psn) {
            let (_, left_out) = self.missing.remove(at).unwrap_or_default();
            self.add(packet, psn, place);
            let (cause, what) = match self.gap {
                None => (Cause::Overtaken, "came behind a later one"),
                Some(_) => (Cause::Lost, "was lost before the recorder"),
            };
            let text = format!("the {side}'s {} of PSN +{psn} {what}", row.name);
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

    fn add(&mut self, packet: &Packet, psn: i64, place: Place) -> i64 {
        let is_read = packet.opcode.operation == Operation::ReadRequest;
        let length = packet.dma_length().map_or(packet.payload_length() as u64, u64::from);
        let mtu = u64::from(self.mtu.unwrap_or(1024).max(1));
        let span = if is_read { length.div_ceil(mtu).clamp(1, 1 << 23) as i64 } else { 1 };
        if self.open.len() == MOST_OPEN {
            self.open.pop_front();
        }
        let sent = Sent {
            psn,
            end: psn + span,
            name: packet.opcode.name,
            remote: packet.remote(),
            length,
            is_read,
            first: place,
            last: place,
            response: psn,
            ..Sent::default()
        };
        let at = self.open.iter().rposition(|open| open.psn < psn).map_or(0, |at| at + 1);
        self.open.insert(at, sent);
        self.traffic.waits(self.open.len());
        psn + span
    }

    /// PSNs that the capture lacks. Of very many it is the capture's own fault.
    fn leaves_out(&mut self, next: i64, psn: i64, place: Place) {
        const MOST: i64 = 64;
        if psn - next <= MOST {
            self.missing.extend((next..psn).map(|psn| (psn, place.frame)));
            while self.missing.len() > MOST as usize {
                self.missing.pop_front();
            }
        }
    }

    /// A packet whose PSN was there before.
    fn again(&mut self, packet: &Packet, psn: i64, place: Place, findings: &mut Findings) {
        let (name, side) = (packet.opcode.name, self.side);
        let Some(sent) = self.open.iter_mut().find(|sent| sent.has(psn)) else {
            if self.answered.is_some_and(|answered| psn < answered) {
                if self.is_disbelieved(psn, place.frame) {
                    let (_, frames) = &self.disbelieved;
                    findings.forget(Cause::AnswerLost);
                    let answered = format!("the {} answered each time: to qp {:#x}", side.other(), self.answered_to);
                    let text = format!("the {side} sent {name} of PSN +{psn} again and again, though {answered}");
                    return findings.add(Cause::AnswersNotTaken, side, text, frames);
                }
                let behind = "the answer was lost behind the recorder, or came late";
                let text = format!(
                    "the {side} sent {name} of PSN +{psn} again, though its answer is in the capture: {behind}"
                );
                findings.add(Cause::AnswerLost, side, text, &[place.frame]);
            }
            return;
        };
        let since = place.since(sent.last);
        sent.last = place;
        if std::mem::take(&mut sent.is_asked_for) {
            return;
        }
        if sent.response > sent.psn || psn > sent.psn {
            let text = format!(
                "a part of the response to the {name} of frame {} did not come: the rest was asked for again",
                sent.first.frame
            );
            findings.add(Cause::AnswerLost, side, text, &[sent.first.frame, place.frame]);
        } else if since.is_some_and(|since| since < self.soon_ns.unwrap_or(SOON_NS)) && sent.times == 0 {
            let text = format!("the {side}'s {name} of PSN +{psn} came twice");
            findings.add(Cause::Doubled, side, text, &[sent.first.frame, place.frame]);
        } else {
            sent.times += 1;
            if sent.again.len() < 16 {
                sent.again.push(place.frame);
            }
        }
    }

    /// The responder wants this PSN, and with it come all behind it.
    fn ask_for(&mut self, psn: i64) {
        self.open.iter_mut().filter(|sent| sent.end > psn).for_each(|sent| sent.is_asked_for = true);
    }

    /// Whether the requester asks for the third time what was answered before.
    fn is_disbelieved(&mut self, psn: i64, frame: u64) -> bool {
        if self.disbelieved.0 != psn {
            self.disbelieved = (psn, Vec::new());
        }
        self.disbelieved.1.push(frame);
        self.disbelieved.1.len() >= 3
    }

    /// The oldest request without an answer.
    pub(super) fn left(&self) -> Option<Left> {
        let sent = self.open.front()?;
        let refused = self.not_ready.filter(|(at, _)| *at == sent.psn).map(|(_, frame)| frame);
        let last = self.open.iter().map(|sent| sent.last).max_by_key(|place| place.frame)?;
        Some(Left {
            name: sent.name,
            first: sent.first.frame,
            again: sent.again.clone(),
            refused,
            last,
            tried_ns: sent.last.since(sent.first),
        })
    }
}
