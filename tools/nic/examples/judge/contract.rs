//! The contract of a reliable connection: whatever the wire does, every message arrives once, in order, with its bytes, and
//! everything ends. A case that breaks it is made smaller as long as it still does, and drawn.

use crate::end::{in_rts, SIZE};
use crate::ladder::drawn;
use crate::Verdict;
use nic::completion::Status;
use nic::work::Work;
use pair::{attributes, Fault, Pair};
use std::collections::BTreeMap;

/// Each message has a part of both memories of its own; receives have theirs behind.
const SLOT: usize = 12_000;
const RECEIVES: usize = 1 << 16;
/// The longest SEND, and the room of a receive.
pub const ROOM: usize = 1024;
/// Steps after which something goes in circles.
const STEPS: usize = 5_000;
/// Where atomic operations count.
const COUNTER: usize = SIZE - 8;

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Send(usize),
    Write(usize),
    Read(usize),
    FetchAdd(u64),
}

/// What is sent over which wire.
#[derive(Clone, Debug)]
pub struct Case {
    pub ops: Vec<Op>,
    /// By the place of the packet among all that are sent.
    pub faults: BTreeMap<usize, Fault>,
    /// The first PSN of the client's requests.
    pub psn: u32,
    pub retries: u8,
    /// Receives that are posted at the beginning; the others are late.
    pub early: usize,
}

/// How a case breaks the contract, and what has happened.
struct Breach {
    said: String,
    ladder: String,
}

/// Tries cases until one breaks the contract.
pub fn holds(cases: impl IntoIterator<Item = Case>) -> Verdict {
    let mut tried = 0;
    for case in cases {
        if let Some(breach) = breach(&case) {
            let (case, Breach { said, ladder }) = smallest(case, breach);
            let ops: Vec<String> = case.ops.iter().map(|op| op.shown()).collect();
            let (ops, faults) = (ops.join(", "), case.faults.len());
            let plural = if faults == 1 { "" } else { "s" };
            let what = format!("The least that shows it: {ops}; the wire has {faults} fault{plural}.");
            return Err(format!("{said}\n{what}\n\n{ladder}"));
        }
        tried += 1;
    }
    Ok(format!("{tried} wires that lose, double and delay: every message arrives once, in order, and everything ends."))
}

/// Leaves out faults and messages, one by one, as long as it still goes wrong.
fn smallest(case: Case, breach: Breach) -> (Case, Breach) {
    match smaller(&case).into_iter().find_map(|case| Some((self::breach(&case)?, case))) {
        Some((breach, case)) => smallest(case, breach),
        None => (case, breach),
    }
}

fn smaller(case: &Case) -> Vec<Case> {
    let mut all = Vec::new();
    for at in case.faults.keys() {
        let mut faults = case.faults.clone();
        faults.remove(at);
        all.push(Case { faults, ..case.clone() });
    }
    for at in 0..case.ops.len() {
        let mut ops = case.ops.clone();
        ops.remove(at);
        // With a message less, its packets are missing before the fault.
        let earlier = |by| case.faults.iter().map(|(at, fault)| (at.saturating_sub(by), *fault)).collect();
        all.extend((0..5).map(|by| Case { ops: ops.clone(), faults: earlier(by), ..case.clone() }));
    }
    if case.psn > 0 {
        all.push(Case { psn: 0, ..case.clone() });
    }
    if case.early < case.ops.len() {
        all.push(Case { early: case.ops.len(), ..case.clone() });
    }
    all
}

/// Runs a case, and looks.
fn breach(case: &Case) -> Option<Breach> {
    let client = in_rts(attributes(case.psn, 0, case.retries, 7));
    let server = in_rts(attributes(0, case.psn, case.retries, 7));
    let pair = Pair::new(client, server, case.faults.clone());
    let mut pair = Pair { happened: Some(Vec::new()), patience: STEPS, ..pair };
    for (number, op) in case.ops.iter().enumerate() {
        op.post(number, &mut pair);
    }
    let sends = case.ops.iter().filter(|op| matches!(op, Op::Send(_))).count();
    let mut posted = 0;
    let mut allowed = case.early;
    let ends = pair.run(|pair| {
        while posted < sends.min(allowed) {
            let _ = pair.server.post_receive(posted as u64, RECEIVES + posted * ROOM, ROOM);
            posted += 1;
        }
        allowed += 1;
    });
    let said = if ends { fault(case, &pair)? } else { "It never ends.".to_owned() };
    Some(Breach { said, ladder: drawn(&pair.happened.unwrap_or_default()) })
}

/// What is wrong at the end.
fn fault(case: &Case, pair: &Pair) -> Option<String> {
    let (sent, received) = (&pair.client.sent, &pair.server.received);
    let sends: Vec<usize> = (0..case.ops.len()).filter(|number| matches!(case.ops[*number], Op::Send(_))).collect();
    let mut sum = 0;
    for (number, op) in case.ops.iter().enumerate() {
        let what = format!("{} with wr_id {number}", op.shown());
        let Some(completion) = sent.get(number) else { return Some(format!("The {what} never completes.")) };
        if completion.wr_id != number as u64 {
            return Some(format!("The next to complete is the {what}. Yours: wr_id {}.", completion.wr_id));
        }
        if completion.status != Status::Success {
            return Some(format!("The {what} can succeed. Yours: {}.", completion.status.name()));
        }
        let there = match *op {
            Op::Send(length) => {
                let place = sends.iter().position(|send| *send == number)?;
                if received.get(place).map(|completion| completion.length as usize) != Some(length) {
                    return Some(format!("The {what} is complete, and receive {place} of the server has not got it."));
                }
                pair.server.bytes(RECEIVES + place * ROOM, length)
            }
            Op::Write(length) => pair.server.bytes(number * SLOT, length),
            Op::Read(length) => pair.client.bytes(number * SLOT, length),
            Op::FetchAdd(_) => pair.client.bytes(number * SLOT, 8),
        };
        match *op {
            Op::FetchAdd(add) => {
                let old = there.try_into().map_or(0, u64::from_ne_bytes);
                if old != sum {
                    return Some(format!("The {what} has to bring what stood there, {sum}. Yours: {old}."));
                }
                sum += add;
            }
            _ if there != pattern(number, there.len()) => return Some(format!("The bytes of the {what} are others.")),
            _ => {}
        }
    }
    let counted = pair.server.bytes(COUNTER, 8).try_into().map_or(0, u64::from_ne_bytes);
    if counted != sum {
        return Some(format!("The counter has to be {sum} at the end. Yours: {counted}."));
    }
    if sent.len() > case.ops.len() || received.len() > sends.len() {
        return Some("There are more completions than messages.".to_owned());
    }
    None
}

/// Bytes that tell to which message they belong.
fn pattern(number: usize, length: usize) -> Vec<u8> {
    (0..length).map(|at| (1 + number * 31 + at * 7 + at / 256) as u8).collect()
}

impl Op {
    fn shown(self) -> String {
        match self {
            Op::Send(length) => format!("SEND of {length} bytes"),
            Op::Write(length) => format!("WRITE of {length} bytes"),
            Op::Read(length) => format!("READ of {length} bytes"),
            Op::FetchAdd(add) => format!("fetch and add of {add}"),
        }
    }

    fn post(self, number: usize, pair: &mut Pair) {
        let at = number * SLOT;
        let remote = pair.server.remote(at);
        let (work, length) = match self {
            Op::Send(length) => (Work::Send, length),
            Op::Write(length) => (Work::Write(remote), length),
            Op::Read(length) => (Work::Read(remote), length),
            Op::FetchAdd(add) => (Work::FetchAdd { remote: pair.server.remote(COUNTER), add }, 8),
        };
        match self {
            Op::Read(_) => pair.server.fill(at, &pattern(number, length)),
            _ => pair.client.fill(at, &pattern(number, length)),
        }
        let _ = pair.client.post(number as u64, work, at, length);
    }
}

/// Numbers that look like chance, and are the same each time.
pub struct Random(pub u64);

impl Random {
    /// One below this.
    pub fn below(&mut self, end: usize) -> usize {
        // A generator of Donald Knuth's, MMIX; its upper bits are the better ones.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    /// What happens to up to so many of the first packets.
    pub fn faults(&mut self, most: usize, packets: usize) -> BTreeMap<usize, Fault> {
        let count = 1 + self.below(most);
        (0..count).map(|_| (self.below(packets), self.fault())).collect()
    }

    fn fault(&mut self) -> Fault {
        match self.below(4) {
            0 | 1 => Fault::Lose,
            2 => Fault::Double,
            _ => Fault::Delay(1 + self.below(5) as u8),
        }
    }
}
