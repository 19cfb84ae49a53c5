//! Sorting the packets of a capture into connections.
//!
//! The connection manager's messages name both queue pairs of a connection and who the client is. Without them, as when
//! two programs agree by other means, the first to send a request counts as the client, and the two directions are
//! matched by the PSNs of the answers.

use super::capture::{Capture, Recorded};
use super::request::Stream;
use crate::cm::{self, req, Kind, Message};
use crate::opcode::Service;
use crate::psn::Endpoint;
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;

/// One of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Role {
    /// Asked for the connection.
    Client,
    /// Was asked.
    Server,
}

impl Role {
    pub(super) const BOTH: [Role; 2] = [Role::Client, Role::Server];

    pub(super) fn peer(self) -> Role {
        match self {
            Role::Client => Role::Server,
            Role::Server => Role::Client,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Client => "client",
            Role::Server => "server",
        })
    }
}

/// One CM message of a connection.
#[derive(Debug)]
pub(super) struct Step<'a> {
    pub from: Role,
    pub message: Message<'a>,
    pub frame: u64,
    pub comment: Option<&'a str>,
    /// How often it was repeated.
    pub again: u32,
}

/// One connection, from the request for it to its end.
#[derive(Debug)]
pub(super) struct Conversation<'a> {
    /// The CM's messages, each kind once.
    pub dialogue: Vec<Step<'a>>,
    /// The requests that the client sends, and those that the server sends.
    pub streams: [Stream<'a>; 2],
    pub mtu: u32,
    ips: [IpAddr; 2],
    qps: [Option<u32>; 2],
    service: Service,
}

impl<'a> Conversation<'a> {
    /// What `role` sends.
    pub(super) fn stream(&self, role: Role) -> &Stream<'a> {
        &self.streams[role as usize]
    }

    /// The first message of a kind.
    pub(super) fn step(&self, kind: Kind) -> Option<&Step<'a>> {
        self.dialogue.iter().find(|step| step.message.kind == kind)
    }

    /// The message of a kind that `role` sent.
    pub(super) fn step_of(&self, kind: Kind, role: Role) -> Option<&Step<'a>> {
        self.dialogue.iter().find(|step| step.message.kind == kind && step.from == role)
    }

    /// True if the capture has its beginning.
    pub(super) fn has_request(&self) -> bool {
        self.step(Kind::ConnectRequest).is_some()
    }

    pub(super) fn requests(&self) -> usize {
        self.streams.iter().map(|stream| stream.requests.len()).sum()
    }
}

/// The connections of a capture.
#[derive(Debug, Default)]
pub(super) struct Conversations<'a> {
    pub all: Vec<Conversation<'a>>,
    /// Frames that belong to no connection whose beginning the capture has.
    pub strays: Vec<u64>,
    /// By machine and communication ID: the connection, and whose ID it is.
    ids: HashMap<(IpAddr, u32), (usize, Role)>,
    /// By queue pair: the connection, and whose queue pair it is.
    endpoints: HashMap<Endpoint, (usize, Role)>,
}

impl<'a> Conversations<'a> {
    pub(super) fn of(capture: &'a Capture) -> Conversations<'a> {
        let mut conversations = Conversations::default();
        let mtu = capture.visible_mtu();
        for recorded in capture.packets() {
            match recorded.packet.cm() {
                Some(message) => conversations.cm(&recorded, message, mtu),
                None => conversations.data(&recorded, mtu),
            }
        }
        conversations.leave_out_what_began_before();
        conversations
    }

    fn cm(&mut self, recorded: &Recorded<'a>, message: Message<'a>, mtu: u32) {
        let (src, dst) = (recorded.packet.datagram.src, recorded.packet.datagram.dst);
        let local = message.local_id().map(|id| (src, id));
        let remote = message.remote_id().map(|id| (dst, id));
        let known = if message.kind == Kind::ConnectRequest {
            local.and_then(|id| self.ids.get(&id)).copied().filter(|(index, _)| self.same_request(*index, &message))
        } else {
            let to = remote.and_then(|id| self.ids.get(&id)).map(|(index, role)| (*index, role.peer()));
            to.or_else(|| local.and_then(|id| self.ids.get(&id)).copied())
        };
        let (index, from) = match known {
            Some(known) => known,
            None if message.kind == Kind::ConnectRequest => (self.add([src, dst], Service::Rc, mtu), Role::Client),
            None => return self.strays.push(recorded.number),
        };
        if let Some(local) = local {
            self.ids.insert(local, (index, from));
        }
        self.note(index, from, recorded, message);
    }

    /// True if a REQ is a repetition of the one that began the connection.
    fn same_request(&self, index: usize, message: &Message) -> bool {
        let first = self.all[index].step(Kind::ConnectRequest);
        first.is_some_and(|step| step.message.transaction_id == message.transaction_id)
    }

    fn add(&mut self, ips: [IpAddr; 2], service: Service, mtu: u32) -> usize {
        self.all.push(Conversation {
            dialogue: Vec::new(),
            streams: [Stream::default(), Stream::default()],
            mtu,
            ips,
            qps: [None, None],
            service,
        });
        self.all.len() - 1
    }

    fn note(&mut self, index: usize, from: Role, recorded: &Recorded<'a>, message: Message<'a>) {
        let conversation = &mut self.all[index];
        let seen = |step: &&mut Step| step.message.kind == message.kind && step.from == from;
        if let Some(step) = conversation.dialogue.iter_mut().find(seen) {
            step.again += 1;
            return;
        }
        if let Some(code) = req::PATH_MTU.read(message.body).filter(|_| message.kind == Kind::ConnectRequest) {
            conversation.mtu = cm::mtu_bytes(code as u8).unwrap_or(conversation.mtu);
        }
        if let Some(psn) = message.starting_psn() {
            // Whoever sends it says where the peer's requests shall begin.
            conversation.streams[from.peer() as usize].starts_at(psn);
        }
        if let Some(qp) = message.local_qpn().filter(|qp| *qp != 0) {
            self.own(index, from, Endpoint { ip: recorded.packet.datagram.src, qp });
        }
        let step = Step { from, message, frame: recorded.number, comment: recorded.comment, again: 0 };
        self.all[index].dialogue.push(step);
    }

    /// A queue pair may be used again by a later connection: the latest owner counts.
    fn own(&mut self, index: usize, role: Role, endpoint: Endpoint) {
        self.all[index].qps[role as usize] = Some(endpoint.qp);
        self.endpoints.insert(endpoint, (index, role));
    }

    fn data(&mut self, recorded: &Recorded<'a>, mtu: u32) {
        let packet = &recorded.packet;
        let (src, dst) = (packet.datagram.src, packet.datagram.dst);
        if packet.opcode.service == Service::Unknown
            || (packet.opcode.service == Service::Ud && packet.bth.dest_qp == 1)
        {
            return;
        }
        let receiver = Endpoint { ip: dst, qp: packet.bth.dest_qp };
        if packet.opcode.is_response() {
            let known = self.endpoints.get(&receiver).copied();
            match known.or_else(|| self.requester(src, receiver, packet.bth.psn)) {
                Some((index, role)) => self.all[index].streams[role as usize].response(recorded),
                None => self.strays.push(recorded.number),
            }
            return;
        }
        let known = self.endpoints.get(&receiver).copied();
        let (index, receiver) = known.unwrap_or_else(|| self.responder(src, receiver, packet.opcode.service, mtu));
        if let Some(qp) = packet.src_qp() {
            self.own(index, receiver.peer(), Endpoint { ip: src, qp });
        }
        let conversation = &mut self.all[index];
        let mtu = conversation.mtu;
        conversation.streams[receiver.peer() as usize].request(recorded, mtu);
    }

    /// Without the CM's messages: whose request a response answers, by the nearest PSN.
    fn requester(&mut self, responder: IpAddr, at: Endpoint, psn: u32) -> Option<(usize, Role)> {
        const WINDOW: u32 = 1 << 16;
        let mut nearest: Option<(u32, usize, Role)> = None;
        for (index, conversation) in self.all.iter().enumerate().filter(|(_, c)| !c.has_request()) {
            for role in Role::BOTH {
                let open = conversation.qps[role as usize].is_none();
                let fits =
                    conversation.ips[role as usize] == at.ip && conversation.ips[role.peer() as usize] == responder;
                let away = conversation.stream(role).distance(psn).unwrap_or(WINDOW);
                if open && fits && away < nearest.map_or(WINDOW, |(away, ..)| away) {
                    nearest = Some((away, index, role));
                }
            }
        }
        let (_, index, role) = nearest?;
        self.own(index, role, at);
        Some((index, role))
    }

    /// Without the CM's messages: the other direction of a connection of which only one was seen, else a new one.
    fn responder(&mut self, from: IpAddr, at: Endpoint, service: Service, mtu: u32) -> (usize, Role) {
        let ends = [at.ip, from];
        let half = |c: &Conversation| c.qps[0].is_none() && c.ips == ends && c.service == service && !c.has_request();
        let (index, role) = match self.all.iter().position(half) {
            Some(index) => (index, Role::Client),
            None => (self.add([from, at.ip], service, mtu), Role::Server),
        };
        self.own(index, role, at);
        (index, role)
    }

    /// Where there are connections with a beginning, those without one are the end of an earlier run.
    fn leave_out_what_began_before(&mut self) {
        if !self.all.iter().any(Conversation::has_request) {
            return;
        }
        for conversation in self.all.iter().filter(|c| !c.has_request()) {
            let requests = conversation.streams.iter().flat_map(|stream| &stream.requests);
            self.strays.extend(requests.map(|request| request.frame));
        }
        self.all.retain(Conversation::has_request);
    }
}
