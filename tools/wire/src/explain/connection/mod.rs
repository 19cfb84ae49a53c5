//! One connection: what its messages and requests say; and what can be made of it at the [end].

mod end;
pub(super) mod refusal;

use super::cause::Cause;
use super::congestion::Congestion;
use super::finding::Findings;
use super::flow::{milliseconds, Flow, Moment};
use super::names::Names;
use refusal::Refusal;
use roce::cm::{rep, req, Kind, Message};
use roce::opcode::Service;
use roce::packet::Packet;
use roce::track::{Connection as Ends, Membership, Side};
use std::net::IpAddr;

/// A message of the connection manager that comes again sooner than this was doubled on its way: its timers are longer.
const DOUBLED_NS: u64 = 20_000_000;

/// A message of the connection manager: how often it was sent, and when.
#[derive(Clone, Debug)]
struct SentMessage {
    from: Side,
    kind: Kind,
    frames: Vec<u64>,
    first: Moment,
    last: Moment,
}

/// What is known so far.
#[derive(Debug, Default)]
pub(super) struct Connection {
    told: Vec<SentMessage>,
    /// Of a ConnectReject or a ServiceReply: why.
    refusal: Option<Refusal>,
    port: Option<u16>,
    flows: [Flow; 2],
    findings: Findings,
    names: Names,
    /// Packets of each side whose ICRC doesn't fit.
    damage: [Damage; 2],
    pub(super) congestion: Congestion,
    first: Moment,
    last: Moment,
    /// Nobody answers its requests.
    is_unreliable: bool,
    /// The frame of the last packet of each side; 0 before the first.
    heard: [u64; 2],
}

/// Packets whose ICRC doesn't fit.
#[derive(Debug, Default)]
struct Damage {
    name: &'static str,
    frames: Vec<u64>,
    count: u64,
}

impl Connection {
    pub(super) fn new(place: Moment, names: Names) -> Connection {
        let flows = Side::BOTH.map(|side| Flow::new(side, names.clone()));
        Connection { flows, names, first: place, last: place, ..Connection::default() }
    }

    /// The next packet.
    pub(super) fn take(&mut self, packet: &Packet, seen: Membership, ends: &Ends, is_damaged: bool, place: Moment) {
        self.last = place;
        let from = seen.from as usize;
        self.heard[from] = place.frame;
        if is_damaged {
            self.damage[from].see(packet.told(), place.frame);
        }
        match (packet.cm(), seen.psn) {
            (Some(message), _) => self.message(&message, seen.from, ends, place),
            (None, Some(psn)) if packet.opcode.is_response() => {
                self.flows[1 - from].answer(packet, psn, seen.request, place, &mut self.findings);
            }
            (None, Some(psn)) => {
                self.is_unreliable = !packet.opcode.service.is_reliable();
                self.flows[from].request(packet, (psn, seen), ends, is_damaged, place, &mut self.findings);
            }
            // Datagrams have no numbers that count, and no answers.
            (None, None) => {
                self.is_unreliable = true;
                self.flows[from].datagram(packet);
            }
        }
    }

    /// This packet is there twice: the second one wasn't taken.
    pub(super) fn doubled(&mut self, name: &str, from: Side, frames: [u64; 2]) {
        let text = format!("{}'s {name} came twice", &self.names[from]);
        self.findings.add(Cause::Doubled, from, text, &frames);
    }

    /// Packets of this side whose ICRC doesn't fit, and of those the ones that the other side took all the same.
    pub(super) fn odd(&self, side: Side) -> (u64, u64) {
        let flow = &self.flows[side.other() as usize];
        // Of damaged answers: nobody asked again, though there were several.
        let is_taken = flow.resent.is_none() && flow.packets > 0 && self.damage[side as usize].count > 1;
        let answers = self.damage[side as usize].count * u64::from(is_taken && self.flows[side as usize].packets == 0);
        (self.damage[side as usize].count, self.flows[side as usize].accepted_damaged.0.max(answers))
    }

    /// Answers that are cut before the byte that says yes or no.
    pub(super) fn unread(&self) -> u64 {
        self.flows.iter().map(|flow| flow.unread).sum()
    }

    pub(super) fn answers(&self) -> u64 {
        self.flows.iter().map(|flow| flow.answers).sum()
    }

    /// Its packets, but for those of them that were recorded twice.
    pub(super) fn packets(&self) -> u64 {
        self.told.iter().map(|told| told.frames.len() as u64).sum::<u64>()
            + self.flows.iter().map(|flow| flow.packets + flow.answers).sum::<u64>()
    }

    /// Packets that were on the wire, as their answers show, and that the capture lacks.
    pub(super) fn unrecorded(&self) -> u64 {
        self.flows.iter().map(|flow| flow.unrecorded).sum()
    }

    pub(super) fn names(&self) -> &Names {
        &self.names
    }

    fn message(&mut self, message: &Message, from: Side, ends: &Ends, place: Moment) {
        match message.kind {
            Kind::ConnectRequest | Kind::ServiceRequest => {
                self.port = self.port.or(message.service().and_then(roce::cm::Service::port));
                let timer = req::LOCAL_ACK_TIMEOUT.read(message.body).filter(|code| (1..32).contains(code));
                let soon = timer
                    .filter(|_| message.kind == Kind::ConnectRequest)
                    .map(|code| ((4096 << code) / 8).min(DOUBLED_NS));
                self.flows.iter_mut().for_each(|flow| flow.soon_ns = flow.soon_ns.or(soon));
                if message.kind == Kind::ConnectRequest {
                    self.flows.iter_mut().for_each(|flow| flow.agreed_mtu = ends.mtu);
                    self.agrees(from, message, req::RESPONDER_RESOURCES);
                }
            }
            Kind::ConnectReply => self.agrees(from, message, rep::RESPONDER_RESOURCES),
            Kind::ConnectReject | Kind::ServiceReply => {
                self.refusal = Refusal::of(message, from, place.frame).or(self.refusal.take());
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
            None => self.told.push(SentMessage {
                from,
                kind: message.kind,
                frames: vec![place.frame],
                first: place,
                last: place,
            }),
        }
    }

    /// A ConnectRequest or ConnectReply names its sender's queue pair, and how many READs of the other side it serves at a time.
    fn agrees(&mut self, from: Side, message: &Message, resources: roce::field::Field) {
        self.flows[from as usize].agreed_qp = message.local_qpn().filter(|qp| *qp != 0);
        self.flows[from.other() as usize].agreed_reads = resources.read(message.body);
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

    fn told(&self, kind: Kind) -> Option<&SentMessage> {
        self.told.iter().find(|told| told.kind == kind)
    }

    /// The side whose packets alone are there.
    fn only(&self) -> Option<Side> {
        match self.heard.map(|frame| frame > 0) {
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
            let (name, ip) = (&self.names[side], ends.ips[side as usize].to_string());
            let role = name.strip_prefix("the ").map_or(String::new(), |name| format!("{name} "));
            format!("{role}{ip}{qp}")
        };
        let port = self.port.map_or(String::new(), |port| format!(", port {port}"));
        let mut said = format!("{} and {}{port}{}", end(Side::Client), end(Side::Server), Names::why(ends));
        let traffic = |side: &Side| (&self.flows[*side as usize].traffic, &self.names[*side]);
        said.extend(Side::BOTH.iter().map(traffic).map(|(traffic, who)| traffic.sent(who)));
        if let Some(ns) = self.last.since(self.first) {
            said += &format!("; first to last packet {}", milliseconds(ns));
        }
        said.extend(Side::BOTH.iter().map(traffic).map(|(traffic, who)| traffic.pace(who)));
        if ends.service == Service::Ud {
            said += "; datagrams, so nothing reports a loss";
        }
        said
    }
}

/// Who sends to whom.
fn way(ends: &Ends, from: Side) -> (IpAddr, IpAddr) {
    (ends.ips[from as usize], ends.ips[from.other() as usize])
}

impl Damage {
    fn see(&mut self, name: &'static str, frame: u64) {
        const MOST_FRAMES: usize = 12;
        if self.count == 0 {
            self.name = name;
        }
        self.count += 1;
        if self.frames.len() < MOST_FRAMES {
            self.frames.push(frame);
        }
    }
}
