//! The lab as a whole: from "run this" to what happened.

use crate::agent::{Agent, Message};
use crate::arch::{self, Arch};
use crate::initramfs::Contents;
use crate::interrupt::{Interrupt, Interrupted};
use crate::machine::{find_qemu, Hardware, Machine};
use crate::outcome::{Entry, Outcome};
use crate::port::Port;
use crate::run::{Run, Side};
use crate::session::Session;
use crate::state::{Recipe, Saved, Store};
use crate::terminal::Terminal;
use crate::{kernel, kvm, payload, record, usage};
use anyhow::{ensure, Context, Result};
use std::env;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// A restore takes a quarter of a second on an idle machine; a loaded one only gets slower.
const RESTORE_LIMIT: Duration = Duration::from_secs(60);

/// Where things are, and how to stop.
#[derive(Debug)]
pub struct Lab {
    arch: &'static Arch,
    /// Cargo's folder with the lessons' binaries.
    binaries: PathBuf,
    /// `target/lab`: kernel, states, results.
    folder: PathBuf,
    interrupt: Interrupt,
}

impl Lab {
    /// A lab that uses the lessons built next to this very program, and keeps its things in `target/lab`.
    ///
    /// # Errors
    /// This architecture is not supported, or this program's own path is unknown.
    pub fn open() -> Result<Self> {
        let program = env::current_exe().context("cannot find this program's own path")?;
        let mut binaries = program.parent().context("this program lies in no folder")?.to_owned();
        // A test's program lies in a folder below the one for binaries.
        if binaries.ends_with("deps") {
            binaries.pop();
        }
        let folder = binaries.parent().unwrap_or(&binaries).join("lab");
        Ok(Self { arch: arch::host()?, binaries, folder, interrupt: Interrupt::default() })
    }

    /// Keeps kernel, states and results in another folder.
    #[must_use]
    pub fn folder(mut self, folder: PathBuf) -> Self {
        self.folder = folder;
        self
    }

    /// Ends everything in order when one of the usual signals comes.
    #[must_use]
    pub fn stop_on(mut self, interrupt: Interrupt) -> Self {
        self.interrupt = interrupt;
        self
    }

    /// Runs programs and tells what happened.
    ///
    /// # Errors
    /// The lab itself fails, or is interrupted. A program that fails is no error: see [`Outcome`].
    pub fn run(&self, run: &Run) -> Result<Outcome> {
        self.run_observed(run, &mut |_| {})
    }

    /// Like [`Lab::run`], and hands everything that happens to `observer` as it happens.
    ///
    /// # Errors
    /// As for [`Lab::run`].
    pub fn run_observed(&self, run: &Run, observer: &mut dyn FnMut(&Entry)) -> Result<Outcome> {
        self.carry_out(run, observer, None)
    }

    /// Runs a shell ([`Run::shell`]) on this host's terminal, which is as it was before when this returns.
    ///
    /// # Errors
    /// As for [`Lab::run`].
    pub fn shell(&self, run: &Run, terminal: Terminal) -> Result<Outcome> {
        self.carry_out(run, &mut |_| {}, Some(terminal))
    }

    fn carry_out(&self, run: &Run, observer: &mut dyn FnMut(&Entry), terminal: Option<Terminal>) -> Result<Outcome> {
        self.check_lessons(run)?;
        let contents = Contents::find(self.arch)?;
        let mut drives = Vec::new();
        for command in &run.commands {
            drives.push(match command {
                Some(command) => payload::drive(command, &self.binaries, &contents, self.arch)?,
                None => payload::empty()?,
            });
        }
        let ports = [Port::Output, if terminal.is_some() { Port::Terminal } else { Port::Output }];
        // Ctrl-C reaches the commands that the lab runs, too: that one of them fails then is not the news.
        let machines =
            self.restored(&contents, &drives, ports).map_err(|error| self.interrupt.check().err().unwrap_or(error))?;
        let finished = Session::new(run, machines, &self.interrupt, observer, terminal)?.finish()?;
        let interrupted = finished.interrupted;
        let outcome = record::keep(&self.folder.join("runs"), run, finished)?;
        if interrupted {
            return Err(Interrupted.into());
        }
        Ok(outcome)
    }

    /// A lesson that was not built, and an option that it does not know, are named before a machine is started for them.
    fn check_lessons(&self, run: &Run) -> Result<()> {
        for command in run.commands.iter().flatten() {
            let word = command.split(' ').next().unwrap_or_default();
            if !word.starts_with("lesson-") {
                continue;
            }
            let program = self.binaries.join(word);
            ensure!(program.exists(), "{} does not exist; build it with `cargo build -p {word}`", program.display());
            usage::check(&program, command)?;
        }
        Ok(())
    }

    /// Both machines, running, with their programs unpacked.
    fn restored(&self, contents: &Contents, drives: &[File], ports: [Port; 2]) -> Result<[(Machine, Agent); 2]> {
        let kernel = kernel::find(&self.folder.join("kernel"), self.arch, &self.interrupt)?;
        let qemu = find_qemu(self.arch)?;
        let kvm = kvm::runs(&self.folder, self.arch, &qemu, &kernel, &self.interrupt)?;
        let hardware = Hardware { arch: self.arch, qemu, kvm, kernel: kernel.image.clone(), initramfs: PathBuf::new() };
        let recipe = Recipe { hardware, contents, kernel: &kernel };
        let store = Store::new(self.folder.join("state"));

        let saved = store.obtain(&recipe, &self.interrupt)?;
        match self.restore(&saved, drives, ports) {
            Err(error) if !error.is::<Interrupted>() => {
                eprintln!("lab: the saved machines are of no use ({error:#}); building them again");
                store.discard(&saved, &self.interrupt)?;
                self.restore(&store.obtain(&recipe, &self.interrupt)?, drives, ports)
            }
            result => result,
        }
    }

    fn restore(&self, saved: &Saved, drives: &[File], ports: [Port; 2]) -> Result<[(Machine, Agent); 2]> {
        let deadline = Instant::now() + RESTORE_LIMIT;
        let mut machines = [saved.start(1, &drives[0], ports[0])?, saved.start(2, &drives[1], ports[1])?];
        saved.load(&mut machines, deadline)?;
        let [server, client] = machines;
        let mut machines = [awaken(Side::Server, server)?, awaken(Side::Client, client)?];
        for (_, agent) in &mut machines {
            agent.await_message(&Message::Loaded, &self.interrupt, deadline)?;
        }
        Ok(machines)
    }
}

/// Tells a restored machine the time and that its drive is ready.
fn awaken(side: Side, machine: Machine) -> Result<(Machine, Agent)> {
    let console = machine.console.try_clone().context("cannot use the console")?;
    let mut agent = Agent::new(side.name(), console)?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    agent.say(&format!("load {}.{:09}", now.as_secs(), now.subsec_nanos()));
    Ok((machine, agent))
}

/// A path as short as it can be told: relative to the current folder if it lies below it.
#[must_use]
pub fn shown(path: &Path) -> String {
    let current = env::current_dir().unwrap_or_default();
    path.strip_prefix(current).unwrap_or(path).display().to_string()
}
