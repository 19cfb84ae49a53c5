//! The lab as a whole: from "run this" to what happened.

use crate::agent::{await_all, Message};
use crate::arch::{self, HOST};
use crate::initramfs::Contents;
use crate::interrupt::{Interrupt, Stopped};
use crate::kernel::{self, Kernel};
use crate::machine::{Hardware, Machine, Place};
use crate::options::Options;
use crate::outcome::{Outcome, Phases};
use crate::port::Port;
use crate::record::{Observer, Recorder};
use crate::run::Run;
use crate::session::Session;
use crate::state::{explain, States};
use crate::terminal::Terminal;
use crate::{fetch, kvm, libs, payload, usage};
use anyhow::{Context, Result};
use run::file::Event;
use run::programs::{Node, CLIENT};
use std::env;
use std::fs::File;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// A restore takes a quarter of a second on an idle machine; a loaded one only gets slower.
const RESTORE_LIMIT: Duration = Duration::from_secs(60);

/// Where things are, and how to stop.
#[derive(Debug)]
pub struct Lab {
    /// Cargo's folder with the lessons' binaries.
    binaries: PathBuf,
    /// `target/lab`: kernel, states, results.
    folder: PathBuf,
    interrupt: Interrupt,
}

impl Lab {
    /// A lab that uses the lessons built next to this very program, and keeps its things in `target/lab`.
    pub fn open() -> Result<Self> {
        let program = env::current_exe().context("cannot find this program's own path")?;
        let mut binaries = program.parent().context("this program lies in no folder")?.to_owned();
        // A test's program lies in a folder below the one for binaries.
        if binaries.ends_with("deps") {
            binaries.pop();
        }
        let folder = binaries.parent().unwrap_or(&binaries).join("lab");
        arch::check()?;
        Ok(Self { binaries, folder, interrupt: Interrupt::default() })
    }

    /// Ends everything in order when one of the usual signals comes.
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
    pub fn run_observed(&self, run: &Run, observer: &mut dyn FnMut(&Event<'_>)) -> Result<Outcome> {
        self.carry_out(run, observer, None)
    }

    /// Runs a shell ([`Run::shell`]) on this host's terminal, which is as it was before when this returns.
    pub fn shell(&self, run: &Run, terminal: Terminal) -> Result<Outcome> {
        self.carry_out(run, &mut |_| {}, Some(terminal))
    }

    fn carry_out(&self, run: &Run, observer: Observer<'_>, terminal: Option<Terminal>) -> Result<Outcome> {
        let mut phases = Phases::default();
        let rules = run.check()?;
        usage::check_lessons(run, &self.binaries, &self.interrupt)?;
        phases.end("lessons asked");
        let contents = Contents::find()?;
        phases.end("host searched");
        let is_shell = terminal.is_some();
        let port = |node: &Node| if is_shell && node.name == CLIENT { Port::Terminal } else { Port::Output };
        let runs = self.folder.join("runs");
        let mut recorder = Recorder::begin(&runs, run, &self.interrupt, observer, terminal)?;
        let places = run.nodes.iter().map(|node| Place::new(&node.name, port(node)));
        let mut places = places.collect::<Result<Vec<_>>>()?;
        let machines = self.machines(run, &contents, &places, &mut phases).map_err(|error| {
            // Ctrl-C reaches the commands that the lab runs, too: that one of them fails then is not the news.
            self.interrupt.check().err().unwrap_or(error)
        });
        let ended =
            machines.and_then(|machines| Session::new(run, rules, machines, &self.interrupt, &mut recorder)?.finish());
        if let Err(error) = &ended {
            // If this cannot be written, the error is still told.
            let _ = recorder.act(None, "trouble", &format!("{error:#}"));
        }
        let recorded = recorder.finish();
        let (nodes, trouble) = ended?;
        phases.end("programs run");
        let mut outcome = Outcome::read(nodes, trouble, recorded?)?;
        fetch::all(&run.options.out, places.iter_mut().map(|place| &mut place.drive), &mut outcome)?;
        phases.end("results read");
        outcome.phases = phases;
        Ok(outcome)
    }

    /// All machines, running, with their programs unpacked. The drives are filled while the machines are restored.
    fn machines(&self, run: &Run, contents: &Contents, places: &[Place], phases: &mut Phases) -> Result<Vec<Machine>> {
        thread::scope(|scope| {
            let filling = scope.spawn(|| {
                let mut nodes = run.nodes.iter().zip(places);
                nodes.try_for_each(|(node, place)| payload::fill(&place.drive, run, node, &self.binaries, contents))
            });
            let kernel = kernel::find(&self.folder, &run.options, &self.interrupt)?;
            let (store, hardware) = (self.folder.join("state"), self.hardware(&kernel, &run.options)?);
            let states = States::new(&store, hardware, contents, &kernel, &self.interrupt)?;
            let (used, mut machines) = restored(&states, places, phases)?;
            // It does not panic, and if it did, that would be the news.
            filling.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            phases.end("drives filled");
            machines.iter_mut().try_for_each(begin_to_unpack)?;
            let agents = machines.iter_mut().map(|machine| &mut machine.agent).collect();
            let deadline = Instant::now() + RESTORE_LIMIT;
            if let Err(error) = await_all(agents, &Message::Loaded, &self.interrupt, deadline) {
                // Not even this works in them: the next run gets others.
                if !error.is::<Stopped>() {
                    states.discard(&used)?;
                }
                return Err(explain(&mut machines, error));
            }
            phases.end("drives unpacked");
            Ok(machines)
        })
    }

    fn hardware(&self, kernel: &Kernel, options: &Options) -> Result<Hardware> {
        let qemu = libs::required(HOST.qemu)?;
        let kvm = kvm::runs(&self.folder, &qemu, kernel, &self.interrupt)?;
        let (kernel, initramfs) = (kernel.image.clone(), PathBuf::new());
        Ok(Hardware { qemu, kvm, memory: options.memory(), kernel, initramfs })
    }
}

/// All machines, running, and the folder of the states that they came from.
fn restored(states: &States<'_>, places: &[Place], phases: &mut Phases) -> Result<(File, Vec<Machine>)> {
    let mut used = states.ensure(places.len())?;
    phases.end("states found");
    let restore = || states.restore(places, Instant::now() + RESTORE_LIMIT);
    let machines = match restore() {
        Err(error) if !error.is::<Stopped>() => {
            eprintln!("lab: the saved machines are of no use ({error:#}); building them again");
            states.discard(&used)?;
            used = states.ensure(places.len())?;
            restore()?
        }
        machines => machines?,
    };
    phases.end("machines restored");
    Ok((used, machines))
}

/// Tells a restored machine the time and that its drive is ready.
fn begin_to_unpack(machine: &mut Machine) -> Result<()> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    machine.agent.say(&format!("load {}.{:09}", now.as_secs(), now.subsec_nanos()))
}
