//! Lesson 16, what no recorded peer sends: one request of each operation; the first one of all; and messages that fill a receive to its
//! last byte, or would fill more.

use crate::end::{in_rts, listed, ready, ALL, NUMBER};
use crate::situation::{expect, parts, request};
use crate::strangers::NO_KEY;
use crate::Verdict;
use nic::memory::Sge;
use nic::outside::AsyncEvent;
use nic::packet::{code, opcode_of, AtomicEth, Feth, Packet, Reth};
use nic::psn::Psn;
use nic::qp::{Attributes, Qp, Service, State};
use nic::work::Remote;
use pair::end::shown;
use pair::{attributes, End, MTU};
use roce::headers::imm_dt;
use roce::opcode::{Operation, Part};

/// Where receives are, so far apart.
const PLACE: usize = 1024;
const APART: usize = 4096;

/// What comes in its order is carried out, once, by the method of its operation.
pub fn receive() -> Verdict {
    let mut end = in_rts(attributes(0, 0, 7, 7));
    for number in 0..4 {
        let _ = end.post_receive(number, 0, 8);
    }
    for (psn, what, wanted) in
        [(0, "it is expected", 1), (2, "PSN 1 is missing", 1), (0, "it was here before", 1), (1, "it is expected", 2)]
    {
        end.receive(request(Operation::Send, Part::Only, psn, Reth::default()));
        let yours = end.received.len();
        if yours != wanted {
            let told = format!("PSN {psn} came; {what}: the program has {wanted} messages. Yours: {yours}.");
            return Err(told + &end.decided());
        }
    }
    early_and_late()?;
    first()?;
    each()?;
    Ok("Each request is carried out in its order, once, by its own method".into())
}

/// What comes too early or too late is left to `gap` and `duplicate`. While these are still holes, they say that they were called.
fn early_and_late() -> Result<(), String> {
    let send = |psn: u32| request(Operation::Send, Part::Only, psn, Reth::default());
    let mut side = in_rts(attributes(0, 0, 7, 7));
    side.receive(send(0));
    for number in 0..2 {
        let _ = side.post_receive(number, 0, 8);
    }
    side.receive(send(0));
    for (psn, what) in [(0, "is a duplicate: `duplicate` gets it"), (2, "leaves a gap: `gap` gets it")] {
        (side.out, side.said) = Default::default();
        side.receive(send(psn));
        if side.out.is_empty() && side.said.is_empty() {
            return Err(format!("PSN 0 was carried out. PSN {psn} came, and {what}. Yours drops it without a word."));
        }
    }
    let is_told = side.out.iter().any(|packet| shown(packet).starts_with("NAK"));
    if is_told || side.said.iter().any(|said| said.ends_with("nak_sent is false")) {
        return Ok(());
    }
    Err(format!(
        "PSN 0 had no receive, and was told so by an RNR NAK. Then it came again, as expected, and PSN 2 came, a gap: that is to be told \
         anew, so `nak_sent` is false. Yours is true.{}",
        side.decided()
    ))
}

/// The first request tells that the connection stands, to a program that does not know it.
fn first() -> Result<(), String> {
    let attributes = attributes(0, 0, 7, 7);
    for (state, wanted) in [(State::Rtr, &[AsyncEvent::CommunicationEstablished][..]), (State::Rts, &[])] {
        let mut side = ready(Service::Rc, attributes, false);
        if state == State::Rts {
            let _ = side.moves(state, &Attributes { access: ALL, dest_qp: NUMBER, ..attributes });
            side.said.clear();
        }
        for (psn, which) in [(0, "first SEND comes"), (1, "first two SENDs come")] {
            let _ = side.post_receive(psn.into(), 0, 8);
            side.receive(request(Operation::Send, Part::Only, psn, Reth::default()));
            if side.raised != wanted {
                let yours = &side.raised;
                return Err(format!(
                    "The queue pair is in {state}, and its {which}: the program is told {wanted:?}. Yours: {yours:?}."
                ));
            }
        }
    }
    Ok(())
}

/// One request of each operation.
fn each() -> Result<(), String> {
    let Remote { address: va, rkey } = in_rts(attributes(0, 0, 7, 7)).remote(64);
    let reth = Reth { va, rkey, length: 8 };
    let atomic = AtomicEth { va, rkey, swap_add: 1, compare: 1 };
    // All bytes, and visible to nobody: that needs no right.
    let feth = Feth { placement: 0, level: 0 };
    let empty =
        Packet { dest_qp: NUMBER, psn: Psn::new(0), ack_request: true, reth, atomic, feth, ..Packet::default() };
    let write = opcode_of(Service::Rc, Operation::Write, Part::Only, Some(&imm_dt::HEADER));
    let eight = vec![1; 8];
    for (packet, answer) in [
        // A WRITE itself is lesson 17's.
        (Packet { opcode: write, payload: eight.clone(), ..empty.clone() }, "RNR NAK, wait 0.64 ms, PSN 0"),
        (Packet { opcode: code::READ_REQUEST, ..empty.clone() }, "RDMA Read Response Only, PSN 0"),
        (Packet { opcode: code::COMPARE_SWAP, ..empty.clone() }, "Atomic Acknowledge, PSN 0"),
        (Packet { opcode: code::FETCH_ADD, ..empty.clone() }, "Atomic Acknowledge, PSN 0"),
        (Packet { opcode: code::ATOMIC_WRITE, payload: eight, ..empty.clone() }, "RDMA Read Response Only, PSN 0"),
        (Packet { opcode: code::FLUSH, ..empty }, "RDMA Read Response Only, PSN 0"),
    ] {
        let mut side = in_rts(attributes(0, 0, 7, 7));
        let when = format!("A {} came, and no receive is posted", packet.row().name.trim_start_matches("RC "));
        side.receive(packet);
        expect(&mut side, &when, &[answer])?;
    }
    Ok(())
}

/// A SEND in packets of these lengths, and a receive of pieces of those; what is answered; and the bytes that are placed.
type Case<'a> = (&'a [usize], &'a [u32], &'a str, usize);

/// Bytes go into the receive: piece after piece, and no byte behind it.
pub fn place() -> Verdict {
    let full = MTU as usize;
    let cases: [Case; 8] = [
        (&[8], &[8], "ACK", 8),
        (&[0], &[], "ACK", 0),
        (&[8], &[3, 0, 5], "ACK", 8),
        (&[full, full, 88], &[100, 300, 200], "ACK", 600),
        (&[full, full, 88], &[600], "ACK", 600),
        (&[9], &[8], "NAK", 0),
        (&[full, 45], &[300], "NAK", full),
        (&[full], &[100, 155], "NAK", 0),
    ];
    for &(packets, pieces, answer, placed) in &cases {
        let mut side = in_rts(attributes(0, 0, 7, 7));
        let _ = side.post_receives(1, pieces.iter().zip(0..).map(|(length, at)| piece(&side, at, *length)).collect());
        let bytes = send(&mut side, packets);
        let lengths = listed(&packets.iter().map(usize::to_string).collect::<Vec<_>>());
        let when = format!("A SEND came, in packets of {lengths} bytes; its receive has pieces of {pieces:?}");
        answered(&mut side, &when, answer)?;
        let mut wanted: Vec<u8> = bytes[..placed].to_vec();
        wanted.resize(pieces.iter().sum::<u32>() as usize, 0);
        let there = |(length, at): (&u32, usize)| side.bytes(PLACE + at * APART, *length as usize);
        if pieces.iter().zip(0..).flat_map(there).ne(wanted) {
            return Err(format!("{when}: {placed} bytes are placed, piece after piece. Yours are elsewhere."));
        }
        let behind = |(length, at): (&u32, usize)| side.bytes(PLACE + at * APART + *length as usize, full);
        if pieces.iter().zip(0..).flat_map(behind).any(|byte| byte != 0) {
            return Err(format!("{when}: yours has written past the end of a piece."));
        }
    }
    longest()?;
    let mut side = in_rts(attributes(0, 0, 7, 7));
    let lost = Sge { lkey: NO_KEY, ..piece(&side, 0, 8) };
    let _ = side.post_receives(1, vec![lost]);
    send(&mut side, &[8]);
    answered(&mut side, "A SEND of 8 bytes came, and the key of its receive's own memory opens nothing", "NAK")?;
    Ok(format!("{} messages fill their receives, or are refused, to the byte", cases.len()))
}

/// A SEND that fills a receive of more than 2^30 bytes: as many are allowed, and no more.
fn longest() -> Result<(), String> {
    const FULL: u32 = 4096;
    let mut side = in_rts(Attributes { mtu: FULL, ..attributes(0, 0, 7, 7) });
    let lkey = side.memory.register(pair::memory::endless(1 << 32, ALL), 7);
    let _ = side.post_receives(1, vec![Sge { address: 0, length: u32::MAX, lkey }]);
    side.talks = false;
    side.given = |_| {};
    let packets = Qp::LONGEST / FULL;
    for psn in 0..=packets {
        let (part, length) = match psn {
            0 => (Part::First, FULL),
            _ if psn < packets => (Part::Middle, FULL),
            _ => (Part::Last, 1),
        };
        let ack_request = psn + 1 >= packets;
        let packet = request(Operation::Send, part, psn, Reth::default());
        side.receive(Packet { payload: vec![0; length as usize], ack_request, ..packet });
        if psn + 1 >= packets {
            let (more, wanted) = if psn == packets { (", and one byte more", "NAK") } else { ("", "ACK") };
            let when =
                format!("A SEND came with 2^30 bytes, the longest there is{more}, for a receive of 2^32 - 1 bytes");
            answered(&mut side, &when, wanted)?;
        }
    }
    Ok(())
}

fn piece(side: &End, at: usize, length: u32) -> Sge {
    side.piece(PLACE + at * APART, length as usize)
}

/// A SEND comes, in packets of these lengths: its bytes.
fn send(side: &mut End, packets: &[usize]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for ((at, length), part) in packets.iter().enumerate().zip(parts(packets.len())) {
        let payload: Vec<u8> = (0..*length).map(|byte| (1 + at * 50 + byte % 50) as u8).collect();
        bytes.extend_from_slice(&payload);
        let ack_request = part == Part::Last || part == Part::Only;
        side.receive(Packet { payload, ack_request, ..request(Operation::Send, part, at as u32, Reth::default()) });
    }
    bytes
}

/// Looks at the answer. Which NAK it is, lesson 19 says.
fn answered(side: &mut End, when: &str, wanted: &str) -> Result<(), String> {
    let yours: Vec<String> = side.out.drain(..).map(|packet| shown(&packet)).collect();
    // ACKs of what came before may be among them, though nobody has asked for them.
    let (last, before) = yours.split_last().map_or(("", &[][..]), |(last, before)| (last.as_str(), before));
    if last.starts_with(wanted) && before.iter().all(|before| before.starts_with("ACK")) {
        return Ok(());
    }
    let wanted = if wanted == "NAK" { "a NAK" } else { "an ACK" };
    Err(format!("{when}: expected {wanted}. Yours: {}.{}", listed(&yours), side.decided()))
}
