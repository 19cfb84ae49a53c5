//! Lesson 02: a connection. Both sides create their resources; the queue pairs become connected; both let go in order.
//!
//! ```text
//! client                      server
//!  QP: INIT                     │
//!    │ ─── ConnectRequest ────▶ │
//!    │                          │  QP: INIT, then RTR and RTS in rdma_accept
//!    │ ◀── ConnectReply ─────── │
//!  QP: RTR, RTS                 │
//!    │ ─── ReadyToUse ────────▶ │
//!  ESTABLISHED                ESTABLISHED
//!    │ ─── DisconnectRequest ─▶ │
//!    │ ◀── DisconnectReply ──── │
//!  QP: ERR                    QP: ERR
//! ```

mod client;
mod server;

use std::process::ExitCode;

use common::{
    stage, CmId, CompletionChannel, CompletionQueue, ConnParam, EventChannel, ProtectionDomain, QpCap, QpInitAttr,
    QueuePair, Result,
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

/// What we ask for, or accept at most.
const CONN_PARAM: ConnParam = ConnParam {
    private_data: Vec::new(),
    responder_resources: READS,
    initiator_depth: READS,
    retry_count: RETRIES,
    rnr_retry_count: RNR_RETRIES,
};

/// Destroys everything, each object before the ones it uses.
fn teardown(resources: Resources, id: CmId, channel: EventChannel) {
    let _stage = stage("teardown");
    drop(resources.qp);
    drop(resources.cq);
    drop(resources.channel);
    drop(resources.pd);
    drop(id);
    drop(channel);
}

fn main() -> ExitCode {
    common::args::run("lesson-02", "Create resources, connect, disconnect", &[], server::run, client::run)
}
