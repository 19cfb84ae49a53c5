//! One connection: what its messages and requests say; and what can be made of it at the [end].

mod end;

use super::cause::Cause;
use super::congestion::Congestion;
use super::finding::Findings;
use super::flow::{milliseconds, Flow, Place, Traffic};
use roce::cm::{reject_reason, req, sidr_status, Kind, Message};
use roce::opcode::Service;
use roce::packet::Packet;
use roce::track::{Connection as Ends, Seen, Side};
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

/// What is known so far.
#[derive(Debug, Default)]
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
    /// Nobody answers its requests.
    is_unreliable: bool,
    /// Whose packets were seen.
    heard: [bool; 2],
}

impl Connection {
    pub(super) fn new(place: Place) -> Connection {
        Connection { flows: Side::BOTH.map(Flow::new), first: place, last: place, ..Connection::default() }
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
                self.is_unreliable = !packet.opcode.service.is_reliable();
                self.flows[from].request(packet, psn, place, &mut self.findings);
            }
            // Datagrams have no numbers that count, and no answers.
            (None, None) => {
                self.is_unreliable = true;
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

    /// Who, what and how long.
    fn heading(&self, ends: &Ends) -> String {
        let end = |side: Side| {
            let qp = ends.qps[side as usize].map_or(String::new(), |qp| format!(" qp {qp:#x}"));
            format!("{side} {}{qp}", ends.ips[side as usize])
        };
        let port = self.port.map_or(String::new(), |port| format!(", port {port}"));
        let mut said = format!("{} and {}{port}", end(Side::Client), end(Side::Server));
        let of_both = |told: fn(&Traffic, Side) -> String| -> String {
            Side::BOTH.iter().map(|side| told(&self.flows[*side as usize].traffic, *side)).collect()
        };
        said += &of_both(Traffic::sent);
        if let Some(ns) = self.last.since(self.first) {
            said += &format!("; first to last packet {}", milliseconds(ns));
        }
        said += &of_both(Traffic::pace);
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

/// A reason of a ConnectReject, and what the program said, if that is text.
fn rejected(reason: u16, data: &[u8]) -> String {
    let said = std::str::from_utf8(data).ok().filter(|text| !text.is_empty() && !text.chars().any(char::is_control));
    let said = said.map_or(String::new(), |text| format!(", and said \"{text}\""));
    format!("reason {reason}, {}{said}", reject_reason(reason))
}
