//! What the responder makes of requests: it accepts them, refuses them, asks for them again, or brings what a READ wanted.

use super::{lacked, Accepted, Flow, Moment, Unanswered, SOON_NS};
use crate::explain::cause::{Blame, Cause};
use crate::explain::finding::Findings;
use roce::aeth::{Nak, Syndrome};
use roce::opcode::{Operation, Part};
use roce::packet::{Packet, Remote};
use roce::track::Request;

impl Flow {
    /// An answer to a request of this side.
    pub(in crate::explain) fn answer(
        &mut self,
        packet: &Packet,
        psn: i64,
        request: Option<Request>,
        place: Moment,
        findings: &mut Findings,
    ) {
        self.answers += 1;
        self.answered_to = packet.bth.dest_qp;
        let syndrome = packet.aeth().map_or(0, |aeth| aeth.syndrome);
        let before =
            self.last_answer.replace((psn, syndrome, place)).filter(|last| (last.0, last.1) == (psn, syndrome));
        let is_asked_for = |last: Moment| last.frame < self.again_at;
        let is_soon = |last: Moment| place.since(last).is_some_and(|since| since < SOON_NS);
        if let Some((.., last)) = before.filter(|last| is_soon(last.2) && !is_asked_for(last.2)) {
            let text = format!("{}'s {} of PSN +{psn} came twice", self.peer(), packet.opcode.name);
            findings.add(Cause::Doubled, self.side, text, &[last.frame, place.frame]);
        }
        if packet.opcode.operation == Operation::ReadResponse {
            let first = request.map_or(psn, |request| request.first);
            return self.response(packet, psn, first, place, findings);
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
                    let (me, peer) = (self.me(), self.peer());
                    let lacked = lacked(name);
                    let text = format!("{peer} {lacked} {me}'s {name}: its RNR NAK asks to wait {wait} ms");
                    findings.add(Cause::NotReady, self.side, text, &self.frames_at(psn, place));
                }
            }
            Some(Syndrome::Nak(nak)) => self.refused(nak, psn, place, findings),
            None if packet.opcode.operation == Operation::Acknowledge => {
                self.unread += 1;
                self.done(psn + 1, place, findings);
            }
            _ => self.done(psn + 1, place, findings),
        }
    }

    fn refused(&mut self, nak: Nak, psn: i64, place: Moment, findings: &mut Findings) {
        self.done(psn, place, findings);
        let Some(cause) = Cause::of(nak) else { return self.gap_reported(psn, place, findings) };
        let frames = self.frames_at(psn, place);
        let why = self.at(psn).map_or(String::new(), |sent| self.evidence(cause, sent));
        let place_of = self.at(psn).and_then(|sent| Some((sent.remote?, sent.length)));
        let of = place_of.map_or(String::new(), |(Remote { va, r_key }, length)| {
            format!(" of {length} bytes at {va:#x} with rkey {r_key:#x}")
        });
        self.answered = self.answered.max(Some(psn + 1));
        let name = self.name_at(psn);
        self.open.retain(|sent| sent.psn > psn);
        let behind = match self.open.len() {
            0 => String::new(),
            1 => "; the packet that was under way after it fails with it".to_owned(),
            count => format!("; the {count} packets that were under way after it fail with it"),
        };
        self.fatal = Some((psn, place.frame));
        let text = format!("{}'s {name}{of} was refused: {nak}{why}{behind}", self.me());
        findings.add(cause, self.side, text, &frames);
    }

    /// What the same capture says about the reason.
    fn evidence(&self, cause: Cause, sent: &Unanswered) -> String {
        match (cause, sent.remote) {
            (Cause::RemoteAccess, Some(remote)) => self.about_key(remote, sent),
            (Cause::InvalidRequest, _) => self.about_agreement(sent),
            _ => String::new(),
        }
    }

    /// What became of the same key before.
    fn about_key(&self, remote: Remote, sent: &Unanswered) -> String {
        if let Some((_, frame)) = self.invalidated.iter().rfind(|(key, _)| *key == remote.r_key) {
            return format!("; the SEND of frame {frame} has invalidated that key");
        }
        let before = self.accepted.iter().rev().filter(|accepted| accepted.remote.r_key == remote.r_key);
        let covers = |accepted: &&Accepted| {
            let (from, end) = (accepted.remote.va, accepted.remote.va.saturating_add(accepted.length));
            accepted.name == sent.name && from <= remote.va && remote.va.saturating_add(sent.length) <= end
        };
        if let Some(Accepted { frame, .. }) = before.clone().find(covers) {
            return format!(
                "; the same was accepted in frame {frame}, so key, range and permission were right then: was the memory deregistered \
                 since, or its window bound again?"
            );
        }
        before.clone().next().map_or(String::new(), |Accepted { name, remote, length, frame }| {
            format!(
                "; {} accepted the same key in frame {frame}: {name} of {length} bytes at {:#x}",
                self.peer(),
                remote.va
            )
        })
    }

    /// Whether the request keeps to what was agreed on.
    fn about_agreement(&self, sent: &Unanswered) -> String {
        let reads = self.open.iter().filter(|other| other.is_deep && other.psn <= sent.psn).count() as u64;
        match (self.agreed_mtu, self.agreed_reads) {
            (Some(mtu), _) if sent.payload > mtu as usize => {
                format!("; it carries {} bytes, and the ConnectRequest says a path MTU of {mtu}", sent.payload)
            }
            (_, Some(most)) if sent.is_deep && reads > most => {
                format!(
                    "; it is number {reads} of the READs and atomics under way, and {} agreed to {most}",
                    self.peer()
                )
            }
            _ => String::new(),
        }
    }

    fn gap_reported(&mut self, psn: i64, place: Moment, findings: &mut Findings) {
        let is_known = self.at(psn).is_some() || self.missing.iter().any(|(missing, _)| *missing == psn);
        self.gap = Some((psn, place.frame));
        self.ask_for(psn);
        // What comes after a packet that wasn't taken is also early.
        if self.not_ready.is_some_and(|(at, _)| at <= psn) {
            return;
        }
        if is_known {
            let text = format!(
                "{}'s {} of PSN +{psn} did not arrive in its order: {} asked for it again",
                self.me(),
                self.name_at(psn),
                self.peer()
            );
            findings.add(Cause::Lost, self.side, text, &self.frames_at(psn, place));
        } else if self.answered.is_none() {
            let than = if psn < 0 { "lower" } else { "higher" };
            let (peer, me) = (self.peer(), self.me());
            let text = format!("{peer} expects a PSN that is {} {than} than the one with which {me} began", psn.abs());
            self.expected = Some(psn);
            findings.add(Cause::WrongPsn, self.side, text, &self.frames_at(0, place));
        }
    }

    /// A packet of the response to the READ that begins with the PSN `first`.
    fn response(&mut self, packet: &Packet, psn: i64, first: i64, place: Moment, findings: &mut Findings) {
        let is_it = |sent: &Unanswered| sent.is_read && sent.psn == first;
        if !self.open.iter().any(is_it) {
            return;
        }
        self.done(first, place, findings);
        let Some(sent) = self.open.iter_mut().find(|sent| is_it(sent)) else { return };
        if psn > sent.response {
            sent.hole = sent.hole.or(Some(place));
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
    fn done(&mut self, end: i64, place: Moment, findings: &mut Findings) {
        while let Some(sent) = self.open.front().filter(|sent| sent.psn < end) {
            if sent.is_read && sent.response < sent.end {
                if let Some(front) = self.open.front_mut().filter(|front| end > front.end) {
                    front.hole = front.hole.or(Some(place));
                }
                break;
            }
            let Some(sent) = self.open.pop_front() else { break };
            self.carried_out(&sent);
            if let Some(wait) = place.since(sent.first).filter(|_| sent.times == 0) {
                self.traffic.answered(wait);
            }
            if sent.times > 0 {
                let mut frames = vec![sent.first.frame];
                frames.extend(&sent.again);
                frames.push(place.frame);
                let text = format!(
                    "{}'s {} of PSN +{} had no answer for a while, and was sent again: it was lost, or its answer was lost or late",
                    self.me(),
                    sent.name,
                    sent.psn
                );
                findings.add(Cause::Lost, self.side, text, &frames).blame(Blame::Unknown);
            }
            self.answered = self.answered.max(Some(sent.end.min(end)));
        }
        self.answered = self.answered.max(Some(end)).filter(|_| end > 0);
        self.gap = self.gap.filter(|(gap, _)| *gap >= end);
        self.not_ready = self.not_ready.filter(|(at, _)| *at >= end);
        self.fatal = self.fatal.filter(|(fatal, _)| *fatal + 1 >= end);
        let before = self.missing.len();
        self.missing.retain(|(missing, _)| *missing >= end);
        self.unrecorded += (before - self.missing.len()) as u64;
    }

    /// The responder has answered a packet, so it has arrived.
    fn carried_out(&mut self, sent: &Unanswered) {
        const MOST: usize = 16;
        self.longest_answered = self.longest_answered.max(sent.payload);
        let is_first_try = sent.first.frame == sent.last.frame;
        if sent.is_damaged && is_first_try && self.unread == 0 {
            let first = if self.accepted_damaged.0 == 0 { sent.first.frame } else { self.accepted_damaged.1 };
            self.accepted_damaged = (self.accepted_damaged.0 + 1, first);
        }
        let Some(remote) = sent.remote else { return };
        let is_known =
            |known: &Accepted| known.remote == remote && known.name == sent.name && known.length >= sent.length;
        if self.accepted.len() < MOST && !self.accepted.iter().any(is_known) {
            let Unanswered { name, length, first, .. } = *sent;
            self.accepted.push(Accepted { name, remote, length, frame: first.frame });
        }
    }

    /// The request to which this PSN belongs.
    fn at(&self, psn: i64) -> Option<&Unanswered> {
        self.open.iter().find(|sent| sent.has(psn))
    }

    fn name_at(&self, psn: i64) -> &'static str {
        self.at(psn).map_or("request", |sent| sent.name)
    }

    /// The frames of a request and of its answer.
    fn frames_at(&self, psn: i64, answer: Moment) -> Vec<u64> {
        self.at(psn).map(|sent| sent.first.frame).into_iter().chain([answer.frame]).collect()
    }
}
