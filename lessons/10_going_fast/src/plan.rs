//! What is to be done. The client knows it from its command line, and tells the server in the ConnectRequest.

use common::{args::Args, Error, Metadata, Operation, Result};

use crate::{BATCH, COUNT, CREDITS, DEPTH, INLINE, INLINED, MRS, OP, RECEIVES, SIGNAL, SIZE, WAIT};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    Write,
    WriteImm,
    Send,
    Read,
    FetchAdd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    Poll,
    Sleep,
    Hybrid,
}

/// Their names, in the same order.
pub const OPS: [&str; 5] = ["write", "write-imm", "send", "read", "fetch-add"];
pub const WAITS: [&str; 3] = ["poll", "sleep", "hybrid"];

const ALL_OPS: [Op; 5] = [Op::Write, Op::WriteImm, Op::Send, Op::Read, Op::FetchAdd];
const ALL_WAITS: [Wait; 3] = [Wait::Poll, Wait::Sleep, Wait::Hybrid];

const MAGIC: &[u8] = b"GF10";
/// No side has more memory than this registered.
const MOST: usize = 64 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    pub op: Op,
    pub wait: Wait,
    pub size: usize,
    pub count: usize,
    pub depth: usize,
    pub batch: usize,
    pub signal_every: usize,
    pub receives: usize,
    pub inline: bool,
    pub credits: bool,
    pub register_each: bool,
}

impl Plan {
    pub fn new(args: &Args) -> Result<Self> {
        let number = |option| args.number(option).unwrap_or(0);
        let place = |words: &[&str], option| words.iter().position(|word| *word == args.text(option)).unwrap_or(0);
        let op = ALL_OPS[place(&OPS, &OP)];
        let plan = Self {
            op,
            wait: ALL_WAITS[place(&WAITS, &WAIT)],
            size: if op == Op::FetchAdd { 8 } else { number(&SIZE) },
            count: number(&COUNT),
            depth: number(&DEPTH),
            batch: number(&BATCH),
            signal_every: number(&SIGNAL),
            receives: number(&RECEIVES),
            inline: args.flag(&INLINED),
            credits: args.flag(&CREDITS),
            register_each: args.text(&MRS) == "each",
        };
        plan.check().map(|()| plan)
    }

    /// Can it be done as planned?
    fn check(&self) -> Result<()> {
        let Self { size, count, depth, batch, signal_every, receives, inline, register_each, .. } = *self;
        let least = [size, count, depth, batch, signal_every, receives];
        refuse(least.contains(&0), "every number must be at least 1")?;
        refuse(depth.max(receives) > 8192, "--depth and --receives are at most 8192")?;
        refuse(size > MOST / depth.max(receives), "--size × --depth, or × --receives, is too much")?;
        // Places of the queue are free again when a signaled request is done: one must be among those under way.
        refuse(batch.max(signal_every) > depth, "--batch and --signal-every are at most --depth")?;
        refuse(register_each && batch > 1, "--mrs each registers for one request, and posts it: --batch 1")?;
        refuse(inline && self.brings_back(), "--inline is for what goes out, and not for read and fetch-add")?;
        refuse(inline && register_each, "--inline needs no registered memory at all: leave out --mrs")?;
        refuse(inline && size > INLINE as usize, "--inline takes up to 256 bytes")?;
        refuse(self.credits && !self.takes_receives(), "--credits is for send and write-imm, which take receives")
    }

    /// Does it bring bytes back?
    pub fn brings_back(&self) -> bool {
        matches!(self.op, Op::Read | Op::FetchAdd)
    }

    /// Does each request use up one of the peer's receives?
    pub fn takes_receives(&self) -> bool {
        matches!(self.op, Op::Send | Op::WriteImm)
    }

    /// Does request number `at` yield a completion? The last one always does: it stands for those before it.
    pub fn is_signaled(&self, at: usize) -> bool {
        (at + 1) % self.signal_every == 0 || at + 1 == self.count
    }

    /// The same request every time, to the peer's memory.
    pub fn operation(&self, peer: Metadata) -> Operation {
        match self.op {
            Op::Write => Operation::Write(peer),
            Op::WriteImm => Operation::WriteImm(peer, 1),
            Op::Send => Operation::Send,
            Op::Read => Operation::Read(peer),
            Op::FetchAdd => Operation::FetchAdd(peer, 1),
        }
    }

    /// What the server has to know; and how often the client asks for completions, for those who read a capture.
    pub fn encode(&self) -> Vec<u8> {
        let numbers = [self.size, self.count, self.receives, self.signal_every];
        let numbers = numbers.map(|number| (number as u32).to_be_bytes()).concat();
        [MAGIC, &[self.op as u8, self.wait as u8, u8::from(self.credits), 0], &numbers].concat()
    }

    /// None if it is nothing that [`encode`](Self::encode) makes. What may follow is padding. The rest is the client's business.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.strip_prefix(MAGIC)?;
        let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize);
        let plan = Self {
            op: *ALL_OPS.get(usize::from(*bytes.first()?))?,
            wait: *ALL_WAITS.get(usize::from(*bytes.get(1)?))?,
            size: number(4)?,
            count: number(8)?,
            depth: 1,
            batch: 1,
            signal_every: 1,
            receives: number(12)?,
            inline: false,
            credits: *bytes.get(2)? == 1,
            register_each: false,
        };
        plan.check().ok().map(|()| plan)
    }
}

fn refuse(wrong: bool, what: &str) -> Result<()> {
    if wrong {
        return Err(Error::content(what, "See `lesson-10 client --help`"));
    }
    Ok(())
}
