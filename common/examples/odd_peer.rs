//! A peer without manners, for the tests: it connects like a lesson, and then sends whatever it is told.
//!
//! ```text
//! odd_peer client ADDRESS STEP…      odd_peer server STEP…
//! ```
//!
//! Steps, in order: `data=HEX` private data for connect or accept (first), `send=HEX` a SEND of these bytes,
//! `write=ADDR,RKEY,HEX` an RDMA WRITE (hexadecimal numbers), `sleep=MS`, `close` to disconnect. After the last step it
//! exits at once, without a goodbye of its own: the kernel says it. Failures of its own requests are shown and passed over.

use std::time::Duration;

use common::args::PORT;
use common::cm::*;
use common::{
    address, narrate, Access, CmId, CompletionQueue, ConnParam, Error, EventChannel, MemoryRegion, Metadata,
    ProtectionDomain, QpCap, QpInitAttr, QueuePair, Result, SendWr,
};

const CAP: QpCap = QpCap { max_send_wr: 8, max_recv_wr: RECEIVES as u32, ..QpCap::SMALL };

/// As many messages of the other side find a receive.
const RECEIVES: usize = 8;

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
            act(&id, &channel, steps, |param| id.accept(param))
        }
        _ => Err(usage("client or server", &words.join(" "))),
    }
}

/// Creates what a connection needs, connects, and takes the steps.
fn act(id: &CmId, channel: &EventChannel, steps: &[&str], connect: impl Fn(&ConnParam) -> Result<()>) -> Result<()> {
    let context = id.verbs()?;
    let pd = context.alloc_pd()?;
    let completions = context.create_comp_channel()?;
    let cq = completions.create_cq(32)?;
    let qp = id.create_qp(&pd, &QpInitAttr::new(&cq, CAP))?;
    let inbox = pd.reg_mr(RECEIVES * 4096, Access::LOCAL_WRITE)?;
    for slot in 0..RECEIVES {
        qp.post_recv(&inbox, slot * 4096..(slot + 1) * 4096)?;
    }
    let (private_data, steps) = match steps {
        [first, rest @ ..] if first.starts_with("data=") => (hex(&first["data=".len()..])?, rest),
        all => (Vec::new(), all),
    };
    let modest = ConnParam { retry_count: 1, rnr_retry_count: 1, ..ConnParam::default() };
    connect(&ConnParam { private_data, responder_resources: 1, initiator_depth: 1, ..modest })?;
    channel.wait_for(RDMA_CM_EVENT_ESTABLISHED)?.ack();
    steps.iter().try_for_each(|step| take(step, id, &pd, &cq, &qp))
}

fn take(step: &str, id: &CmId, pd: &ProtectionDomain, cq: &CompletionQueue, qp: &QueuePair) -> Result<()> {
    let (verb, value) = step.split_once('=').unwrap_or((step, ""));
    match verb {
        "send" => {
            let bytes = hex(value)?;
            let region = region(pd, &bytes)?;
            let wr_id = qp.post_send(&SendWr::send(&region, 0..bytes.len()))?;
            show(cq.wait_for(wr_id, "an odd SEND"))
        }
        "write" => {
            let fields: Vec<&str> = value.split(',').collect();
            let [addr, rkey, bytes] = fields[..] else { return Err(usage("write=ADDR,RKEY,HEX", step)) };
            let region = region(pd, &hex(bytes)?)?;
            let to = Metadata { addr: number(addr)?, rkey: number(rkey)? as u32, len: region.len() as u32 };
            let wr_id = qp.post_send(&SendWr::rdma_write(&region, 0..region.len(), &to))?;
            show(cq.wait_for(wr_id, "an odd WRITE"))
        }
        "sleep" => {
            std::thread::sleep(Duration::from_millis(value.parse().map_err(|_| usage("sleep=MS", step))?));
            Ok(())
        }
        "close" => id.disconnect(),
        _ => Err(usage("send, write, sleep or close", step)),
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
