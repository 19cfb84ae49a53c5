//! Lesson 13: a ring all-reduce. Each rank has a vector of its own, and in the end all have the sum of all: the same to the bit.
//! It is what every training run on many machines does after each step, with gradients.
//!
//! ```text
//! rank 1 … N-1                     rank 0: the server
//!    │ ─── ConnectRequest: seat? ─────▶ │
//!    │ ◀── ConnectReject: the seat ──── │  once all have asked: your rank, and where your right neighbour is
//!
//! rank r                           its right neighbour, rank r + 1; after the last comes rank 0
//!    │ ─── ConnectRequest: the rank ──▶ │
//!    │ ◀── ConnectReply: memory, keys ─ │
//!    │ ─── ReadyToUse ────────────────▶ │
//!    │ ─── WRITE with immediate ──────▶ │  ┐ reduce-scatter: a part of a chunk, into a slot, to be added there. N - 1 steps
//!    │ ◀── SEND with immediate ──────── │  ┘ a credit: the slot is free again
//!    │ ─── WRITE with immediate ──────▶ │    all-gather: a part of a chunk that is done, to where it belongs. N - 1 steps
//! ```
//!
//! Everything that calls the device is in this folder. The rest is in `../plain`.

mod meeting;
#[path = "../plain/plan.rs"]
mod plan;
mod rank;
mod ring;

use std::process::ExitCode;

use common::{args::Args, args::Opt, args::Side::Server, ConnParam, QpCap};

/// How many may wait to be looked at, as in listen(2).
const BACKLOG: i32 = 16;
/// How private data begins: in the question for a seat, in rank 0's answer, and in a left neighbour's knock.
const QUESTION: &str = "RA13 seat?";
const ANSWER: &str = "RA13 seat";
const KNOCK: &str = "RA13 from rank";

/// How many slices may be under way to a rank that hasn't added them yet. It has a buffer for each, and a receive.
const SLOTS: usize = 2;
/// Room in each queue of a QP. WRITEs and credits go different ways, so each QP has only the one or the other to send.
const QUEUE: QpCap = QpCap { max_send_wr: 4, max_recv_wr: SLOTS as u32, ..QpCap::SMALL };
/// How long the device waits for an ACK before it sends again: 4.096 µs × 2^17 = 0.54 s.
const ACK_TIMEOUT: u8 = 17;
/// A packet without an ACK is sent again six times. But a receiver that isn't ready ends the connection at once. With credits
/// it never comes to that.
fn conn_param(private_data: Vec<u8>) -> ConnParam {
    ConnParam { private_data, retry_count: 6, rnr_retry_count: 0, ..ConnParam::default() }
}

const ELEMENTS: Opt = Opt::number_or(Server, "elements", "6", "How many numbers (f32) each rank's vector has");
const SLICE: Opt = Opt::number_or(Server, "slice", "65536", "Bytes of a slot: a longer chunk goes in several slices");
const SLOW: Opt = Opt::text(Server, "slow", "nobody", "This rank is slow, for example 2");
const PAUSE: Opt = Opt::number_or(Server, "pause", "100", "Milliseconds that it needs for each slice");

fn main() -> ExitCode {
    let about = "A ring all-reduce: 2 to 9 machines add up their vectors, each sending to its right neighbour alone";
    let server = |args: &Args| rank::run(args, &args.address, meeting::host);
    // The address that the others are given is the server's. They listen on all of their own.
    let client = |args: &Args| rank::run(args, "::", meeting::ask);
    common::args::run("lesson-13", about, &[ELEMENTS, SLICE, SLOW, PAUSE], server, client)
}

#[cfg(test)]
#[path = "../checks/main.rs"]
mod checks;
