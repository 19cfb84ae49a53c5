//! Lesson 08: queue pairs by hand, and a handle API. No connection manager: what the two sides must know of each other goes
//! over TCP, and each moves its own queue pair.
//!
//! ```text
//! client                                              server
//!  reg_mr, create_qp                                   reg_mr
//!    │ ─ TCP: qpn, psn, gid, mtu, addr, rkey, len ─▶ │  create_qp, RESET → INIT → RTR → RTS
//!    │ ◀ TCP: qpn, psn, gid, mtu, addr, rkey, len ── │
//!  RESET → INIT → RTR → RTS                            │
//!    │ ─── WRITE ──────────────────────────────────▶ │
//!    │ ◀── ACK ───────────────────────────────────── │
//!  poll_cq                                             │
//!    │ ─ TCP: bye ─────────────────────────────────▶ │  looks into its memory
//! ```

mod api;
mod calls;
mod connect;
mod error;
mod faults;
mod handle;
mod pingpong;
mod program;
mod server;
mod wc;

use std::process::ExitCode;

use common::args::{Args, Opt, Side};
use common::tcp::Peer;
use common::Result;

use crate::faults::FAULTS;

const DEVICE: Opt = Opt::text(Side::Both, "device", "rxe0", "The RDMA device's name, as `rdma link` shows it");

/// Attributes of the queue pair; the last is the state itself.
const WRONGS: [&str; 7] = ["nothing", "dest_qp_num", "rq_psn+1", "rq_psn-1", "path_mtu", "gid_index", "rts"];
const WRONG: Opt = Opt::choice(Side::Both, "wrong", &WRONGS, "What this side gets wrong about its queue pair");

const LEN: Opt = Opt::number_or(Side::Client, "len", "12", "Bytes to WRITE");

/// Requests that fail.
const WRONG_RKEY: Opt = Opt::flag(Side::Client, "wrong-rkey", "WRITE with a key that opens nothing");
const BEYOND_END: Opt = Opt::flag(Side::Client, "beyond-end", "WRITE past the end of the server's memory");
const NO_PERMISSION: Opt = Opt::flag(Side::Client, "no-permission", "WRITE where the server allows READ alone");
const NO_LOCAL_WRITE: Opt = Opt::flag(Side::Client, "no-local-write", "READ into memory that our device may not write");
const QUEUE_FULL: Opt = Opt::flag(Side::Client, "queue-full", "Post until no more is taken");

const CALLS: Opt = Opt::flag(Side::Client, "calls", "Run an example of each call");
const PINGPONG: Opt = Opt::flag(Side::Both, "pingpong", "Play with ibv_rc_pingpong, or with lesson 08");

const OPTIONS: [Opt; 10] =
    [DEVICE, WRONG, LEN, WRONG_RKEY, BEYOND_END, NO_PERMISSION, NO_LOCAL_WRITE, QUEUE_FULL, CALLS, PINGPONG];

fn client(args: &Args) -> Result<()> {
    let peer = Peer::connect(args)?;
    let done = match () {
        () if args.flag(&PINGPONG) => pingpong::play(peer, args, true),
        () if args.flag(&CALLS) => calls::calls(peer, args),
        () if FAULTS.iter().any(|fault| args.flag(fault)) => faults::faults(peer, args),
        () => program::program(peer, args),
    };
    Ok(done?)
}

fn main() -> ExitCode {
    common::args::run("lesson-08", "Queue pairs by hand, and an API of handles", &OPTIONS, server::run, client)
}
