//! What can be said of a connection when its capture is over: what had no answer, and what was said again.

use super::{way, Connection, Sent};
use crate::explain::cause::Cause;
use crate::explain::congestion::Pauses;
use crate::explain::flow::{Left, Place};
use crate::explain::report::Told;
use roce::cm::Kind;
use roce::track::{Connection as Ends, Side};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// What packets of one side tell by themselves.
const ONE_WAY: [Cause; 4] = [Cause::Damaged, Cause::Overtaken, Cause::Doubled, Cause::Congestion];

impl Sent {
    fn is_given_up(&self, end: Place) -> bool {
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
    /// What can be said now that the capture is over. `end` is its last packet; between those of `one_way` only one direction was
    /// recorded.
    pub(in crate::explain) fn ended(
        mut self,
        ends: &Ends,
        end: Place,
        one_way: &BTreeSet<(IpAddr, IpAddr)>,
        pauses: &Pauses,
    ) -> Told {
        match self.only().filter(|side| one_way.contains(&way(ends, *side))) {
            Some(side) => {
                let text = format!(
                    "only the {side}'s packets are in the capture, so what became of them cannot be told: record both directions"
                );
                self.findings.retain(|cause| ONE_WAY.contains(&cause));
                self.findings.add(Cause::Unfinished, side, text, &[self.first.frame]);
            }
            None => {
                self.connecting(end);
                self.goodbye(end);
                Side::BOTH.into_iter().for_each(|side| self.unanswered(side, end));
            }
        }
        self.lost_in_truth_damaged();
        self.congestion.ended(pauses, &mut self.findings);
        Told {
            heading: self.heading(ends),
            findings: self.findings.sorted(),
            printed: Vec::new(),
            cut_answers: 0,
            is_fragmented: false,
        }
    }

    fn connecting(&mut self, end: Place) {
        let has_data = self.flows.iter().any(|flow| flow.packets > 0);
        let Some(request) =
            [Kind::ConnectRequest, Kind::ServiceRequest].iter().find_map(|kind| self.told(*kind)).cloned()
        else {
            return;
        };
        let answers = [Kind::ConnectReply, Kind::ConnectReject, Kind::ServiceReply, Kind::MsgRcptAck];
        let answer = answers.iter().find_map(|kind| self.told(*kind)).cloned();
        let name = request.kind.name();
        let Some(answer) = answer else {
            if !has_data {
                match request.is_given_up(end) {
                    true => {
                        let text = format!("the {name} was sent {} and had no answer", times(request.frames.len()));
                        self.findings.add(Cause::NoAnswer, request.from, text, &request.frames);
                    }
                    false => self.unfinished(&request, end),
                }
            }
            return;
        };
        if let Some(why) = self.refusal.clone() {
            let who = self.told(Kind::ConnectReject).map_or(Side::Server, |told| told.from);
            let frames = [request.first.frame, answer.first.frame];
            let port = self.port.map_or(String::new(), |port| format!(" for port {port}"));
            let cause = if self.is_declined { Cause::Declined } else { Cause::Rejected };
            self.findings.add(cause, who.other(), format!("the {who} rejected the connection{port}: {why}"), &frames);
        }
        if request.frames.len() > 1 {
            let text = match answer.first.frame > request.last.frame {
                true => format!(
                    "the {name} was sent {}: it was lost, or the answer took that long",
                    times(request.frames.len())
                ),
                false => format!(
                    "the {name} was sent again, though it was answered: the {} was lost, or came late",
                    answer.kind.name()
                ),
            };
            self.findings.add(Cause::MessageLost, request.from, text, &all(&request.frames, answer.first.frame));
        }
        self.ready(has_data, end);
    }

    /// A message had no answer yet.
    fn unfinished(&mut self, told: &Sent, end: Place) {
        let waited = end.since(told.last).map_or(0, |ns| ns / 1_000_000);
        let text = format!("the {} has no answer when the capture ends, {waited} ms later", told.kind.name());
        self.findings.add(Cause::Unfinished, told.from, text, &told.frames);
    }

    /// ConnectReply and ReadyToUse.
    fn ready(&mut self, has_data: bool, end: Place) {
        let Some(reply) = self.told(Kind::ConnectReply).cloned() else { return };
        match self.told(Kind::ReadyToUse).cloned() {
            None if self.told(Kind::ConnectReject).is_some() || self.flows[0].packets > 0 => {}
            None if has_data && (reply.frames.len() == 1 || !reply.is_given_up(end)) => {}
            None if !reply.is_given_up(end) => self.unfinished(&reply, end),
            None => {
                let text = format!("the ConnectReply was sent {}, and no ReadyToUse came", times(reply.frames.len()));
                self.findings.add(Cause::NeverReady, reply.from, text, &reply.frames);
            }
            Some(ready) if reply.frames.len() > 1 => {
                let what = if ready.first.frame < reply.last.frame { "ReadyToUse" } else { "ConnectReply" };
                let text = format!(
                    "the {} sent the ConnectReply {}: the {what} was lost, or came late",
                    reply.from,
                    times(reply.frames.len())
                );
                self.findings.add(Cause::MessageLost, reply.from, text, &all(&reply.frames, ready.first.frame));
            }
            Some(_) => {}
        }
    }

    fn goodbye(&mut self, end: Place) {
        let goodbyes: Vec<Sent> =
            self.told.iter().filter(|told| told.kind == Kind::DisconnectRequest).cloned().collect();
        for goodbye in &goodbyes {
            let reply =
                self.told.iter().find(|told| told.kind == Kind::DisconnectReply && told.from != goodbye.from).cloned();
            let is_crossed = goodbyes.len() > 1;
            match reply {
                None if is_crossed => {}
                None if !goodbye.is_given_up(end) => self.unfinished(goodbye, end),
                None => {
                    let text =
                        format!("the {} said goodbye {}, and had no answer", goodbye.from, times(goodbye.frames.len()));
                    self.findings.add(Cause::GoodbyeUnanswered, goodbye.from, text, &goodbye.frames);
                }
                Some(reply) if goodbye.frames.len() > 1 => {
                    let what =
                        if reply.first.frame < goodbye.last.frame { "DisconnectReply" } else { "DisconnectRequest" };
                    let text = format!(
                        "the {} said goodbye {}: the {what} was lost, or came late",
                        goodbye.from,
                        times(goodbye.frames.len())
                    );
                    self.findings.add(Cause::MessageLost, goodbye.from, text, &all(&goodbye.frames, reply.first.frame));
                }
                _ => {}
            }
        }
    }

    /// Requests without an answer.
    fn unanswered(&mut self, side: Side, end: Place) {
        let (flow, is_heard) = (&self.flows[side as usize], self.flows.iter().any(|flow| flow.answers > 0));
        let Some(left) = flow.left().filter(|_| !self.is_unreliable) else { return };
        let Left { name, first, again, refused, last, tried_ns } = left;
        let goodbye = self.told(Kind::DisconnectRequest).map(|told| (told.from, told.first.frame));
        let mut frames = all(&[first], refused.unwrap_or(first));
        frames.extend(&again);
        if let Some(frame) = refused {
            self.findings.forget(Cause::NotReady);
            let text = format!("the {side}'s {name} never found a posted receive; the last RNR NAK is frame {frame}");
            return self.findings.add(Cause::NotReadyToTheEnd, side, text, &frames);
        }
        if self.findings.has(Cause::WrongPsn) {
            return;
        }
        let hung_up = goodbye.filter(|(_, frame)| *frame > first);
        if !again.is_empty() && (hung_up.is_some() || is_given_up(again.len() + 1, tried_ns, end.since(last))) {
            let whole = if is_heard { "" } else { "; nothing on this connection was ever answered" };
            let text = format!("the {side}'s {name} was sent {} and had no answer{whole}", times(again.len() + 1));
            return self.findings.add(Cause::SilentPeer, side, text, &frames);
        }
        if let Some((who, frame)) = hung_up {
            frames.push(frame);
            let flushed = "that request completes with IBV_WC_WR_FLUSH_ERR, whether it was carried out or not";
            let text = format!("the {who} hung up while the {side}'s {name} had no answer: {flushed}");
            return self.findings.add(Cause::HungUp, side, text, &frames);
        }
        let waited = end.since(last).map_or(0, |ns| ns / 1_000_000);
        // Only one direction was recorded, or the end is missing.
        let text = match is_heard {
            true => format!("the {side}'s {name} has no answer when the capture ends, {waited} ms later"),
            false => {
                "the capture has requests of this connection and no answers: it may have one direction only".to_owned()
            }
        };
        self.findings.add(Cause::Unfinished, side, text, &frames);
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
