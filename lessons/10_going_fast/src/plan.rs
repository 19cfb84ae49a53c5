//! What is to be done. The client knows it from its command line, and tells the server in the ConnectRequest.

use common::{args::Args, Error, Metadata, Operation, Result};

use crate::*;

const MAGIC: &[u8] = b"GF10";
/// No side has more memory than this registered.
const MOST: usize = 64 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Places in [`OPS`] and [`WAITS`].
    pub op: usize,
    pub wait: usize,
    pub size: usize,
    pub count: usize,
    pub depth: usize,
    pub batch: usize,
    pub signal_every: usize,
    pub receives: usize,
    pub inline: bool,
    pub credits: bool,
    pub register_each: bool,
    pub pingpong: bool,
}

impl Plan {
    /// The length of its encoded form.
    pub const LEN: usize = 24;

    pub fn new(args: &Args) -> Result<Self> {
        let number = |option| args.number(option).unwrap_or(0);
        let place = |words: &[&str], option| words.iter().position(|word| *word == args.text(option)).unwrap_or(0);
        let op = place(&OPS, &OP);
        let plan = Self {
            op,
            wait: place(&WAITS, &WAIT),
            size: if OPS[op] == "fetch-add" { 8 } else { number(&SIZE) },
            count: number(&COUNT),
            depth: number(&DEPTH),
            batch: number(&BATCH),
            signal_every: number(&SIGNAL),
            receives: number(&RECEIVES),
            inline: args.flag(&INLINED),
            credits: args.flag(&CREDITS),
            register_each: args.text(&MRS) == "each",
            pingpong: args.flag(&PINGPONG),
        };
        plan.problem().map_or(Ok(plan), |what| Err(Error::content(what, "See `lesson-10 client --help`")))
    }

    /// What cannot be done as planned.
    fn problem(&self) -> Option<&'static str> {
        let brings_back = self.brings_back();
        let least = [self.size, self.count, self.depth, self.batch, self.signal_every, self.receives];
        let wrong = [
            (least.contains(&0), "every number must be at least 1"),
            (self.depth > 8192 || self.receives > 8192, "--depth and --receives are at most 8192"),
            (self.size > MOST / self.depth.max(self.receives).max(1), "--size × --depth, or × --receives, is too much"),
            // Places of the queue are free again when a signaled request is done: one must be among those under way.
            (self.batch.max(self.signal_every) > self.depth, "--batch and --signal-every are at most --depth"),
            (self.register_each && self.batch > 1, "--mrs each registers for one request, and posts it: --batch 1"),
            (self.inline && brings_back, "--inline is for what goes out, and not for read and fetch-add"),
            (self.inline && self.register_each, "--inline needs no registered memory at all: leave out --mrs"),
            (self.inline && self.size > INLINE as usize, "--inline takes up to 256 bytes"),
            (self.credits && !self.takes_receives(), "--credits is for send and write-imm, which take receives"),
            (
                self.pingpong && (brings_back || self.batch > 1 || self.credits),
                "--pingpong is for what goes out, one at a time",
            ),
            (self.pingpong && OPS[self.op] == "write" && self.size % 8 != 0, "--pingpong of write: multiples of 8"),
            (
                self.pingpong && OPS[self.op] == "write" && WAITS[self.wait] != "poll",
                "nobody is woken by a plain write",
            ),
        ];
        wrong.into_iter().find(|(wrong, _)| *wrong).map(|(_, what)| what)
    }

    /// Does it bring bytes back?
    pub fn brings_back(&self) -> bool {
        matches!(OPS[self.op], "read" | "fetch-add")
    }

    /// Does request number `at` yield a completion? The last one always does: it stands for those before it.
    pub fn is_signaled(&self, at: usize) -> bool {
        (at + 1) % self.signal_every == 0 || at + 1 == self.count
    }

    /// Does each request use up one of the peer's receives?
    pub fn takes_receives(&self) -> bool {
        matches!(OPS[self.op], "send" | "write-imm")
    }

    /// The same request every time, to the peer's memory.
    pub fn operation(&self, peer: Metadata) -> Operation {
        match OPS[self.op] {
            "write" => Operation::Write(peer),
            "write-imm" => Operation::WriteImm(peer, 1),
            "send" => Operation::Send,
            "read" => Operation::Read(peer),
            _ => Operation::FetchAdd(peer, 1),
        }
    }

    /// What the server has to know.
    pub fn encode(&self) -> Vec<u8> {
        let flags = u8::from(self.inline) | u8::from(self.credits) << 1 | u8::from(self.pingpong) << 2;
        let numbers = [self.size, self.count, self.receives, self.signal_every]
            .map(|number| (number as u32).to_be_bytes())
            .concat();
        [MAGIC, &[self.op as u8, self.wait as u8, flags, 0], &numbers].concat()
    }

    /// None if it is nothing that [`encode`](Self::encode) makes. What may follow is padding.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.strip_prefix(MAGIC)?;
        let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize);
        let (op, wait, flags) = (usize::from(*bytes.first()?), usize::from(*bytes.get(1)?), *bytes.get(2)?);
        let (size, count, receives, signal_every) = (number(4)?, number(8)?, number(12)?, number(16)?);
        let [inline, credits, pingpong] = [1, 2, 4].map(|bit| flags & bit != 0);
        let (depth, batch, register_each) = (signal_every, 1, false);
        let plan = Self {
            op,
            wait,
            size,
            count,
            depth,
            batch,
            signal_every,
            receives,
            inline,
            credits,
            register_each,
            pingpong,
        };
        (op < OPS.len() && wait < WAITS.len() && plan.problem().is_none()).then_some(plan)
    }
}
