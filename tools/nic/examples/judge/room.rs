//! A room with one connection manager, which has one connection in a phase of one's choice; and what is seen of it, in words.

use crate::came;
use nic::cm::{Cm, CmEffect, Event, EventKind, Mad, Phase, Space};
use nic::psn::Psn;
use nic::time::Time;
use roce::cm::{dreq, rej, rep, req, sidr_req, Kind, LOCAL_ID};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;
use Phase::*;

pub const HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
pub const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));
pub const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 8));
const PORT: u16 = 7471;
pub const OWNER: u64 = 8;
/// Numbers of the peer: its id, its queue pair, its exchange, its port.
pub const REMOTE: u32 = 0x77;
pub const QPN: u32 = 0x2a;
pub const EXCHANGE: u64 = 0x1234_5678_9abc_def0;
pub const SOURCE: u16 = 4711;
/// Why a ConnectReject came.
pub const REASON: u64 = 28;
/// So long a ConnectRequest waits for its answer, and so often it is sent again.
pub const PATIENCE: Duration = Duration::from_nanos(4096 << 20);
pub const AGAIN: usize = 15;

/// One connection manager, with one connection.
pub struct Room {
    pub cm: Cm,
    pub local: u32,
    pub now: Time,
    pub sent: Vec<Mad>,
    pub told: Vec<Event>,
    /// Its decisions.
    pub said: Vec<String>,
}

impl Room {
    pub fn new() -> Room {
        let mut cm = Cm::new(HERE);
        // A new one has no other listener.
        let _ = cm.listen(Space::Tcp, PORT, OWNER, 1);
        Room { cm, local: 0, now: Time::START, sent: Vec::new(), told: Vec::new(), said: Vec::new() }
    }

    /// A connection that we ask for: it is in ReqSent.
    pub fn client() -> Room {
        let mut room = Room::new();
        room.local = room.cm.open(Some(OWNER), PEER, 5 << 32);
        room.act(|cm, local, now, out| cm.connect(local, PORT, SOURCE, &[], now, out));
        room.sent.clear();
        if let Some(connection) = room.cm.get(room.local) {
            (connection.remote, connection.attributes.dest_qp) = (REMOTE, QPN);
        }
        room
    }

    /// One that is asked of us: it is in ReqReceived.
    pub fn server() -> Result<Room, String> {
        let mut room = Room::new();
        room.come(&request(REMOTE, QPN));
        let event = room
            .told
            .pop()
            .ok_or("A REQ came, and somebody listens: the program should hear of it. Yours: nothing.")?;
        room.local = event.connection;
        if let Some(connection) = room.cm.get(room.local) {
            connection.owner = Some(OWNER);
        }
        Ok(room)
    }

    /// One who is asked for its queue pair of datagrams.
    pub fn datagrams() -> Room {
        let mut room = Room::new();
        let _ = room.cm.listen(Space::Udp, PORT, OWNER, 1);
        room.come(
            &Mad::new(Kind::ServiceRequest, EXCHANGE)
                .with(&sidr_req::REQUEST_ID, REMOTE.into())
                .with(&sidr_req::SERVICE_ID, (Space::Udp as u64) << 16 | u64::from(PORT))
                .with_addresses(PEER, SOURCE, HERE),
        );
        room.local = room.told.pop().map_or(0, |event| event.connection);
        room
    }

    /// One in this phase.
    pub fn at(phase: Phase) -> Result<Room, String> {
        let mut room = match phase {
            ReqReceived | RepSent => Room::server()?,
            _ => Room::client(),
        };
        if phase == RepSent {
            room.act(|cm, local, now, out| {
                let _ = cm.accept(local, &[], now, out);
            });
            room.sent.clear();
        } else if let Some(connection) = room.cm.get(room.local) {
            connection.phase = phase;
        }
        Ok(room)
    }

    pub fn act(&mut self, act: impl FnOnce(&mut Cm, u32, Time, &mut Vec<CmEffect>)) {
        let mut effects = Vec::new();
        act(&mut self.cm, self.local, self.now, &mut effects);
        for effect in effects {
            match effect {
                CmEffect::Send(_, mad) => self.sent.push(mad),
                CmEffect::Event(event) => self.told.push(event),
                CmEffect::Say(said) => self.said.push(said.to_string()),
            }
        }
    }

    pub fn come(&mut self, mad: &Mad) {
        self.come_from(PEER, mad);
    }

    pub fn come_from(&mut self, from: IpAddr, mad: &Mad) {
        came::now(format!("{} came in {:?}", mad.kind().short(), self.phase()));
        let bytes = mad.packet(Psn::new(0)).payload;
        self.act(|cm, _, now, out| cm.receive(from, &bytes, 9 << 32, now, out));
    }

    pub fn tick(&mut self, later: Duration) {
        self.now += later;
        self.act(|cm, _, now, out| cm.tick(now, out));
    }

    pub fn phase(&mut self) -> Option<Phase> {
        self.cm.get(self.local).map(|connection| connection.phase)
    }

    /// What has been sent and told, and the phase, as words; and it is forgotten.
    pub fn seen(&mut self) -> String {
        let sent: Vec<Kind> = self.sent.drain(..).map(|mad| mad.kind()).collect();
        let told: Vec<(EventKind, i32)> = self.told.drain(..).map(|event| (event.kind, event.status)).collect();
        words(&sent, &told, &self.phase().map_or("gone".to_owned(), |phase| format!("{phase:?}")))
    }
}

/// What has to be seen, in the words of `seen`.
pub fn wanted(sent: &[Kind], told: &[(EventKind, i32)], phase: Phase) -> String {
    words(sent, told, &format!("{phase:?}"))
}

fn words(sent: &[Kind], told: &[(EventKind, i32)], phase: &str) -> String {
    let sent = sent.iter().map(|kind| format!("{} sent", kind.short()));
    let told = told.iter().map(|(kind, status)| match status {
        0 => format!("{kind:?} told"),
        status => format!("{kind:?} told with status {status}"),
    });
    let words: Vec<String> = sent.chain(told).collect();
    let words = if words.is_empty() { "nothing sent or told".to_owned() } else { words.join(", ") };
    format!("{words}; {phase}")
}

pub fn same(what: &str, wanted: &str, yours: &str) -> Result<(), String> {
    if wanted == yours {
        return Ok(());
    }
    Err(format!("{what}: {wanted}. Yours: {yours}."))
}

pub fn number(what: &str, wanted: impl Into<u64>, yours: impl Into<u64>) -> Result<(), String> {
    let (wanted, yours) = (wanted.into(), yours.into());
    same(what, &format!("{wanted:#x}"), &format!("{yours:#x}"))
}

/// The peer's REQ, with numbers that no default has.
pub fn request(id: u32, qpn: u32) -> Mad {
    request_with(id, qpn, 2)
}

/// The same with this code of an MTU.
pub fn request_with(id: u32, qpn: u32, mtu: u64) -> Mad {
    Mad::new(Kind::ConnectRequest, EXCHANGE)
        .with(&LOCAL_ID, id.into())
        .with(&req::SERVICE_ID, (Space::Tcp as u64) << 16 | u64::from(PORT))
        .with(&req::LOCAL_QPN, qpn.into())
        .with(&req::PATH_MTU, mtu)
        .with(&req::LOCAL_ACK_TIMEOUT, 9)
        .with(&req::RETRY_COUNT, 5)
        .with(&req::RNR_RETRY, 3)
        .with_addresses(PEER, SOURCE, HERE)
}

/// Another message of the peer's.
pub fn message(kind: Kind, local: u32) -> Mad {
    let mad = Mad::between(kind, EXCHANGE, REMOTE, local);
    match kind {
        Kind::ConnectReject => mad.with(&rej::REASON, REASON).with_private(b"no room"),
        Kind::ConnectReply => mad.with(&rep::LOCAL_QPN, QPN.into()),
        Kind::DisconnectRequest => mad.with(&dreq::REMOTE_QPN, 0),
        _ => mad,
    }
}
