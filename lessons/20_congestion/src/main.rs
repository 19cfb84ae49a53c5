//! Lesson 20: congestion. N senders WRITE to one receiver, all at the same time, and the receiver's cable has room for one of them
//! (*incast*). What becomes of that decide the switch and the devices. The programs do not know which case it is: each is a run of
//! the same program with another `wire=`.
//!
//! ```text
//! a sender: a client                the receiver: the server
//!    │ ─── ConnectRequest ────────────▶ │
//!    │ ◀── ConnectReply: where, how often │
//!    │ ─── ReadyToUse ────────────────▶ │
//!    │ ◀── SEND without bytes ───────── │   once all are there: go
//!    │ ─── WRITE with immediate ──────▶ │   as many messages as were asked for, some of them posted at a time
//!    │ ─── DisconnectRequest ─────────▶ │   when all of them are complete, or when the connection has failed
//! ```

mod receiver;
mod sender;
#[path = "../plain/share.rs"]
mod share;

use std::process::ExitCode;

use common::{args::Opt, args::Side::*, ConnParam, QpCap};

/// Senders at most.
const MOST: usize = 8;
/// How many messages a sender keeps posted at a time.
const DEPTH: usize = 8;
/// How many receives each sender has here. A message uses one up, and it's posted again when the message has been counted.
const RECEIVES: usize = 2 * DEPTH;
/// Room in each queue of a QP.
const QUEUE: QpCap = QpCap { max_send_wr: DEPTH as u32, max_recv_wr: RECEIVES as u32, ..QpCap::SMALL };
/// How long a device waits for an ACK before it sends again: 4.096 µs × 2^14 = 67 ms. In a data centre an answer takes
/// microseconds, but a long queue takes milliseconds, and a device that's less patient repeats what was never lost.
const ACK_TIMEOUT: u8 = 14;
/// A packet without an ACK is sent again seven times, which is the most there is.
const CONN_PARAM: ConnParam = ConnParam {
    private_data: Vec::new(),
    responder_resources: 0,
    initiator_depth: 0,
    retry_count: 7,
    rnr_retry_count: 7,
};

const LEN: Opt = Opt::number_or(Server, "len", "4096", "Bytes of a message");
const MESSAGES: Opt = Opt::number_or(Server, "messages", "8", "Messages of each sender");
const TOS: Opt = Opt::number_or(Client, "tos", "0", "Type of service, 0 to 255; its upper three bits are the priority");

fn main() -> ExitCode {
    let about = "Congestion: 1 to 8 senders WRITE to one receiver at the same time";
    common::args::run("lesson-20", about, &[LEN, MESSAGES, TOS], receiver::run, sender::run)
}
