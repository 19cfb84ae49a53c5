//! Starting programs, and ending them.

use super::processes::{is_ending, locked, works, Processes, RUN};
use super::processor::give_all;
use super::whereabouts::in_nic;
use anyhow::{Context, Result};
use device::machine::{place_alike, processor_time_of_thread, Machine};
use device::node::clock::Clock;
use device::node::line::Line;
use device::node::port::Port;
use device::node::tap::Tap;
use device::node::Nic;
use device::strict::{self, Manners};
use device::supervisor::Supervisor;
use nic::congestion::Link;
use nic::time::Time;
use run::exit::Exit;
use rustix::process::{kill_process, Pid, Signal};
use rustix::thread::gettid;
use std::env;
use std::fs;
use std::panic;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// The variable with the name of the device that lessons open, unless they are told another one.
const DEVICE_NAME: &str = "NIC_NAME";

/// A device that computes for so long without a line or a packet, and never waits, will never do anything else. On a busy machine that
/// takes longer: this is the processor's time.
const CIRCLES: Duration = Duration::from_secs(3);

/// How long a program that is asked to end has for that.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// What nothing that comes to a device needs.
const WHILE: Duration = Duration::from_millis(100);

/// What the thread of a device is called, before the number of its node.
const DEVICE: &str = "device of node ";

/// Lets a device that panics say so to the runner: its programs die with it, without a word.
pub fn tell_panics(inbox: &str) {
    let (inbox, usual) = (inbox.to_owned(), panic::take_hook());
    panic::set_hook(Box::new(move |panic| {
        usual(panic);
        let node = thread::current().name().and_then(|name| name.strip_prefix(DEVICE)?.parse().ok());
        if let Some(node) = node {
            Tap::to(&inbox, node, false).panics(&panic.to_string());
        }
    }));
}

/// A line for the shell.
pub fn command(line: &str) -> Command {
    let mut sh = Command::new("sh");
    // `exec`: the program itself is what is waited for, and killed.
    sh.args(["-c", &format!("exec {line}")]).stdin(Stdio::null());
    sh
}

/// A shell with this terminal.
pub fn shell() -> Command {
    Command::new(env::var_os("SHELL").unwrap_or_else(|| "sh".into()))
}

/// How often a thread of ours has waited (proc_pid_status(5)).
fn waits(thread: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/self/task/{thread}/status")).unwrap_or_default();
    let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

pub struct Program {
    pid: Pid,
    /// The thread of its device, and how long that had had a processor when something happened last; and when that was, and how often it
    /// had waited by then.
    device: i32,
    worked: ((Instant, u64), Duration),
    /// When it was asked to end.
    asked: Option<Instant>,
    /// It has said something, or its device has.
    pub is_heard: bool,
    /// How it ended.
    pub exit: Option<Exit>,
    /// Nor is a program left that it has started, and its device has said all.
    pub is_gone: bool,
}

impl Program {
    /// Starts a node's program on a machine with a device on this port; below `machines` lies what it sees of sysfs. The
    /// program's end will be told to the tap.
    pub fn start(
        mut command: Command,
        port: Port,
        line: Option<(Line, Link)>,
        tap: Tap,
        machines: &Path,
        processes: &Processes,
        manners: Manners,
    ) -> Result<Program> {
        let own = env::current_exe().context("where is this program?")?;
        let others = env::var("PATH").unwrap_or_default();
        let path = format!("{}:{others}", own.parent().unwrap_or(&own).display());
        command
            .env("PATH", path.trim_end_matches(':'))
            .env(DEVICE_NAME, env::var(DEVICE_NAME).unwrap_or_else(|_| "rxe0".into()))
            .env(RUN, &processes.run);
        if manners.is_strict {
            command.env(strict::PERTURBED.0, strict::PERTURBED.1);
        }
        if line.is_some() {
            place_alike(&mut command);
            give_all(&mut command);
        }
        let (machines, programs) = (machines.to_owned(), Arc::clone(&processes.programs));
        let (tell, told) = channel();
        // The thread that starts it is its supervisor: the program dies with it.
        let device = thread::Builder::new().name(format!("{DEVICE}{}", tap.node));
        device.spawn(move || {
            let mut programs = locked(&programs);
            let are_sleeps_ours = line.is_some() || manners.is_strict;
            match Machine::start(&mut command, port.address(), &machines, are_sleeps_ours) {
                Ok((child, mut machine)) => {
                    if manners.is_strict {
                        machine.hide_others(child.id());
                    }
                    programs.insert(child.id(), tap);
                    drop(programs);
                    let _ = tell.send(Ok((Pid::from_child(&child), gettid())));
                    let clock = if line.is_some() { Clock::Still(Time::START) } else { Clock::real() };
                    let (line, link) = line.unzip();
                    Supervisor::new(Nic::new(port, clock, link), machine, line, manners).serve();
                }
                Err(error) => drop(tell.send(Err(error))),
            }
        })?;
        let (pid, thread) = told.recv().context("its supervisor has failed")??;
        let (device, worked) = (thread.as_raw_nonzero().get(), ((Instant::now(), 0), Duration::ZERO));
        Ok(Program { pid, device, worked, asked: None, is_heard: false, exit: None, is_gone: false })
    }

    /// Whether it is dead, or as good as that, though nobody may have told yet.
    pub fn has_ended(&self) -> bool {
        is_ending(Path::new(&format!("/proc/{}", self.pid.as_raw_nonzero())))
    }

    /// Where its device is at work, in words, if it is. Looking takes time, and a place says something only of a device that has computed
    /// for a while with nothing to show.
    pub fn device_is_at(&mut self, heard: Instant) -> Option<String> {
        let at_work = works(Path::new(&format!("/proc/self/task/{}", self.device)));
        let place = |program: &mut Self| in_nic(program.device).map(|place| format!(" in {place}"));
        let is_long = self.has_computed(heard) >= WHILE;
        at_work.then(|| is_long.then(|| place(self)).flatten().unwrap_or_default())
    }

    /// Whether its device has computed for so long since something happened last that it must go in circles.
    pub fn goes_in_circles(&mut self, heard: Instant) -> bool {
        self.has_computed(heard) >= CIRCLES
    }

    fn has_computed(&mut self, heard: Instant) -> Duration {
        let worked = processor_time_of_thread(self.device).unwrap_or_default();
        // One that answers system calls waits for the next one, if only for a moment.
        let last = (heard, waits(self.device));
        if self.worked.0 != last {
            self.worked = (last, worked);
        }
        worked.saturating_sub(self.worked.1)
    }

    /// As getpid(2) names it.
    pub fn number(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Ends it by force, without a last word.
    pub fn kill(&self) {
        let _ = kill_process(self.pid, Signal::KILL);
    }

    /// Asks it to end, and a moment later ends it by force; whether this was the first time.
    pub fn end(&mut self) -> bool {
        let is_first = self.asked.is_none();
        let asked = *self.asked.get_or_insert_with(Instant::now);
        if is_first {
            let _ = kill_process(self.pid, Signal::TERM);
        } else if asked.elapsed() >= LAST_WORDS {
            let _ = kill_process(self.pid, Signal::KILL);
        }
        is_first
    }
}
