//! Runs programs on the device: starts them with our two libraries, and collects what they say and send.
//!
//! All of it comes through one socket: standard output and standard error of each program, and the taps of their devices. A
//! datagram is in it before the call that wrote it returns; so the order of the socket is the order of cause and effect, of a
//! log line and its packet, of the packet and the line that it caused at the other end, on any number of processors.

mod inbox;
mod link;
mod program;
mod record;
mod wires;

use anyhow::{ensure, Result};
use clap::Args;
use device::rim::tap::{self, kind};
use inbox::{Inbox, Message};
use program::Program;
use record::Recorder;
use run::programs::{Node, CLIENT};
use run::rules::Rules;
use run::source;
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

/// The exit status of a lesson that does not understand its command line.
const USAGE: i32 = 2;

/// How long a shell may be open.
const DAY: Duration = Duration::from_secs(24 * 3600);

#[derive(Args)]
pub struct Options {
    /// Show what the devices decide, too
    #[arg(long)]
    log: bool,
    /// Act on packets, for example: drop 1st "RC Acknowledge" from server (docs/lab.md has more)
    #[arg(long, default_value = "", hide_default_value = true)]
    wire: String,
    /// How long the programs may run, in seconds
    #[arg(long, default_value_t = 60)]
    deadline: u64,
    /// How long the others may go on when a program has failed, in seconds; until the deadline unless this is said
    #[arg(long)]
    grace: Option<u64>,
    /// The folder of the results, below target/device/runs
    #[arg(long)]
    name: Option<String>,
    /// Copy the run file to this place, too
    #[arg(long)]
    pcap: Option<PathBuf>,
    /// Show nothing while the programs run
    #[arg(long)]
    quiet: bool,
}

/// What to run. The first node is the server; the others start when it listens.
pub struct Run {
    /// The folder of its results, below target/device/runs.
    name: String,
    nodes: Vec<Node>,
    /// After the server a shell is started, with this terminal: the last node.
    shell: bool,
    options: Options,
    rules: Rules,
}

impl Run {
    /// Reads the rules.
    pub fn new(name: String, mut nodes: Vec<Node>, options: Options, shell: bool) -> Result<Run> {
        ensure!(!shell || options.wire.is_empty(), "programs in a shell send by themselves: it has no --wire");
        nodes.extend(shell.then(|| Node::new(CLIENT, "shell")));
        let name = options.name.clone().unwrap_or(name);
        let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        let rules = Rules::parse(&options.wire, &names)?;
        Ok(Run { name, nodes, shell, options, rules })
    }
}

struct Session {
    run: Run,
    library: PathBuf,
    inbox: Inbox,
    recorder: Recorder,
    wires: Wires,
    /// Those that were started, in the order of the nodes.
    programs: Vec<Program>,
    /// The server's address.
    server: String,
    /// The first that failed, and when.
    failed: Option<(usize, Instant)>,
}

/// Runs it; true if all programs ended with 0.
pub fn run(mut run: Run) -> Result<bool> {
    let library = library()?;
    let target = library.ancestors().nth(2).unwrap_or(&library);
    let recorder = Recorder::begin(&run, &target.join("device/runs").join(&run.name))?;
    let (inbox, wires) = (Inbox::open()?, Wires::new(std::mem::take(&mut run.rules), run.nodes.len())?);
    // A server that never tells listens on TCP, if at all.
    let (programs, server) = (Vec::new(), String::from("127.0.0.1"));
    let mut session = Session { run, library, inbox, recorder, wires, programs, server, failed: None };
    session.start()?;
    session.conversation()?;
    let Session { run, mut recorder, wires, programs, .. } = session;
    wires.check(&mut recorder)?;
    let exits: Vec<i32> = programs.iter().filter_map(|program| program.exit).collect();
    let is_good = recorder.finish(&run, &exits)?;
    Ok(run.shell || (is_good && exits.iter().all(|status| *status == 0)))
}

impl Session {
    /// All that is said and sent, until every program has ended.
    fn conversation(&mut self) -> Result<()> {
        let (begun, mut heard) = (Instant::now(), Instant::now());
        while !self.all_started() || self.programs.iter().any(|program| program.exit.is_none()) {
            let patience = if self.all_started() { TURN } else { GLANCE };
            let message = self.inbox.next(self.wires.wait(patience))?;
            self.wires.let_go(&mut self.recorder)?;
            match message {
                Some(message) => {
                    heard = Instant::now();
                    self.take(message)?;
                }
                None if self.all_started() => {}
                None if heard.elapsed() > SILENCE || self.inbox.listens_on_tcp() => self.start_others()?,
                None => {}
            }
            self.end_late(begun)?;
        }
        // What was said before the end is in the socket already.
        while let Some(message) = self.inbox.next(Duration::from_millis(1))? {
            self.take(message)?;
        }
        Ok(())
    }

    fn take(&mut self, Message { node, kind, bytes }: Message) -> Result<()> {
        match kind {
            kind::OUT | kind::ERROR => self.recorder.said(node, kind == kind::ERROR, &bytes),
            kind::PACKET => self.wires.carry(node, &bytes, &mut self.recorder),
            kind::DECISION => self.recorder.decision(node, &bytes),
            kind::LISTENS => {
                self.server = String::from_utf8_lossy(&bytes).into_owned();
                self.start_others()
            }
            kind::EXIT => {
                let status = String::from_utf8_lossy(&bytes).parse().unwrap_or(-1);
                self.programs[node].exit = Some(status);
                if status != 0 && self.failed.is_none() {
                    self.failed = Some((node, Instant::now()));
                }
                self.recorder.act(Some(node), "exit", &format!("exit status {status}"))?;
                self.start_others()
            }
            _ => Ok(()),
        }
    }

    fn all_started(&self) -> bool {
        self.programs.len() == self.run.nodes.len()
    }

    /// Starts all that have not been: the server listens, or is silent, or has ended.
    fn start_others(&mut self) -> Result<()> {
        while !self.all_started() {
            self.start()?;
        }
        Ok(())
    }

    /// Starts the next node's program.
    fn start(&mut self) -> Result<()> {
        let node = self.programs.len();
        let command = self.run.nodes[node].command.as_deref().unwrap_or_default().replace("$SERVER", &self.server);
        self.recorder.act(Some(node), "start", &command)?;
        let is_shell = self.run.shell && node > 0;
        let mut program =
            if is_shell { program::shell() } else { program::command(&command, self.wires.socket(node)?) };
        program.env("SERVER", &self.server).env(tap::LOG, if self.run.options.log { "1" } else { "" });
        if !is_shell {
            program.env(source::WANTED, "1");
            program.stdout(self.inbox.stream(kind::OUT, node)?).stderr(self.inbox.stream(kind::ERROR, node)?);
        }
        self.programs.push(Program::start(program, node, &self.library, &self.inbox)?);
        Ok(())
    }

    /// Ends what still runs when the time is over, or the shell was left, or what it waits for is dead.
    fn end_late(&mut self, begun: Instant) -> Result<()> {
        let shell_left = self.run.shell && self.programs.get(1).is_some_and(|shell| shell.exit.is_some());
        let Some(why) = self.why_late(begun).or(shell_left.then(String::new)) else { return Ok(()) };
        for (program, node) in
            self.programs.iter_mut().zip(&self.run.nodes).filter(|(program, _)| program.exit.is_none())
        {
            if program.end() && !shell_left {
                self.recorder.trouble(&format!("the {} had not ended {why}, and is ended", node.name))?;
            }
        }
        Ok(())
    }

    /// Why the time is over, if it is.
    fn why_late(&self, begun: Instant) -> Option<String> {
        let over = |begun: Instant, seconds: u64| begun.elapsed() >= Duration::from_secs(seconds);
        let Options { deadline, grace, .. } = self.run.options;
        if let Some((node, when)) = self.failed {
            let name = &self.run.nodes[node].name;
            // It has sent nothing, so nobody will ever hear of it.
            if self.programs[node].exit == Some(USAGE) && self.run.nodes[node].program().starts_with("lesson-") {
                return Some(format!("when the {name} had not understood its options"));
            }
            if let Some(grace) = grace.filter(|grace| over(when, *grace)) {
                return Some(format!("{grace} s after the {name} had failed"));
            }
        }
        let deadline = if self.run.shell { DAY.as_secs() } else { deadline };
        over(begun, deadline).then(|| format!("after {deadline} s"))
    }
}
