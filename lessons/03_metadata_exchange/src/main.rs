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
mod server;

use std::process::ExitCode;

use common::args::Extra;
use common::{
    info, stage, Access, CmId, CompletionChannel, CompletionQueue, ConnParam, EventChannel, MemoryRegion, Metadata,
    ProtectionDomain, QpCap, QpInitAttr, QueuePair, Result, SendWr,
};

/// How many clients may wait to be looked at, as in listen(2).
const BACKLOG: i32 = 8;

/// Room in each queue of the QP. The device may round up; the dump shows what it gave.
const QUEUE: QpCap = QpCap { max_send_wr: 8, max_recv_wr: 8, ..QpCap::SMALL };

/// Room in the CQ: all that both queues can complete.
const CQE: i32 = 16;

/// How many READs may be under way at a time, in each direction. In the ConnectRequest: Responder Resources and
/// Initiator Depth. With 0, lesson 05 could not READ.
const READS: u8 = 1;

/// How long the device waits for an ACK before it sends again: 4.096 µs × 2^17 = 0.54 s. In the ConnectRequest: Local ACK
/// Timeout. Left to themselves, older kernels choose 2.1 s: with all retries, 15 s, they would give up after we do (10 s),
/// and we would never hear why.
const ACK_TIMEOUT: u8 = 17;

/// How often the device sends a packet again if no ACK comes. In the ConnectRequest: Retry Count. 7 is the most that fits
/// its three bits, but SoftRoCE takes 7 for "for ever", and nothing here waits for ever.
const RETRIES: u8 = 6;

/// How often the *peer's* device tries again if we have no receive posted. In the ConnectRequest: RNR Retry Count. Here 7
/// means for ever on every device.
const RNR_RETRIES: u8 = 6;

/// The longest buffer that the server registers for a client, in bytes.
const MAX_LEN: u32 = 1 << 20;

/// The buffer that it registers with `--metadata private-data`, when it cannot know what the client needs.
const PRIVATE_DATA_LEN: usize = 4096;

/// What every connection needs on each side. Fields are dropped from the top: the QP first, the PD last.
struct Resources {
    /// The two queues that requests are posted to.
    qp: QueuePair,
    /// Where they are reported done.
    cq: CompletionQueue,
    /// Wakes a sleeper when something is reported. From lesson 06 on we sleep on it; until then we poll.
    channel: CompletionChannel,
    /// Ties QP and memory together.
    pd: ProtectionDomain,
}

fn create_resources(id: &CmId) -> Result<Resources> {
    stage("create_resources");
    // All of them live on the device that the id is bound to: `id->verbs`.
    let context = id.verbs()?;
    let pd = ProtectionDomain::alloc(&context)?;
    let channel = CompletionChannel::create(&context)?;
    let cq = CompletionQueue::create(&channel, CQE)?;
    // The id now owns a QP, in the state INIT: receives may be posted, nothing can be sent.
    let qp = QueuePair::create(id, &pd, &QpInitAttr::new(&cq, QUEUE))?;
    qp.dump();
    Ok(Resources { qp, cq, channel, pd })
}

/// A receive that the device holds: where the message will be, and the work request's number.
struct PostedReceive {
    region: MemoryRegion,
    wr_id: u64,
}

/// Lends the device 16 bytes for the other side's metadata. This comes before connect and accept: a SEND that finds no
/// receive posted is turned away with an RNR NAK ("receiver not ready").
fn post_receive(resources: &Resources) -> Result<PostedReceive> {
    stage("post_receive");
    // LOCAL_WRITE, for it is our own device that writes here.
    let region = resources.pd.reg_mr(Metadata::LEN, Access::LOCAL_WRITE)?;
    let wr_id = resources.qp.post_recv(&region, 0..Metadata::LEN)?;
    Ok(PostedReceive { region, wr_id })
}

/// Waits until the receive is complete: one completion, for one receive.
fn receive_metadata(resources: &Resources, receive: PostedReceive) -> Result<Metadata> {
    stage("receive_metadata");
    let wc = resources.cq.wait_for(receive.wr_id, "a RECV with the peer's metadata")?;
    // The completion says how many bytes came, which may be fewer than there is room for.
    let message = receive.region.read(0..wc.byte_len().unwrap_or(0))?;
    let metadata = Metadata::decode(&message)?;
    info!("the peer's metadata: {metadata}");
    Ok(metadata)
}

/// SENDs ours, and waits for the completion: then the other side's device has it (its ACK came), and the memory is ours
/// again.
fn send_metadata(resources: &Resources, metadata: &Metadata) -> Result<()> {
    stage("send_metadata");
    info!("our metadata: {metadata}");
    let mut region = resources.pd.reg_mr(Metadata::LEN, Access::LOCAL_READ)?;
    region.write(0, &metadata.encode())?;
    let wr_id = resources.qp.post_send(&SendWr::send(&region, 0..Metadata::LEN))?;
    resources.cq.wait_for(wr_id, "a SEND of our metadata")?;
    Ok(())
}

fn conn_param() -> ConnParam {
    ConnParam {
        responder_resources: READS,
        initiator_depth: READS,
        retry_count: RETRIES,
        rnr_retry_count: RNR_RETRIES,
        ..ConnParam::default()
    }
}

/// Destroys in the one right order: what uses something goes before what it uses.
fn teardown(resources: Resources, buffers: Vec<MemoryRegion>, id: CmId, channel: EventChannel) {
    stage("teardown");
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
    common::args::run("lesson-03", about, &[Extra::Metadata], server::run, client::run)
}
