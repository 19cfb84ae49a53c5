//! What to do. The client knows it from its command line, and tells the server in the ConnectRequest.

use common::{args::Args, Error, Metadata, Operation, Result};

use crate::wait::{HYBRID, POLL, SLEEP};
use crate::{BATCH, COUNT, CREDITS, DEPTH, INLINE, INLINED, MRS, OP, RECEIVES, SIGNAL, SIZE, WAIT};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    Write,
    Send,
    Read,
    FetchAdd,
}

const OPS: [Op; 4] = [Op::Write, Op::Send, Op::Read, Op::FetchAdd];
/// Their names on the command line, in the same order.
pub const NAMES: [&str; 4] = ["write", "send", "read", "fetch-add"];

const MAGIC: &[u8] = b"GF10";
/// Neither side registers more memory than this.
const MOST: usize = 64 << 20;

pub struct Plan {
    pub op: Op,
    pub size: usize,
    pub count: usize,
    pub depth: usize,
    pub batch: usize,
    pub signal_every: usize,
    pub inline: bool,
    /// How often to look and find nothing before a sleep.
    pub looks: usize,
    pub receives: usize,
    pub credits: bool,
    pub register_each: bool,
}

impl Plan {
    pub fn new(args: &Args) -> Result<Self> {
        let number = |option| args.number(option).unwrap_or(0);
        let op = OPS[NAMES.iter().position(|name| *name == args.text(&OP)).unwrap_or(0)];
        let looks = match args.text(&WAIT) {
            "sleep" => SLEEP,
            "hybrid" => HYBRID,
            _ => POLL,
        };
        let plan = Self {
            op,
            size: if op == Op::FetchAdd { 8 } else { number(&SIZE) },
            count: number(&COUNT),
            depth: number(&DEPTH),
            batch: number(&BATCH),
            signal_every: number(&SIGNAL),
            inline: args.flag(&INLINED),
            looks,
            receives: number(&RECEIVES),
            credits: args.flag(&CREDITS),
            register_each: args.text(&MRS) == "each",
        };
        plan.check().map(|()| plan)
    }

    /// Can it be done as planned?
    fn check(&self) -> Result<()> {
        let Self { op, size, count, depth, batch, signal_every, inline, receives, credits, register_each, .. } = *self;
        let (least, pieces) = ([size, count, depth, batch, signal_every, receives], depth.max(receives));
        let wrong = [
            (least.contains(&0), "every number must be at least 1"),
            (pieces > 8192, "--depth and --receives are at most 8192"),
            (size.saturating_mul(pieces) > MOST, "--size × --depth, or × --receives, is too much"),
            // Places in the queue come free only when a signaled request completes, so one must be among those under way.
            (batch.max(signal_every) > depth, "--batch and --signal-every are at most --depth"),
            (register_each && batch > 1, "--mrs each registers for one request, and posts it: --batch 1"),
            (inline && matches!(op, Op::Read | Op::FetchAdd), "--inline is for what goes out: write and send"),
            (inline && register_each, "--inline needs no registered memory at all: leave out --mrs"),
            (inline && size > INLINE as usize, "--inline takes up to 256 bytes"),
            (credits && op != Op::Send, "--credits is for send, which takes receives"),
        ];
        match wrong.iter().find(|(is_so, _)| *is_so) {
            Some((_, what)) => Err(Error::content(*what, "See `lesson-10 client --help`")),
            None => Ok(()),
        }
    }

    /// Does request number `at` make a completion? The last one always does, because no later one could speak for it.
    pub fn is_signaled(&self, at: usize) -> bool {
        (at + 1) % self.signal_every == 0 || at + 1 == self.count
    }

    /// The same request every time, to the peer's memory.
    pub fn operation(&self, peer: Metadata) -> Operation {
        match self.op {
            Op::Write => Operation::Write(peer),
            Op::Send => Operation::Send,
            Op::Read => Operation::Read(peer),
            Op::FetchAdd => Operation::FetchAdd(peer, 1),
        }
    }

    /// What the server needs to know, as six numbers of 32 bits, big-endian.
    pub fn encode(&self) -> Vec<u8> {
        let Self { op, looks, size, count, receives, credits, .. } = *self;
        let numbers = [op as usize, looks, size, count, receives, usize::from(credits)];
        [MAGIC, &numbers.map(|number| (number as u32).to_be_bytes()).concat()].concat()
    }

    /// None if these bytes aren't a plan. Padding may follow it. The rest of the plan only the client needs.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let number = |bytes: &[u8]| bytes.iter().fold(0, |number, byte| number << 8 | usize::from(*byte));
        let numbers: Vec<usize> = bytes.strip_prefix(MAGIC)?.chunks_exact(4).map(number).collect();
        let [op, looks, size, count, receives, credits, ..] = numbers[..] else { return None };
        let (op, credits, inline, register_each) = (*OPS.get(op)?, credits == 1, false, false);
        let (depth, batch, signal_every) = (1, 1, 1);
        let plan =
            Self { op, size, count, depth, batch, signal_every, inline, looks, receives, credits, register_each };
        plan.check().ok().map(|()| plan)
    }
}
