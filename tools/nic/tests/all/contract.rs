//! The contract of a reliable connection, over a wire that keeps no promises.

use crate::pair::{all, attributes, end, faults, hold, Fault, Faults, Pair, MTU};
use pair::contract::{fault, run, Op, ROOM, SLOT};
use proptest::collection::vec;
use proptest::prelude::*;

/// Requests of a run, and the room that they need.
const MOST: usize = 13;
const SIZE: usize = MOST * (SLOT + ROOM) + 8;

fn op() -> impl Strategy<Value = Op> {
    let length = prop_oneof![Just(0), Just(MTU as usize), 1..2048usize, SLOT * 4 / 5..SLOT, 1..20usize];
    let add = 1..1000u64;
    (0..7, length, add).prop_map(|(kind, length, add)| match kind {
        0 => Op::SendWithImmediate(length),
        1 => Op::Write(length),
        2 => Op::WriteWithImmediate(length),
        3 => Op::Read(length),
        4 => Op::AtomicWrite,
        5 => Op::Flush,
        _ => Op::FetchAdd(add),
    })
}

/// Posts everything, lets the wire do its worst, and looks.
fn check(ops: &[Op], faults: Faults, psn: u32, retries: u8, early: usize) -> Result<(), TestCaseError> {
    // Receives that come late cost no attempts: for ever.
    let client = end(17, 18, SIZE, attributes(psn, !psn, retries, 7));
    let server = end(18, 17, SIZE, attributes(!psn, psn, retries, 7));
    let mut pair = Pair::new(client, server, faults);
    let over = run(&mut pair, ops, early);
    let said = |pair: &Pair| format!("{:#?}", pair.client.said.iter().rev().take(30).collect::<Vec<_>>());
    prop_assert!(over, "it never ends: {}", said(&pair));
    prop_assert!(pair.client.buffer.guards_stand() && pair.server.buffer.guards_stand());
    let fault = fault(ops, &pair, Some(retries));
    prop_assert!(fault.is_none(), "{fault:?}: {}", said(&pair));
    Ok(())
}

/// SENDs longer than a receive are a test of their own.
fn that_fit(ops: Vec<Op>) -> Vec<Op> {
    ops.into_iter().filter(|op| !matches!(op, Op::SendWithImmediate(length) if *length > ROOM)).collect()
}

fn holds(cases: u32) {
    let inputs = (
        vec(op(), 1..=MOST),
        // A bad wire at the beginning, or one that is bad now and then for long messages.
        prop_oneof![faults(6, MOST * 9), faults(80, MOST * 40)],
        // Often near the end of the circle.
        prop_oneof![any::<u32>(), 0xff_ffc0..=0xff_ffffu32],
        prop_oneof![Just(7u8), 0..7u8],
        0..8usize,
    );
    hold(cases, inputs, |(ops, faults, psn, retries, early)| check(&that_fit(ops), faults, psn, retries, early));
}

#[test]
fn every_request_is_carried_out_once_and_in_order_or_ends_in_an_error() {
    holds(1_000);
}

#[test]
#[ignore = "takes long: make test-long"]
fn over_a_hundred_thousand_wires() {
    holds(100_000);
}

#[test]
fn a_wire_that_loses_everything_ends_in_retries_exceeded() {
    let ops = [Op::Write(10), Op::SendWithImmediate(10)];
    check(&ops, all(1000, Fault::Lose), 5, 3, 8).unwrap();
}
