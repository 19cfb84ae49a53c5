//! One side of a conversation: it gets what the peer sent, and has to send what rdma_rxe sent.

use super::{CmFrame, Hole, Talk, ACCEPT, AGAIN, ASKED, GOODBYE, READY, TABLE};
use crate::came;
use crate::dump::{difference, differing};
use nic::cm::{Cm, CmEffect, Event, EventKind, Mad, Param, Space};
use nic::psn::Psn;
use nic::time::Time;
use roce::cm::{mad, rej, rep, req, Kind, LOCAL_ID};
use roce::field::Field;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

/// The program's ids: the one that listens, and that of the connection.
const LISTENER: u64 = 7;
const OWNER: u64 = 8;
/// Reason of a REJ: nobody listens.
const NOBODY_LISTENS: u64 = 8;
/// The bit SRQ of a REP, beside the number of retries.
const SHARED_RECEIVES: u8 = 0x10;

/// One side of a conversation: our connection manager, and its program, which does what the recorded one did.
pub struct Side<'a> {
    talk: &'a Talk<'a>,
    address: IpAddr,
    cm: Cm,
    local: u32,
    now: Time,
    out: VecDeque<Mad>,
    told: Vec<Event>,
    /// The last decision.
    said: String,
    pub sent: Vec<Kind>,
    pub heard: Vec<Kind>,
}

impl<'a> Side<'a> {
    pub fn new(talk: &'a Talk<'a>, address: IpAddr) -> Self {
        let (out, told, said, sent, heard) = Default::default();
        Side { talk, address, cm: Cm::new(address), local: 0, now: Time::START, out, told, said, sent, heard }
    }

    pub fn replay(&mut self) -> Result<(), (Hole, String)> {
        self.listen();
        for message in &self.talk.messages {
            if message.from == self.address {
                self.speak(message)?;
            } else if !message.frame.is_lost {
                self.hear(message)?;
            }
        }
        match self.out.pop_front() {
            Some(more) => {
                Err((TABLE, format!("{}: at the end yours sends one more {}.", self.place(), name(more.kind()))))
            }
            None => Ok(()),
        }
    }

    fn place(&self) -> String {
        let role = if self.address == self.talk.server { "server" } else { "client" };
        let capture = self.talk.messages.first().map_or("", |message| &message.frame.capture);
        format!("{capture}, as the {role}")
    }

    /// What rdma_rxe sent first of a kind.
    fn recorded(&self, kind: Kind) -> Option<&'a Mad> {
        let is_it = |message: &&CmFrame| message.from == self.address && message.mad.kind() == kind;
        self.talk.messages.iter().find(is_it).map(|message| &message.mad)
    }

    fn listen(&mut self) {
        let refused = self.recorded(Kind::ConnectReject).is_some_and(|mad| mad.get(&rej::REASON) == NOBODY_LISTENS);
        let port = self.talk.messages.first().and_then(|message| message.mad.port());
        if let Some((space, port)) = port.filter(|_| self.address == self.talk.server && !refused) {
            // A new one has no other listener.
            let _ = self.cm.listen(space, port, LISTENER, 0);
        }
    }

    fn act(&mut self, act: impl FnOnce(&mut Cm, u32, Time, &mut Vec<CmEffect>)) {
        let mut effects = Vec::new();
        act(&mut self.cm, self.local, self.now, &mut effects);
        for effect in effects {
            match effect {
                CmEffect::Send(_, mad) => self.out.push_back(mad),
                CmEffect::Event(event) => self.told.push(event),
                CmEffect::Say(said) => self.said = said.to_string(),
            }
        }
    }

    /// A message of the peer's comes: the program has to be told what it means.
    fn hear(&mut self, message: &CmFrame) -> Result<(), (Hole, String)> {
        let mad = &message.mad;
        let answer = [Kind::ConnectReply, Kind::ConnectReject].into_iter().find_map(|kind| self.recorded(kind));
        let first_psn = self.recorded(Kind::ConnectReply).map_or(0, |mad| mad.get(&rep::STARTING_PSN));
        // The numbers that the recorded side has drawn.
        let random = answer.map_or(1 << 32, |mad| mad.get(&LOCAL_ID) << 32) | first_psn;
        self.said.clear();
        self.heard.push(mad.kind());
        came::now(format!("{}: {} came", message.frame.name, name(mad.kind())));
        let bytes = mad.packet(Psn::new(0)).payload;
        self.act(|cm, _, now, out| cm.receive(message.from, &bytes, random, now, out));
        let (kind, hole) = match mad.kind() {
            Kind::ConnectRequest if self.out.front().is_some_and(|mad| mad.kind() == Kind::ConnectReject) => {
                return Ok(())
            }
            Kind::ConnectRequest => (EventKind::ConnectRequest, ASKED),
            Kind::ConnectReply => (EventKind::ConnectResponse, TABLE),
            Kind::ReadyToUse => (EventKind::Established, TABLE),
            Kind::ConnectReject => (EventKind::Rejected, TABLE),
            Kind::DisconnectRequest | Kind::DisconnectReply => (EventKind::Disconnected, TABLE),
            _ => return Ok(()),
        };
        let Some(event) = self.told.iter().find(|event| event.kind == kind).cloned() else {
            let (frame, came) = (&message.frame.name, name(mad.kind()));
            let decided = self.decided();
            return Err((
                hole,
                format!("{frame}: {came} came; the program should get the event {kind:?}. Yours: nothing.{decided}"),
            ));
        };
        let (is_request, is_reply) = (kind == EventKind::ConnectRequest, kind == EventKind::ConnectResponse);
        if is_request {
            self.local = event.connection;
            self.prepare();
        }
        if is_request || is_reply {
            self.learned(message, &event, is_request).map_err(|said| (hole, said))?;
        }
        Ok(())
    }

    /// What the peer has said of itself, as far as it is seen from here.
    fn learned(&mut self, message: &CmFrame, event: &Event, is_request: bool) -> Result<(), String> {
        let (mad, frame) = (&message.mad, &message.frame.name);
        if event.private != mad.private_data() {
            return Err(format!("{frame}: the private data that the program is told are not those of the message."));
        }
        let (qpn, psn) = match is_request {
            true => (mad.get(&req::LOCAL_QPN), mad.get(&req::STARTING_PSN)),
            false => (mad.get(&rep::LOCAL_QPN), mad.get(&rep::STARTING_PSN)),
        };
        let Some(attributes) = self.cm.get(self.local).map(|connection| connection.attributes()) else {
            return Err(format!("{frame}: the event names connection {:#x}, which is not there.", self.local));
        };
        let mut pairs = vec![
            ("the peer's queue pair", qpn, u64::from(attributes.dest_qp)),
            ("the first PSN of our requests", psn, attributes.sq_psn.get().into()),
        ];
        if is_request {
            pairs.push(("the MTU", 128 << mad.get(&req::PATH_MTU), attributes.mtu.into()));
            pairs.push(("the code of the ACK time-out", mad.get(&req::LOCAL_ACK_TIMEOUT), attributes.timeout.into()));
            pairs.push(("how often to try again", mad.get(&req::RETRY_COUNT), attributes.retries.into()));
        }
        match pairs.into_iter().find(|(_, wanted, yours)| wanted != yours) {
            Some((what, wanted, yours)) => {
                Err(format!("{frame}: {} says that {what} is {wanted}. Yours: {yours}.", name(mad.kind())))
            }
            None => Ok(()),
        }
    }

    /// The program has its id, and a queue pair like the recorded one's.
    fn prepare(&mut self) {
        let reply = self.recorded(Kind::ConnectReply);
        let Some(connection) = self.cm.get(self.local) else { return };
        connection.owner = Some(OWNER);
        if let Some(mad) = reply {
            connection.qpn = mad.get(&rep::LOCAL_QPN) as u32;
            connection.param = Param {
                responder_resources: mad.get(&rep::RESPONDER_RESOURCES) as u8,
                initiator_depth: mad.get(&rep::INITIATOR_DEPTH) as u8,
                rnr_retries: mad.get(&rep::RNR_RETRY) as u8,
                ..connection.param
            };
        }
    }

    /// What rdma_rxe sent now, ours has sent already; or its program makes the call; or it is the time that does it.
    fn speak(&mut self, message: &CmFrame) -> Result<(), (Hole, String)> {
        let kind = message.mad.kind();
        let is_again = self.sent.contains(&kind);
        let hole = match (kind, self.out.is_empty()) {
            (Kind::ConnectRequest, _) if !is_again => 0,
            (Kind::ConnectReject, _) => ASKED,
            (Kind::ReadyToUse | Kind::DisconnectReply | Kind::MsgRcptAck, false) => TABLE,
            (_, true) if is_again => AGAIN,
            (_, false) if is_again => TABLE,
            (Kind::ConnectReply, _) => ACCEPT,
            (Kind::ReadyToUse, _) => READY,
            _ => GOODBYE,
        };
        if self.out.is_empty() {
            if is_again {
                self.wait()
            } else {
                self.call(&message.mad)
            }
        }
        let ours = self.out.pop_front();
        let said = match &ours {
            Some(ours) if ours.kind() == kind => compare(message, ours, self.address == self.talk.client),
            ours => {
                let yours = ours.as_ref().map_or("nothing".to_owned(), |mad| name(mad.kind()));
                Some(format!("{}: rdma_rxe sent {}. Yours: {yours}.{}", message.frame.name, name(kind), self.decided()))
            }
        };
        self.sent.push(kind);
        said.map_or(Ok(()), |said| Err((hole, said)))
    }

    /// The program's call that sends this.
    fn call(&mut self, mad: &Mad) {
        let private = mad.private_data();
        came::now(format!("the call that sends a {}", name(mad.kind())));
        self.said.clear();
        // What a call refuses is seen by what is not sent.
        self.act(|cm, local, now, out| match mad.kind() {
            Kind::ConnectReply => drop(cm.accept(local, private, now, out)),
            Kind::ReadyToUse => drop(cm.ready_to_use(local, now, out)),
            Kind::ConnectReject => drop(cm.reject(local, private, now, out)),
            Kind::DisconnectRequest | Kind::DisconnectReply => cm.disconnect(local, now, out),
            _ => {}
        });
        if mad.kind() == Kind::ConnectRequest {
            self.connect(mad);
        }
    }

    fn connect(&mut self, mad: &Mad) {
        self.local =
            self.cm.open(Some(OWNER), self.talk.server, mad.get(&LOCAL_ID) << 32 | mad.get(&req::STARTING_PSN));
        let Some(connection) = self.cm.get(self.local) else { return };
        connection.qpn = mad.get(&req::LOCAL_QPN) as u32;
        connection.param = Param {
            responder_resources: mad.get(&req::RESPONDER_RESOURCES) as u8,
            initiator_depth: mad.get(&req::INITIATOR_DEPTH) as u8,
            retries: mad.get(&req::RETRY_COUNT) as u8,
            rnr_retries: mad.get(&req::RNR_RETRY) as u8,
        };
        let (_, to) = mad.port().unwrap_or((Space::Tcp, 0));
        self.act(|cm, local, now, out| cm.connect(local, to, mad.source_port(), mad.private_data(), now, out));
    }

    /// Time goes on to the next thing that is due.
    fn wait(&mut self) {
        let next = self.cm.deadline().unwrap_or(self.now).max(self.now + Duration::from_millis(1));
        self.now = next;
        self.act(|cm, _, now, out| cm.tick(now, out));
    }

    fn decided(&self) -> String {
        if self.said.is_empty() {
            String::new()
        } else {
            format!(" It decided: {}.", self.said)
        }
    }
}

/// As `REP (ConnectReply)`.
fn name(kind: Kind) -> String {
    format!("{} ({})", kind.short(), kind.name())
}

/// Compares two messages, but for what each device chooses itself: its own number, and those of what it begins.
fn compare(message: &CmFrame, ours: &Mad, is_client: bool) -> Option<String> {
    let kind = ours.kind();
    if kind == Kind::ConnectRequest {
        return None;
    }
    let begins = matches!(kind, Kind::DisconnectRequest) || is_client && kind != Kind::DisconnectReply;
    let body = mad::HEADER.length;
    let mut chosen = Vec::new();
    chosen.extend(begins.then_some((0, &mad::TRANSACTION_ID)));
    chosen.extend((kind == Kind::ConnectReply).then_some((body, &rep::LOCAL_CA_GUID)));
    let bytes = |mad: &Mad| {
        let mut bytes = mad.packet(Psn::new(0)).payload;
        for (start, field) in &chosen {
            bytes[start + field.span().0..start + field.span().1].fill(0);
        }
        if kind == Kind::ConnectReply {
            // Whether the queue pair shares its receives: the connection manager is not told.
            bytes[body + rep::RNR_RETRY.span().0] &= !SHARED_RECEIVES;
        }
        bytes
    };
    let (wanted, yours) = (bytes(&message.mad), bytes(ours));
    let at = difference(&wanted, &yours)?;
    let (start, title, fields) = match kind.header().filter(|_| at >= body) {
        Some(header) => (body, header.name, header.fields),
        None => (0, "MAD", mad::HEADER.fields),
    };
    let is_there = |field: &&Field| (field.span().0..field.span().1).contains(&(at - start));
    let names: Vec<&str> = fields.iter().filter(is_there).map(|field| field.name).collect();
    let dump = differing("rdma_rxe", &wanted, &yours, at, &format!(", {title}: {}", names.join(", ")));
    Some(format!("{}, {}:\n{dump}", message.frame.name, name(kind)))
}
