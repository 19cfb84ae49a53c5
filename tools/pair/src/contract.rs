//! The contract of a reliable connection, over a wire that keeps no promises: every request is carried out once, in order, or it ends
//! in an error, and after an error nothing is carried out any more.

use crate::end::request;
use crate::{End, Pair};
use nic::completion::{Completion, Status, WcOpcode};
use nic::packet::Feth;
use nic::work::{SendRequest, Work};

/// Each request has a part of both buffers of its own, which holds the longest: a READ with more responses than go out at a time.
pub const SLOT: usize = 12_000;
/// The longest SEND, and the room of a receive. These have their parts behind the requests'.
pub const ROOM: usize = 5_000;

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Send(usize),
    SendWithImmediate(usize),
    Write(usize),
    WriteWithImmediate(usize),
    Read(usize),
    FetchAdd(u64),
    AtomicWrite,
    Flush,
}

impl Op {
    fn uses_receive(self) -> bool {
        matches!(self, Op::Send(_) | Op::SendWithImmediate(_) | Op::WriteWithImmediate(_))
    }

    fn immediate(self, number: usize) -> Option<u32> {
        matches!(self, Op::SendWithImmediate(_) | Op::WriteWithImmediate(_)).then_some(number as u32)
    }

    pub fn shown(self) -> String {
        match self {
            Op::Send(length) => format!("SEND of {length} bytes"),
            Op::SendWithImmediate(length) => format!("SEND of {length} bytes with immediate"),
            Op::Write(length) => format!("WRITE of {length} bytes"),
            Op::WriteWithImmediate(length) => format!("WRITE of {length} bytes with immediate"),
            Op::Read(length) => format!("READ of {length} bytes"),
            Op::FetchAdd(add) => format!("fetch and add of {add}"),
            Op::AtomicWrite => "ATOMIC WRITE".to_owned(),
            Op::Flush => "FLUSH".to_owned(),
        }
    }
}

/// Posts all at the client, and this many receives at the server; each time before time goes on, one more. False if that has no end.
pub fn run(pair: &mut Pair, ops: &[Op], early: usize) -> bool {
    let needed = ops.iter().filter(|op| op.uses_receive()).count();
    let (mut posted, mut allowed) = (0, early);
    let post = |pair: &mut Pair| {
        while posted < needed.min(allowed) {
            let _ = pair.server.post_receive(posted as u64, place(ops, posted), ROOM);
            posted += 1;
        }
        allowed += 1;
    };
    for (number, op) in ops.iter().enumerate() {
        let request = posting(ops, *op, number, &pair.client, &pair.server);
        // What is refused never completes: that is seen.
        let _ = pair.client.post_send(request);
    }
    pair.run(post)
}

/// Where the n-th receive is, and where atomic operations count: behind the last one.
fn place(ops: &[Op], receive: usize) -> usize {
    ops.len() * SLOT + receive * ROOM
}

fn cell(ops: &[Op]) -> usize {
    place(ops, ops.len())
}

/// Bytes that tell to which request they belong.
fn pattern(number: usize, length: usize) -> Vec<u8> {
    (0..length).map(|at| (1 + number * 31 + at * 7 + at / 256) as u8).collect()
}

fn posting(ops: &[Op], op: Op, number: usize, client: &End, server: &End) -> SendRequest {
    let at = number * SLOT;
    let (remote, cell) = (server.remote(at), server.remote(cell(ops)));
    let (work, length) = match op {
        Op::Send(length) | Op::SendWithImmediate(length) => (Work::Send, length),
        Op::Write(length) | Op::WriteWithImmediate(length) => (Work::Write(remote), length),
        Op::Read(length) => (Work::Read(remote), length),
        Op::FetchAdd(add) => (Work::FetchAdd { remote: cell, add }, 8),
        Op::AtomicWrite => (Work::AtomicWrite(cell), 8),
        Op::Flush => (Work::Flush { remote, feth: Feth { placement: 1, level: 0 } }, SLOT),
    };
    let begins = if matches!(op, Op::Read(_)) { server } else { client };
    begins.fill(at, &pattern(number, length));
    SendRequest { immediate: op.immediate(number), ..request(number as u64, work, client.piece(at, length)) }
}

/// What is wrong at the end. A request may only fail if it's said how often the client tries again: 7 means that receives that come
/// late cost no attempts.
pub fn fault(ops: &[Op], pair: &Pair, retries: Option<u8>) -> Option<String> {
    let (sent, received) = (&pair.client.sent, &pair.server.received);
    let takers: Vec<usize> = (0..ops.len()).filter(|number| ops[*number].uses_receive()).collect();
    let arrived: Vec<&Completion> = received.iter().filter(|wc| wc.status == Status::Success).collect();
    let is_next = |(place, wc): (usize, &&Completion)| {
        takers.get(place).is_some_and(|number| ops[*number].immediate(*number) == wc.immediate)
    };
    let is_told_more = retries.is_none() && received.len() > takers.len();
    if sent.len() > ops.len() || is_told_more || !arrived.iter().enumerate().all(is_next) {
        return Some("There are more completions than messages, or they are in another order.".to_owned());
    }
    let (mut sum, mut is_over) = (0, false);
    for (number, op) in ops.iter().enumerate() {
        let what = format!("{} with wr_id {number}", op.shown());
        let Some(completion) = sent.get(number) else { return Some(format!("The {what} never completes.")) };
        let (wr_id, status) = (completion.wr_id, completion.status);
        if wr_id != number as u64 {
            return Some(format!("The next to complete is the {what}. Yours: wr_id {wr_id}."));
        }
        if is_over || status != Status::Success {
            let is_wrong = match retries {
                None => return Some(format!("The {what} should succeed. Yours: {}.", status.name())),
                Some(_) if is_over => status != Status::WrFlushErr,
                Some(7) => status != Status::RetryExcErr,
                Some(_) => status == Status::WrFlushErr,
            };
            if is_wrong {
                return Some(format!("The {what} ends with {}, but nothing is wrong with it.", status.name()));
            }
            is_over = true;
            continue;
        }
        let place = takers.iter().position(|taker| *taker == number);
        let at = number * SLOT;
        let there = match (*op, place) {
            (Op::Send(length) | Op::SendWithImmediate(length), Some(place)) => {
                let wanted = Some((WcOpcode::Recv, length));
                if arrived.get(place).map(|completion| (completion.opcode, completion.length as usize)) != wanted {
                    return Some(format!("The {what} is complete, but the server's receive {place} doesn't have it."));
                }
                pair.server.bytes(self::place(ops, place), length)
            }
            (Op::WriteWithImmediate(_), Some(place)) if arrived.len() <= place => {
                return Some(format!("The {what} is complete, but the server's program got no completion for it."));
            }
            (Op::Write(length) | Op::WriteWithImmediate(length), _) => pair.server.bytes(at, length),
            (Op::Read(length), _) => pair.client.bytes(at, length),
            _ => Vec::new(),
        };
        match *op {
            Op::FetchAdd(add) => {
                let old = pair.client.bytes(at, 8).try_into().map_or(0, u64::from_ne_bytes);
                if old != sum {
                    return Some(format!("The {what} should bring what was there, {sum}. Yours: {old}."));
                }
                sum = sum.wrapping_add(add);
            }
            Op::AtomicWrite => sum = pattern(number, 8).try_into().map_or(0, u64::from_ne_bytes),
            _ if there != pattern(number, there.len()) => {
                return Some(format!("The bytes of the {what} arrived changed."))
            }
            _ => {}
        }
    }
    let counted = pair.server.bytes(cell(ops), 8).try_into().map_or(0, u64::from_ne_bytes);
    (counted != sum && !is_over).then(|| format!("The counter should be {sum} at the end. Yours: {counted}."))
}
