//! Lesson 16, what no recorded program posts: one request of each kind, and what its packets have in them; a datagram; a message that
//! is longer than the window; and ACKs of it.

use crate::end::{in_rts, listed, of, TIME};
use crate::situation::{due, ended, expect, goes_on, requester, ANYWHERE};
use crate::Verdict;
use nic::completion::Status;
use nic::congestion::Link;
use nic::packet::Packet;
use nic::qp::{Qp, Service};
use nic::work::{Destination, Local, SendRequest, Work};
use pair::{attributes, End, MTU};
use roce::aeth::Syndrome;
use roce::opcode::Part;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// Where the bytes of requests are.
const BYTES: usize = 512;
/// The machine of a datagram, and the queue pair there.
const AFAR: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 9));
const TO: Destination = Destination { address: AFAR, class: 0, qp: 99, qkey: 5 };
/// The longest one, in bytes: it has no connection, and so no path MTU.
const PORT_MTU: usize = 1024;
const IMMEDIATE: u32 = 0x2a;
/// A key that a SEND takes away.
const KEY: u32 = 0x700;
/// So many packets may be under way.
const WINDOW: u32 = 64;
/// Longer than a packet takes.
const MOMENT: Duration = Duration::from_micros(1);

/// A datagram goes to its own destination, in one packet or not at all.
pub fn send() -> Verdict {
    let mut side = of(Service::Ud, attributes(0, 0, 7, 7));
    for (number, length, wanted) in
        [(0, 8, &["UD Send Only, PSN 0"][..]), (1, PORT_MTU, &["UD Send Only, PSN 1"]), (2, PORT_MTU + 1, &[])]
    {
        let _ = side.post(number, Work::Datagram(TO), BYTES, length);
        let when =
            format!("The port's MTU is {PORT_MTU}, and a datagram of {length} bytes for QP 99 of {AFAR} is posted");
        expect(&mut side, &when, wanted)?;
        if side.to != Some(AFAR) {
            let to = side.to.map_or("nowhere".to_owned(), |to| format!("to {to}"));
            return Err(format!("{when}: it goes there. Yours goes {to}.{}", side.decided()));
        }
        let done = side.sent.last().map(|completion| (completion.wr_id, completion.status));
        if done != Some((number, Status::Success)) {
            return Err(format!(
                "{when}. Nobody answers: it is done as soon as it is sent, and so is one that's too long. Yours isn't.{}",
                side.decided()
            ));
        }
    }
    let _ = side.post(3, Work::Datagram(TO), BYTES, 8);
    expect(
        &mut side,
        "The PSNs 2 and 3 were those of the one that was too long; one more is posted",
        &["UD Send Only, PSN 4"],
    )?;
    once()?;
    Ok("Each packet goes out once, and one timer runs, for the oldest".into())
}

/// A packet goes out once, and one timer runs for all that are under way: for the oldest.
fn once() -> Result<(), String> {
    let mut side = in_rts(attributes(0, 0, 7, 7));
    let _ = side.post(0, Work::Send, BYTES, 8);
    side.act(Qp::tick);
    if side.out.len() != 1 {
        return Err(format!("A SEND is posted: one packet is sent. Yours: {}.", side.out.len()));
    }
    side.wait(TIME / 2);
    let _ = side.post(1, Work::Send, BYTES, 8);
    side.shows();
    let when = "A SEND is sent, and half of the time-out later one more: the timer runs for the first one";
    due(&side, when, Some(TIME / 2))
}

/// A request of this service, with its length and what it brings; and the first and the last of its packets.
type Post<'a> = (Service, Work, usize, Option<u32>, bool, &'a [&'a str]);

/// What stands in the packets of a message.
pub fn packet() -> Verdict {
    let write = Work::Write(ANYWHERE);
    let (rc, none, now) = (Service::Rc, None, Some(IMMEDIATE));
    let posts: [Post; 12] = [
        (rc, Work::Send, 0, none, false, &["RC Send Only, 0 bytes, AckReq"]),
        (
            rc,
            Work::Send,
            600,
            none,
            true,
            &["RC Send First, 256 bytes", "RC Send Middle, 256 bytes", "RC Send Last, 88 bytes, SE, AckReq"],
        ),
        (rc, Work::Send, 8, none, true, &["RC Send Only, 8 bytes, SE, AckReq"]),
        (
            rc,
            Work::Send,
            512,
            now,
            false,
            &["RC Send First, 256 bytes", "RC Send Last Immediate, 256 bytes, immediate 0x2a, AckReq"],
        ),
        (
            rc,
            Work::SendInvalidate(KEY),
            300,
            none,
            true,
            &["RC Send First, 256 bytes", "RC Send Last Invalidate, 44 bytes, key 0x700, SE, AckReq"],
        ),
        (rc, Work::SendInvalidate(KEY), 8, now, false, &["RC Send Only Invalidate, 8 bytes, key 0x700, AckReq"]),
        (rc, write, 300, none, true, &["RC RDMA Write First, 256 bytes", "RC RDMA Write Last, 44 bytes, AckReq"]),
        (rc, write, 8, now, true, &["RC RDMA Write Only Immediate, 8 bytes, immediate 0x2a, SE, AckReq"]),
        (
            rc,
            write,
            300,
            now,
            false,
            &["RC RDMA Write First, 256 bytes", "RC RDMA Write Last Immediate, 44 bytes, immediate 0x2a, AckReq"],
        ),
        (Service::Uc, Work::Send, 300, none, true, &["UC Send First, 256 bytes", "UC Send Last, 44 bytes, SE"]),
        (Service::Uc, write, 8, now, false, &["UC RDMA Write Only Immediate, 8 bytes, immediate 0x2a"]),
        (Service::Ud, Work::Datagram(TO), 8, now, true, &["UD Send Only Immediate, 8 bytes, immediate 0x2a, SE"]),
    ];
    for (service, work, length, immediate, solicited, wanted) in &posts {
        let (service, work, length, immediate, solicited) = (*service, *work, *length, *immediate, *solicited);
        let mut side = of(service, attributes(0, 0, 7, 7));
        let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
        side.fill(BYTES, &bytes);
        let local = Local::SgList(vec![side.piece(BYTES, length)]);
        let (wr_id, signaled, fence, length) = (0, true, false, length as u32);
        let _ = side.post_send(SendRequest { wr_id, work, local, length, immediate, signaled, solicited, fence });
        (0..wanted.len()).for_each(|_| side.act(Qp::tick));
        let packets: Vec<Packet> = side.out.drain(..).collect();
        let yours: Vec<String> = packets.iter().map(detail).collect();
        let with = immediate.map_or(String::new(), |immediate| format!(", with immediate {immediate:#x}"));
        let marked = if solicited { ", solicited" } else { "" };
        let when = format!("The MTU is {MTU}, and a {work} of {length} bytes is posted{with}{marked}");
        if yours != *wanted {
            let wanted: Vec<String> = wanted.iter().map(|packet| (*packet).to_owned()).collect();
            let (wanted, yours, decided) = (listed(&wanted), listed(&yours), side.decided());
            return Err(format!("{when}. Expected\n  {wanted}. Yours:\n  {yours}.{decided}"));
        }
        if packets.iter().flat_map(|packet| packet.payload.clone()).ne(bytes) {
            return Err(format!("{when}. Its packets carry the program's bytes, in order. Yours carry others."));
        }
    }
    asks_in_between()?;
    Ok(format!("{} kinds of messages have in their packets what they should", posts.len()))
}

/// A packet, and what it brings besides its payload.
fn detail(packet: &Packet) -> String {
    let ends = matches!(packet.row().part, Part::Last | Part::Only);
    let mut text = format!("{}, {} bytes", packet.row().name, packet.payload.len());
    text += &if packet.brings_immediate() { format!(", immediate {:#x}", packet.immediate) } else { String::new() };
    text += &if packet.brings_invalidate() { format!(", key {:#x}", packet.invalidate) } else { String::new() };
    text += if packet.solicited { ", SE" } else { "" };
    // In the middle of a message it may ask as often as it likes.
    text + if packet.ack_request && (ends || packet.row().service != Service::Rc) { ", AckReq" } else { "" }
}

/// Where a long message asks for an ACK: at its end, and so often before that an answer is always owed when the window is full.
fn asks_in_between() -> Result<(), String> {
    const PACKETS: u32 = 3 * WINDOW + 8;
    let mut side = in_rts(attributes(0, 0, 7, 7));
    // On a link with a rate the window is larger, and all can be seen.
    side.link = Some(Link::new(1_000_000_000_000, None));
    let _ = side.post(0, Work::Write(ANYWHERE), 0, (PACKETS * MTU) as usize);
    (0..PACKETS).for_each(|_| side.wait(MOMENT));
    let asking: Vec<u32> = side.out.iter().filter(|packet| packet.ack_request).map(|packet| packet.psn.get()).collect();
    let first = asking.first().map_or(PACKETS, |psn| psn + 1);
    let longest = asking.windows(2).map(|two| two[1] - two[0]).fold(first, u32::max);
    if side.out.len() == PACKETS as usize && longest <= WINDOW && asking.last() == Some(&(PACKETS - 1)) {
        return Ok(());
    }
    Err(format!(
        "A WRITE of {PACKETS} packets is posted, and {WINDOW} may be under way. One of them has to ask for an ACK, or else nothing \
         more is sent until the timer takes all of them for lost; and the last one has to. Yours sends {}, and asks in PSN {asking:?}.",
        side.out.len()
    ))
}

/// A requester that has posted a WRITE of so many packets, and sent what may be under way.
fn long_write(packets: u32) -> End {
    let mut side = in_rts(attributes(0, 0, 7, 7));
    let _ = side.post(0, Work::Write(ANYWHERE), 0, (packets * MTU) as usize);
    side.act(Qp::tick);
    side
}

/// An ACK answers for all before it, and for none behind; in the middle of a message it lets the window move on.
pub fn ack() -> Verdict {
    let mut end = requester(&[Work::Send; 3], 7, 7);
    for (psn, wanted) in [(1, 2), (0, 2), (2, 3)] {
        end.acknowledge(psn, Syndrome::ACK);
        let yours = end.sent.len();
        if yours != wanted {
            let told =
                format!("Three SENDs, PSNs 0 to 2; an ACK of PSN {psn} came: {wanted} are done. Yours: {yours}.");
            return Err(told + &end.decided());
        }
    }
    let mut side = requester(&[Work::Send; 2], 7, 7);
    side.wait(TIME / 2);
    side.acknowledge(0, Syndrome::ACK);
    goes_on(&side, "Half of the time-out after two SENDs an ACK of the first one came")?;
    let mut side = in_rts(attributes(0, 0, 7, 7));
    let _ = side.post(0, Work::Send, BYTES, 600);
    side.shows();
    for (psn, wanted) in [(0, None), (1, None), (2, Some(Status::Success))] {
        side.acknowledge(psn, Syndrome::ACK);
        ended(&side, &format!("A SEND has the PSNs 0 to 2, and an ACK of PSN {psn} came"), wanted)?;
    }
    // Which ACKs let it go on: so many packets are sent then.
    let mut side = long_write(WINDOW + 36);
    for (psn, wanted) in [(None, WINDOW), (Some(15), 16), (Some(31), 16), (Some(33), 2)] {
        let came = psn.map_or(String::new(), |psn| format!("; an ACK of PSN {psn} came"));
        psn.into_iter().for_each(|psn| side.acknowledge(psn, Syndrome::ACK));
        let yours = side.shows().len();
        if yours != wanted as usize {
            return Err(format!(
                "A WRITE of {} packets is posted, and {WINDOW} may be under way{came}: {wanted} packets are sent. Yours: \
                 {yours}.{}",
                WINDOW + 36,
                side.decided()
            ));
        }
    }
    let mut side = requester(&[Work::Read(ANYWHERE), Work::Send], 7, 7);
    side.acknowledge(1, Syndrome::ACK);
    ended(
        &side,
        "A READ has PSN 0, a SEND PSN 1; an ACK of PSN 1 came, and no bytes of the READ: the first request",
        None,
    )?;
    Ok("An ACK answers for all before it, and for nothing after it".into())
}
