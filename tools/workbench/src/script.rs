//! A script: what both programs call, when, and what happens on the wire. It's all that a run depends on.
//!
#![doc = concat!("```text\n", include_str!("grammar.txt"), "```")]
//! A line without a time is made when the line before it on this node has been made. One with a time is made then, whatever the
//! lines above it still wait for, and the lines after it follow it.

use nic::cm::{REJ_PRIVATE, REP_PRIVATE, REQ_PRIVATE};
use nic::memory::Access;
use pair::{CLIENT, SERVER};
use std::ops::Range;
use std::str::FromStr;
use std::time::Duration;

/// How scripts are written, for people.
pub const GRAMMAR: &str = include_str!("grammar.txt");

/// Bytes of a node's memory.
pub const MEMORY: usize = 1 << 16;

/// The nodes, in the order of [`SERVER`] and [`CLIENT`].
pub const NODES: [&str; 2] = ["server", "client"];

/// What's wrong with a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Counted from 1.
    pub line: usize,
    /// What's wrong there, and what's possible.
    pub says: String,
}

/// A script that was understood.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// Of the server's queue pair and the client's.
    pub settings: [Settings; 2],
    /// In the order of the lines.
    pub calls: Vec<Timed>,
    /// The rules for the wire, each with its line.
    pub rules: Vec<(usize, String)>,
}

/// A call, and when it's made.
#[derive(Clone, Debug)]
pub struct Timed {
    /// The line, counted from 1.
    pub line: usize,
    /// Its text, without time and comment.
    pub text: String,
    /// How long after the beginning, if it doesn't just follow the one before.
    pub at: Option<Duration>,
    /// Who calls.
    pub node: usize,
    /// What's called.
    pub call: Call,
}

/// What a program does. Bytes are those of its node's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// `ibv_reg_mr`
    Register(Range<usize>, Access),
    /// `ibv_dereg_mr`: the last region that has these bytes, or the last of all.
    Deregister(Option<Range<usize>>),
    /// `ibv_post_recv`
    Receive(Range<usize>),
    /// `ibv_post_send`
    Send(Request),
    /// `ibv_poll_cq`, until this many completions have come.
    Poll(usize),
    /// Puts bytes into memory, from this offset on.
    Fill(usize, Content),
    /// `rdma_connect` or `rdma_accept`: what the connection manager's message carries for the other program.
    Carry(Content),
    /// `rdma_reject`, and what the message carries.
    Reject(Content),
    /// `rdma_disconnect`
    Disconnect,
    /// The machine is switched off.
    Die,
}

/// What's put into memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// These words.
    Text(String),
    /// Where these bytes are, as the lessons tell a peer: address, key and length.
    Metadata(Range<usize>),
}

/// What's posted to the send queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What it should do.
    pub operation: Operation,
    /// The program's own bytes.
    pub local: Range<usize>,
    /// Where in the peer's memory, if the operation goes there.
    pub remote: usize,
    /// For the receiver's completion.
    pub immediate: Option<u32>,
    /// Whether its success completes.
    pub signaled: bool,
    /// Whether it waits for READs and atomics before it.
    pub fence: bool,
    /// Whether the peer's key is a wrong one.
    pub wrong_key: bool,
}

/// An operation, with its numbers.
#[allow(missing_docs)] // The names say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Send,
    SendWithImmediate,
    Write,
    WriteWithImmediate,
    Read,
    FetchAdd { add: u64 },
    CompareSwap { compare: u64, swap: u64 },
}

/// Their names, in the order in which they're told.
const OPERATIONS: [(&str, Operation); 7] = [
    ("SEND", Operation::Send),
    ("SEND_WITH_IMM", Operation::SendWithImmediate),
    ("WRITE", Operation::Write),
    ("WRITE_WITH_IMM", Operation::WriteWithImmediate),
    ("READ", Operation::Read),
    ("FETCH_ADD", Operation::FetchAdd { add: 0 }),
    ("CMP_SWP", Operation::CompareSwap { compare: 0, swap: 0 }),
];

impl Operation {
    /// The name in C, without its prefix `IBV_WR_`.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Send => "SEND",
            Operation::SendWithImmediate => "SEND_WITH_IMM",
            Operation::Write => "RDMA_WRITE",
            Operation::WriteWithImmediate => "RDMA_WRITE_WITH_IMM",
            Operation::Read => "RDMA_READ",
            Operation::FetchAdd { .. } => "ATOMIC_FETCH_AND_ADD",
            Operation::CompareSwap { .. } => "ATOMIC_CMP_AND_SWP",
        }
    }

    /// Whether it names memory of the peer's.
    pub fn is_one_sided(self) -> bool {
        !matches!(self, Operation::Send | Operation::SendWithImmediate)
    }

    fn is_atomic(self) -> bool {
        matches!(self, Operation::FetchAdd { .. } | Operation::CompareSwap { .. })
    }

    fn has_immediate(self) -> bool {
        matches!(self, Operation::SendWithImmediate | Operation::WriteWithImmediate)
    }
}

/// What a node's queue pair is given, by the names of `ibv_qp_attr` and `ibv_qp_cap`.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    pub mtu: u32,
    pub timeout: u8,
    pub retry_cnt: u8,
    pub rnr_retry: u8,
    pub min_rnr_timer: u8,
    pub max_rd_atomic: u8,
    pub max_dest_rd_atomic: u8,
    pub max_send_wr: u32,
    pub max_recv_wr: u32,
    pub by_hand: ByHand,
}

/// What's set by hand when a queue pair is connected, whatever the connection manager's messages have agreed on; by the names of
/// `ibv_qp_attr`.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByHand {
    pub path_mtu: Option<u32>,
    pub dest_qp_num: Option<u32>,
    pub rq_psn: Option<u32>,
    pub max_rd_atomic: Option<u8>,
    pub max_dest_rd_atomic: Option<u8>,
    pub qp_access_flags: Option<Access>,
    /// Whether it's moved to RTR, and no further.
    pub stays_in_rtr: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            mtu: 1024,
            timeout: 14,
            retry_cnt: 7,
            rnr_retry: 7,
            min_rnr_timer: 12,
            max_rd_atomic: 1,
            max_dest_rd_atomic: 1,
            max_send_wr: 64,
            max_recv_wr: 64,
            by_hand: ByHand::default(),
        }
    }
}

const SETTINGS: &str =
    "mtu, timeout, retry_cnt, rnr_retry, min_rnr_timer, max_rd_atomic, max_dest_rd_atomic, max_send_wr, \
                        max_recv_wr; for example mtu=1024";
const BY_HAND: &str =
    "path_mtu, dest_qp_num, rq_psn, max_rd_atomic, max_dest_rd_atomic, qp_access_flags or qp_state=RTR; for \
                       example dest_qp_num=19";
const CALLS: &str =
    "ibv_create_qp, ibv_modify_qp, ibv_reg_mr, ibv_dereg_mr, ibv_post_recv, ibv_post_send, ibv_poll_cq, memcpy, \
                     rdma_connect (client), rdma_accept or rdma_reject (server), rdma_disconnect, dies";
const RIGHTS: [(&str, Access); 5] = [
    ("LOCAL_READ", Access::LOCAL_READ),
    ("LOCAL_WRITE", Access::LOCAL_WRITE),
    ("REMOTE_WRITE", Access::REMOTE_WRITE),
    ("REMOTE_READ", Access::REMOTE_READ),
    ("REMOTE_ATOMIC", Access::REMOTE_ATOMIC),
];

/// What a queue pair's number and a PSN have room for.
const MOST_24_BITS: u32 = (1 << 24) - 1;

/// Lines that a script may have.
const LONGEST: usize = 500;

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// The first line that isn't understood.
    pub fn parse(text: &str) -> Result<Script, Error> {
        let mut script = Script::default();
        for (line, text) in (1..).zip(text.lines()) {
            if line > LONGEST {
                return Err(Error { line, says: format!("a script has at most {LONGEST} lines") });
            }
            let text = without_comment(text).trim();
            if !text.is_empty() {
                script.line(line, text)?;
            }
        }
        Ok(script)
    }

    fn line(&mut self, line: usize, text: &str) -> Result<(), Error> {
        if let Some(rule) = text.strip_prefix("wire").filter(|rest| rest.is_empty() || rest.starts_with(' ')) {
            let rule = rule.trim();
            let says = "what should happen on the wire? For example: wire drop 2nd packet from client".to_owned();
            let is_nothing = rule.is_empty().then_some(says);
            // One by one, so that the message is about this one.
            let wrong = is_nothing.or_else(|| check_rule(rule).err());
            self.rules.push((line, rule.to_owned()));
            return wrong.map_or(Ok(()), |says| Err(Error { line, says }));
        }
        let mut words = Words { line, text, rest: text };
        let at = if words.take_if("at") { Some(words.time()?) } else { None };
        let node = words.node(if at.is_some() { "" } else { "at TIME, wire RULE, " })?;
        let from = words.rest.trim_start();
        match words.take() {
            name @ ("ibv_create_qp" | "ibv_modify_qp") => {
                if at.is_some() {
                    return Err(words.wrong(format!("{name} comes first of all, and has no time before it")));
                }
                if self.calls.iter().any(|call| call.node == node) {
                    return Err(words.wrong(format!("{name} comes before the node's other calls")));
                }
                match name {
                    "ibv_create_qp" => self.settings[node] = words.settings(self.settings[node], node)?,
                    _ => words.by_hand(&mut self.settings[node].by_hand)?,
                }
            }
            name => {
                let call = words.call(name, node)?;
                words.end()?;
                self.calls.push(Timed { line, text: from.to_owned(), at, node, call });
            }
        }
        Ok(())
    }

    /// All rules as `--wire` takes them.
    pub fn wire(&self) -> String {
        self.rules.iter().map(|(_, rule)| rule.as_str()).collect::<Vec<_>>().join("; ")
    }
}

/// A comment begins with `#`, unless it's in quotes.
fn without_comment(text: &str) -> &str {
    let mut quoted = false;
    let begins = |(_, letter): &(usize, char)| {
        quoted ^= *letter == '"';
        *letter == '#' && !quoted
    };
    let end = text.char_indices().find(begins).map_or(text.len(), |(at, _)| at);
    &text[..end]
}

/// Whether the wire understands a rule. A statement about a switch means nothing without its link, so that's added here.
fn check_rule(rule: &str) -> Result<(), String> {
    let (switch, _) = run::switch::split(rule);
    let linked = match switch.is_empty() || switch.starts_with("link") {
        true => rule.to_owned(),
        false => format!("link 10 Gbit/s 1 us; {rule}"),
    };
    run::wire::Wire::still(&linked, &NODES).map(|_| ()).map_err(|error| format!("{error:#}"))
}

/// What reads one line.
struct Words<'a> {
    line: usize,
    text: &'a str,
    rest: &'a str,
}

impl<'a> Words<'a> {
    /// The next word, or nothing at the end.
    fn take(&mut self) -> &'a str {
        let rest = self.rest.trim_start();
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        self.rest = &rest[end..];
        &rest[..end]
    }

    fn peek(&self) -> &'a str {
        self.rest.split_whitespace().next().unwrap_or_default()
    }

    fn take_if(&mut self, word: &str) -> bool {
        let is_it = self.peek() == word;
        if is_it {
            self.take();
        }
        is_it
    }

    fn wrong(&self, says: impl Into<String>) -> Error {
        Error { line: self.line, says: says.into() }
    }

    /// A word that isn't one of those that may come here.
    fn not(&self, word: &str, possible: &str) -> Error {
        match word {
            "" => self.wrong(format!("`{}` isn't whole: what comes next is {possible}", self.text)),
            word => self.wrong(format!("`{word}` isn't understood: what may come here is {possible}")),
        }
    }

    fn end(&mut self) -> Result<(), Error> {
        match self.take() {
            "" => Ok(()),
            word => Err(self.wrong(format!("`{word}` is too much: the line is whole before it"))),
        }
    }

    fn node(&mut self, or: &str) -> Result<usize, Error> {
        let word = self.take();
        let place = NODES.iter().position(|node| *node == word);
        place.ok_or_else(|| self.not(word, &format!("{or}client or server")))
    }

    fn number<T: FromStr + PartialOrd + std::fmt::Display>(
        &self,
        word: &str,
        allowed: std::ops::RangeInclusive<T>,
        what: &str,
    ) -> Result<T, Error> {
        let number = word.parse().ok().filter(|number| allowed.contains(number));
        number.ok_or_else(|| self.not(word, &format!("{what}, a number from {} to {}", allowed.start(), allowed.end())))
    }

    /// `150 us`, `1.5ms`.
    fn time(&mut self) -> Result<Duration, Error> {
        const UNITS: [(&str, f64); 5] = [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
        const MOST: f64 = 1e14;
        let first = self.take();
        let number = first.trim_end_matches(|c: char| c.is_alphabetic());
        let unit = if number == first { self.take() } else { &first[number.len()..] };
        let factor = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| factor);
        let time = number.parse::<f64>().ok().zip(factor).map(|(number, factor)| number * factor);
        let time = time.filter(|time| (0.0..=MOST).contains(time));
        let possible = "a time, for example 150 us; the units are ns, us, ms and s";
        time.map(|time| Duration::from_nanos(time.round() as u64)).ok_or_else(|| self.not(first, possible))
    }

    /// `0..60`, of a node's memory.
    fn bytes(&mut self) -> Result<Range<usize>, Error> {
        let word = self.take();
        let range = word.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
        let range = range.ok_or_else(|| self.not(word, "bytes of the node's memory, for example 0..60"))?;
        if range.end > MEMORY || range.start > range.end {
            return Err(
                self.wrong(format!("a node's memory has the bytes 0..{MEMORY}, and `{word}` isn't a part of it"))
            );
        }
        Ok(range)
    }

    fn offset(&mut self) -> Result<usize, Error> {
        let word = self.take();
        self.number(word, 0..=MEMORY, "an offset in a node's memory")
    }

    fn settings(&mut self, before: Settings, node: usize) -> Result<Settings, Error> {
        let mut settings = before;
        loop {
            let word = self.take();
            if word.is_empty() {
                return Ok(settings);
            }
            let (name, value) = word.split_once('=').ok_or_else(|| self.not(word, SETTINGS))?;
            match name {
                "mtu" if node == SERVER => {
                    return Err(self.wrong("the MTU is the client's to choose, because its ConnectRequest says it"));
                }
                "mtu" => settings.mtu = self.mtu(value, word)?,
                "timeout" => settings.timeout = self.number(value, 0..=31, name)?,
                "retry_cnt" => settings.retry_cnt = self.number(value, 0..=7, name)?,
                "rnr_retry" => settings.rnr_retry = self.number(value, 0..=7, name)?,
                "min_rnr_timer" => settings.min_rnr_timer = self.number(value, 0..=31, name)?,
                "max_rd_atomic" => settings.max_rd_atomic = self.number(value, 0..=16, name)?,
                "max_dest_rd_atomic" => settings.max_dest_rd_atomic = self.number(value, 0..=16, name)?,
                "max_send_wr" => settings.max_send_wr = self.number(value, 1..=256, name)?,
                "max_recv_wr" => settings.max_recv_wr = self.number(value, 1..=256, name)?,
                _ => return Err(self.not(word, SETTINGS)),
            }
        }
    }

    fn mtu(&self, value: &str, word: &str) -> Result<u32, Error> {
        let mtu = value.parse().ok().filter(|mtu| [256, 512, 1024, 2048, 4096].contains(mtu));
        mtu.ok_or_else(|| self.not(word, "mtu=256, mtu=512, mtu=1024, mtu=2048 or mtu=4096"))
    }

    fn by_hand(&mut self, set: &mut ByHand) -> Result<(), Error> {
        loop {
            let word = self.take();
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            match name {
                "path_mtu" => set.path_mtu = Some(self.mtu(value, word)?),
                "dest_qp_num" => set.dest_qp_num = Some(self.number(value, 0..=MOST_24_BITS, name)?),
                "rq_psn" => set.rq_psn = Some(self.number(value, 0..=MOST_24_BITS, name)?),
                "max_rd_atomic" => set.max_rd_atomic = Some(self.number(value, 0..=16, name)?),
                "max_dest_rd_atomic" => set.max_dest_rd_atomic = Some(self.number(value, 0..=16, name)?),
                "qp_access_flags" => set.qp_access_flags = Some(self.rights(value)?),
                "qp_state" if value == "RTR" => set.stays_in_rtr = true,
                "" => return Ok(()),
                _ => return Err(self.not(word, BY_HAND)),
            }
        }
    }

    fn call(&mut self, name: &str, node: usize) -> Result<Call, Error> {
        Ok(match name {
            "ibv_reg_mr" => {
                let (bytes, rights) = (self.bytes()?, self.take());
                Call::Register(bytes, self.rights(rights)?)
            }
            "ibv_dereg_mr" => Call::Deregister(if self.peek().is_empty() { None } else { Some(self.bytes()?) }),
            "ibv_post_recv" => Call::Receive(self.bytes()?),
            "ibv_post_send" => Call::Send(self.request(node)?),
            "ibv_poll_cq" => {
                let count = if self.peek().is_empty() { "1" } else { self.take() };
                Call::Poll(self.number(count, 1..=1000, "how many completions to wait for")?)
            }
            "memcpy" => {
                let at = self.offset()?;
                Call::Fill(at, self.content(MEMORY - at, "a node's memory ends there")?)
            }
            "rdma_connect" if node == CLIENT => {
                Call::Carry(self.content(REQ_PRIVATE, "a ConnectRequest has no more room")?)
            }
            "rdma_accept" if node == SERVER => {
                Call::Carry(self.content(REP_PRIVATE, "a ConnectReply has no more room")?)
            }
            "rdma_reject" if node == SERVER => {
                Call::Reject(self.content(REJ_PRIVATE, "a ConnectReject has no more room")?)
            }
            "rdma_connect" | "rdma_accept" | "rdma_reject" => {
                return Err(self.wrong("the client calls rdma_connect, and the server rdma_accept or rdma_reject"));
            }
            "rdma_disconnect" => Call::Disconnect,
            "dies" => Call::Die,
            _ => return Err(self.not(name, CALLS)),
        })
    }

    /// `LOCAL_WRITE|REMOTE_READ`; nothing is reading by the node's own NIC.
    fn rights(&self, names: &str) -> Result<Access, Error> {
        let mut access = Access::LOCAL_READ;
        for name in names.split('|').filter(|name| !name.is_empty()) {
            let known = RIGHTS.iter().find(|(right, _)| *right == name);
            let names = RIGHTS.map(|(name, _)| name).join(", ");
            let (_, right) = known.ok_or_else(|| self.not(name, &format!("{names}; several with | between them")))?;
            access.0 |= right.0;
        }
        Ok(access)
    }

    fn request(&mut self, node: usize) -> Result<Request, Error> {
        let word = self.take();
        let known = OPERATIONS.iter().find(|(name, _)| *name == word);
        let names = OPERATIONS.map(|(name, _)| name).join(", ");
        let (_, operation) = *known.ok_or_else(|| self.not(word, &names))?;
        let local = self.bytes()?;
        if operation.is_atomic() && local.len() != 8 {
            return Err(self.wrong(format!("{word} brings eight bytes, so its own are, for example, 0..8")));
        }
        let (signaled, fence, wrong_key, immediate) = (true, false, false, None);
        let mut request = Request { operation, local, remote: 0, immediate, signaled, fence, wrong_key };
        if operation.is_one_sided() {
            let preposition = self.take();
            let peer = NODES[1 - node];
            let possible = format!("to {peer} and an offset in its memory, for example: to {peer} 0");
            if !["to", "from", "at"].contains(&preposition) {
                return Err(self.not(preposition, &possible));
            }
            if self.node("")? == node {
                return Err(
                    self.wrong(format!("the {}'s queue pair is connected to the {peer}'s: {possible}", NODES[node]))
                );
            }
            request.remote = self.offset()?;
        }
        self.options(&mut request)?;
        if operation.has_immediate() && request.immediate.is_none() {
            return Err(self.not("", "imm= and the number for the receiver, for example imm=7"));
        }
        Ok(request)
    }

    fn options(&mut self, request: &mut Request) -> Result<(), Error> {
        loop {
            let word = self.take();
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            let any = || 0..=u64::MAX;
            match (name, &mut request.operation) {
                ("", _) => return Ok(()),
                ("unsignaled", _) if value.is_empty() => request.signaled = false,
                ("fence", _) if value.is_empty() => request.fence = true,
                ("key", operation) if operation.is_one_sided() => match value {
                    "wrong" => request.wrong_key = true,
                    _ => return Err(self.not(word, "key=wrong; without it, the key is the right one")),
                },
                ("imm", operation) if operation.has_immediate() => {
                    request.immediate = Some(self.number(value, 0..=u32::MAX, "imm")?);
                }
                ("add", Operation::FetchAdd { add }) => *add = self.number(value, any(), "add")?,
                ("compare", Operation::CompareSwap { compare, .. }) => {
                    *compare = self.number(value, any(), "compare")?
                }
                ("swap", Operation::CompareSwap { swap, .. }) => *swap = self.number(value, any(), "swap")?,
                (_, &mut operation) => {
                    let numbers = match operation {
                        Operation::FetchAdd { .. } => "add=1, ",
                        Operation::CompareSwap { .. } => "compare=0, swap=1, ",
                        operation if operation.has_immediate() => "imm=7, ",
                        _ => "",
                    };
                    let key = if operation.is_one_sided() { "key=wrong, " } else { "" };
                    return Err(self.not(word, &format!("{numbers}{key}unsignaled or fence")));
                }
            }
        }
    }

    /// A text in quotes, or metadata, of at most this many bytes.
    fn content(&mut self, room: usize, why: &str) -> Result<Content, Error> {
        /// Address, key and length.
        const METADATA: usize = 16;
        let (content, length) = if self.take_if("metadata") {
            (Content::Metadata(self.bytes()?), METADATA)
        } else {
            let rest = self.rest.trim();
            let text =
                rest.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).filter(|text| !text.contains('"'));
            let text = text.ok_or_else(|| self.not(rest, "a text in quotes, or metadata and bytes"))?;
            self.rest = "";
            (Content::Text(text.to_owned()), text.len())
        };
        match length <= room {
            true => Ok(content),
            false => Err(self.wrong(format!("these are {length} bytes, and {room} are possible: {why}"))),
        }
    }
}

/// The other node.
pub fn peer(node: usize) -> usize {
    SERVER + CLIENT - node
}
