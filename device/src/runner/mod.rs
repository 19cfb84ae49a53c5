//! Runs programs on the device: starts them with our two libraries, and collects what they say and send.
//!
//! All of it comes through one socket: standard output and standard error of each program, and the taps of their devices. A
//! datagram is in it before the call that wrote it returns; so the order of the socket is the order of cause and effect, of a
//! log line and its packet, of the packet and the line that it caused at the other end, on any number of processors.

mod link;
mod record;
mod start;
mod wires;

use anyhow::{bail, Context, Result};
use device::nic::tap::kind;
use record::Recorder;
use start::{Inbox, Message};
use std::env;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use wires::Wires;

pub use link::library;

/// How long a server that never says that it listens has before the clients start.
const SILENCE: Duration = Duration::from_millis(500);

/// A program of a run.
pub struct Node {
    /// What the lanes call it.
    pub name: String,
    /// A line for the shell.
    pub command: String,
}

impl Node {
    /// A program with its name.
    pub fn new(name: &str, command: String) -> Node {
        Node { name: name.to_owned(), command: command.trim().to_owned() }
    }

    /// The program's name, for its log lines.
    fn program(&self) -> &str {
        let word = self.command.split_whitespace().next().unwrap_or_default();
        word.rsplit('/').next().unwrap_or(word)
    }
}

/// What to run. The first node is the server; the others start when it listens.
pub struct Run {
    /// The folder of its results, below target/device/runs.
    pub name: String,
    /// The programs.
    pub nodes: Vec<Node>,
    /// Devices tell their decisions.
    pub log: bool,
    /// Acts on packets: [`wire::rules`].
    pub rules: String,
    /// Nothing is shown.
    pub quiet: bool,
    /// After the server a shell is started, with this terminal.
    pub shell: bool,
    /// How long programs may run.
    pub deadline: Duration,
    /// Where a copy of the run file is wanted.
    pub copy: Option<PathBuf>,
}

/// Runs it; true if all programs ended with 0.
///
/// # Errors
/// Programs cannot be started, or results not be written.
pub fn run(run: &Run) -> Result<bool> {
    let library = library()?;
    let mut recorder = Recorder::begin(run, &target()?.join("device/runs").join(&run.name))?;
    let inbox = Inbox::open()?;
    let mut wires = Wires::new(run)?;
    let mut programs = Vec::new();
    programs.push(start::start(run, 0, &inbox, &library, "", wires.socket(0)?)?);
    recorder.act(0, "start", &run.nodes[0].command)?;

    let (begun, mut others_started, mut heard) = (Instant::now(), false, Instant::now());
    let mut server = String::from("127.0.0.2");
    while !others_started || programs.iter().any(|program| program.exit.is_none()) {
        let message = inbox.next(wires.wait(Duration::from_millis(100)))?;
        wires.let_go(&mut recorder)?;
        let mut start_others = heard.elapsed() > SILENCE;
        if let Some(message) = message {
            heard = Instant::now();
            match message {
                Message::Said { node, error, bytes } => recorder.said(node, error, &bytes)?,
                Message::Tap { kind: kind::PACKET, node, bytes } => wires.carry(node, &bytes, &mut recorder)?,
                Message::Tap { kind: kind::LISTENS, bytes, .. } => {
                    server = String::from_utf8_lossy(&bytes).into_owned();
                    start_others = true;
                }
                Message::Tap { node, bytes, .. } => recorder.decision(node, &bytes)?,
                Message::Exit { node, status } => {
                    programs[node].exit = Some(status);
                    recorder.act(node, "exit", &format!("exit status {status}"))?;
                    start_others |= node == 0;
                }
            }
        }
        if start_others && !others_started {
            others_started = true;
            for node in 1..run.nodes.len() {
                recorder.act(node, "start", &run.nodes[node].command.replace("$SERVER", &server))?;
                programs.push(start::start(run, node, &inbox, &library, &server, wires.socket(node)?)?);
            }
            if run.shell {
                programs.push(start::shell(run, &inbox, &library, &server)?);
            }
        }
        let shell_left = run.shell && programs.get(1).is_some_and(|shell| shell.exit.is_some());
        if begun.elapsed() > run.deadline || shell_left {
            for program in programs.iter_mut().filter(|program| program.exit.is_none()) {
                program.end();
                if !shell_left {
                    recorder.trouble(&format!("a program had not ended after {} s", run.deadline.as_secs()));
                }
            }
        }
    }
    // What was said before the end is in the socket already.
    while let Some(message) = inbox.next(Duration::from_millis(1))? {
        match message {
            Message::Said { node, error, bytes } => recorder.said(node, error, &bytes)?,
            Message::Tap { kind: kind::PACKET, node, bytes } => wires.carry(node, &bytes, &mut recorder)?,
            _ => {}
        }
    }
    wires.check(&mut recorder);
    let exits: Vec<i32> = programs.iter().filter_map(|program| program.exit).collect();
    let is_good = recorder.finish(run, &exits)?;
    Ok(run.shell || (is_good && exits.iter().all(|status| *status == 0)))
}

/// Cargo's folder, in which this program lies as `debug/device` or `release/device`.
fn target() -> Result<PathBuf> {
    let own = env::current_exe().context("where is this program?")?;
    match own.ancestors().nth(2) {
        Some(target) => Ok(target.to_owned()),
        None => bail!("{} does not lie in cargo's target folder", own.display()),
    }
}
