//! Lesson 06: both sides do everything, driven by completions. Each tells the other where its memory is (MR), WRITEs into
//! the other's memory (or READs from it, with `-m read`), and says when it is done (DONE).
//!
//! ```text
//! client                            server
//!  SS_INIT RS_INIT                  SS_INIT RS_INIT
//!    │ ─── SEND MR ───────────────────▶ │
//!    │ ◀─────────────────── SEND MR ─── │
//!    │ ─── WRITE ─────────────────────▶ │   both at once,
//!    │ ◀───────────────────── WRITE ─── │   in any order
//!    │ ─── SEND DONE ─────────────────▶ │
//!    │ ◀───────────────── SEND DONE ─── │
//!  SS_DONE_SENT RS_DONE_RECV        SS_DONE_SENT RS_DONE_RECV
//! ```
//!
//! DONE is a text for the other side's user. RC delivers in order, so the first message is the MR, the second the DONE.

mod client;
mod exchange;
mod machine;
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

/// The buffer that a side registers without knowing what the other needs, in bytes.
const OWN_LEN: usize = 4096;

/// Room for a message of the other side, in bytes. An MR has 16, and a DONE is a short text.
const MESSAGE_LEN: usize = 64;

/// Which one-sided operation is used. It must be the same on both sides.
const MODE: Opt = Opt::choice(Side::Both, "mode", &["write", "read"], "WRITE to the other side, or READ").short('m');

/// What each side has for the other, a text or bytes of a pattern.
const TEXT: Opt =
    Opt::text(Side::Both, "text", "One side writes, and the other side's processor never knows.", "Text to write")
        .short('s');
const LEN: Opt = Opt::number(Side::Both, "len", "text", "Write this many bytes of a pattern instead");

/// What every connection needs on each side. Rust drops fields from the top, so the QP goes first and the PD last.
struct Resources {
    /// The two queues that requests are posted to.
    qp: QueuePair,
    /// Where they are reported done.
    cq: CompletionQueue,
    /// Wakes a sleeper when something is reported.
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

/// The message that has come. The completion says how many bytes it has, which may be fewer than there's room for.
fn message(receive: &PostedReceive, wc: &WorkCompletion) -> Result<Vec<u8>> {
    receive.region.read(0..wc.byte_len().unwrap_or(0))
}

fn read_metadata(message: &[u8]) -> Result<Metadata> {
    let _stage = stage("read_metadata");
    let metadata = Metadata::decode(message)?;
    info!("the peer's metadata: {metadata}");
    Ok(metadata)
}

/// Sleeps until there are completions. None if the peer has hung up and there are no more.
///
/// Arm, poll, and only then sleep. A completion that comes after the poll finds the CQ armed and wakes us, and the poll finds
/// one that came before. In any other order a completion could fall into the gap, and we'd sleep for ever.
fn completions(resources: &Resources, channel: &EventChannel, awaited: &str) -> Result<Option<Vec<WorkCompletion>>> {
    loop {
        resources.cq.req_notify()?;
        let batch = resources.cq.poll()?;
        if !batch.is_empty() {
            return Ok(Some(batch));
        }
        if resources.channel.get_cq_event_or_cm_event(channel, awaited)? == Woken::CmEvent {
            // The goodbye takes another path than the data, so it may have overtaken our completion. Look once more.
            let last = resources.cq.poll()?;
            return Ok(Some(last).filter(|last| !last.is_empty()));
        }
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
    let about = "Both sides exchange memory, WRITE or READ, and say when they are done";
    common::args::run("lesson-06", about, &[MODE, TEXT, LEN], server::run, client::run)
}
