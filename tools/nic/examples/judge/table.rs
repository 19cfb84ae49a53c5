//! Lesson 15, what hardly a capture has: the rows of its tables, one by one. A connection is put into a phase, something comes or is
//! called, and what is sent, told and entered has to be what the table says.

use crate::came;
use nic::cm::{Cm, CmEffect, Event, EventKind, Mad, Phase, Space};
use nic::psn::Psn;
use roce::cm::{dreq, mra, rej, rep, req, sidr_req, Kind, LOCAL_ID};
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};
use EventKind as Told;
use Phase::*;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));
const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 8));
const PORT: u16 = 7471;
const OWNER: u64 = 8;
/// Numbers of the peer: its id, its queue pair, its exchange, its port.
const REMOTE: u32 = 0x77;
const QPN: u32 = 0x2a;
const EXCHANGE: u64 = 0x1234_5678_9abc_def0;
const SOURCE: u16 = 4711;
/// Why a ConnectReject came.
const REASON: u64 = 28;
/// So long a ConnectRequest waits for its answer, and so often it is sent again.
const PATIENCE: Duration = Duration::from_nanos(4096 << 20);
const AGAIN: usize = 15;

/// One connection manager, with one connection.
struct Room {
    cm: Cm,
    local: u32,
    now: Instant,
    sent: Vec<Mad>,
    told: Vec<Event>,
}

impl Room {
    fn new() -> Room {
        let mut cm = Cm::new(HERE);
        // A new one has no other listener.
        let _ = cm.listen(Space::Tcp, PORT, OWNER, 1);
        Room { cm, local: 0, now: Instant::now(), sent: Vec::new(), told: Vec::new() }
    }

    /// A connection that we ask for: it is in ReqSent.
    fn client() -> Room {
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
    fn server() -> Result<Room, String> {
        let mut room = Room::new();
        room.come(&request(REMOTE, QPN));
        let event =
            room.told.pop().ok_or("A REQ came, and somebody listens: the program has to be told. Yours: nothing.")?;
        room.local = event.connection;
        if let Some(connection) = room.cm.get(room.local) {
            connection.owner = Some(OWNER);
        }
        Ok(room)
    }

    /// One who is asked for its queue pair of datagrams.
    fn datagrams() -> Room {
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
    fn at(phase: Phase) -> Result<Room, String> {
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

    fn act(&mut self, act: impl FnOnce(&mut Cm, u32, Instant, &mut Vec<CmEffect>)) {
        let mut effects = Vec::new();
        act(&mut self.cm, self.local, self.now, &mut effects);
        for effect in effects {
            match effect {
                CmEffect::Send(_, mad) => self.sent.push(mad),
                CmEffect::Event(event) => self.told.push(event),
                CmEffect::Say(_) => {}
            }
        }
    }

    fn come(&mut self, mad: &Mad) {
        self.come_from(PEER, mad);
    }

    fn come_from(&mut self, from: IpAddr, mad: &Mad) {
        came::now(format!("{} came in {:?}", mad.kind().short(), self.phase()));
        let bytes = mad.packet(Psn::new(0)).payload;
        self.act(|cm, _, now, out| cm.receive(from, &bytes, 9 << 32, now, out));
    }

    fn tick(&mut self, later: Duration) {
        self.now += later;
        self.act(|cm, _, now, out| cm.tick(now, out));
    }

    fn phase(&mut self) -> Option<Phase> {
        self.cm.get(self.local).map(|connection| connection.phase)
    }

    /// What has been sent and told, and the phase, as words; and it is forgotten.
    fn seen(&mut self) -> String {
        let sent = self.sent.drain(..).map(|mad| mad.kind().short());
        let told: Vec<Event> = self.told.drain(..).collect();
        let told = told.iter().map(|event| match event.status {
            0 => format!("{:?} told", event.kind),
            status => format!("{:?} told with status {status}", event.kind),
        });
        let words: Vec<String> = sent.map(|kind| format!("{kind} sent")).chain(told).collect();
        let words = if words.is_empty() { "nothing sent or told".to_owned() } else { words.join(", ") };
        let phase = self.phase().map_or("gone".to_owned(), |phase| format!("{phase:?}"));
        format!("{words}; {phase}")
    }
}

/// What has to be seen, in the words of `seen`.
fn wanted(sent: &[Kind], told: &[(EventKind, i32)], phase: Phase) -> String {
    let sent = sent.iter().map(|kind| format!("{} sent", kind.short()));
    let told = told.iter().map(|(kind, status)| match status {
        0 => format!("{kind:?} told"),
        status => format!("{kind:?} told with status {status}"),
    });
    let words: Vec<String> = sent.chain(told).collect();
    let words = if words.is_empty() { "nothing sent or told".to_owned() } else { words.join(", ") };
    format!("{words}; {phase:?}")
}

fn same(what: &str, wanted: &str, yours: &str) -> Result<(), String> {
    if wanted == yours {
        return Ok(());
    }
    Err(format!("{what}: {wanted}. Yours: {yours}."))
}

fn number(what: &str, wanted: impl Into<u64>, yours: impl Into<u64>) -> Result<(), String> {
    let (wanted, yours) = (wanted.into(), yours.into());
    same(what, &format!("{wanted:#x}"), &format!("{yours:#x}"))
}

/// The peer's REQ, with numbers that no default has.
fn request(id: u32, qpn: u32) -> Mad {
    request_with(id, qpn, 2)
}

/// The same with this code of an MTU.
fn request_with(id: u32, qpn: u32, mtu: u64) -> Mad {
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
fn message(kind: Kind, local: u32) -> Mad {
    let mad = Mad::between(kind, EXCHANGE, REMOTE, local);
    match kind {
        Kind::ConnectReject => mad.with(&rej::REASON, REASON),
        Kind::ConnectReply => mad.with(&rep::LOCAL_QPN, QPN.into()),
        Kind::DisconnectRequest => mad.with(&dreq::REMOTE_QPN, 0),
        _ => mad,
    }
}

/// A REQ, and what is kept of it.
pub fn asked() -> Result<(), String> {
    let mut room = Room::server()?;
    let connection = room.cm.get(room.local).ok_or("The program was told of a connection that is not there.")?;
    let (param, attributes) = (connection.param, connection.attributes());
    number("A REQ came from port 4711: peer_port", SOURCE, connection.peer_port)?;
    number("A REQ came with PathPacketPayloadMTU 2: attributes.mtu", 512u32, attributes.mtu)?;
    number("A REQ came with LocalACKTimeout 9: attributes.timeout", 9u8, attributes.timeout)?;
    number("A REQ came with RetryCount 5: param.retries", 5u8, param.retries)?;
    number("A REQ came with RNRRetryCount 3: param.rnr_retries", 3u8, param.rnr_retries)?;
    room.act(|cm, local, now, out| {
        let _ = cm.reject(local, &[], now, out);
    });
    let exchange = room.sent.first().map_or(0, Mad::transaction_id);
    number("A REQ came, and the program rejects it: the REJ's transaction id is the REQ's", EXCHANGE, exchange)?;

    let mut room = Room::server()?;
    room.come(&request(REMOTE + 1, QPN + 1));
    same("The backlog is 1, and a second REQ comes", &wanted(&[], &[], ReqReceived), &room.seen())?;

    let mut room = Room::at(Established)?;
    room.come(&request(REMOTE + 1, QPN));
    let reason =
        room.sent.first().filter(|mad| mad.kind() == Kind::ConnectReject).map_or(0, |mad| mad.get(&rej::REASON));
    number("A REQ came of a queue pair that we hold for Established: the reason of the REJ", 10u8, reason)?;
    strangers()?;
    for (code, mtu) in [(0, 256u32), (1, 256), (5, 4096), (7, 4096)] {
        let mut room = Room::new();
        room.come(&request_with(REMOTE, QPN, code));
        let connection = room.told.pop().and_then(|event| room.cm.get(event.connection));
        let yours = connection.map_or(0, |connection| connection.attributes().mtu);
        number(&format!("A REQ came with PathPacketPayloadMTU {code}: attributes.mtu"), mtu, yours)?;
    }
    Ok(())
}

/// A REQ that has something in common with a connection, and is none of it: it is a new one's.
fn strangers() -> Result<(), String> {
    let new = [(Told::ConnectRequest, 0)];
    for (phase, from, id, qpn, what) in [
        (Established, OTHER, REMOTE, QPN, "of another machine, with the ids of a connection that we have"),
        (Established, PEER, REMOTE + 1, QPN + 1, "of another queue pair of the peer's"),
        (TimeWait, PEER, REMOTE + 1, QPN, "of a queue pair whose connection is over"),
        (Idle, PEER, REMOTE, QPN, "with the id of a connection that has ended"),
    ] {
        let mut room = Room::at(phase)?;
        room.come_from(from, &request(id, qpn));
        let what = format!("A REQ comes {what} (in {phase:?}): it is a new one");
        same(&what, &wanted(&[], &new, phase), &room.seen())?;
    }
    Ok(())
}

/// Yes is a question: it wants an answer.
pub fn accepted() -> Result<(), String> {
    let mut room = Room::server()?;
    room.act(|cm, local, now, out| {
        let _ = cm.accept(local, &[], now, out);
    });
    same("The program accepts", &wanted(&[Kind::ConnectReply], &[], RepSent), &room.seen())?;
    if room.cm.deadline() != Some(room.now + PATIENCE) {
        return Err("The REP is sent: if no RTU comes, it has to be sent again. Yours does not ask, it tells.".into());
    }
    let mut room = Room::datagrams();
    let mut accepted = Ok(());
    room.act(|cm, local, now, out| accepted = cm.accept(local, &[], now, out));
    let what = "A SIDR_REQ came, which asks for a queue pair of datagrams, and the program accepts";
    same(what, &wanted(&[Kind::ServiceReply], &[], SidrAnswered), &room.seen())?;
    accepted.map_err(|errno| format!("{what}: the call succeeds. Yours: {errno:?}."))
}

/// What comes, in which phase; what is sent, what is told with which status, and the phase after it.
type Row<'a> = (Kind, Phase, &'a [Kind], &'a [(EventKind, i32)], Phase);

/// Each row of the table of states, and some pairs that mean nothing.
pub fn rows() -> Result<(), String> {
    use Kind::{
        ConnectReject as Rej, ConnectReply as Rep, ConnectRequest as Req, DisconnectReply as Drep,
        DisconnectRequest as Dreq, MsgRcptAck as Mra, ReadyToUse as Rtu,
    };
    let rejected = [(Told::Rejected, REASON as i32)];
    let over = [(Told::Disconnected, 0)];
    let rows: [Row; 22] = [
        (Rep, ReqSent, &[], &[(Told::ConnectResponse, 0)], RepReceived),
        (Rep, RepReceived, &[], &[], RepReceived),
        (Rep, Established, &[Rtu], &[], Established),
        (Rtu, RepSent, &[], &[(Told::Established, 0)], Established),
        (Rtu, Established, &[], &[], Established),
        (Rej, ReqReceived, &[], &[], Idle),
        (Rej, ReqSent, &[], &rejected, Idle),
        (Rej, RepSent, &[], &rejected, Idle),
        (Rej, RepReceived, &[], &rejected, Idle),
        (Rej, Established, &[], &rejected, TimeWait),
        (Rej, TimeWait, &[], &[], TimeWait),
        (Req, RepSent, &[Rep], &[], RepSent),
        (Req, ReqReceived, &[Mra], &[], ReqReceived),
        (Mra, ReqSent, &[], &[], ReqSent),
        (Dreq, Established, &[], &over, DreqReceived),
        (Dreq, RepSent, &[], &over, DreqReceived),
        (Dreq, RepReceived, &[], &over, DreqReceived),
        (Dreq, DreqSent, &[Drep], &over, TimeWait),
        (Dreq, TimeWait, &[Drep], &[], TimeWait),
        (Dreq, Idle, &[Drep], &[], Idle),
        (Drep, DreqSent, &[], &over, TimeWait),
        (Drep, Established, &[], &[], Established),
    ];
    for (kind, phase, sent, told, next) in rows {
        let mut room = Room::at(phase)?;
        let mad = if kind == Req { request(REMOTE, QPN) } else { message(kind, room.local) };
        room.come(&mad);
        let what = format!("{} comes in {phase:?}", kind.short());
        let answer = room.sent.first().cloned();
        same(&what, &wanted(sent, told, next), &room.seen())?;
        if let Some(answer) = answer.filter(|_| kind == Dreq) {
            number("DREQ came: the DREP's transaction id is the DREQ's", EXCHANGE, answer.transaction_id())?;
        }
    }
    for phase in [ReqSent, RepSent] {
        let mut room = Room::at(phase)?;
        room.now += Duration::from_secs(1);
        room.come(&message(Mra, room.local).with(&mra::SERVICE_TIMEOUT, 22));
        if room.cm.deadline() != Some(room.now + Duration::from_nanos(4096 << 22)) {
            return Err(format!(
                "MRA comes in {phase:?}, with code 22: the question is due 4096 ns x 2^22 from now. Yours is not."
            ));
        }
    }
    Ok(())
}

/// The third step of the handshake.
pub fn ready() -> Result<(), String> {
    let mut room = Room::at(RepReceived)?;
    room.act(|cm, local, now, out| {
        let _ = cm.ready_to_use(local, now, out);
    });
    let what = "The program says that it is ready. The peer is told, and nobody else";
    same(what, &wanted(&[Kind::ReadyToUse], &[], Established), &room.seen())?;
    Ok(())
}

/// Who says goodbye, and who answers one.
pub fn goodbye() -> Result<(), String> {
    for phase in [Established, RepSent, RepReceived] {
        let mut room = Room::at(phase)?;
        let before = match phase {
            RepSent => EXCHANGE,
            _ => exchange_of(&mut room),
        };
        room.act(|cm, local, now, out| cm.disconnect(local, now, out));
        let dreq = room.sent.first().cloned();
        let what = format!("The program calls disconnect in {phase:?}");
        same(&what, &wanted(&[Kind::DisconnectRequest], &[], DreqSent), &room.seen())?;
        let exchange = dreq.as_ref().map_or(0, Mad::transaction_id);
        number(
            "The DREQ's transaction id is the old one, and 1 more in its upper half",
            before.wrapping_add(1 << 32),
            exchange,
        )?;
        if room.cm.deadline() != Some(room.now + PATIENCE) {
            return Err(
                "The DREQ is sent: if no DREP comes, it has to be sent again. Yours does not ask, it tells.".into()
            );
        }
    }
    let mut room = Room::at(Established)?;
    room.come(&message(Kind::DisconnectRequest, room.local));
    room.told.clear();
    room.act(|cm, local, now, out| cm.disconnect(local, now, out));
    let exchange = room.sent.first().map_or(0, Mad::transaction_id);
    same("The program answers a DREQ", &wanted(&[Kind::DisconnectReply], &[], TimeWait), &room.seen())?;
    number("The DREP's transaction id is the DREQ's", EXCHANGE, exchange)?;
    for phase in [ReqSent, DreqSent, TimeWait, Idle] {
        let mut room = Room::at(phase)?;
        room.act(|cm, local, now, out| cm.disconnect(local, now, out));
        same(&format!("The program calls disconnect in {phase:?}"), &wanted(&[], &[], phase), &room.seen())?;
    }
    let mut room = Room::at(Established)?;
    room.come(&request(REMOTE + 1, QPN));
    let what =
        "A REQ comes of a queue pair that we hold for Established: a REJ for it, and a goodbye for the old connection";
    same(what, &wanted(&[Kind::ConnectReject, Kind::DisconnectRequest], &[], DreqSent), &room.seen())?;
    Ok(())
}

/// The transaction id that the connection has, as a message of it tells.
fn exchange_of(room: &mut Room) -> u64 {
    // In Established a REP is answered by an RTU, with the connection's own number.
    let phase = room.phase();
    room.cm.get(room.local).into_iter().for_each(|connection| connection.phase = Established);
    room.come(&message(Kind::ConnectReply, room.local));
    let exchange = room.sent.drain(..).next().map_or(0, |mad| mad.transaction_id());
    room.cm.get(room.local).zip(phase).into_iter().for_each(|(connection, phase)| connection.phase = phase);
    exchange
}

/// What time does.
pub fn again() -> Result<(), String> {
    const TIMED_OUT: i32 = -110;
    let mut room = Room::client();
    room.tick(PATIENCE - Duration::from_millis(1));
    same("4.294 s have not passed since the REQ", &wanted(&[], &[], ReqSent), &room.seen())?;
    room.now += Duration::from_millis(1);
    for attempt in 1..=AGAIN {
        room.tick(Duration::ZERO);
        let what = format!("No answer to the REQ, for the {attempt}. time");
        same(&what, &wanted(&[Kind::ConnectRequest], &[], ReqSent), &room.seen())?;
        if room.cm.deadline() != Some(room.now + PATIENCE) {
            return Err(format!("{what}: it is sent again, and due 4.295 s later. Yours is due at another time."));
        }
        room.now += PATIENCE;
    }
    room.tick(Duration::ZERO);
    let what = format!("No answer to the REQ, and it was sent again {AGAIN} times");
    same(&what, &wanted(&[], &[(Told::Unreachable, TIMED_OUT)], Idle), &room.seen())?;

    let mut room = Room::at(Established)?;
    room.act(|cm, local, now, out| cm.disconnect(local, now, out));
    for _ in 0..AGAIN {
        room.tick(PATIENCE);
    }
    room.seen();
    room.tick(PATIENCE);
    let what = format!("No answer to the DREQ, and it was sent again {AGAIN} times");
    same(&what, &wanted(&[], &[(Told::Disconnected, TIMED_OUT)], TimeWait), &room.seen())?;
    room.now = room.cm.deadline().ok_or("A connection is in TimeWait: that ends by itself. Yours is never due.")?;
    room.tick(Duration::ZERO);
    same("TimeWait is over", &wanted(&[], &[(Told::TimewaitExit, 0)], Idle), &room.seen())?;
    Ok(())
}
