//! Runs programs on nodes with a device: starts them under their supervisors, and collects what they say and send.
//!
//! All of it comes through one socket: standard output and standard error of each program, and the taps of the devices. A
//! datagram is in it before the call that wrote it returns; so the order of the socket is the order of cause and effect, of a
//! log line and its packet, of the packet and the line that it caused at the other end, on any number of processors.

mod inbox;
mod link;
mod processes;
mod processor;
mod program;
mod record;
mod still;
mod stop;
mod virtual_time;
mod whereabouts;
mod wires;

use anyhow::{Context, Result};
use clap::Args;
use device::node::tap::{kind, Stepped, Tap};
use device::strict::Manners;
use inbox::{Inbox, Report};
pub use processes::guard;
use processes::{memory, Processes};
use program::Program;
use record::Recorder;
use run::exit::{signal_name, Exit};
use run::file::{names, Line};
use run::programs::{Node, CLIENT};
use run::source;
use run::story::Story;
use run::timing::Timing;
use run::wire::{Scribe, Wire};
use std::cmp::Reverse;
use std::env;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};
use stop::Stop;
use wires::Wires;

/// How long we wait for a server that neither says that it listens, nor anything else, nor works, before the clients start, because a client
/// that comes too early finds nobody listening.
const SILENCE: Duration = Duration::from_secs(10);

/// How long a server that works may be without a word. On a busy machine a program can need many seconds to begin.
const BEGINNING: Duration = Duration::from_secs(30);

/// How long we wait for a device's last words when its program has ended. If the program has left another one behind, its device goes on.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How often we look at the clock while all run.
const TURN: Duration = Duration::from_millis(500);

/// How often we check whether it listens on TCP: at first, and then ever more seldom, down to this. Each time we look at all processes.
const GLANCE: Duration = Duration::from_millis(5);
const SELDOM: Duration = Duration::from_millis(50);

/// The exit status of a lesson that does not understand its command line.
const USAGE: Exit = Exit::Status(2);

/// How long a shell may be open.
const DAY: Duration = Duration::from_secs(24 * 3600);

#[derive(Args)]
pub struct Options {
    /// Also show what the devices decide
    #[arg(long)]
    log: bool,
    /// Act on packets, for example: drop 1st "RC Acknowledge" from server (docs/lab.md has more);
    /// or put a switch between the nodes: link 1 Gbit/s 5 us (docs/device_switch.md has more)
    #[arg(long, default_value = "", hide_default_value = true)]
    pub wire: String,
    /// The address of a node's device, which must be one of this machine's: first the server's, then the others'. A node without one takes
    /// the first free address from 127.0.0.2 on
    #[arg(long)]
    address: Vec<IpAddr>,
    /// How long the programs may run, in seconds
    #[arg(long, default_value_t = 60)]
    deadline: u64,
    /// How long the other programs may go on after one has failed, in seconds; without this, until the deadline
    #[arg(long)]
    grace: Option<u64>,
    /// End the run when nothing has happened for this many seconds: no line, no packet, no system call
    #[arg(long)]
    idle: Option<u64>,
    /// End the run when its lines and packets have this many MiB
    #[arg(long)]
    most: Option<u64>,
    /// End the run when its programs, with everything they have started, use this many MiB of memory together
    #[arg(long)]
    memory: Option<u64>,
    /// Arm a completion queue only when a completion is in it, or none has come within a moment. A program that polls, arms and
    /// sleeps, in this order, then sleeps for ever
    #[arg(long)]
    late_arm: bool,
    /// Read a request some time after its doorbell. A program that has changed or freed its memory by then sends something else, or fails
    #[arg(long)]
    late_read: bool,
    /// Be as strict with this node's program as other machines are: an lkey doesn't work as an rkey, freed memory is written over,
    /// a long sleep ends sooner, and the log says so if the program waits in a busy loop
    #[arg(long, value_name = "NODE")]
    strict: Vec<String>,
    /// The folder for the results, in target/device/runs
    #[arg(long)]
    name: Option<String>,
    /// Also copy the run file to this place
    #[arg(long)]
    pcap: Option<PathBuf>,
    /// At the end print where the time went
    #[arg(long)]
    timing: bool,
    /// Show nothing while the programs run
    #[arg(long)]
    quiet: bool,
    /// At the end print how it went as JSON, in one line on standard output, and show nothing else
    #[arg(long)]
    json: bool,
}

/// Who has the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guest {
    /// We: the programs' lines are shown beside each other.
    None,
    /// A shell, the last node; it starts after the server.
    Shell,
    /// The only program.
    Only,
}

/// What to run. The first node is the server; the others start when it listens.
pub struct Run {
    /// The folder of its results, below target/device/runs.
    name: String,
    nodes: Vec<Node>,
    guest: Guest,
    /// As which story it is shown; None if every line and packet is.
    story: Option<Story>,
    options: Options,
    wire: Wire,
}

impl Run {
    /// Reads what the wire is like.
    pub fn new(name: String, mut nodes: Vec<Node>, options: Options, guest: Guest) -> Result<Run> {
        nodes.extend((guest == Guest::Shell).then(|| Node::new(CLIENT, "shell")));
        let name = options.name.clone().unwrap_or(name);
        let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        let wire = Wire::parse(&options.wire, &names)?;
        if let Some(switch) = wire.switch() {
            link::parameters(&switch.settings)?;
        }
        Ok(Run { name, nodes, guest, story: None, options, wire })
    }

    /// The same, shown as this story.
    pub fn told_as(self, story: Option<Story>) -> Run {
        Run { story, ..self }
    }
}

struct Session<'s> {
    run: Run,
    /// Below it lies what machines see of sysfs, for all runs.
    machines: PathBuf,
    inbox: Inbox,
    recorder: Recorder<'s>,
    wires: Wires,
    processes: Processes,
    /// Those that were started, in the order of the nodes.
    programs: Vec<Program>,
    /// Bytes that were said and sent.
    taken: u64,
    /// When we last looked closely, and what we saw: whether the programs have too much memory, and whose device goes in circles.
    looked: Instant,
    is_too_heavy: bool,
    in_circles: Option<usize>,
    /// The first that failed, and when.
    failed: Option<(usize, Instant)>,
    /// The first whose device has panicked.
    panicked: Option<usize>,
    stop: Stop,
    /// The signal that has ended the run.
    stopped: Option<i32>,
    timing: Timing,
}

/// Runs it; gives our exit status.
pub fn run(mut run: Run) -> Result<u8> {
    let timing = Timing::begin();
    let stop = Stop::begin(run.guest != Guest::None)?;
    let results = results()?;
    let story = run.story.take();
    let mut recorder = Recorder::begin(&run, story.as_ref(), &results.join("runs"))?;
    let machines = results.join("machines");
    let wire = std::mem::take(&mut run.wire);
    if wire.switch().is_some() {
        processor::share_one();
        recorder.set_time(Duration::ZERO);
        recorder.act(None, Line::WIRE, &run.options.wire)?;
    }
    let (inbox, wires) = (Inbox::open()?, Wires::new(wire, run.nodes.len(), &run.options.address)?);
    let processes = Processes::new(&inbox.name)?;
    program::tell_panics(&inbox.name);
    let mut session = Session {
        run,
        machines,
        inbox,
        recorder,
        wires,
        processes,
        programs: Vec::new(),
        taken: 0,
        looked: Instant::now(),
        is_too_heavy: false,
        in_circles: None,
        failed: None,
        panicked: None,
        stop,
        stopped: None,
        timing,
    };
    session.timing.end("the run file is begun");
    session.start()?;
    session.conversation()?;
    let Session { run, mut recorder, wires, mut processes, programs, stopped, mut timing, .. } = session;
    timing.end("the programs run");
    processes.dismiss();
    wires.end(&mut recorder)?;
    let exits: Vec<Exit> = programs.iter().filter_map(|program| program.exit).collect();
    let is_good = recorder.finish(&run, &exits, timing)?;
    processes.end();
    Ok(match (run.guest, &exits[..]) {
        (Guest::Shell, _) => 0,
        (Guest::Only, [exit]) => exit.number() as u8,
        _ if stopped.is_some() => stopped.map_or(1, |signal| Exit::Signal(signal).number() as u8),
        _ if recorder.is_full() => crate::RUNNER_FAILED,
        _ => u8::from(!is_good || !exits.iter().all(|exit| exit.is_good())),
    })
}

/// Where results go: beside the build that this program is of; or, where it was copied to, below the current folder. A device with
/// another NIC in it, `device-mine-nic`, has a folder of its own there.
fn results() -> Result<PathBuf> {
    let own = env::current_exe().context("where is this program?")?;
    // Cargo keeps what a build is made of beside it.
    let is_built_here = own.with_file_name("deps").is_dir();
    let Some(target) = own.ancestors().nth(2).filter(|_| is_built_here) else { return Ok("rdma-device".into()) };
    let nic = own.file_name().and_then(|name| name.to_str()?.strip_prefix("device-"));
    Ok(target.join("device").join(nic.unwrap_or_default()))
}

impl Session<'_> {
    /// All that is said and sent, until every program has ended.
    fn conversation(&mut self) -> Result<()> {
        let (begun, mut heard) = (Instant::now(), Instant::now());
        let mut glance = GLANCE;
        while self.is_going_on() {
            let patience = if self.all_started() { TURN } else { glance };
            glance = SELDOM.min(2 * glance);
            let wait = self.go_on()?.unwrap_or_else(|| self.wires.wait(patience));
            let message = self.hear(wait)?;
            self.heed()?;
            self.wires.let_go(&mut self.recorder)?;
            match message {
                Some(message) => {
                    heard = Instant::now();
                    self.take(message)?;
                }
                None if self.all_started() => {}
                None if heard.elapsed() > self.silence() || self.processes.listens_on_tcp() => {
                    self.start_others()?;
                    heard = Instant::now();
                }
                None if begun.elapsed() < BEGINNING && self.processes.work() => heard = Instant::now(),
                None => {}
            }
            self.end_late(begun, heard)?;
            self.tell_what_we_wait_for(begun, heard);
        }
        self.finish_crossing()?;
        self.hear_last_words()
    }

    /// What programs have said before their end is in the socket already. Their devices may need another moment, to say what was left.
    fn hear_last_words(&mut self) -> Result<()> {
        let begun = Instant::now();
        loop {
            let all_gone = self.programs.iter().all(|program| program.is_gone);
            match self.inbox.next(Duration::from_millis(1))? {
                Some(message) => self.take(message)?,
                None if all_gone || begun.elapsed() >= LAST_WORDS => return Ok(()),
                None => {}
            }
        }
    }

    /// Whether there is a program to start, or one that has not ended. What a signal has ended starts no more.
    fn is_going_on(&self) -> bool {
        let is_running = self.programs.iter().any(|program| program.exit.is_none());
        is_running || !self.all_started() && self.stopped.is_none()
    }

    /// What comes next, if it comes in time. All that came before is in the run file while we wait.
    fn hear(&mut self, wait: Duration) -> Result<Option<Report>> {
        let message = self.inbox.next(Duration::ZERO)?;
        if message.is_some() || wait.is_zero() {
            return Ok(message);
        }
        self.recorder.flush();
        self.inbox.next(wait)
    }

    /// Takes note of a signal that ends the run.
    fn heed(&mut self) -> Result<()> {
        if let Some(signal) = self.stop.signal().filter(|_| self.stopped.is_none()) {
            self.stopped = Some(signal);
            let running = running(&self.run, &self.programs);
            self.recorder.stop(signal, &running)?;
        }
        Ok(())
    }

    /// Says so where nothing was to be seen for a while.
    fn tell_what_we_wait_for(&mut self, begun: Instant, heard: Instant) {
        let until = |begin: Instant, time: Duration| (begin + time).saturating_duration_since(begun).as_secs();
        let Options { deadline, grace, idle, .. } = self.run.options;
        let limits = [
            Some((deadline, "--deadline")),
            self.failed.zip(grace).map(|((_, when), grace)| (until(when, Duration::from_secs(grace)), "--grace")),
            idle.filter(|_| self.failed.is_none()).map(|_| (until(heard, self.silence()), "--idle")),
        ];
        let running = running(&self.run, &self.programs);
        if running.is_empty() {
            // The last one has just ended.
            return;
        }
        let all_started = self.all_started();
        self.recorder.waits(|| match limits.into_iter().flatten().min() {
            Some((until, option)) if all_started => {
                format!("device: waiting for {} to end (until {until} s, {option})", names(&running))
            }
            _ => format!(
                "device: waiting for {} to listen ({} s of silence at most)",
                names(&running),
                SILENCE.as_secs()
            ),
        });
    }

    fn take(&mut self, Report { node, kind, bytes }: Report) -> Result<()> {
        self.taken += bytes.len() as u64;
        if let Some(program) = self.programs.get_mut(node) {
            program.is_heard = true;
        }
        if let (Some(link), kind::OUT | kind::ERROR | kind::EXIT) = (&mut self.wires.link, kind) {
            // It was not asleep: perhaps it has waited for room to say it.
            link.is_news = true;
        }
        match kind {
            kind::OUT | kind::ERROR => self.recorder.said(node, kind == kind::ERROR, &bytes),
            kind::PACKET => self.wires.carry(node, &bytes, &mut self.recorder),
            kind::FROM_OUTSIDE => self.wires.outside(&bytes, &mut self.recorder),
            kind::STEPPED => {
                let stepped = Stepped::decode(&bytes);
                if let Some(program) = self.programs.get_mut(node) {
                    program.is_gone |= stepped == Some(Stepped::Gone);
                }
                if let (Some(link), Some(stepped)) = (&mut self.wires.link, stepped) {
                    link.stepped(node, stepped, self.processes.guardian());
                }
                Ok(())
            }
            kind::DECISION => self.recorder.decision(node, &bytes),
            kind::LISTENS => self.start_others(),
            kind::PANIC => {
                self.panicked.get_or_insert(node);
                let words = String::from_utf8_lossy(&bytes).replace('\n', " ");
                self.recorder.trouble(None, &format!("the {}'s device has {words}", self.run.nodes[node].name))
            }
            kind::EXIT => {
                let words = String::from_utf8_lossy(&bytes);
                let exit = words.split_once(' ').and_then(|(word, value)| Exit::read(word, value));
                let exit = exit.unwrap_or(Exit::Status(-1));
                self.programs[node].exit = Some(exit);
                if !exit.is_good() && self.failed.is_none() {
                    self.failed = Some((node, Instant::now()));
                }
                self.recorder.exit(node, exit)?;
                self.start_others()
            }
            _ => Ok(()),
        }
    }

    /// How long all may be silent: who has said something has begun; the others may need a while.
    fn silence(&self) -> Duration {
        let is_mute = self.programs.iter().any(|program| !program.is_heard && program.exit.is_none());
        self.run.options.idle.filter(|_| !is_mute).map_or(SILENCE, Duration::from_secs)
    }

    fn all_started(&self) -> bool {
        self.programs.len() == self.run.nodes.len()
    }

    /// Starts all that have not been: the server listens, or is silent, or has ended.
    fn start_others(&mut self) -> Result<()> {
        if !self.all_started() {
            self.timing.end("the server's program begins to listen");
        }
        while !self.all_started() && self.stopped.is_none() {
            self.start()?;
        }
        Ok(())
    }

    /// Starts the next node's program.
    fn start(&mut self) -> Result<()> {
        let node = self.programs.len();
        let command = self.filled(self.run.nodes[node].command.as_deref().unwrap_or_default());
        self.recorder.act(Some(node), "start", &command)?;
        let is_shell = self.run.guest == Guest::Shell && node > 0;
        let mut program = if is_shell { program::shell() } else { program::command(&command) };
        program.envs(self.addresses());
        if self.run.guest == Guest::Only {
            program.stdin(Stdio::inherit());
        } else if !is_shell {
            program.env(source::WANTED, "1");
            program.stdout(self.inbox.stream(kind::OUT, node)?).stderr(self.inbox.stream(kind::ERROR, node)?);
        }
        let tap = |talks| Tap::to(&self.inbox.name, node as u8, talks);
        let port = self.wires.port(node, tap(self.run.options.log))?;
        let (machines, options) = (&self.machines, &self.run.options);
        let is_strict = options.strict.contains(&self.run.nodes[node].name);
        let manners = Manners { arms_late: options.late_arm, reads_late: options.late_read, is_strict };
        let line = self.wires.link.as_mut().and_then(|link| link.line(node));
        self.programs.push(Program::start(program, port, line, tap(false), machines, &self.processes, manners)?);
        Ok(())
    }

    /// The address of each node, as a variable with its name in capitals: `SERVER`, `CLIENT_2`.
    fn addresses(&self) -> impl Iterator<Item = (String, String)> + '_ {
        let variable = |name: &str| name.to_uppercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        let nodes = self.run.nodes.iter().enumerate();
        nodes.map(move |(number, node)| (variable(&node.name), self.wires.address(number).to_string()))
    }

    /// A command as it is recorded: with the addresses.
    fn filled(&self, command: &str) -> String {
        let mut addresses: Vec<_> = self.addresses().collect();
        // `$CLIENT_1` begins as `$CLIENT` does.
        addresses.sort_by_key(|(name, _)| Reverse(name.len()));
        addresses.iter().fold(command.to_owned(), |command, (name, value)| command.replace(&format!("${name}"), value))
    }

    /// Ends what still runs when the time is over, or the shell was left, or what it waits for is dead.
    fn end_late(&mut self, begun: Instant, heard: Instant) -> Result<()> {
        let shell_left =
            self.run.guest == Guest::Shell && self.programs.get(1).is_some_and(|shell| shell.exit.is_some());
        let Some(why) = self.why_late(begun, heard).or(shell_left.then(String::new)) else { return Ok(()) };
        let all = self.programs.iter_mut().zip(&self.run.nodes).enumerate();
        // Of one that is dead already we'll be told.
        for (at, (program, node)) in all.filter(|(_, (program, _))| program.exit.is_none() && !program.has_ended()) {
            let device = program
                .device_is_at(heard)
                .map_or_else(String::new, |place| format!("; its device was at work{place}"));
            if self.is_too_heavy {
                program.kill();
            }
            if program.end() && !shell_left && self.stopped.is_none() {
                let text = format!("the {} had not ended {why}, and is ended{device}", node.name);
                self.recorder.trouble(Some(at), &text)?;
            }
        }
        Ok(())
    }

    /// Looks, now and then because that takes time, whether the programs have too much memory, and whose device goes in circles.
    fn look_closely(&mut self, heard: Instant) {
        const NOW_AND_THEN: Duration = Duration::from_millis(50);
        if self.looked.elapsed() < NOW_AND_THEN {
            return;
        }
        self.looked = Instant::now();
        if let Some(most) = self.run.options.memory {
            let roots: Vec<u32> = self.programs.iter().map(Program::number).collect();
            self.is_too_heavy |= memory(&roots) > most << 20;
        }
        self.in_circles = self.programs.iter_mut().position(|program| program.goes_in_circles(heard));
    }

    /// Why the time is over, if it is.
    fn why_late(&mut self, begun: Instant, heard: Instant) -> Option<String> {
        let over = |begun: Instant, seconds: u64| begun.elapsed() >= Duration::from_secs(seconds);
        let Options { deadline, grace, idle, most, memory, .. } = self.run.options;
        if let Some(signal) = self.stopped {
            return Some(format!("when {} ended the run", signal_name(signal)));
        }
        if let Some(most) = most.filter(|most| self.taken > most << 20) {
            return Some(format!("after {most} MiB of lines and packets"));
        }
        self.look_closely(heard);
        if let Some(most) = memory.filter(|_| self.is_too_heavy) {
            return Some(format!("when the programs had more than {most} MiB of memory"));
        }
        if let Some(node) = self.in_circles {
            return Some(format!("when the {}'s device went in circles", self.run.nodes[node].name));
        }
        if let Some(node) = self.panicked {
            return Some(format!("when the {}'s device had panicked", self.run.nodes[node].name));
        }
        if let Some((node, when)) = self.failed {
            let name = &self.run.nodes[node].name;
            // It has sent nothing, so the others would wait for it for ever.
            if self.programs[node].exit == Some(USAGE) && self.run.nodes[node].program().starts_with("lesson-") {
                return Some(format!("when the {name} had not understood its options"));
            }
            if let Some(grace) = grace.filter(|grace| over(when, *grace)) {
                return Some(format!("{grace} s after the {name} had failed"));
            }
        }
        // A program that waits for a failed one gets an error that says so.
        let is_failing = self.failed.is_some() && grace.is_some();
        if idle.is_some() && !is_failing && self.all_started() && heard.elapsed() >= self.silence() {
            return Some(format!("when nothing had happened for {} s", self.silence().as_secs()));
        }
        let deadline = if self.run.guest != Guest::None { DAY.as_secs() } else { deadline };
        over(begun, deadline).then(|| format!("after {deadline} s"))
    }
}

/// The nodes whose programs run.
fn running<'a>(run: &'a Run, programs: &[Program]) -> Vec<&'a str> {
    let all = run.nodes.iter().zip(programs);
    all.filter(|(_, program)| program.exit.is_none()).map(|(node, _)| node.name.as_str()).collect()
}
