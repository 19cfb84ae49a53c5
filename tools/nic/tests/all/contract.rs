//! The contract of a reliable connection, over a wire that keeps no promises: every request is carried out once, in order, or
//! it ends in an error, and after an error nothing is carried out any more.

use crate::pair;
use crate::pair::{attributes, end, End, Fault, Faults, Pair, MTU};
use nic::completion::{Completion, Status, WcOpcode};
use nic::packet::Feth;
use nic::work::{SendRequest, Work};
use proptest::collection::vec;
use proptest::prelude::*;

/// Each request has a part of both buffers of its own, and receives theirs behind.
const SIZE: usize = 1 << 18;
/// The longest request: a READ of it has more responses than go out at a time.
const SLOT: usize = 10_000;
const RECEIVES: usize = SIZE / 2;
/// Requests of a run.
const MOST: usize = 13;

#[derive(Clone, Copy, Debug)]
enum Op {
    Send(usize),
    Write(usize),
    WriteWithImmediate(usize),
    Read(usize),
    FetchAdd(u64),
    AtomicWrite,
    Flush,
}

impl Op {
    fn uses_receive(self) -> bool {
        matches!(self, Op::Send(_) | Op::WriteWithImmediate(_))
    }
}

fn op() -> impl Strategy<Value = Op> {
    let length = prop_oneof![Just(0), Just(MTU as usize), 1..SLOT.min(2048), SLOT * 4 / 5..SLOT, 1..20usize];
    let add = 1..1000u64;
    (0..7, length, add).prop_map(|(kind, length, add)| match kind {
        0 => Op::Send(length),
        1 => Op::Write(length),
        2 => Op::WriteWithImmediate(length),
        3 => Op::Read(length),
        4 => Op::AtomicWrite,
        5 => Op::Flush,
        _ => Op::FetchAdd(add),
    })
}

/// Bytes that tell which request they belong to.
fn pattern(request: usize, length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|at| (request * 31 + at * 7) as u8 ^ seed).collect()
}

fn request(op: Op, number: usize, client: &mut End, server: &mut End) -> SendRequest {
    let at = number * SLOT;
    let remote = server.remote(at);
    let cell = server.remote(SIZE - 8);
    let (work, length, immediate) = match op {
        Op::Send(length) => (Work::Send, length, Some(number as u32)),
        Op::Write(length) => (Work::Write(remote), length, None),
        Op::WriteWithImmediate(length) => (Work::Write(remote), length, Some(number as u32)),
        Op::Read(length) => (Work::Read(remote), length, None),
        Op::FetchAdd(add) => (Work::FetchAdd { remote: cell, add }, 8, None),
        Op::AtomicWrite => (Work::AtomicWrite(cell), 8, None),
        Op::Flush => (Work::Flush { remote, feth: Feth { placement: 1, level: 0 } }, SLOT, None),
    };
    match op {
        Op::Read(_) => server.fill(at, &pattern(number, length, 0xff)),
        _ => client.fill(at, &pattern(number, length, 0)),
    }
    SendRequest { immediate, ..pair::request(number as u64, work, client.piece(at, length)) }
}

/// Posts everything, lets the wire do its worst, and looks.
fn check(ops: &[Op], faults: Faults, psn: u32, retries: u8, early: usize) -> Result<(), TestCaseError> {
    // Receives that come late cost no attempts: for ever.
    let client = end(17, 18, SIZE, attributes(psn, !psn, retries, 7));
    let server = end(18, 17, SIZE, attributes(!psn, psn, retries, 7));
    let mut pair = Pair::new(client, server, faults);
    let needed = ops.iter().filter(|op| op.uses_receive()).count();
    let mut posted = 0;
    let mut post = |pair: &mut Pair, most: usize| {
        while posted < needed.min(most) {
            // Only short SENDs fit; those that do not are left out below.
            let _ = pair.server.post_receive(posted as u64, RECEIVES + posted * SLOT / 2, SLOT / 2);
            posted += 1;
        }
    };
    post(&mut pair, early);
    for (number, op) in ops.iter().enumerate() {
        let request = request(*op, number, &mut pair.client, &mut pair.server);
        pair.client.post_send(request).unwrap();
    }
    let mut allowed = early;
    let over = pair.run(|pair| {
        allowed += 1;
        post(pair, allowed);
    });
    prop_assert!(over, "it never ends: {:#?}", pair.client.said.iter().rev().take(30).collect::<Vec<_>>());
    prop_assert!(pair.client.buffer.guards_stand() && pair.server.buffer.guards_stand());
    judge(ops, &pair, retries)
}

fn judge(ops: &[Op], pair: &Pair, retries: u8) -> Result<(), TestCaseError> {
    let (sent, received) = (&pair.client.sent, &pair.server.received);
    let good = sent.iter().take_while(|wc| wc.status == Status::Success).count();
    prop_assert_eq!(sent.iter().map(|wc| wc.wr_id as usize).collect::<Vec<_>>(), (0..ops.len()).collect::<Vec<_>>());
    if let Some(cause) = sent.get(good) {
        prop_assert!(retries < 7 || cause.status == Status::RetryExcErr, "{:?}", cause);
        prop_assert!(cause.status != Status::WrFlushErr, "an echo without a cause");
        prop_assert!(sent[good + 1..].iter().all(|wc| wc.status == Status::WrFlushErr));
    }
    // What has arrived is a beginning of what was sent, each once. One more than was acknowledged may have arrived.
    let arrived: Vec<&Completion> = received.iter().filter(|wc| wc.status == Status::Success).collect();
    let sends: Vec<usize> = (0..ops.len()).filter(|number| ops[*number].uses_receive()).collect();
    let order: Vec<usize> = arrived.iter().map(|wc| wc.immediate.unwrap_or(u32::MAX) as usize).collect();
    prop_assert!(sends.starts_with(&order), "{:?} is no beginning of {:?}", order, sends);
    prop_assert!(sends.iter().filter(|number| **number < good).count() <= order.len());
    let mut sum = 0;
    for (number, op) in ops.iter().enumerate().take(good) {
        let at = number * SLOT;
        match *op {
            Op::Send(length) => {
                let place = sends.iter().position(|send| *send == number).unwrap();
                let there = pair.server.bytes(RECEIVES + place * SLOT / 2, length);
                prop_assert_eq!(there, pattern(number, length, 0));
                prop_assert_eq!((arrived[place].opcode, arrived[place].length as usize), (WcOpcode::Recv, length));
            }
            Op::Write(length) | Op::WriteWithImmediate(length) => {
                prop_assert_eq!(pair.server.bytes(at, length), pattern(number, length, 0));
            }
            Op::Read(length) => {
                prop_assert_eq!(pair.client.bytes(at, length), pattern(number, length, 0xff));
            }
            Op::FetchAdd(add) => {
                let old = u64::from_ne_bytes(pair.client.bytes(at, 8).try_into().unwrap());
                prop_assert_eq!(old, sum, "an atomic operation was carried out twice, or not");
                sum = sum.wrapping_add(add);
            }
            Op::AtomicWrite => sum = u64::from_ne_bytes(pattern(number, 8, 0).try_into().unwrap()),
            Op::Flush => {}
        }
    }
    Ok(())
}

/// SENDs longer than a receive are a test of their own.
fn that_fit(ops: Vec<Op>) -> Vec<Op> {
    ops.into_iter().filter(|op| !matches!(op, Op::Send(length) if *length > SLOT / 2)).collect()
}

fn holds(cases: u32) {
    let inputs = (
        vec(op(), 1..=MOST),
        // A bad wire at the beginning, or one that is bad now and then for long messages.
        prop_oneof![pair::faults(6, MOST * 9), pair::faults(80, MOST * 40)],
        // Often near the end of the circle.
        prop_oneof![any::<u32>(), 0xff_ffc0..=0xff_ffffu32],
        prop_oneof![Just(7u8), 0..7u8],
        0..8usize,
    );
    pair::hold(cases, inputs, |(ops, faults, psn, retries, early)| check(&that_fit(ops), faults, psn, retries, early));
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
    let ops = [Op::Write(10), Op::Send(10)];
    check(&ops, pair::all(1000, Fault::Lose), 5, 3, 8).unwrap();
}
