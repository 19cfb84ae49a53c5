//! The requests of one side, and what became of them. Memory is bounded: what is answered is forgotten.

use super::cause::Cause;
use super::finding::Findings;
use roce::aeth::{Nak, Syndrome};
use roce::opcode::{Operation, Part};
use roce::packet::{Packet, Remote};
use roce::track::Side;
use std::collections::VecDeque;

/// So many packets without an answer are remembered; the oldest are given up first.
const MOST_OPEN: usize = 1024;
/// A packet that comes again sooner than this was doubled on its way, where the requester's timer is not known.
const SOON_NS: u64 = 2_000_000;

/// A packet in its capture.
#[derive(Clone, Copy, Debug)]
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
#[derive(Debug)]
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

/// One side's requests.
#[derive(Debug)]
pub(super) struct Flow {
    /// Whose they are.
    side: Side,
    pub packets: u64,
    /// Messages that began, by their names.
    pub messages: Vec<(&'static str, u64)>,
    pub bytes: u64,
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
    /// How long packets waited for their answers at the recorder, of those that were sent once.
    waits: Waits,
    /// So many packets had no answer yet, at the most.
    most_open: usize,
}

/// Times, added up.
#[derive(Clone, Copy, Debug, Default)]
struct Waits {
    count: u64,
    sum_ns: u64,
    longest_ns: u64,
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
        Flow {
            side,
            packets: 0,
            messages: Vec::new(),
            bytes: 0,
            answers: 0,
            open: VecDeque::new(),
            next: None,
            answered: None,
            missing: VecDeque::new(),
            gap: None,
            expected: None,
            not_ready: None,
            disbelieved: (0, Vec::new()),
            mtu: None,
            soon_ns: None,
            last_answer: None,
            answered_to: 0,
            waits: Waits::default(),
            most_open: 0,
        }
    }

    /// How fast it goes, if there is enough to tell: how long answers took, and how many packets waited for one at a time.
    pub(super) fn pace(&self) -> String {
        const ENOUGH: u64 = 16;
        let Waits { count, sum_ns, longest_ns } = self.waits;
        let Some(mean) = sum_ns.checked_div(count).filter(|_| count >= ENOUGH) else { return String::new() };
        let (mean, longest) = (milliseconds(mean), milliseconds(longest_ns));
        let open = self.most_open;
        format!(
            "; the {}'s packets had an answer after {mean}, {longest} at the most, and up to {open} waited at a time",
            self.side
        )
    }

    /// A request's packet.
    pub(super) fn request(&mut self, packet: &Packet, psn: i64, place: Place, findings: &mut Findings) {
        self.packets += 1;
        let row = packet.opcode;
        if matches!(row.part, Part::First | Part::Middle) {
            self.mtu = self.mtu.or(Some(packet.payload_length() as u32));
        }
        // So the requester knows it: the capture began too late, or lacks a packet.
        if self.expected == Some(psn) {
            self.expected = None;
            findings.forget(Cause::WrongPsn);
            findings.add(
                Cause::Lost,
                self.side,
                format!("the {}'s {} of PSN {psn:+} was sent again on demand", self.side, row.name),
                &[place.frame],
            );
        }
        let next = self.next.unwrap_or(psn);
        if psn >= next {
            self.new_one(packet, psn, place);
            if psn > next {
                self.leaves_out(next, psn, place);
            }
            return;
        }
        if let Some(at) = self.missing.iter().position(|(missing, _)| *missing == psn) {
            let (_, left_out) = self.missing.remove(at).unwrap_or_default();
            self.add(packet, psn, place);
            if self.gap.is_none() {
                let text = format!("the {}'s {} of PSN +{psn} came behind a later one", self.side, row.name);
                findings.add(Cause::Overtaken, self.side, text, &[left_out, place.frame]);
            } else {
                findings.add(
                    Cause::Lost,
                    self.side,
                    format!("the {}'s {} of PSN +{psn} was lost before the recorder", self.side, row.name),
                    &[left_out, place.frame],
                );
            }
            return;
        }
        self.again(packet, psn, place, findings);
    }

    /// A datagram has no number that counts.
    pub(super) fn datagram(&mut self, packet: &Packet) {
        self.packets += 1;
        self.count(packet);
    }

    fn new_one(&mut self, packet: &Packet, psn: i64, place: Place) {
        self.count(packet);
        let end = self.add(packet, psn, place);
        self.next = Some(end);
    }

    fn count(&mut self, packet: &Packet) {
        if matches!(packet.opcode.part, Part::First | Part::Only) {
            let name = verb(packet.opcode.operation);
            match self.messages.iter_mut().find(|(known, _)| *known == name) {
                Some((_, count)) => *count += 1,
                None => self.messages.push((name, 1)),
            }
        }
        self.bytes += packet
            .dma_length()
            .filter(|_| packet.opcode.operation == Operation::ReadRequest)
            .map_or(packet.payload_length() as u64, u64::from);
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
            is_asked_for: false,
            times: 0,
            again: Vec::new(),
            response: psn,
        };
        let at = self.open.iter().rposition(|open| open.psn < psn).map_or(0, |at| at + 1);
        self.open.insert(at, sent);
        self.most_open = self.most_open.max(self.open.len());
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
        let Some(sent) = self.open.iter_mut().find(|sent| (sent.psn..sent.end).contains(&psn)) else {
            if self.answered.is_some_and(|answered| psn < answered) {
                if self.is_disbelieved(psn, place.frame) {
                    let (_, frames) = &self.disbelieved;
                    findings.forget(Cause::AnswerLost);
                    let text =
                        format!("the {side} sent {name} of PSN +{psn} again and again, though the {} answered each time: to qp {:#x}", side.other(), self.answered_to);
                    return findings.add(Cause::AnswersNotTaken, self.side, text, frames);
                }
                let behind = "the answer was lost behind the recorder, or came late";
                let text = format!(
                    "the {side} sent {name} of PSN +{psn} again, though its answer is in the capture: {behind}"
                );
                findings.add(Cause::AnswerLost, self.side, text, &[place.frame]);
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
            findings.add(Cause::AnswerLost, self.side, text, &[sent.first.frame, place.frame]);
        } else if since.is_some_and(|since| since < self.soon_ns.unwrap_or(SOON_NS)) && sent.times == 0 {
            findings.add(
                Cause::Doubled,
                self.side,
                format!("the {side}'s {name} of PSN +{psn} came twice"),
                &[sent.first.frame, place.frame],
            );
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

    /// An answer to a request of this side.
    pub(super) fn answer(&mut self, packet: &Packet, psn: i64, place: Place, findings: &mut Findings) {
        self.answers += 1;
        self.answered_to = packet.bth.dest_qp;
        let syndrome = packet.aeth().map_or(0, |aeth| aeth.syndrome);
        let before =
            self.last_answer.replace((psn, syndrome, place)).filter(|last| (last.0, last.1) == (psn, syndrome));
        if let Some((.., last)) = before.filter(|last| place.since(last.2).is_some_and(|since| since < SOON_NS)) {
            let text = format!("the {}'s {} of PSN +{psn} came twice", self.side.other(), packet.opcode.name);
            findings.add(Cause::Doubled, self.side, text, &[last.frame, place.frame]);
        }
        if packet.opcode.operation == Operation::ReadResponse {
            if matches!(packet.opcode.part, Part::First | Part::Middle) {
                self.mtu = self.mtu.or(Some(packet.payload_length() as u32));
            }
            return self.response(packet, psn, place, findings);
        }
        match packet.aeth().map(|aeth| aeth.verdict()) {
            Some(Syndrome::RnrNak { timer_us }) => {
                self.done(psn, place, findings);
                let name = self.name_at(psn);
                let is_new = self.not_ready.map_or(true, |(at, _)| at != psn);
                self.not_ready = Some((psn, place.frame));
                self.ask_for(psn);
                if is_new {
                    let wait = roce::aeth::milliseconds(timer_us);
                    let (side, other) = (self.side, self.side.other());
                    let text = format!(
                        "the {other} had no receive for the {side}'s {name}: its RNR NAK asks to wait {wait} ms"
                    );
                    findings.add(Cause::NotReady, self.side, text, &self.frames_at(psn, place));
                }
            }
            Some(Syndrome::Nak(nak)) => self.refused(nak, psn, place, findings),
            _ => self.done(psn + 1, place, findings),
        }
    }

    fn refused(&mut self, nak: Nak, psn: i64, place: Place, findings: &mut Findings) {
        self.done(psn, place, findings);
        let cause = match nak {
            Nak::PsnSequence => return self.gap_reported(psn, place, findings),
            Nak::RemoteAccess => Cause::RemoteAccess,
            Nak::InvalidRequest | Nak::InvalidRdRequest => Cause::InvalidRequest,
            Nak::RemoteOperational | Nak::Unknown(_) => Cause::RemoteOperational,
        };
        let frames = self.frames_at(psn, place);
        let sent = self.open.iter().find(|sent| (sent.psn..sent.end).contains(&psn));
        let place_of = sent.and_then(|sent| Some((sent.remote?, sent.length)));
        let of = place_of.map_or(String::new(), |(Remote { va, r_key }, length)| {
            format!(" of {length} bytes at {va:#x} with rkey {r_key:#x}")
        });
        let text = format!("the {}'s {}{of} was refused: {nak}", self.side, self.name_at(psn));
        findings.add(cause, self.side, text, &frames);
        self.answered = self.answered.max(Some(psn + 1));
        self.open.retain(|sent| sent.psn > psn);
    }

    fn gap_reported(&mut self, psn: i64, place: Place, findings: &mut Findings) {
        let is_known = self.open.iter().any(|sent| (sent.psn..sent.end).contains(&psn))
            || self.missing.iter().any(|(missing, _)| *missing == psn);
        self.gap = Some((psn, place.frame));
        self.ask_for(psn);
        // What comes behind one that was not taken is early, too.
        if self.not_ready.is_some_and(|(at, _)| at <= psn) {
            return;
        }
        if is_known {
            let text = format!(
                "the {}'s {} of PSN +{psn} did not arrive in its order: the {} asked for it again",
                self.side,
                self.name_at(psn),
                self.side.other()
            );
            findings.add(Cause::Lost, self.side, text, &self.frames_at(psn, place));
        } else if self.answered.is_none() {
            let (side, other) = (self.side, self.side.other());
            let than = if psn < 0 { "lower" } else { "higher" };
            let text = format!(
                "the {other} expects a PSN that is {} {than} than the one with which the {side} began",
                psn.abs()
            );
            self.expected = Some(psn);
            findings.add(Cause::WrongPsn, self.side, text, &self.frames_at(0, place));
        }
    }

    /// A packet of a READ's response.
    fn response(&mut self, packet: &Packet, psn: i64, place: Place, findings: &mut Findings) {
        let Some(at) = self.open.iter().position(|sent| sent.is_read && (sent.psn..sent.end).contains(&psn)) else {
            return;
        };
        let before = self.open[at].psn;
        self.done(before, place, findings);
        let Some(sent) = self.open.iter_mut().find(|sent| sent.psn == before) else { return };
        if psn > sent.response {
            let text = format!("a part of the response to the {} of frame {} is missing", sent.name, sent.first.frame);
            findings.add(Cause::AnswerLost, self.side, text, &[sent.first.frame, place.frame]);
            return;
        }
        if psn == sent.response {
            sent.response += 1;
        }
        let ends = matches!(packet.opcode.part, Part::Last | Part::Only);
        if ends && sent.response > psn {
            let end = psn + 1;
            sent.end = sent.end.min(end);
            self.done(end, place, findings);
        }
    }

    /// All before this PSN is answered, but READs whose bytes are missing.
    fn done(&mut self, end: i64, place: Place, findings: &mut Findings) {
        while let Some(sent) = self.open.front().filter(|sent| sent.psn < end) {
            if sent.is_read && sent.response < sent.end {
                if end > sent.end {
                    let text = format!(
                        "later requests are answered, and the response to the {} of frame {} is not there",
                        sent.name, sent.first.frame
                    );
                    findings.add(Cause::AnswerLost, self.side, text, &[sent.first.frame, place.frame]);
                }
                break;
            }
            let Some(sent) = self.open.pop_front() else { break };
            if let Some(wait) = place.since(sent.first).filter(|_| sent.times == 0) {
                let Waits { count, sum_ns, longest_ns } = self.waits;
                let sum_ns = sum_ns.saturating_add(wait);
                self.waits = Waits { count: count + 1, sum_ns, longest_ns: longest_ns.max(wait) };
            }
            if sent.times > 0 {
                let mut frames = vec![sent.first.frame];
                frames.extend(&sent.again);
                frames.push(place.frame);
                let text = format!(
                    "the {}'s {} of PSN +{} had no answer for a while, and was sent again: it was lost, or its answer was",
                    self.side, sent.name, sent.psn
                );
                findings.add(Cause::Lost, self.side, text, &frames);
            }
            self.answered = self.answered.max(Some(sent.end.min(end)));
        }
        self.answered = self.answered.max(Some(end)).filter(|_| end > 0);
        self.gap = self.gap.filter(|(gap, _)| *gap >= end);
        self.not_ready = self.not_ready.filter(|(at, _)| *at >= end);
        self.missing.retain(|(missing, _)| *missing >= end);
    }

    fn name_at(&self, psn: i64) -> &'static str {
        self.open.iter().find(|sent| (sent.psn..sent.end).contains(&psn)).map_or("request", |sent| sent.name)
    }

    /// The frames of a request and of its answer.
    fn frames_at(&self, psn: i64, answer: Place) -> Vec<u64> {
        let sent = self.open.iter().find(|sent| (sent.psn..sent.end).contains(&psn));
        sent.map(|sent| sent.first.frame).into_iter().chain([answer.frame]).collect()
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

/// As `342.299 ms`.
pub(super) fn milliseconds(ns: u64) -> String {
    format!("{}.{:03} ms", ns / 1_000_000, ns / 1000 % 1000)
}

/// The verb's name for what a request does.
fn verb(operation: Operation) -> &'static str {
    match operation {
        Operation::Send => "SEND",
        Operation::Write => "WRITE",
        Operation::ReadRequest => "READ",
        Operation::CompareSwap => "compare-and-swap",
        Operation::FetchAdd => "fetch-and-add",
        Operation::Flush => "FLUSH",
        Operation::AtomicWrite => "atomic WRITE",
        _ => "request",
    }
}
