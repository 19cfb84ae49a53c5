//! The lab as a whole: from "run this" to what happened.

use crate::agent::{await_all, Agent, Message};
use crate::arch::{self, Arch};
use crate::initramfs::Contents;
use crate::interrupt::{Interrupt, Interrupted};
use crate::machine::{find_qemu, Hardware, Machine};
use crate::options::Options;
use crate::outcome::Outcome;
use crate::phases::Phases;
use crate::port::Port;
use crate::record::{self, Recorder};
use crate::run::{Node, Run, CLIENT};
use crate::session::Session;
use crate::state::{Recipe, Saved, Store};
use crate::terminal::Terminal;
use crate::{fetch, kernel, kvm, payload, usage};
use anyhow::{ensure, Context, Result};
use std::env;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use wire::run::{Event, Line};

/// A restore takes a quarter of a second on an idle machine; a loaded one only gets slower.
const RESTORE_LIMIT: Duration = Duration::from_secs(60);

/// What a node needs of this host: its drive and its port.
type Place<'a> = (&'a Node, File, Port);

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
    pub fn run_observed(&self, run: &Run, observer: &mut dyn FnMut(&Event<'_>)) -> Result<Outcome> {
        self.carry_out(run, observer, None)
    }

    /// Runs a shell ([`Run::shell`]) on this host's terminal, which is as it was before when this returns.
    ///
    /// # Errors
    /// As for [`Lab::run`].
    pub fn shell(&self, run: &Run, terminal: Terminal) -> Result<Outcome> {
        self.carry_out(run, &mut |_| {}, Some(terminal))
    }

    fn carry_out(
        &self,
        run: &Run,
        observer: &mut dyn FnMut(&Event<'_>),
        terminal: Option<Terminal>,
    ) -> Result<Outcome> {
        let mut phases = Phases::default();
        run.check()?;
        self.check_lessons(run)?;
        phases.end("lessons asked");
        let contents = Contents::find(self.arch)?;
        phases.end("host searched");
        let mut recorder = Recorder::begin(&self.folder.join("runs"), run, &self.interrupt)?;
        let folder = recorder.folder().to_owned();
        let is_shell = |node: &Node| node.name == CLIENT && terminal.is_some();
        let port = |node: &Node| if is_shell(node) { Port::Terminal } else { Port::Output };
        let places = run.nodes.iter().map(|node| Ok((node, payload::empty()?, port(node))));
        let mut places = places.collect::<Result<Vec<Place<'_>>>>()?;
        let machines = self.machines(run, &contents, &places, &mut phases).map_err(|error| {
            // Ctrl-C reaches the commands that the lab runs, too: that one of them fails then is not the news.
            self.interrupt.check().err().unwrap_or(error)
        });
        let machines = match machines {
            Ok(machines) => machines,
            Err(error) => {
                // If this cannot be written, the error is still told.
                let _ = recorder.line(None, Line::LAB, &format!("{error:#}"), "trouble");
                let _ = recorder.finish();
                return Err(error);
            }
        };
        let outcome = Session::new(run, machines, &self.interrupt, recorder, observer, terminal)?.finish();
        phases.end("programs run");
        // What was recorded of a run that failed is as good as any.
        let views = record::write_views(&folder, run);
        let mut outcome = outcome?;
        views?;
        fetch::all(&run.options.out, places.iter_mut().map(|(_, drive, _)| drive), &mut outcome)?;
        phases.end("views drawn");
        outcome.phases = phases;
        Ok(outcome)
    }

    /// All machines, running, with their programs unpacked. The drives are filled while the machines are restored.
    fn machines(
        &self,
        run: &Run,
        contents: &Contents,
        places: &[Place<'_>],
        phases: &mut Phases,
    ) -> Result<Vec<(Machine, Agent)>> {
        thread::scope(|scope| {
            let filling = scope.spawn(|| self.fill(run, contents, places));
            let (saved, mut machines) = self.restored(contents, &run.options, places, phases)?;
            // It does not panic, and if it did, that would be the news.
            filling.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            phases.end("drives filled");
            let agents = machines.iter().zip(places).map(|(machine, (node, ..))| begin_to_unpack(&node.name, machine));
            let mut agents = agents.collect::<Result<Vec<_>>>()?;
            let deadline = Instant::now() + RESTORE_LIMIT;
            if let Err((place, error)) = await_all(&mut agents, &Message::Loaded, &self.interrupt, deadline) {
                // Not even this works in them: the next run gets others.
                let Some(place) = place else { return Err(error) };
                self.store().discard(&saved, &self.interrupt)?;
                return Err(machines[place].explain(error));
            }
            phases.end("drives unpacked");
            Ok(machines.into_iter().zip(agents).collect())
        })
    }

    /// Puts on each machine's drive what its program needs.
    fn fill(&self, run: &Run, contents: &Contents, places: &[Place<'_>]) -> Result<()> {
        for (node, drive, _) in places {
            payload::fill(drive, run, node, &self.binaries, contents, self.arch)?;
        }
        Ok(())
    }

    /// A lesson that was not built, and an option that it does not know, are named before a machine is started for them.
    fn check_lessons(&self, run: &Run) -> Result<()> {
        for command in run.nodes.iter().filter_map(|node| node.command.as_ref()) {
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

    fn store(&self) -> Store {
        Store::new(self.folder.join("state"))
    }

    /// All machines, running, and the states that they came from.
    fn restored(
        &self,
        contents: &Contents,
        options: &Options,
        places: &[Place<'_>],
        phases: &mut Phases,
    ) -> Result<(Saved, Vec<Machine>)> {
        let kernel = kernel::find(&self.folder, options, self.arch, &self.interrupt)?;
        let qemu = find_qemu(self.arch)?;
        let kvm = kvm::runs(&self.folder, self.arch, &qemu, &kernel, &self.interrupt)?;
        let (arch, image, memory) = (self.arch, kernel.image.clone(), options.memory());
        let hardware = Hardware { arch, qemu, kvm, memory, kernel: image, initramfs: PathBuf::new() };
        let recipe = Recipe { hardware, contents, kernel: &kernel };
        let obtain = || self.store().obtain(&recipe, places.len(), &self.interrupt);
        let mut saved = obtain()?;
        phases.end("states found");
        let mut machines = self.restore(&saved, places);
        match machines {
            Err(error) if !error.is::<Interrupted>() => {
                eprintln!("lab: the saved machines are of no use ({error:#}); building them again");
                self.store().discard(&saved, &self.interrupt)?;
                saved = obtain()?;
                machines = self.restore(&saved, places);
            }
            _ => {}
        }
        phases.end("machines restored");
        Ok((saved, machines?))
    }

    fn restore(&self, saved: &Saved, places: &[Place<'_>]) -> Result<Vec<Machine>> {
        let deadline = Instant::now() + RESTORE_LIMIT;
        let started = (1..).zip(places).map(|(index, (_, drive, port))| saved.start(index, drive, *port));
        let mut machines = started.collect::<Result<Vec<_>>>()?;
        saved.load(&mut machines, &self.interrupt, deadline)?;
        Ok(machines)
    }
}

/// Tells a restored machine the time and that its drive is ready.
fn begin_to_unpack(name: &str, machine: &Machine) -> Result<Agent> {
    let console = machine.console.try_clone().context("cannot use the console")?;
    let mut agent = Agent::new(name, console)?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    agent.say(&format!("load {}.{:09}", now.as_secs(), now.subsec_nanos()));
    Ok(agent)
}

/// A path as short as it can be told: relative to the current folder if it lies below it.
#[must_use]
pub fn shown(path: &Path) -> String {
    let current = env::current_dir().unwrap_or_default();
    path.strip_prefix(current).unwrap_or(path).display().to_string()
}
