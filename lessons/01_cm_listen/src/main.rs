//! Lesson 01: the connection manager. A client knocks; the server says no, and why.
//!
//! ```text
//! client                      server
//!    │                          │  rdma_listen
//!    │ ─── ConnectRequest ────▶ │  CONNECT_REQUEST
//!    │ ◀── ConnectReject ────── │  rdma_reject
//!  REJECTED                     │
//! ```
//!
//! No queue pair, no memory: only ids and events. This is to RDMA what a refused connection is to TCP.

mod client;
mod server;

use std::process::ExitCode;

/// How many clients may wait to be looked at, as in listen(2).
const BACKLOG: i32 = 8;

/// What the server says to everyone. It travels in the private data of the ConnectReject, at most 148 bytes.
const REASON: &str = "lesson 01 has nothing to offer yet: come back in lesson 02";

fn main() -> ExitCode {
    common::args::run("lesson-01", "Listen, knock, and be rejected with a reason", &[], server::run, client::run)
}
