//! What can be said of a connection when its capture is over: what had no answer, and what was said again.

use super::refusal::Refusal;
use super::{way, Connection, SentMessage};
use crate::explain::capture::Known;
use crate::explain::cause::{Blame, Cause};
use crate::explain::finding::Finding;
use crate::explain::flow::{lacked, milliseconds, Flow, Left, Moment};
use crate::explain::report::ConnectionReport;
use roce::cm::Kind;
use roce::track::{Connection as Ends, Side};

/// What packets of one side tell by themselves: what became of them, or that their sender refuses something.
const ONE_WAY: [Cause; 10] = [
    Cause::Damaged,
    Cause::Overtaken,
    Cause::Doubled,
    Cause::Congestion,
    Cause::RemoteAccess,
    Cause::InvalidRequest,
    Cause::RemoteOperational,
    Cause::NotReady,
    Cause::Rejected,
    Cause::Declined,
];

impl SentMessage {
    fn is_given_up(&self, end: Moment) -> bool {
        is_given_up(self.frames.len(), self.last.since(self.first), end.since(self.last))
    }
}

/// Whether the capture goes on long enough to say that no answer came: as long as between two tries, or, of a single try, as long as
/// the connection manager waits at the most.
fn is_given_up(count: usize, tried_ns: Option<u64>, waited_ns: Option<u64>) -> bool {
    const LONG_NS: u64 = 5_000_000_000;
    let between = tried_ns.unwrap_or(0) / (count as u64 - 1).max(1);
    match count {
        1 => waited_ns.is_some_and(|waited| waited >= LONG_NS),
        2 => waited_ns.map_or(true, |waited| waited >= between),
        _ => true,
    }
}

impl Connection {
    /// What can be said now that the capture is over.
    pub(in crate::explain) fn ended(mut self, ends: &Ends, known: &Known) -> ConnectionReport {
        let end = known.end;
        match self.only().filter(|side| known.one_way.contains(&way(ends, *side))) {
            Some(side) => {
                self.findings.retain(|cause| ONE_WAY.contains(&cause));
                self.findings
                    .iter_mut()
                    .filter(|told| told.cause == Cause::NotReady)
                    .for_each(|told| told.is_not_mended());
                self.sent_again(side);
                let text = format!(
                    "only {}'s packets are in the capture, so we can't see what happened to them: record both directions",
                    &self.names[side]
                );
                self.findings.add(Cause::Unfinished, side, text, &[self.first.frame]);
            }
            None => {
                self.connecting(end);
                self.goodbye(end);
                for side in Side::BOTH {
                    self.flows[side as usize].settle(end, &mut self.findings);
                    self.not_taken(side);
                    self.unanswered(side, ends, end);
                }
                self.unlikely_psn();
            }
        }
        Side::BOTH
            .into_iter()
            .filter(|side| !known.odd.contains(&ends.ips[*side as usize]))
            .for_each(|side| self.damaged(side));
        self.lost_in_truth_damaged();
        self.perhaps_asked_for();
        if self.is_unreliable {
            let is_datas = |cause| [Cause::Damaged, Cause::Overtaken, Cause::Doubled, Cause::Lost].contains(&cause);
            self.findings.iter_mut().filter(|told| is_datas(told.cause)).for_each(|told| told.is_not_mended());
        }
        self.congestion.ended(&known.pauses, &self.names, &mut self.findings);
        let heading = self.heading(ends);
        ConnectionReport::new(heading, self.findings.sorted(&self.names))
    }

    fn connecting(&mut self, end: Moment) {
        let Some(request) =
            [Kind::ConnectRequest, Kind::ServiceRequest].iter().find_map(|kind| self.told(*kind)).cloned()
        else {
            return;
        };
        let asker = request.from;
        if let Some(refusal) = self.refusal.clone() {
            if refusal.from == asker && refusal.is_timeout {
                return self.gave_up(&request, &refusal);
            }
            self.refused(&request, &refusal);
            if refusal.from == asker || self.has(Kind::ConnectReply) {
                return;
            }
        }
        let answers = [Kind::ConnectReply, Kind::ConnectReject, Kind::ServiceReply];
        let is_answer = |told: &&SentMessage| told.from != asker && answers.contains(&told.kind);
        let Some(answer) = self.told.iter().find(is_answer).cloned() else {
            return self.no_answer(&request, end);
        };
        let is_refused = answer.kind == Kind::ConnectReject || self.refusal.is_some();
        let is_asked_again = request.last.frame > answer.first.frame;
        let is_over = request.is_given_up(end) || answer.frames.len() > 2 && answer.is_given_up(end);
        if is_asked_again && !is_refused && !self.went_on() && is_over {
            let text = format!(
                "{} answered the {} in frame {}, but {} asked again, {} in all, and got nowhere: the {} was lost after \
                 the recorder each time, or came later than it is waited for",
                &self.names[asker.other()],
                request.kind.name(),
                answer.first.frame,
                &self.names[asker],
                times(request.frames.len()),
                answer.kind.name()
            );
            self.findings.add(Cause::NeverThrough, asker, text, &all(&request.frames, answer.first.frame));
            return;
        }
        if request.frames.len() > 1 {
            let text = match is_asked_again {
                false => format!(
                    "the {} was sent {}: it was lost, or the answer took that long",
                    request.kind.name(),
                    times(request.frames.len())
                ),
                true => format!(
                    "the {} was sent again, though it was answered: the {} was lost, or came late",
                    request.kind.name(),
                    answer.kind.name()
                ),
            };
            self.findings.add(Cause::MessageLost, asker, text, &all(&request.frames, answer.first.frame));
        }
        self.ready(end);
    }

    fn has(&self, kind: Kind) -> bool {
        self.told(kind).is_some()
    }

    fn has_data(&self) -> bool {
        self.flows.iter().any(|flow| flow.packets > 0)
    }

    /// The connection came to be: the side that asked had its answer.
    fn went_on(&self) -> bool {
        let asked = self.told(Kind::ConnectRequest).map_or(Side::Client, |told| told.from);
        self.has(Kind::ReadyToUse) || self.has(Kind::DisconnectRequest) || self.flows[asked as usize].packets > 0
    }

    /// Who asked waits no longer: nobody has refused anything.
    fn gave_up(&mut self, request: &SentMessage, refusal: &Refusal) {
        let (me, peer) = (&self.names[request.from], &self.names[request.from.other()]);
        let name = request.kind.name();
        let sent = times(request.frames.len());
        let frames = all(&request.frames, refusal.frame);
        let answer = self.told(Kind::ConnectReply).map(|reply| reply.first.frame);
        let longer = self.told(Kind::MsgRcptAck).filter(|told| told.from != request.from).map(|told| told.first.frame);
        let why = format!("{me} gave up (a ConnectReject, {})", refusal.why);
        let (cause, text) = match (answer, longer) {
            (Some(frame), _) => (
                Cause::NeverThrough,
                format!(
                    "{why}, after it had sent its {name} {sent}, though {peer} answered in frame {frame}: the ConnectReply was lost \
                     after the recorder, or came too late"
                ),
            ),
            (None, Some(frame)) => (
                Cause::NoAnswer,
                format!(
                    "{why}: {peer} had said that its answer takes longer (MsgRcptAck, frame {frame}), and then no answer to the \
                     {name} came"
                ),
            ),
            (None, None) => {
                (Cause::NoAnswer, format!("{why}: its {name} was sent {sent} and had no answer. Nothing refused it either"))
            }
        };
        let frames = answer.or(longer).map_or(frames.clone(), |frame| all(&frames, frame));
        self.findings.add(cause, request.from, text, &frames);
    }

    /// Somebody says no.
    fn refused(&mut self, request: &SentMessage, refusal: &Refusal) {
        let who = &self.names[refusal.from];
        let port = self.port.map_or(String::new(), |port| format!(" for port {port}"));
        let reply = self.told(Kind::ConnectReply).filter(|reply| reply.first.frame < refusal.frame).cloned();
        let Some(reply) = reply else {
            let what = match refusal.from == request.from {
                true => "a ConnectReply that isn't in the capture",
                false if request.kind == Kind::ServiceRequest => "the search for a datagram service",
                false => "the connection",
            };
            let text = format!("{who} rejected {what}{port}: {}", refusal.why);
            return refusal.tell(text, &[request.first.frame, refusal.frame], &mut self.findings);
        };
        let frames = all(&reply.frames, refusal.frame);
        if reply.from != refusal.from {
            let text = format!("{who} rejected the ConnectReply{port}: {}", refusal.why);
            return refusal.tell(text, &frames, &mut self.findings);
        }
        let waited = if self.has(Kind::ReadyToUse) { "" } else { ", and no ReadyToUse came" };
        let text = format!(
            "{who} sent its ConnectReply {}{waited}; then it gave the connection up: {}",
            times(reply.frames.len()),
            refusal.why
        );
        let is_asked_again = request.last.frame > reply.first.frame;
        let (cause, text) = match is_asked_again {
            true => (
                Cause::NeverThrough,
                format!(
                    "{text}. {} had asked again meanwhile, so the ConnectReply was lost after the recorder",
                    &self.names[reply.from.other()]
                ),
            ),
            false => (Cause::NeverReady, text),
        };
        self.findings.add(cause, refusal.from, text, &all(&frames, request.last.frame));
    }

    fn no_answer(&mut self, request: &SentMessage, end: Moment) {
        if self.has_data() {
            return;
        }
        let name = request.kind.name();
        let longer = self.told(Kind::MsgRcptAck).filter(|told| told.from != request.from).map(|told| told.last);
        let waits_since = longer.unwrap_or(request.last);
        let waiting = SentMessage { last: waits_since, ..request.clone() };
        match waiting.is_given_up(end) {
            true => {
                let text = match longer {
                    Some(at) => format!(
                        "{} said that its answer to the {name} takes longer (MsgRcptAck, frame {}), and no answer came",
                        &self.names[request.from.other()],
                        at.frame
                    ),
                    None => format!("the {name} was sent {} and had no answer", times(request.frames.len())),
                };
                let frames = longer.map_or(request.frames.clone(), |at| all(&request.frames, at.frame));
                self.findings.add(Cause::NoAnswer, request.from, text, &frames);
            }
            false => self.unfinished(request, end),
        }
    }

    /// A message had no answer yet.
    fn unfinished(&mut self, told: &SentMessage, end: Moment) {
        let waited = end.since(told.last).map_or(0, |ns| ns / 1_000_000);
        let text = format!("the {} has no answer when the capture ends, {waited} ms later", told.kind.name());
        self.findings.add(Cause::Unfinished, told.from, text, &told.frames);
    }

    /// ConnectReply and ReadyToUse.
    fn ready(&mut self, end: Moment) {
        let Some(reply) = self.told(Kind::ConnectReply).cloned() else { return };
        let asker = reply.from.other();
        match self.told(Kind::ReadyToUse).cloned() {
            None if self.has(Kind::ConnectReject) || self.flows[asker as usize].packets > 0 => {}
            None if self.has_data() && (reply.frames.len() == 1 || !reply.is_given_up(end)) => {}
            None if !reply.is_given_up(end) => self.unfinished(&reply, end),
            None => {
                let text = format!("the ConnectReply was sent {}, and no ReadyToUse came", times(reply.frames.len()));
                self.findings.add(Cause::NeverReady, reply.from, text, &reply.frames);
            }
            Some(ready) if reply.frames.len() > 2 && reply.last.frame > ready.last.frame && !self.has_data() => {
                let text = format!(
                    "{} sent the ConnectReply {}, the last time in frame {}, though the ReadyToUse is in the capture: it was lost \
                     after the recorder each time",
                    &self.names[reply.from],
                    times(reply.frames.len()),
                    reply.last.frame
                );
                self.findings.add(Cause::NeverThrough, reply.from, text, &all(&reply.frames, ready.first.frame));
            }
            Some(ready) if reply.frames.len() > 1 => {
                let what = if ready.first.frame < reply.last.frame { "ReadyToUse" } else { "ConnectReply" };
                let text = format!(
                    "{} sent the ConnectReply {}: the {what} was lost, or came late",
                    &self.names[reply.from],
                    times(reply.frames.len())
                );
                self.findings.add(Cause::MessageLost, reply.from, text, &all(&reply.frames, ready.first.frame));
            }
            Some(_) => {}
        }
    }

    fn goodbye(&mut self, end: Moment) {
        let goodbyes: Vec<SentMessage> =
            self.told.iter().filter(|told| told.kind == Kind::DisconnectRequest).cloned().collect();
        for goodbye in &goodbyes {
            let reply =
                self.told.iter().find(|told| told.kind == Kind::DisconnectReply && told.from != goodbye.from).cloned();
            let is_crossed = goodbyes.len() > 1;
            match reply {
                None if is_crossed => {}
                None if !goodbye.is_given_up(end) => self.unfinished(goodbye, end),
                None => {
                    let heard =
                        Some(self.heard[goodbye.from.other() as usize]).filter(|last| *last > goodbye.first.frame);
                    let alive = heard.map_or(String::new(), |frame| {
                        format!("; {} still sent in frame {frame}, so it was there", &self.names[goodbye.from.other()])
                    });
                    let (who, sent) = (&self.names[goodbye.from], times(goodbye.frames.len()));
                    let text = format!("{who} said goodbye {sent}, and had no answer{alive}");
                    self.findings.add(Cause::GoodbyeUnanswered, goodbye.from, text, &goodbye.frames);
                }
                Some(reply) if goodbye.frames.len() > 1 => {
                    let what =
                        if reply.first.frame < goodbye.last.frame { "DisconnectReply" } else { "DisconnectRequest" };
                    let text = format!(
                        "{} said goodbye {}: the {what} was lost, or came late",
                        &self.names[goodbye.from],
                        times(goodbye.frames.len())
                    );
                    self.findings.add(Cause::MessageLost, goodbye.from, text, &all(&goodbye.frames, reply.first.frame));
                }
                _ => {}
            }
        }
    }

    /// A request that was sent again and again, though each time it was answered. Whose fault that is the two queue pairs' numbers
    /// tell, where the capture knows them.
    fn not_taken(&mut self, side: Side) {
        let flow = &self.flows[side as usize];
        let Some((told, to)) = flow.not_taken() else { return };
        let (me, peer) = (&self.names[side], &self.names[side.other()]);
        let sent =
            format!("{me} sent {} of PSN +{} again and again, though {peer} answered each time", told.name, told.psn);
        let lost = format!("the answers were lost after the recorder, or {me}'s device didn't take them");
        // Who answers what is sent to a queue pair, has it.
        let is_answering = self.flows[side.other() as usize].answers > 0;
        let (cause, text) = match flow.agreed_qp {
            Some(qp) if qp == to => (
                Cause::AnswersLost,
                format!("{sent}, to qp {to:#x}, the one that {me} named when they connected: {lost}"),
            ),
            None if is_answering => (
                Cause::AnswersLost,
                format!("{sent}, to qp {to:#x}, which answers other requests in this capture: {lost}"),
            ),
            _ => (Cause::AnswersNotTaken, format!("{sent}, to qp {to:#x}: that isn't {me}'s queue pair, or {lost}")),
        };
        let frames = told.frames.clone();
        self.findings.forget(Cause::AnswerLost);
        self.findings.add(cause, side, text, &frames);
    }

    /// A PSN that isn't the expected one is a program's mistake only if its sender doesn't know of any earlier one: then it sends the
    /// same again. Else the capture began too late to see the one that's missing.
    fn unlikely_psn(&mut self) {
        let is_repeated = self.flows.iter().any(|flow| flow.resent.is_some());
        let is_agreed = self.has(Kind::ConnectReply);
        for told in self.findings.iter_mut().filter(|told| told.cause == Cause::WrongPsn) {
            if is_agreed {
                told.text +=
                    ", though that one is as agreed when they connected, or the capture lacks packets in between";
                told.blame(Blame::Unknown);
            } else if !is_repeated {
                told.text += "; or an earlier packet was lost before the capture began";
                told.blame(Blame::Unknown);
            }
        }
    }

    /// What was sent again, where the capture has nothing that says why.
    fn sent_again(&mut self, side: Side) {
        let flow = &self.flows[side as usize];
        let Some(resent) = flow.resent else { return };
        let after =
            resent.again.since(resent.first).map_or(String::new(), |ns| format!(", after {}", milliseconds(ns)));
        let went_on = match flow.newest > resent.again.frame {
            true => "; it went on, so it had an answer in the end, which the capture lacks",
            false => "",
        };
        let more = if resent.count > 1 { format!(" (and {} more)", resent.count - 1) } else { String::new() };
        let text = format!(
            "{}'s {} of PSN +{} was sent again{after}{more}{went_on}",
            &self.names[side], resent.name, resent.psn
        );
        let told = self.findings.add(Cause::SentAgain, side, text, &[resent.first.frame, resent.again.frame]);
        told.is_mended = !went_on.is_empty();
    }

    /// Packets whose ICRC doesn't fit, of a sender whose others do.
    fn damaged(&mut self, side: Side) {
        let super::Damage { name, frames, count } = std::mem::take(&mut self.damage[side as usize]);
        let (taken, _) = self.flows[side as usize].accepted_damaged;
        let (me, peer) = (&self.names[side], &self.names[side.other()]);
        if count == 0 {
            return;
        }
        let is_taken = taken == count;
        let text = match is_taken {
            true => format!(
                "the ICRC of {me}'s {name} is wrong, and {peer} answered it all the same: it doesn't check, or the \
                 packet was only recorded like that"
            ),
            false => format!("the ICRC of {me}'s {name} is wrong, so a receiver that checks it drops the packet"),
        };
        let told = self.findings.add(Cause::Damaged, side, text, &frames);
        told.count = count;
        if is_taken {
            told.blame(Blame::Unknown).is_not_mended();
        }
    }

    /// Requests without an answer.
    fn unanswered(&mut self, side: Side, ends: &Ends, end: Moment) {
        let (flow, is_heard) = (&self.flows[side as usize], self.flows.iter().any(|flow| flow.answers > 0));
        let Some(left) = flow.left().filter(|_| !self.is_unreliable) else { return };
        let Left { name, first, again, refused, last, tried_ns, longer } = left;
        let names = self.names.clone();
        let (me, peer) = (&names[side], &names[side.other()]);
        let goodbye = self.told(Kind::DisconnectRequest).map(|told| (told.from, told.first));
        let mut frames = all(&[first], refused.unwrap_or(first));
        frames.extend(&again);
        // The NAK that has ended the other side's requests has ended its queue pair.
        let dead = self.flows[side.other() as usize].fatal().filter(|frame| *frame < last.frame || again.is_empty());
        if let Some(frame) = refused {
            self.findings.forget(Cause::NotReady);
            let lacked = lacked(name);
            let text = format!(
                "{peer} {lacked} {me}'s {name} as long as the capture goes on; the last RNR NAK is frame {frame}"
            );
            self.findings.add(Cause::NotReadyToTheEnd, side, text, &frames);
            return;
        }
        if self.findings.has(Cause::WrongPsn) || dead.is_some() && again.is_empty() {
            return;
        }
        let went_on = flow.resent.filter(|resent| flow.newest > resent.again.frame).is_some();
        let hung_up = goodbye.filter(|(_, at)| at.frame > first);
        let is_given_up = hung_up.is_some() || is_given_up(again.len() + 1, tried_ns, end.since(last));
        if !is_heard && went_on {
            self.sent_again(side);
        }
        if !again.is_empty() && is_given_up && (is_heard || !went_on) {
            let why = match (dead, is_heard, longer) {
                (Some(frame), ..) => format!(
                    "; {peer}'s queue pair takes nothing any more since its request was refused in frame {frame}"
                ),
                _ if ends.qps[side.other() as usize] == Some(0) => {
                    format!("; it goes to queue pair 0, which no program can have: {peer} had no queue pair when it was asked")
                }
                (_, false, _) => "; the capture has no answer at all on this connection".to_owned(),
                (.., Some(bytes)) => {
                    format!("; it carries {bytes} bytes, and every packet that was answered is shorter: does the path take packets that long?")
                }
                _ => String::new(),
            };
            let text = format!("{me}'s {name} was sent {} and had no answer{why}", times(again.len() + 1));
            self.findings.add(Cause::SilentPeer, side, text, &frames);
            return;
        }
        if let Some((who, at)) = hung_up {
            return self.hung_up(side, who, &all(&frames, at.frame), name, at.since(last));
        }
        let waited = end.since(last).map_or(0, |ns| ns / 1_000_000);
        // Only one direction was recorded, or the end is missing.
        let text = match is_heard {
            true => format!("{me}'s {name} has no answer when the capture ends, {waited} ms later"),
            false => {
                "the capture has requests of this connection and no answers: it may have one direction only".to_owned()
            }
        };
        self.findings.add(Cause::Unfinished, side, text, &frames);
    }

    /// A goodbye while a request had no answer. `frames` are the request's and the goodbye's. An answer takes no half second: who
    /// hung up after that was patient, and the answer was lost.
    fn hung_up(&mut self, side: Side, who: Side, frames: &[u64], name: &str, waited_ns: Option<u64>) {
        const LONG_NS: u64 = 500_000_000;
        let flushed =
            "a request without an answer completes with IBV_WC_WR_FLUSH_ERR, whether it was carried out or not";
        let text =
            format!("{} hung up while {}'s {name} had no answer: {flushed}", &self.names[who], &self.names[side]);
        let long = waited_ns.filter(|ns| *ns >= LONG_NS);
        let text = long.map_or(text.clone(), |ns| {
            format!("{text}. It had waited {}, so it or its answer was lost", milliseconds(ns))
        });
        let told = self.findings.add(Cause::HungUp, side, text, frames);
        if long.is_some() {
            told.blame(Blame::Unknown);
        }
    }

    /// A packet that's there twice may have been asked for, if nobody can read the answers.
    fn perhaps_asked_for(&mut self) {
        let is_blind = |flow: &Flow| flow.packets > 0 && (flow.answers == 0 || flow.unread > 0);
        let blind = Side::BOTH.map(|side| is_blind(&self.flows[side as usize]) && !self.is_unreliable);
        let first = Side::BOTH.map(|side| self.flows[side as usize].doubled);
        let is_doubt = |told: &&mut Finding| {
            let side = told.side as usize;
            told.cause == Cause::Doubled && blind[side] && first[side].is_some_and(|frame| told.frames.contains(&frame))
        };
        for told in self.findings.iter_mut().filter(is_doubt) {
            told.text += ": it was doubled, or sent again because of a NAK that can't be seen here";
            told.cause = Cause::SentAgain;
            told.look(Cause::SentAgain.look()).is_not_mended();
        }
    }

    /// A packet that was damaged is sent again: that is one thing, not two.
    fn lost_in_truth_damaged(&mut self) {
        if self.findings.has(Cause::Damaged) {
            [Cause::Lost, Cause::AnswerLost, Cause::MessageLost]
                .into_iter()
                .for_each(|cause| self.findings.forget(cause));
        }
        // One loss shows in several ways: the first of them is told.
        if self.findings.has(Cause::Lost) && self.findings.has(Cause::Doubled) {
            self.findings.forget(Cause::Doubled);
        }
    }
}

fn all(frames: &[u64], one: u64) -> Vec<u64> {
    frames.iter().copied().chain([one]).collect()
}

fn times(count: usize) -> String {
    match count {
        1 => "once".into(),
        2 => "twice".into(),
        16 => "16 times or more".into(),
        count => format!("{count} times"),
    }
}
