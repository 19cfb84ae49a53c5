//! Lesson 10: going fast. One connection, and one operation again and again; every option of the client is a technique, and
//! what it brings is measured and counted.
//!
//! ```text
//! client                                        server
//!    │ ─── ConnectRequest: the plan ────────▶ │
//!    │ ◀── ConnectReply: memory, key ──────── │
//!    │ ─── request 1 ───────────────────────▶ │  up to --depth of them are under way before the first is answered
//!    │ ─── request 2 ───────────────────────▶ │
//!    │ ◀── ACK 1 ──────────────────────────── │
//!    │ ─── request 3 ───────────────────────▶ │
//!    │        … --count in all …              │
//! ```

mod client;
mod flow;
mod plan;
mod report;
mod server;
mod wait;

use std::process::ExitCode;

use common::{args::Opt, args::Side::Client, stage, CmId, CompletionChannel, CompletionQueue, ConnParam, Context};
use common::{EventChannel, ProtectionDomain, QpCap, QpInitAttr, QueuePair, Result};

/// How long the device waits for an ACK before it sends again: 4.096 µs × 2^19 = 2.1 s. Everything that's posted at once must
/// be through by then.
const ACK_TIMEOUT: u8 = 19;
/// READs and atomics that a side has under way, or answers, at a time. More than that wait in the send queue.
const READS: u8 = 16;
/// Bytes that a request may carry inline.
const INLINE: u32 = 256;
/// How many receives the client posts for the server's messages about credits.
const CREDIT_MESSAGES: u32 = 4;

/// What we ask for, or accept at most. If a receiver isn't ready, the device asks again without end (that's what 7 means).
/// With `--credits` it never has to.
const CONN_PARAM: ConnParam = ConnParam {
    private_data: Vec::new(),
    responder_resources: READS,
    initiator_depth: READS,
    retry_count: 6,
    rnr_retry_count: 7,
};

const OP: Opt = Opt::choice(Client, "op", &plan::NAMES, "The operation");
const SIZE: Opt = Opt::number_or(Client, "size", "64", "Bytes of each request; a fetch-add has 8");
const COUNT: Opt = Opt::number_or(Client, "count", "100", "How many requests");
const DEPTH: Opt = Opt::number_or(Client, "depth", "1", "How many requests may be under way at a time");
const BATCH: Opt = Opt::number_or(Client, "batch", "1", "How many requests one ibv_post_send hands over");
const SIGNAL: Opt = Opt::number_or(Client, "signal-every", "1", "One request in so many is signaled");
const INLINED: Opt = Opt::flag(Client, "inline", "The post copies the bytes into the request");
const WAIT: Opt = Opt::choice(Client, "wait", &["poll", "sleep", "hybrid"], "How both sides wait for completions");
const RECEIVES: Opt = Opt::number_or(Client, "receives", "32", "How many receives the server keeps posted");
const CREDITS: Opt = Opt::flag(Client, "credits", "Send only when a receive is free: the server says how many are");
const MRS: Opt = Opt::choice(Client, "mrs", &["pool", "each"], "Register memory once, or new memory for each request");
const OPTIONS: [Opt; 11] = [OP, SIZE, COUNT, DEPTH, BATCH, SIGNAL, INLINED, WAIT, RECEIVES, CREDITS, MRS];

/// What both sides work with. Fields are dropped from the top.
struct Desk {
    qp: QueuePair,
    cq: CompletionQueue,
    channel: CompletionChannel,
    pd: ProtectionDomain,
    context: Context,
    events: EventChannel,
}

impl Desk {
    fn create(id: &CmId, events: EventChannel, sends: u32, receives: u32) -> Result<Self> {
        let _stage = stage("create_resources");
        let context = id.verbs()?;
        let pd = context.alloc_pd()?;
        let channel = context.create_comp_channel()?;
        let cq = channel.create_cq((sends + receives) as i32)?;
        let cap = QpCap { max_send_wr: sends, max_recv_wr: receives, max_inline_data: INLINE, ..QpCap::SMALL };
        let qp = id.create_qp(&pd, &QpInitAttr::new(&cq, cap))?;
        Ok(Self { qp, cq, channel, pd, context, events })
    }
}

fn main() -> ExitCode {
    let about = "Going fast: one operation again and again, measured and counted";
    // A line for each request would take longer than the request.
    common::args::run_with_log("SLOW", "lesson-10", about, &OPTIONS, server::run, client::run)
}
