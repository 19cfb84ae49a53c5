//! Lesson 03: telling the other side where memory is. Before one side can WRITE into the other's memory, it must know the
//! address, the remote key and the length. They travel by SEND and RECV:
//!
//! ```text
//! client                         server
//!    │ ──── (connected as in lesson 02) ──── │
//!    │ ─── SEND {addr, rkey, len} ─▶ │  RECV, then registers a buffer of that length
//!    │ ◀── ACK ───────────────────── │
//!    │ ◀── SEND {addr, rkey, len} ── │
//!    │ ─── ACK ────────────────────▶ │
//! ```
//!
//! or, with `--metadata private-data`, inside the ConnectReply: no packet more, but the server must choose the length
//! before it has heard anything from the client.

mod client;
mod memory;
mod server;

use std::process::ExitCode;

use common::args::{Opt, Side};
use common::{
    info, stage, Access, CmId, CompletionChannel, CompletionQueue, ConnParam, EventChannel, MemoryRegion, Metadata,
    ProtectionDomain, QpCap, QpInitAttr, QueuePair, Result, SendWr, Woken, WorkCompletion,
};

/// How many clients may wait to be looked at, as in listen(2).
const BACKLOG: i32 = 8;

/// Room in each queue of the QP. The device may round up, and the dump shows what it gave.
const QUEUE: QpCap = QpCap { max_send_wr: 8, max_recv_wr: 8, ..QpCap::SMALL };

/// Room in the CQ for all that we'll ever have posted in the two queues at a time.
const CQE: i32 = 16;

/// How many READs may be under way at a time, in each direction. Lesson 05 is the first that READs, and with a 0 here it
/// couldn't.
const READS: u8 = 1;

/// How long the device waits for an ACK before it sends again: 4.096 µs × 2^17 = 0.54 s. The ConnectRequest calls it Local ACK
/// Timeout. Older kernels would choose 2.1 s, which makes 15 s with all retries, and that's more than the 10 s that we wait.
const ACK_TIMEOUT: u8 = 17;

/// How often the device sends a packet again if no ACK comes. The field has three bits and could hold a 7, but SoftRoCE takes
/// 7 for "for ever", and nothing here waits for ever.
const RETRIES: u8 = 6;

/// How often the *peer's* device may try again if we have no receive posted.
const RNR_RETRIES: u8 = 6;

/// The longest buffer that the server registers for a client, in bytes.
const MAX_LEN: u32 = 1 << 20;

/// The buffer that a side registers without knowing what the other needs, in bytes.
const OWN_LEN: usize = 4096;

/// Room for a message of the other side, in bytes.
const MESSAGE_LEN: usize = Metadata::LEN;

/// How the server's metadata travels: the same on both sides.
const METADATA: Opt = Opt::choice(Side::Both, "metadata", &["send", "private-data"], "How {addr, rkey, len} travel");

/// What every connection needs on each side. Rust drops fields from the top, so the QP goes first and the PD last.
struct Resources {
    /// The two queues that requests are posted to.
    qp: QueuePair,
    /// Where they are reported done.
    cq: CompletionQueue,
    /// Wakes a sleeper when something is reported. From lesson 05 on we sleep on it; until then we poll.
    channel: CompletionChannel,
    /// The wall: through the QP, only memory of this domain can be reached.
    pd: ProtectionDomain,
}

fn create_resources(id: &CmId) -> Result<Resources> {
    let _stage = stage("create_resources");
    // They all live on the device that the id is bound to.
    let context = id.verbs()?;
    let pd = context.alloc_pd()?;
    let channel = context.create_comp_channel()?;
    let cq = channel.create_cq(CQE)?;
    // The QP belongs to the id now. It's in INIT, where receives may be posted but nothing can be sent.
    let qp = id.create_qp(&pd, &QpInitAttr::new(&cq, QUEUE))?;
    qp.dump();
    Ok(Resources { qp, cq, channel, pd })
}

/// A receive that the device holds: where the message will land, and the work request's number.
struct PostedReceive {
    region: MemoryRegion,
    wr_id: u64,
}

/// Lends the device room for the other side's message. We do that before we connect or accept, because a SEND that finds no
/// receive posted is turned away with an RNR NAK ("receiver not ready").
fn post_receive(resources: &Resources) -> Result<PostedReceive> {
    let _stage = stage("post_receive");
    // LOCAL_WRITE, because it's our own device that writes here.
    let region = resources.pd.reg_mr(MESSAGE_LEN, Access::LOCAL_WRITE)?;
    let wr_id = resources.qp.post_recv(&region, 0..MESSAGE_LEN)?;
    Ok(PostedReceive { region, wr_id })
}

/// SENDs, and returns the work request's number. `common` keeps the region until the request is complete, since the device may
/// read it at any time.
fn send(resources: &Resources, message: &[u8]) -> Result<u64> {
    let _stage = stage("send");
    let region = resources.pd.reg_mr(message.len(), Access::LOCAL_READ)?;
    region.write(0, message)?;
    resources.qp.post_send(&SendWr::send(&region, 0..message.len()))
}

/// Waits for the message, and reads the bytes that have come, which may be fewer than there's room for.
fn receive_metadata(resources: &Resources, channel: &EventChannel, receive: &PostedReceive) -> Result<Metadata> {
    let received = wait_for(resources, channel, receive.wr_id, "a RECV with the peer's metadata")?;
    read_metadata(&receive.region.read(0..received.byte_len().unwrap_or(0))?)
}

fn read_metadata(message: &[u8]) -> Result<Metadata> {
    let _stage = stage("read_metadata");
    let metadata = Metadata::decode(message)?;
    info!("the peer's metadata: {metadata}");
    Ok(metadata)
}

/// Waits until a work request is complete. A SEND is complete when its ACK has come: then the other side's device has the
/// message, and the memory is ours again. A peer that hangs up ends the wait.
fn wait_for(resources: &Resources, channel: &EventChannel, wr_id: u64, awaited: &str) -> Result<WorkCompletion> {
    let _stage = stage("wait_for");
    match resources.cq.wait_for_or_cm_event(wr_id, channel, awaited)? {
        Woken::Completion(done) => Ok(done),
        Woken::CmEvent => Err(channel.get_cm_event()?.instead_of(awaited)),
    }
}

/// What we ask for, or accept at most.
const CONN_PARAM: ConnParam = ConnParam {
    private_data: Vec::new(),
    responder_resources: READS,
    initiator_depth: READS,
    retry_count: RETRIES,
    rnr_retry_count: RNR_RETRIES,
};

/// Destroys everything, each object before the ones it uses.
fn teardown(resources: Resources, buffers: Vec<MemoryRegion>, id: CmId, channel: EventChannel) {
    let _stage = stage("teardown");
    drop(resources.qp);
    drop(buffers);
    drop(resources.cq);
    drop(resources.channel);
    drop(resources.pd);
    drop(id);
    drop(channel);
}

fn main() -> ExitCode {
    let about = "Exchange {addr, rkey, len} by SEND and RECV, or by private data";
    common::args::run("lesson-03", about, &[METADATA], server::run, client::run)
}
