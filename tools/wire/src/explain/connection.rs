//! One connection: what its messages and requests say, and what can be made of it at the end.

use super::cause::Cause;
use super::congestion::{Congestion, Pauses};
use super::finding::Findings;
use super::flow::{milliseconds, Flow, Left, Place};
use super::report::Told;
use roce::cm::{reject_reason, req, sidr_status, Kind, Message};
use roce::opcode::Service;
use roce::packet::Packet;
use roce::track::{Connection as Ends, Seen, Side};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// A message of the connection manager that comes again sooner than this was doubled on its way: its timers are longer.
const DOUBLED_NS: u64 = 20_000_000;

/// The reason of a ConnectReject that a program sends.
const CONSUMER: u16 = 28;

/// A message of the connection manager: how often it was sent, and when.
#[derive(Clone, Debug)]
struct Sent {
    from: Side,
    kind: Kind,
    frames: Vec<u64>,
    first: Place,
    last: Place,
}

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

/// What packets of one side tell by themselves.
const ONE_WAY: [Cause; 4] = [Cause::Damaged, Cause::Overtaken, Cause::Doubled, Cause::Congestion];

/// What is known so far.
#[derive(Debug)]
pub(super) struct Connection {
    told: Vec<Sent>,
    /// Of a ConnectReject or a ServiceReply: why.
    refusal: Option<String>,
    /// It is the program's own no.
    is_declined: bool,
    port: Option<u16>,
    flows: [Flow; 2],
    findings: Findings,
    pub(super) congestion: Congestion,
    first: Place,
    last: Place,
    is_reliable: bool,
    /// Whose packets were seen.
    heard: [bool; 2],
}

impl Connection {
    pub(super) fn new(place: Place) -> Connection {
        Connection {
            told: Vec::new(),
            refusal: None,
            is_declined: false,
            port: None,
            flows: Side::BOTH.map(Flow::new),
            findings: Findings::default(),
            congestion: Congestion::default(),
            first: place,
            last: place,
            is_reliable: true,
            heard: [false; 2],
        }
    }

    /// The next packet.
    pub(super) fn take(&mut self, packet: &Packet, seen: Seen, place: Place) {
        self.last = place;
        let from = seen.from as usize;
        self.heard[from] = true;
        match (packet.cm(), seen.psn) {
            (Some(message), _) => self.message(&message, seen.from, place),
            (None, Some(psn)) if packet.opcode.is_response() => {
                self.flows[1 - from].answer(packet, psn, place, &mut self.findings);
            }
            (None, Some(psn)) => {
                self.is_reliable = packet.opcode.service.is_reliable();
                self.flows[from].request(packet, psn, place, &mut self.findings);
            }
            // Datagrams have no numbers that count, and no answers.
            (None, None) => {
                self.is_reliable = false;
                self.flows[from].datagram(packet);
            }
        }
    }

    /// A packet whose ICRC does not fit.
    pub(super) fn damaged(&mut self, name: &str, from: Side, frame: u64) {
        let text = format!("the ICRC of the {from}'s {name} is wrong, so its receiver drops it");
        self.findings.add(Cause::Damaged, from, text, &[frame]);
    }

    /// All packets of one of its senders are so: that is nothing of this connection's.
    pub(super) fn forget_damage(&mut self) {
        self.findings.forget(Cause::Damaged);
    }

    fn message(&mut self, message: &Message, from: Side, place: Place) {
        match message.kind {
            Kind::ConnectRequest | Kind::ServiceRequest => {
                self.port = self.port.or(message.service().and_then(roce::cm::Service::port));
                let mtu = req::PATH_MTU.read(message.body).filter(|_| message.kind == Kind::ConnectRequest);
                let mtu = mtu.and_then(|code| roce::cm::mtu_bytes(code as u8));
                self.flows.iter_mut().for_each(|flow| flow.mtu = flow.mtu.or(mtu));
                let timer = req::LOCAL_ACK_TIMEOUT.read(message.body).filter(|code| (1..32).contains(code));
                let soon = timer
                    .filter(|_| message.kind == Kind::ConnectRequest)
                    .map(|code| ((4096 << code) / 8).min(DOUBLED_NS));
                self.flows.iter_mut().for_each(|flow| flow.soon_ns = flow.soon_ns.or(soon));
            }
            Kind::ConnectReject => {
                self.refusal = message.reason().map(|reason| rejected(reason, message.given_data()));
                self.is_declined = message.reason() == Some(CONSUMER);
            }
            Kind::ServiceReply => {
                let refusal = message.sidr_status().filter(|status| *status != 0);
                self.refusal = refusal.map(|status| format!("status {status}, {}", sidr_status(status)));
            }
            _ => {}
        }
        let is_asked_again = self.is_asked_again(message.kind);
        match self.told.iter_mut().find(|told| (told.from, told.kind) == (from, message.kind)) {
            // What answers comes as often as it is asked for.
            Some(told) if !is_asked_again && place.since(told.last).is_some_and(|since| since < DOUBLED_NS) => {
                let text = format!("the {from}'s {} came twice", message.kind.name());
                self.findings.add(Cause::Doubled, from, text, &[told.last.frame, place.frame]);
            }
            Some(told) => {
                told.frames.push(place.frame);
                told.frames.truncate(16);
                told.last = place;
            }
            None => {
                self.told.push(Sent { from, kind: message.kind, frames: vec![place.frame], first: place, last: place })
            }
        }
    }

    /// Whether what this message answers was sent more than once.
    fn is_asked_again(&self, kind: Kind) -> bool {
        let asked = match kind {
            Kind::ConnectReply | Kind::ConnectReject | Kind::MsgRcptAck => Kind::ConnectRequest,
            Kind::ReadyToUse => Kind::ConnectReply,
            Kind::DisconnectReply => Kind::DisconnectRequest,
            Kind::ServiceReply => Kind::ServiceRequest,
            _ => return false,
        };
        self.told(asked).is_some_and(|told| told.frames.len() > 1)
    }

    fn told(&self, kind: Kind) -> Option<&Sent> {
        self.told.iter().find(|told| told.kind == kind)
    }

    /// What can be said now that the capture is over. `end` is its last packet; between those of `one_way` only one direction was
    /// recorded.
    pub(super) fn ended(
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
        Told { heading: self.heading(ends), findings: self.findings.sorted(), printed: Vec::new() }
    }

    /// The side whose packets alone are there.
    fn only(&self) -> Option<Side> {
        match self.heard {
            [true, false] => Some(Side::Client),
            [false, true] => Some(Side::Server),
            _ => None,
        }
    }

    /// Of a connection whose one side alone is there, though it had answers, as it went on: from whom to whom its packets are.
    pub(super) fn one_way(&self, ends: &Ends) -> Option<(IpAddr, IpAddr)> {
        let goes_on = [Kind::ConnectReply, Kind::ReadyToUse, Kind::DisconnectRequest, Kind::DisconnectReply];
        let has_asked = self.told(Kind::ConnectRequest).is_some();
        let has_data = self.flows.iter().any(|flow| flow.packets > 0);
        let went_on = goes_on.iter().any(|kind| self.told(*kind).is_some()) || has_asked && has_data;
        self.only().filter(|_| went_on).map(|side| way(ends, side))
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
        let Some(left) = flow.left().filter(|_| self.is_reliable) else { return };
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

    /// Who, what and how long.
    fn heading(&self, ends: &Ends) -> String {
        let end = |side: Side| {
            let qp = ends.qps[side as usize].map_or(String::new(), |qp| format!(" qp {qp:#x}"));
            format!("{side} {}{qp}", ends.ips[side as usize])
        };
        let port = self.port.map_or(String::new(), |port| format!(", port {port}"));
        let mut said = format!("{} and {}{port}", end(Side::Client), end(Side::Server));
        for side in Side::BOTH {
            let flow = &self.flows[side as usize];
            if flow.messages.is_empty() {
                continue;
            }
            let messages: Vec<String> = flow
                .messages
                .iter()
                .map(|(name, count)| format!("{count} {name}{}", if *count == 1 { "" } else { "s" }))
                .collect();
            said += &format!("; the {side} sends {} ({} bytes in all)", messages.join(", "), flow.bytes);
        }
        if let Some(ns) = self.last.since(self.first) {
            said += &format!("; first to last packet {}", milliseconds(ns));
        }
        for side in Side::BOTH {
            said += &self.flows[side as usize].pace();
        }
        if ends.service == Service::Ud {
            said += "; datagrams: nobody tells of a loss";
        }
        said
    }
}

/// Who sends to whom.
fn way(ends: &Ends, from: Side) -> (IpAddr, IpAddr) {
    (ends.ips[from as usize], ends.ips[from.other() as usize])
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

/// A reason of a ConnectReject, and what the program said, if that is text.
fn rejected(reason: u16, data: &[u8]) -> String {
    let said = std::str::from_utf8(data).ok().filter(|text| !text.is_empty() && !text.chars().any(char::is_control));
    let said = said.map_or(String::new(), |text| format!(", and said \"{text}\""));
    format!("reason {reason}, {}{said}", reject_reason(reason))
}
