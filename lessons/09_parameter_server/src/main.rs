//! Lesson 09: one server, many workers, one loop. A parameter server holds a model's weights; workers READ them, find out on
//! their own data which way to change them, and WRITE that into the server's memory.
//!
//! ```text
//! worker 1 … 8                      server
//!    │ ─── ConnectRequest: hello ─────▶ │  a place in the house, or a reason why not
//!    │ ◀── ConnectReply: welcome ────── │  where board, slot and counter are
//!    │ ◀── SEND with immediate: go ──── │ ┐
//!    │ ─── READ the board ────────────▶ │ │  nobody's processor on the server has a part in it
//!    │ ─── WRITE with immediate ──────▶ │ │  the gradient, into the worker's slot: the server's program is told
//!    │ ─── FETCH_ADD ─────────────────▶ │ ┘  examples, onto the counter; again and again, until
//!    │ ◀── SEND with immediate: stop ── │
//! ```

mod house;
mod layout;
mod model;
mod server;
mod training;
mod worker;

use std::process::ExitCode;

use common::{args::Opt, args::Side, ConnParam, QpCap};

/// How many workers there is room for.
const PLACES: usize = 8;
/// How many may wait to be looked at, as in listen(2).
const BACKLOG: i32 = 16;

/// Room in each queue of a QP. A worker has a READ, or a WRITE and a FETCH_ADD, under way, and the server has one word.
/// Either has two receives posted.
const QUEUE: QpCap = QpCap { max_send_wr: 4, max_recv_wr: 4, ..QpCap::SMALL };
/// How many receives are posted for each QP, one for what comes and one more for what comes next.
const RECEIVES: usize = 2;
/// Room in the CQ for everything that both queues of a QP can complete.
const CQE: i32 = 8;
/// How long the device waits for an ACK before it sends again, and how often: 4.096 µs × 2^17 = 0.54 s, six times.
const ACK_TIMEOUT: u8 = 17;
const RETRIES: u8 = 6;

/// What we ask for, or accept at most, which is one READ or atomic under way at a time.
const CONN_PARAM: ConnParam = ConnParam {
    private_data: Vec::new(),
    responder_resources: 1,
    initiator_depth: 1,
    retry_count: RETRIES,
    rnr_retry_count: RETRIES,
};

const MODE: Opt = Opt::choice(Side::Server, "mode", &["sync", "async"], MODES).short('m');
const MODES: &str = "A round for all workers (-n: the first begins when so many are there), or each at its own pace";
const CHECK: Opt = Opt::flag(Side::Server, "check", "Compute everything a second time, here, and compare");
const ROUNDS: Opt = Opt::number_or(Side::Server, "rounds", "50", "Stop after so many rounds");
const LOSS: Opt = Opt::text(Side::Server, "loss", "0.001", "Or when the loss is below this");
const WORKER: Opt = Opt::number_or(Side::Client, "worker", "0", "The number wanted, 1 to 8; 0 takes any that is free");
const PAUSE: Opt = Opt::number_or(Side::Client, "pause", "0", "Be slow: milliseconds between READ and WRITE");

fn main() -> ExitCode {
    let about = "A parameter server: many workers train one model, in one server's memory";
    common::args::run("lesson-09", about, &[MODE, CHECK, ROUNDS, LOSS, WORKER, PAUSE], server::run, worker::run)
}

#[cfg(test)]
#[path = "../checks/main.rs"]
mod checks;
