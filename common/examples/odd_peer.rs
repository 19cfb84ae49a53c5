//! A peer without manners, for the tests: it connects like a lesson, and then sends whatever it is told.
//!
//! ```text
//! odd_peer client ADDRESS STEP…      odd_peer server STEP…
//! ```
//!
//! Steps, in order: first of all `data=HEX` private data for connect or accept, `reads=N` how many READs to allow and to ask for,
//! `room=BYTES` for each message; or, of a server, `reject=TEXT` in place of all others;
//! `send=HEX` a SEND of these bytes, `write=ADDR,RKEY,HEX` an RDMA WRITE (hexadecimal numbers), `tell=LEN` a SEND that says where a
//! buffer of so many bytes is, `lend=LEN` one that nobody may READ; `change=TEXT` puts TEXT there once the other side has written,
//! `flip=first` or `flip=last` changes that byte of what it has written; `read` waits for a message that says
//! where a buffer is, and READs its last bytes, `fill` waits for one, and WRITEs all of it, `put=TEXT` writes TEXT at its begin; `sleep=MS`,
//! `close` to disconnect, `goodbye` waits until the other side has, and answers. After the last step it exits at once, without a goodbye
//! of its own: the kernel says it. Failures of its own requests are shown and passed over.

use std::time::{Duration, Instant};

use common::args::PORT;
use common::cm::*;
use common::{
    address, narrate, Access, CmId, CompletionQueue, ConnParam, Error, EventChannel, MemoryRegion, Metadata,
    ProtectionDomain, QpCap, QpInitAttr, QueuePair, Result, SendWr, Woken,
};

/// What is said before the steps.
#[derive(Default)]
struct Manner {
    private_data: Vec<u8>,
    reads: Option<u8>,
    room: Option<usize>,
}

const CAP: QpCap = QpCap { max_send_wr: 8, max_recv_wr: RECEIVES as u32, ..QpCap::SMALL };

/// As many messages of the other side find a receive.
const RECEIVES: usize = 8;

/// Room for each of them, in bytes.
const SLOT: usize = 4096;

/// READ are so many bytes at the end of a buffer.
const TAIL: u32 = 16;

/// So long a buffer waits for what the other side writes.
const PATIENCE: Duration = Duration::from_secs(1);

fn main() -> Result<()> {
    narrate::start(narrate::ALL);
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let channel = EventChannel::create()?;
    match words[..] {
        ["client", address, ref steps @ ..] => {
            let id = address::try_each(address, PORT, |address| {
                let id = channel.create_id()?;
                id.resolve_addr(address)?;
                channel.wait_for(RDMA_CM_EVENT_ADDR_RESOLVED)?.ack();
                Ok(id)
            })?;
            id.resolve_route()?;
            channel.wait_for(RDMA_CM_EVENT_ROUTE_RESOLVED)?.ack();
            act(&id, &channel, steps, |param| id.connect(param))
        }
        ["server", ref steps @ ..] => {
            let listener = channel.create_id()?;
            listener.bind_addr(std::net::SocketAddr::from((std::net::Ipv6Addr::UNSPECIFIED, PORT)))?;
            listener.listen(1)?;
            let id = channel.wait_for(RDMA_CM_EVENT_CONNECT_REQUEST)?.id();
            // One client is enough: its own events have the channel for themselves.
            drop(listener);
            if let Some(why) = steps.first().and_then(|step| step.strip_prefix("reject=")) {
                return id.reject(why.as_bytes());
            }
            act(&id, &channel, steps, |param| id.accept(param))
        }
        _ => Err(usage("client or server", &words.join(" "))),
    }
}

/// All that a connection needs.
struct Peer<'a> {
    id: &'a CmId,
    channel: &'a EventChannel,
    pd: ProtectionDomain,
    cq: CompletionQueue,
    qp: QueuePair,
    /// Where messages arrive, the first at its begin; and the number of the receive for that.
    inbox: MemoryRegion,
    first: u64,
    /// What the first of them says, when it has come.
    heard: Option<Metadata>,
    /// What the other side was told of: it stays until the end.
    told: Vec<MemoryRegion>,
}

/// Creates what a connection needs, connects, and takes the steps.
fn act(id: &CmId, channel: &EventChannel, steps: &[&str], connect: impl Fn(&ConnParam) -> Result<()>) -> Result<()> {
    let context = id.verbs()?;
    let pd = context.alloc_pd()?;
    let completions = context.create_comp_channel()?;
    let cq = completions.create_cq(32)?;
    let qp = id.create_qp(&pd, &QpInitAttr::new(&cq, CAP))?;
    let inbox = pd.reg_mr(RECEIVES * SLOT, Access::LOCAL_WRITE)?;
    let (Manner { private_data, reads, room }, steps) = manner(steps)?;
    let room = room.unwrap_or(SLOT).min(SLOT);
    let first = qp.post_recv(&inbox, 0..room)?;
    for slot in 1..RECEIVES {
        qp.post_recv(&inbox, slot * SLOT..slot * SLOT + room)?;
    }
    let modest = ConnParam { retry_count: 1, rnr_retry_count: 1, ..ConnParam::default() };
    let reads = reads.unwrap_or(1);
    connect(&ConnParam { private_data, responder_resources: reads, initiator_depth: reads, ..modest })?;
    channel.wait_for(RDMA_CM_EVENT_ESTABLISHED)?.ack();
    let mut peer = Peer { id, channel, pd, cq, qp, inbox, first, heard: None, told: Vec::new() };
    steps.iter().try_for_each(|step| peer.take(step))
}

/// Takes what is said before the steps, and gives the steps.
fn manner<'a>(mut steps: &'a [&'a str]) -> Result<(Manner, &'a [&'a str])> {
    let mut manner = Manner::default();
    while let [first, rest @ ..] = steps {
        match first.split_once('=') {
            Some(("data", value)) => manner.private_data = hex(value)?,
            Some(("reads", value)) => manner.reads = Some(value.parse().map_err(|_| usage("reads=N", first))?),
            Some(("room", value)) => manner.room = Some(value.parse().map_err(|_| usage("room=BYTES", first))?),
            _ => break,
        }
        steps = rest;
    }
    Ok((manner, steps))
}

impl Peer<'_> {
    fn take(&mut self, step: &str) -> Result<()> {
        let (verb, value) = step.split_once('=').unwrap_or((step, ""));
        let milliseconds = || value.parse().map(Duration::from_millis).map_err(|_| usage("sleep=MS", step));
        match verb {
            "send" => self.send(&hex(value)?),
            "write" => {
                let fields: Vec<&str> = value.split(',').collect();
                let [addr, rkey, bytes] = fields[..] else { return Err(usage("write=ADDR,RKEY,HEX", step)) };
                let bytes = hex(bytes)?;
                let to = Metadata { addr: number(addr)?, rkey: number(rkey)? as u32, len: bytes.len() as u32 };
                self.write(&bytes, &to)
            }
            "tell" | "lend" => {
                let len = value.parse().map_err(|_| usage("tell=LEN", step))?;
                let writes = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
                let rights = if verb == "tell" { writes | Access::REMOTE_READ } else { writes };
                let region = self.pd.reg_mr(len, rights)?;
                let message = Metadata::of(&region).encode();
                self.told.push(region);
                self.send(&message)
            }
            "change" => self.change(value.as_bytes()),
            "flip" => self.flip(value == "last"),
            "read" => match self.heard() {
                Ok(theirs) => self.read(&theirs.slice(theirs.len.saturating_sub(TAIL)..theirs.len)?),
                Err(error) => show(Err::<(), _>(error)),
            },
            "fill" => match self.heard() {
                Ok(theirs) => self.write(&vec![b'x'; theirs.len as usize], &theirs),
                Err(error) => show(Err::<(), _>(error)),
            },
            "put" => match self.heard() {
                Ok(theirs) => self.write(value.as_bytes(), &theirs),
                Err(error) => show(Err::<(), _>(error)),
            },
            "sleep" => {
                std::thread::sleep(milliseconds()?);
                Ok(())
            }
            "close" => self.id.disconnect(),
            "goodbye" => {
                self.channel.wait_for(RDMA_CM_EVENT_DISCONNECTED)?.ack();
                self.id.disconnect()
            }
            _ => Err(usage("send, write, tell, lend, change, flip, read, fill, put, sleep, close or goodbye", step)),
        }
    }

    fn change(&self, text: &[u8]) -> Result<()> {
        let Some(region) = self.told.last() else { return Err(usage("change behind tell", "change")) };
        let begun = Instant::now();
        while region.read(0..1)? == [0] && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
        region.write(0, text)
    }

    /// Changes one byte of what the other side has written, which has no zeroes in it.
    fn flip(&self, is_last: bool) -> Result<()> {
        let Some(region) = self.told.last() else { return Err(usage("flip behind tell", "flip")) };
        let begun = Instant::now();
        let written =
            || region.read(0..region.len()).map(|bytes| bytes.into_iter().take_while(|byte| *byte != 0).collect());
        let mut bytes: Vec<u8> = written()?;
        while bytes.is_empty() && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
            bytes = written()?;
        }
        let at = if is_last { bytes.len().saturating_sub(1) } else { 0 };
        region.write(at, &[bytes.get(at).copied().unwrap_or_default() ^ 1])
    }

    /// Where the other side's first message says that a buffer is.
    fn heard(&mut self) -> Result<Metadata> {
        if let Some(theirs) = self.heard {
            return Ok(theirs);
        }
        let theirs = match self.cq.wait_for_or_cm_event(self.first, self.channel, "a message")? {
            Woken::Completion(done) => Metadata::decode(&self.inbox.read(0..done.byte_len().unwrap_or(0))?)?,
            Woken::CmEvent => return Err(Error::content("it hung up before it sent anything", "Look at its log")),
        };
        self.heard = Some(theirs);
        Ok(theirs)
    }

    fn send(&self, bytes: &[u8]) -> Result<()> {
        let region = region(&self.pd, bytes)?;
        self.done(self.qp.post_send(&SendWr::send(&region, 0..bytes.len()))?, "an odd SEND")
    }

    fn write(&self, bytes: &[u8], to: &Metadata) -> Result<()> {
        let region = region(&self.pd, bytes)?;
        self.done(self.qp.post_send(&SendWr::rdma_write(&region, 0..bytes.len(), to))?, "an odd WRITE")
    }

    fn read(&self, from: &Metadata) -> Result<()> {
        let region = self.pd.reg_mr(TAIL as usize, Access::LOCAL_WRITE)?;
        self.done(self.qp.post_send(&SendWr::rdma_read(&region, 0..from.len as usize, from))?, "an odd READ")
    }

    /// Waits until a request is complete, or the other side hangs up.
    fn done(&self, wr_id: u64, what: &str) -> Result<()> {
        show(self.cq.wait_for_or_cm_event(wr_id, self.channel, what))
    }
}

fn region(pd: &ProtectionDomain, bytes: &[u8]) -> Result<MemoryRegion> {
    // A message may be empty; a region may not.
    let region = pd.reg_mr(bytes.len().max(1), Access::LOCAL_READ)?;
    region.write(0, bytes)?;
    Ok(region)
}

fn show<T>(result: Result<T>) -> Result<()> {
    if let Err(error) = result {
        narrate::failure(&error.to_string());
    }
    Ok(())
}

/// `0a0b`, or `ff*500` for a byte many times.
fn hex(text: &str) -> Result<Vec<u8>> {
    let (digits, times) = text.split_once('*').unwrap_or((text, "1"));
    let times = times.parse().map_err(|_| usage("HEX*TIMES", text))?;
    let bytes: Result<Vec<u8>> = (0..digits.len())
        .step_by(2)
        .map(|at| digits.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok()))
        .map(|byte| byte.ok_or_else(|| usage("pairs of hexadecimal digits", text)))
        .collect();
    Ok(bytes?.repeat(times))
}

fn number(text: &str) -> Result<u64> {
    u64::from_str_radix(text, 16).map_err(|_| usage("a hexadecimal number", text))
}

fn usage(wanted: &str, got: &str) -> Error {
    Error::content(format!("{got:?} is not {wanted}"), "Read the head of odd_peer.rs")
}
