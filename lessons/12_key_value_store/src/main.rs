//! Lesson 12: a key-value store. GET is one-sided: the client READs the server's table, and the server's program sleeps. PUT is a
//! request: the server's program changes the table, after the change is in its file.
//!
//! ```text
//! client 1 … 8                      server
//!    │ ─── ConnectRequest: hello ─────▶ │
//!    │ ◀── ConnectReply: welcome ────── │  where table and lock are
//!    │ ─── SEND: put ─────────────────▶ │ ┐ into one queue of receives for all clients (SRQ);
//!    │ ◀── SEND: done ───────────────── │ ┘ written to the file, and to the table, before this
//!    │ ─── READ a bucket ─────────────▶ │ ┐ where is the record? Remembered for the next time
//!    │ ─── READ a record ─────────────▶ │ ┘ its seal tells whether the copy is whole
//!    │ ─── SEND: get ─────────────────▶ │ ┐ the same, asked for
//!    │ ◀── SEND: the record ─────────── │ ┘
//! ```
//!
//! Everything that calls the device is in this folder. The rest is in `../plain`.

mod client;
mod house;
#[path = "../plain/mod.rs"]
mod plain;
mod record;
mod server;
mod table;

use std::process::ExitCode;

use common::{args::Args, say, Result};

use plain::{options::*, script};

/// Does one thing after the other.
fn client(args: &Args) -> Result<()> {
    let mut desk = client::Desk::create(args)?;
    desk.connect()?;
    let text = args.text(&DO).replace('#', &desk.welcome.number.to_string());
    for what in text.split(',').map(str::trim) {
        script::follow(&mut desk, what)?.into_iter().for_each(|said| say!("{what}: {said}"));
    }
    desk.disconnect()
}

fn main() -> ExitCode {
    let about = "A key-value store: GET by READs, PUT by a request";
    common::args::run("lesson-12", about, &[FILE, SLOWLY, DO], server::run, client)
}

#[cfg(test)]
#[path = "../checks/main.rs"]
mod checks;
