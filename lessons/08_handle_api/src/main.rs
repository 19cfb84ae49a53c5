//! Lesson 08: queue pairs without a connection manager. Two parts, and one server for both:
//!
//! - `by_hand`: the two sides exchange over TCP what they must know of each other, and each moves its own queue pair.
//! - `handles`, with `--part handles` or `--part calls`: a small API on top, as a teaching kernel has it.
//!
//! ```text
//! client                                              server
//!    │ ─ TCP: qpn, psn, gid, mtu, addr, rkey, len ─▶ │  RESET → INIT → RTR → RTS
//!    │ ◀ TCP: qpn, psn, gid, mtu, addr, rkey, len ── │
//!  RESET → INIT → RTR → RTS                            │
//!    │ ─── WRITE ──────────────────────────────────▶ │
//!    │ ◀── ACK ───────────────────────────────────── │
//!    │ ─ TCP: bye ─────────────────────────────────▶ │  looks into its memory
//! ```

mod by_hand;
mod handles;
mod server;

use std::process::ExitCode;

use common::args::{Args, Opt, Side};
use common::Result;

const DEVICE: Opt = Opt::text(Side::Both, "device", "rxe0", "The RDMA device's name, as `rdma link` shows it");

const PART: Opt = Opt::choice(
    Side::Client,
    "part",
    &["by-hand", "handles", "calls"],
    "By hand, with handles, or each call of the API",
);

fn client(args: &Args) -> Result<()> {
    match args.text(&PART) {
        "handles" => handles::program::run(args),
        "calls" => handles::calls::calls(args),
        _ => by_hand::client::run(args),
    }
}

fn main() -> ExitCode {
    common::args::run("lesson-08", "Queue pairs by hand, and an API of handles", &[DEVICE, PART], server::run, client)
}
