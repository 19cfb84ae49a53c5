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
use start::{Inbox, Message, Program};
use std::env;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use wires::Wires;

pub use link::library;

/// How long a server that neither says that it listens, nor anything else, has before the clients start. On a busy machine a
/// program may need a second to begin; a client that is told no address then knocks where nobody is.
const SILENCE: Duration = Duration::from_secs(10);

/// How often we look at the clock while all run.
const TURN: Duration = Duration::from_millis(500);

/// How often we look whether it listens on TCP.
const GLANCE: Duration = Duration::from_millis(5);

pub struct Node {
    pub name: String,
    /// A line for the shell.
    pub command: String,
}

impl Node {
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
    pub nodes: Vec<Node>,
    /// Devices tell their decisions.
    pub log: bool,
    /// Acts on packets: [`wire::rules`].
    pub rules: String,
    /// Nothing is shown.
    pub quiet: bool,
    /// After the server a shell is started, with this terminal.
    pub shell: bool,
    pub deadline: Duration,
    /// Where a copy of the run file is wanted.
    pub copy: Option<PathBuf>,
}

struct Session<'a> {
    run: &'a Run,
    library: PathBuf,
    inbox: Inbox,
    recorder: Recorder,
    wires: Wires,
    programs: Vec<Program>,
    /// The server's address, and whether the others have been told.
    server: String,
    others_started: bool,
}

/// Runs it; true if all programs ended with 0.
pub fn run(run: &Run) -> Result<bool> {
    let recorder = Recorder::begin(run, &target()?.join("device/runs").join(&run.name))?;
    let (library, inbox, wires) = (library()?, Inbox::open()?, Wires::new(run)?);
    // A server that never tells listens on TCP, if at all.
    let (programs, server) = (Vec::new(), String::from("127.0.0.1"));
    let mut session = Session { run, library, inbox, recorder, wires, programs, server, others_started: false };
    session.start(0)?;
    let (begun, mut heard) = (Instant::now(), Instant::now());
    while !session.others_started || session.programs.iter().any(|program| program.exit.is_none()) {
        let patience = if session.others_started { TURN } else { GLANCE };
        let message = session.inbox.next(session.wires.wait(patience))?;
        session.wires.let_go(&mut session.recorder)?;
        match message {
            Some(message) => {
                heard = Instant::now();
                session.take(message)?;
            }
            None if session.others_started => {}
            None if heard.elapsed() > SILENCE || session.programs[0].listens_on_tcp() => session.start_others()?,
            None => {}
        }
        session.end_late(begun)?;
    }
    // What was said before the end is in the socket already.
    while let Some(message) = session.inbox.next(Duration::from_millis(1))? {
        session.take(message)?;
    }
    session.wires.check(&mut session.recorder)?;
    let exits: Vec<i32> = session.programs.iter().filter_map(|program| program.exit).collect();
    let is_good = session.recorder.finish(run, &exits)?;
    Ok(run.shell || (is_good && exits.iter().all(|status| *status == 0)))
}

impl Session<'_> {
    fn take(&mut self, message: Message) -> Result<()> {
        match message {
            Message::Said { node, error, bytes } => self.recorder.said(node, error, &bytes),
            Message::Tap { kind: kind::PACKET, node, bytes } => self.wires.carry(node, &bytes, &mut self.recorder),
            Message::Tap { kind: kind::LISTENS, bytes, .. } => {
                self.server = String::from_utf8_lossy(&bytes).into_owned();
                self.start_others()
            }
            Message::Tap { node, bytes, .. } => self.recorder.decision(node, &bytes),
            Message::Exit { node, status } => {
                self.programs[node].exit = Some(status);
                self.recorder.act(node, "exit", &format!("exit status {status}"))?;
                self.start_others()
            }
        }
    }

    fn start(&mut self, node: usize) -> Result<()> {
        let command = self.run.nodes[node].command.replace("$SERVER", &self.server);
        self.recorder.act(node, "start", &command)?;
        let socket = self.wires.socket(node)?;
        self.programs.push(start::start(self.run, node, &self.inbox, &self.library, &self.server, socket)?);
        Ok(())
    }

    /// Starts the other programs, once: the server listens, or is silent, or has ended.
    fn start_others(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.others_started, true) {
            return Ok(());
        }
        (1..self.run.nodes.len()).try_for_each(|node| self.start(node))?;
        if self.run.shell {
            self.programs.push(start::shell(self.run, &self.inbox, &self.library, &self.server)?);
        }
        Ok(())
    }

    /// Ends what still runs when the time is over, or the shell was left.
    fn end_late(&mut self, begun: Instant) -> Result<()> {
        let shell_left = self.run.shell && self.programs.get(1).is_some_and(|shell| shell.exit.is_some());
        if !shell_left && begun.elapsed() < self.run.deadline {
            return Ok(());
        }
        let names = self.run.nodes.iter().map(|node| node.name.as_str()).chain(["client"]);
        for (program, name) in self.programs.iter_mut().zip(names).filter(|(program, _)| program.exit.is_none()) {
            if program.end() && !shell_left {
                let seconds = self.run.deadline.as_secs();
                self.recorder.trouble(&format!("the {name} had not ended after {seconds} s, and is ended"))?;
            }
        }
        Ok(())
    }
}

/// Cargo's folder, in which this program lies as `debug/device` or `release/device`.
fn target() -> Result<PathBuf> {
    let own = env::current_exe().context("where is this program?")?;
    match own.ancestors().nth(2) {
        Some(target) => Ok(target.to_owned()),
        None => bail!("{} does not lie in cargo's target folder", own.display()),
    }
}
