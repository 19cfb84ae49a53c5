//! Lesson 15, what hardly a capture has: the rows of its tables, one by one. A connection is put into a phase, something comes or is
//! called, and what is sent, told and entered has to be what the table says.

use crate::room::{message, number, request, request_with, same, wanted, Room};
use crate::room::{AGAIN, EXCHANGE, HERE, OTHER, OWNER, PATIENCE, PEER, QPN, REASON, REMOTE, SOURCE};
use nic::cm::{Cm, CmEffect, EventKind as Told, Mad, Param, Phase};
use nic::errno::Errno;
use nic::time::Time;
use roce::cm::{mra, rej, rep, Kind};
use std::time::Duration;
use Phase::*;

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
    // While `disconnect` is still a hole, it says that it was called.
    let is_ended = room.phase() != Some(Established) || room.said.iter().any(|said| said.starts_with("disconnect "));
    if !is_ended {
        return Err(
            "A REQ came of a queue pair that we hold for Established: the old connection is over, so `disconnect` it. \
                    Yours goes on with it."
                .into(),
        );
    }
    repeated()?;
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

/// A REQ that comes again belongs to the connection that it has made, whose table of states knows what to do.
fn repeated() -> Result<(), String> {
    let mut room = Room::server()?;
    // There's room for another one.
    room.cm.fetched(OWNER);
    room.come(&request(REMOTE, QPN));
    let (told, count) = (room.told.len(), room.cm.count());
    if (told, count) != (0, 1) {
        return Err(format!(
            "A REQ came, and came again: it's the same connection, and the program has heard of it. Yours has {count} connections \
             now, and tells the program of {told} more."
        ));
    }
    if room.sent.is_empty() && room.said.is_empty() {
        return Err(
            "A REQ came, and came again: the connection's `receive` gets it. Yours drops it without a word.".into()
        );
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
        return Err("The REP is sent: if no RTU comes, it must be sent again. Yours doesn't ask, it tells.".into());
    }
    let mut room = Room::datagrams();
    let mut accepted = Ok(());
    room.act(|cm, local, now, out| accepted = cm.accept(local, &[], now, out));
    let what = "A SIDR_REQ came, which asks for a queue pair of datagrams, and the program accepts";
    same(what, &wanted(&[Kind::ServiceReply], &[], SidrAnswered), &room.seen())?;
    accepted.map_err(|errno| format!("{what}: the call succeeds. Yours: {errno:?}."))?;
    reply()?;
    only_in(&[ReqReceived], "accept", |cm, local, now, out| cm.accept(local, &[], now, out))
}

/// The fields of a REP, with numbers that no capture has.
fn reply() -> Result<(), String> {
    let mut room = Room::server()?;
    let connection = room.cm.get(room.local).ok_or("The program was told of a connection that is not there.")?;
    connection.qpn = 0x31;
    connection.param = Param { responder_resources: 3, initiator_depth: 5, rnr_retries: 2, ..connection.param };
    room.act(|cm, local, now, out| {
        let _ = cm.accept(local, &[], now, out);
    });
    let Some(mad) = room.sent.first() else { return Err("The program accepts, and yours sends nothing.".into()) };
    for (field, wanted) in [
        (&rep::LOCAL_QPN, 0x31),
        (&rep::RESPONDER_RESOURCES, 3),
        (&rep::INITIATOR_DEPTH, 5),
        (&rep::RNR_RETRY, 2),
        (&rep::LOCAL_CA_GUID, Cm::guid(HERE)),
    ] {
        let what =
            "The program accepts, with QP 0x31, 3 responder resources, an initiator depth of 5 and 2 RNR retries";
        number(&format!("{what}: the REP's {}", field.name), wanted, mad.get(field))?;
    }
    Ok(())
}

/// A call of the program that makes sense in these phases only.
fn only_in(
    phases: &[Phase],
    name: &str,
    call: impl Fn(&mut Cm, u32, Time, &mut Vec<CmEffect>) -> Result<(), Errno>,
) -> Result<(), String> {
    for phase in [ReqSent, RepReceived, ReqReceived, RepSent, Established, TimeWait] {
        if phases.contains(&phase) {
            continue;
        }
        let (mut room, mut result) = (Room::at(phase)?, Ok(()));
        room.act(|cm, local, now, out| result = call(cm, local, now, out));
        let what = format!("The program calls {name} in {phase:?}");
        same(&what, &wanted(&[], &[], phase), &room.seen())?;
        if result.is_ok() {
            return Err(format!("{what}: the call fails, EINVAL. Yours succeeds."));
        }
    }
    Ok(())
}

/// What comes, in which phase; what is sent, what is told with which status, and the phase after it.
type Transition<'a> = (Kind, Phase, &'a [Kind], &'a [(Told, i32)], Phase);

/// Each row of the table of states, and some pairs that mean nothing.
pub fn rows() -> Result<(), String> {
    use Kind::{
        ConnectReject as Rej, ConnectReply as Rep, ConnectRequest as Req, DisconnectReply as Drep,
        DisconnectRequest as Dreq, MsgRcptAck as Mra, ReadyToUse as Rtu,
    };
    let rejected = [(Told::Rejected, REASON as i32)];
    let over = [(Told::Disconnected, 0)];
    let rows: [Transition; 22] = [
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
        let (answer, event) = (room.sent.first().cloned(), room.told.first().cloned());
        same(&what, &wanted(sent, told, next), &room.seen())?;
        if let Some(answer) = answer.as_ref().filter(|_| kind == Dreq) {
            number("DREQ came: the DREP's transaction id is the DREQ's", EXCHANGE, answer.transaction_id())?;
        }
        if let Some(answer) = answer.filter(|answer| answer.kind() == Mra) {
            number(&format!("{what}: the MRA's ServiceTimeout"), 24u8, answer.get(&mra::SERVICE_TIMEOUT))?;
        }
        if kind == Dreq && next == DreqReceived {
            number(&format!("{what}: the connection's transaction id is its"), EXCHANGE, exchange_of(&mut room))?;
        }
        if event.is_some_and(|event| matches!(kind, Rej | Rep) && event.private != mad.private_data()) {
            return Err(format!("{what}: the program gets its private data. Yours hands it others."));
        }
    }
    rep_again()?;
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

/// A REP that is sent again is the same one: the peer knows it by its bytes.
fn rep_again() -> Result<(), String> {
    let mut room = Room::server()?;
    room.act(|cm, local, now, out| {
        let _ = cm.accept(local, b"yes", now, out);
    });
    room.come(&request(REMOTE, QPN));
    if room.sent.len() == 2 && room.sent[0] == room.sent[1] {
        return Ok(());
    }
    Err("REQ comes in RepSent: the REP is sent once more, with the same bytes. Yours is another one.".into())
}

/// The third step of the handshake.
pub fn ready() -> Result<(), String> {
    let mut room = Room::at(RepReceived)?;
    room.act(|cm, local, now, out| {
        let _ = cm.ready_to_use(local, now, out);
    });
    let what = "The program says that it is ready. The peer is told, and nobody else";
    same(what, &wanted(&[Kind::ReadyToUse], &[], Established), &room.seen())?;
    only_in(&[RepReceived], "ready_to_use", Cm::ready_to_use)
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
                "The DREQ is sent: if no DREP comes, it must be sent again. Yours doesn't ask, it tells.".into()
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
    room.tick(Duration::from_millis(1));
    same("TimeWait has just begun", &wanted(&[], &[], TimeWait), &room.seen())?;
    room.now = room.cm.deadline().ok_or("A connection is in TimeWait: that ends by itself. Yours is never due.")?;
    room.tick(Duration::ZERO);
    same("TimeWait is over", &wanted(&[], &[(Told::TimewaitExit, 0)], Idle), &room.seen())?;
    Ok(())
}
