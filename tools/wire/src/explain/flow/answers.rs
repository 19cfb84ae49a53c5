//! What the responder makes of requests: it accepts them, refuses them, asks for them again, or brings what a READ wanted.

use super::{Flow, Place, Sent, SOON_NS};
use crate::explain::cause::Cause;
use crate::explain::finding::Findings;
use roce::aeth::{Nak, Syndrome};
use roce::opcode::{Operation, Part};
use roce::packet::{Packet, Remote};

impl Flow {
    /// An answer to a request of this side.
    pub(in crate::explain) fn answer(&mut self, packet: &Packet, psn: i64, place: Place, findings: &mut Findings) {
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
        let place_of = self.at(psn).and_then(|sent| Some((sent.remote?, sent.length)));
        let of = place_of.map_or(String::new(), |(Remote { va, r_key }, length)| {
            format!(" of {length} bytes at {va:#x} with rkey {r_key:#x}")
        });
        let text = format!("the {}'s {}{of} was refused: {nak}", self.side, self.name_at(psn));
        findings.add(cause, self.side, text, &frames);
        self.answered = self.answered.max(Some(psn + 1));
        self.open.retain(|sent| sent.psn > psn);
    }

    fn gap_reported(&mut self, psn: i64, place: Place, findings: &mut Findings) {
        let is_known = self.at(psn).is_some() || self.missing.iter().any(|(missing, _)| *missing == psn);
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
        let Some(at) = self.open.iter().position(|sent| sent.is_read && sent.has(psn)) else {
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
                self.traffic.answered(wait);
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

    /// The request to which this PSN belongs.
    fn at(&self, psn: i64) -> Option<&Sent> {
        self.open.iter().find(|sent| sent.has(psn))
    }

    fn name_at(&self, psn: i64) -> &'static str {
        self.at(psn).map_or("request", |sent| sent.name)
    }

    /// The frames of a request and of its answer.
    fn frames_at(&self, psn: i64, answer: Place) -> Vec<u64> {
        self.at(psn).map(|sent| sent.first.frame).into_iter().chain([answer.frame]).collect()
    }
}
