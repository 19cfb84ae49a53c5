//! For the tests: every function of `common`, called in every state that its object can be in, twice. Each call must return,
//! with success or with an error in words. A signal, a panic or a wait without an end would show in the exit status.
//!
//! ```text
//! states host                 accepts whoever comes, until a client says that it was the last
//! states client ADDRESS       ids in every state of a client and of a listener, against a host
//! states guest ADDRESS        connects again and again, and waits for each outcome
//! states server               ids in every state of a server, against a guest
//! states queues               queue pairs in every state, and what belongs to them, on one machine
//! states forgotten POSTS RESETS    what is refused, and what RESET forgets, is held no longer
//! ```
//!
//! One line for each call: `state | function | what it returned`.

mod forgotten;
mod id_calls;
mod ids;
mod peers;
mod queues;

use std::process::{Command, ExitCode};
use std::time::Duration;

use common::{deadline, narrate, say, Error, Result};

fn main() -> ExitCode {
    narrate::start(narrate::ALL);
    deadline::set(PATIENCE);
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["host"] => peers::host(),
        ["client", address] => ids::client(address),
        ["guest", address] => peers::guest(address),
        ["server"] => ids::server(),
        ["queues"] => queues::run(),
        ["forgotten", posts, resets] => forgotten::run(posts.parse().unwrap_or(0), resets.parse().unwrap_or(0)),
        _ => Err(Error::content("unknown words", "Read the head of main.rs")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            narrate::failure(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

/// What this process has open: RDMA resources of the whole machine, and its own descriptors.
fn open_now() -> Result<String> {
    let wrong = |error: std::io::Error| Error::content(format!("cannot count: {error}"), "Is there a /proc?");
    // Where no kernel's driver is, the tool need not be either.
    let resources =
        Command::new("/usr/bin/rdma").args(["resource", "show"]).output().map_or(vec![], |said| said.stdout);
    let descriptors = std::fs::read_dir("/proc/self/fd").map_err(wrong)?.count();
    Ok(format!("{} and {descriptors} descriptors", String::from_utf8_lossy(&resources).trim()))
}

/// Whatever was opened must be closed again: counted in here, while the kernel has not cleaned up after the process.
fn nothing_left_open(before: &str) -> Result<()> {
    let after = open_now()?;
    if before == after {
        say!("nothing is left open: {after}");
        return Ok(());
    }
    Err(Error::content(format!("open before: {before}; after: {after}"), "Look for a Drop that does not destroy"))
}

/// How long a state may take to be reached.
const PATIENCE: Duration = Duration::from_secs(20);

/// Calls a function twice, and shows what it returned. What it awaits is mostly awaited in vain: so not for long.
fn twice<T>(state: &str, name: &str, call: impl Fn() -> Result<T>) {
    deadline::set(Duration::from_millis(50));
    for _ in 0..2 {
        match call() {
            Ok(_) => say!("{state} | {name} | ok"),
            Err(error) => say!("{state} | {name} | {error}"),
        }
    }
    deadline::set(PATIENCE);
}
