//! Lesson 19: an atomic operation changes eight bytes and brings what stood there; and it is carried out once, however often it
//! comes.

use crate::contract::{holds, Case, Op, Random};
use crate::end::{in_rts, ALL, NUMBER, SIZE};
use crate::situation::{atomic_request, expect, fetch_add};
use crate::strangers::NO_KEY;
use crate::Verdict;
use nic::memory::Access;
use nic::packet::{code, Packet};
use nic::psn::Psn;
use nic::qp::{mask, Attributes, State};
use nic::work::Remote;
use pair::{attributes, PD};

/// So many wires are tried.
const WIRES: u64 = 1_000;
/// Where atomic operations work.
const CELL: usize = 64;

/// An atomic operation comes.
pub fn atomic() -> Verdict {
    let mut side = in_rts(attributes(0, 0, 7, 7));
    for (psn, (opcode, stands, operand, compare, then)) in (0..).zip([
        (code::FETCH_ADD, 7, 5, 0, 12),
        (code::FETCH_ADD, u64::MAX, 5, 0, 4),
        (code::COMPARE_SWAP, 7, 5, 7, 5),
        (code::COMPARE_SWAP, 7, 5, 6, 7),
    ]) {
        side.fill(CELL, &u64::to_ne_bytes(stands));
        let packet = atomic_request(opcode, psn, side.remote(CELL), operand, compare);
        let compared = if opcode == code::FETCH_ADD { String::new() } else { format!(" if {compare} is there") };
        let when = format!("{stands} is there; a {} of {operand} came{compared}", packet.row().name);
        side.receive(packet);
        let original = side.out.first().map_or(0, |answer| answer.original);
        expect(&mut side, &when, &[&format!("Atomic Acknowledge, PSN {psn}")])?;
        let there = side.bytes(CELL, 8).try_into().map_or(0, u64::from_ne_bytes);
        if (there, original) != (then, stands) {
            return Err(format!(
                "{when}: then {then} is there, and the answer brings {stands}. Yours: {there}, and {original}."
            ));
        }
        side.receive(atomic_request(opcode, psn, side.remote(CELL), operand, compare));
        let again = side.out.drain(..).next_back().map(|answer| answer.original);
        if again != Some(stands) {
            return Err(format!(
                "{when}, and came again: it must be remembered, with the {stands} that was there. Yours brings {again:?} then."
            ));
        }
    }
    let cell = side.remote(CELL);
    for (what, remote, access, answer) in [
        (
            "its address isn't a multiple of 8",
            Remote { address: cell.address + 4, ..cell },
            15,
            "NAK, invalid request, PSN 0",
        ),
        ("its key opens nothing", Remote { rkey: NO_KEY, ..cell }, 15, "NAK, remote access error, PSN 0"),
        ("the queue pair allows no atomics", cell, 7, "NAK, invalid request, PSN 0"),
    ] {
        let attributes = attributes(0, 0, 7, 7);
        let mut side = in_rts(attributes);
        let attributes = Attributes { access: Access(access), ..attributes };
        // A queue pair in RTS may be given other rights.
        let _ = side.act(|qp, ctx| qp.modify(mask::ACCESS_FLAGS, State::Rts, &attributes, ctx));
        side.receive(atomic_request(code::FETCH_ADD, 0, remote, 5, 0));
        expect(&mut side, &format!("A fetch and add came; {what}"), &[answer])?;
    }
    let mut side = in_rts(attributes(0, 0, 7, 7));
    let no_atomics = side.register(Access(ALL.0 & !Access::REMOTE_ATOMIC.0), SIZE as u64, PD);
    side.receive(atomic_request(code::FETCH_ADD, 0, Remote { rkey: no_atomics, ..cell }, 5, 0));
    expect(&mut side, "A fetch and add came; its key allows no atomics", &["NAK, remote access error, PSN 0"])?;
    Ok("Eight bytes are changed, and the answer brings what was there.".to_owned())
}

/// An atomic operation comes again.
pub fn once() -> Verdict {
    let seen = holds((0..WIRES).map(|seed| {
        let mut random = Random(seed);
        let op = |random: &mut Random| match random.below(4) {
            0 => Op::Send(8),
            1 => Op::Read(300),
            _ => Op::FetchAdd(1 + random.below(9) as u64),
        };
        let ops = (0..1 + random.below(4)).map(|_| op(&mut random)).collect();
        Case { ops, faults: random.faults(4, 16), psn: 0, retries: 7, early: 4 }
    }))?;
    let mut side = in_rts(attributes(0, 0, 7, 7));
    let cell = side.remote(CELL);
    let reth = side.reth(CELL, 8);
    let write = Packet { opcode: code::ATOMIC_WRITE, dest_qp: NUMBER, reth, payload: vec![1; 8], ..Packet::default() };
    let flush = Packet { opcode: code::FLUSH, payload: Vec::new(), psn: Psn::new(1), ..write.clone() };
    let swap = atomic_request(code::COMPARE_SWAP, 2, cell, 5, u64::from_ne_bytes([1; 8]));
    too_long_ago()?;
    for (what, packet, answer) in [
        ("An ATOMIC WRITE", write, "RDMA Read Response Only, PSN 0"),
        ("A FLUSH", flush, "RDMA Read Response Only, PSN 1"),
        ("A compare and swap", swap, "Atomic Acknowledge, PSN 2"),
    ] {
        for when in ["came", "came again"] {
            side.receive(packet.clone());
            let brings = side.out.last().map(|answer| answer.original);
            expect(&mut side, &format!("{what} {when}"), &[answer])?;
            if packet.opcode == code::COMPARE_SWAP && brings != Some(packet.atomic.compare) {
                return Err(format!(
                    "{what} {when}: its answer brings what was there the first time. Yours: {brings:x?}."
                ));
            }
        }
    }
    Ok(seen)
}

/// Two may be under way, so of three the first one can't be asked for again by anybody who keeps to that.
fn too_long_ago() -> Result<(), String> {
    let mut side = in_rts(attributes(0, 0, 7, 7));
    let cell = side.remote(CELL);
    (0..3).for_each(|psn| side.receive(fetch_add(psn, cell)));
    side.shows();
    for (psn, what, wanted) in [
        (1, "it is remembered", &["Atomic Acknowledge, PSN 1"][..]),
        (0, "that is too long ago, and nobody knows what was there", &[]),
    ] {
        side.receive(fetch_add(psn, cell));
        let when = format!("Two atomics may be under way, and three came, PSNs 0 to 2. PSN {psn} came again: {what}");
        expect(&mut side, &when, wanted)?;
    }
    Ok(())
}
