//! Lesson 16, what no recorded program posts: one request of each kind, and what its packets have in them; a datagram; a message that
//! is longer than the window; and ACKs of it.

use crate::end::{attributes, listed, End, MTU};
use crate::situation::{ended, expect, requester, ANYWHERE};
use nic::completion::Status;
use nic::packet::Packet;
use nic::qp::{Qp, Service};
use nic::work::{Destination, Local, SendRequest, Work};
use roce::aeth::Syndrome;
use std::net::{IpAddr, Ipv4Addr};

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

/// A datagram goes to its own destination, in one packet or not at all.
pub fn send() -> Result<(), String> {
    let mut side = End::of(Service::Ud, attributes(0, 0, 7, 7));
    for (number, length, wanted) in
        [(0, 8, &["UD Send Only, PSN 0"][..]), (1, PORT_MTU, &["UD Send Only, PSN 1"]), (2, PORT_MTU + 1, &[])]
    {
        side.post(number, Work::Datagram(TO), BYTES, length);
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
                "{when}. Nobody answers: it is done as soon as it is sent, and one that is too long is, too. Yours is not.{}",
                side.decided()
            ));
        }
    }
    side.post(3, Work::Datagram(TO), BYTES, 8);
    expect(
        &mut side,
        "The PSNs 2 and 3 were those of the one that was too long; one more is posted",
        &["UD Send Only, PSN 4"],
    )
}

/// A request of this service, with its length and what it brings; and the first and the last of its packets.
type Post<'a> = (Service, Work, usize, Option<u32>, bool, &'a [&'a str]);

/// What stands in the packets of a message.
pub fn packet() -> Result<(), String> {
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
    for (service, work, length, immediate, solicited, wanted) in posts {
        let mut side = End::of(service, attributes(0, 0, 7, 7));
        let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
        side.fill(BYTES, &bytes);
        let local = Local::SgList(vec![side.piece(BYTES, length)]);
        let (wr_id, signaled, fence, length) = (0, true, false, length as u32);
        side.post_request(SendRequest { wr_id, work, local, length, immediate, signaled, solicited, fence });
        (0..wanted.len()).for_each(|_| side.act(Qp::tick));
        let packets: Vec<Packet> = side.out.drain(..).collect();
        let yours: Vec<String> = packets.iter().map(detail).collect();
        let with = immediate.map_or(String::new(), |immediate| format!(", with immediate {immediate:#x}"));
        let marked = if solicited { ", solicited" } else { "" };
        let when = format!("The MTU is {MTU}, and a {work} of {length} bytes is posted{with}{marked}");
        if yours != wanted {
            let wanted: Vec<String> = wanted.iter().map(|packet| (*packet).to_owned()).collect();
            let (wanted, yours, decided) = (listed(&wanted), listed(&yours), side.decided());
            return Err(format!("{when}. Wanted is\n  {wanted}. Yours:\n  {yours}.{decided}"));
        }
        if packets.iter().flat_map(|packet| packet.payload.clone()).ne(bytes) {
            return Err(format!("{when}. Its packets carry the program's bytes, in order. Yours carry others."));
        }
    }
    asks_in_between()
}

/// A packet, and what it brings besides its payload.
fn detail(packet: &Packet) -> String {
    let mut text = format!("{}, {} bytes", packet.row().name, packet.payload.len());
    text += &if packet.brings_immediate() { format!(", immediate {:#x}", packet.immediate) } else { String::new() };
    text += &if packet.brings_invalidate() { format!(", key {:#x}", packet.invalidate) } else { String::new() };
    text += if packet.solicited { ", SE" } else { "" };
    text + if packet.ack_request { ", AckReq" } else { "" }
}

/// Where a long message asks for an ACK.
fn asks_in_between() -> Result<(), String> {
    for (packets, wanted) in [(15, vec![14]), (16, vec![15]), (40, vec![15, 31, 39])] {
        let side = long_write(packets);
        let asking = |packet: &&Packet| packet.ack_request;
        let yours: Vec<u32> = side.out.iter().filter(asking).map(|packet| packet.psn.get()).collect();
        if yours != wanted {
            return Err(format!(
                "A WRITE of {packets} packets is posted, PSNs 0 to {}: those that ask for an ACK are PSN {wanted:?}. Yours: {yours:?}.\n\
                 Else a message that is longer than the window waits for ever.",
                packets - 1
            ));
        }
    }
    Ok(())
}

/// A requester that has posted a WRITE of so many packets, and sent what may be under way.
fn long_write(packets: u32) -> End {
    let mut side = End::new(attributes(0, 0, 7, 7));
    side.post(0, Work::Write(ANYWHERE), 0, (packets * MTU) as usize);
    side.act(Qp::tick);
    side
}

/// An ACK answers for all before it, and for none behind; in the middle of a message it lets the window move on.
pub fn ack() -> Result<(), String> {
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
    let mut side = End::new(attributes(0, 0, 7, 7));
    side.post(0, Work::Send, BYTES, 600);
    side.sends();
    for (psn, wanted) in [(0, None), (1, None), (2, Some(Status::Success))] {
        side.acknowledge(psn, Syndrome::ACK);
        ended(&side, &format!("A SEND has the PSNs 0 to 2, and an ACK of PSN {psn} came"), wanted)?;
    }
    // Which ACKs let it go on: so many packets are sent then.
    let mut side = long_write(WINDOW + 36);
    for (psn, wanted) in [(None, WINDOW), (Some(15), 16), (Some(31), 16), (Some(33), 2)] {
        let came = psn.map_or(String::new(), |psn| format!("; an ACK of PSN {psn} came"));
        psn.into_iter().for_each(|psn| side.acknowledge(psn, Syndrome::ACK));
        let yours = side.sends().len();
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
    )
}
