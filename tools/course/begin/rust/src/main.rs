//! Your own RDMA program. `make step` says what comes next, and judges what you have written.
//!
//! `common` has a function for each call of C, and prints a line for it: `cargo doc -p common --open`, in a
//! shell that has said `. ../target/tools/env`.

use common::args::{Args, Opt, Side};
use common::Result;
use std::process::ExitCode;

/// What a side will write into the other's memory, the client from lesson 04 on, both in lesson 06: a text, or this many bytes.
const TEXT: Opt = Opt::text(Side::Both, "text", "my first RDMA WRITE", "Text to write").short('s');
const LEN: Opt = Opt::number(Side::Both, "len", "text", "Write so many bytes instead");
/// Lessons 06 and 07: write or read, and which side hangs up first.
const MODE: Opt = Opt::choice(Side::Both, "mode", &["write", "read"], "WRITE to the other side, or READ").short('m');
const CLOSER: Opt = Opt::choice(Side::Both, "closer", &["client", "server"], "Which side hangs up first");
/// Lesson 11: connections or datagrams, and how often a client of datagrams asks.
const TRANSPORT: Opt = Opt::choice(Side::Both, "transport", &["rc", "ud"], "A connection, or datagrams");
const REQUESTS: Opt = Opt::number_or(Side::Client, "requests", "2", "How often to ask");

/// Runs when the program is called as `mine server`. It listens on the port `args.port`, at `args.address`.
fn server(_args: &Args) -> Result<()> {
    Ok(())
}

/// Runs when it is called as `mine client -a ADDRESS`: `args.address` is the server's.
fn client(_args: &Args) -> Result<()> {
    Ok(())
}

fn main() -> ExitCode {
    common::args::run("mine", "My own RDMA program", &[TEXT, LEN, MODE, CLOSER, TRANSPORT, REQUESTS], server, client)
}
