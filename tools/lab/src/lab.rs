//! The lab as a whole: from "run this" to what happened.

use crate::agent::await_all;
use crate::arch::{self, ARCH};
use crate::initramfs::Contents;
use crate::interrupt::{Interrupt, Stopped};
use crate::kernel::{self, Kernel};
use crate::machine::{Hardware, Machine, Wiring};
use crate::options::Options;
use crate::outcome::Outcome;
use crate::port::SerialPort;
use crate::record::{Recorded, Recorder};
use crate::run::Run;
use crate::session::{Finished, Session};
use crate::state::{explain, States, RESTORE_LIMIT};
use crate::terminal::Terminal;
use crate::{fetch, kvm, libs, payload, usage};
use anyhow::{Context, Result};
use run::programs::{Node, CLIENT};
use run::timing::Timing;
use run::wire::Scribe;
use std::env;
use std::path::PathBuf;
use std::thread;
use std::time::{Instant, SystemTime};

/// Where things are, and how to stop.
pub struct Lab {
    /// Cargo's folder with the lessons' binaries.
    binaries: PathBuf,
    /// `target/lab`: kernel, states, results.
    folder: PathBuf,
    interrupt: Interrupt,
}

impl Lab {
    /// A lab that uses the lessons built next to this very program, and keeps its things in `target/lab`. It ends everything in
    /// order when one of the usual signals comes.
    pub fn open() -> Result<Self> {
        arch::check()?;
        let program = env::current_exe().context("cannot find this program's own path")?;
        let binaries = program.parent().context("this program is in no folder")?.to_owned();
        let folder = binaries.with_file_name("lab");
        Ok(Self { binaries, folder, interrupt: Interrupt::on_signals()? })
    }

    /// Runs programs and tells what happened. A shell's run has this host's terminal, which is as it was before when this returns.
    ///
    /// # Errors
    /// The lab itself fails, or is interrupted. A program that fails is no error: see [`Outcome`].
    pub fn run(&self, run: &Run, terminal: Option<Terminal>) -> Result<Outcome> {
        let mut timing = Timing::begin();
        let wire = run.check()?;
        usage::check_lessons(run, &self.binaries, &self.interrupt)?;
        timing.end("the lesson checks its options");
        let contents = Contents::find(run.options.driver)?;
        timing.end("the lab looks for what the machines need");
        let is_shell = terminal.is_some();
        let port =
            |node: &Node| if is_shell && node.name == CLIENT { SerialPort::Terminal } else { SerialPort::Output };
        let mut recorder = Recorder::begin(&self.folder.join("runs"), run, &self.interrupt, terminal)?;
        let places = run.nodes.iter().map(|node| Wiring::new(&node.name, port(node)));
        let mut places = places.collect::<Result<Vec<_>>>()?;
        let machines = self.machines(run, &contents, &places, &mut timing).map_err(|error| {
            // Ctrl-C also reaches the commands that the lab runs. If one of them fails then, that isn't the news.
            self.interrupt.check().err().unwrap_or(error)
        });
        let ended =
            machines.and_then(|machines| Session::new(run, wire, machines, &self.interrupt, &mut recorder)?.finish());
        timing.end("the programs run");
        if let Err(error) = &ended {
            // If this cannot be written, the error is still told. A signal may come before any program runs.
            let _ = match error.downcast_ref() {
                Some(Stopped::Interrupted(Some(signal))) => recorder.stop(*signal, &[]),
                _ => recorder.trouble(None, &format!("{error:#}")),
            };
        }
        let recorded = recorder.finish();
        let Finished { nodes, stopped } = ended?;
        let Recorded { folder, lock: _lock, counts, trouble } = recorded?;
        let mut outcome = Outcome { nodes, trouble, stopped, counts, timing, folder, _lock };
        fetch::all(&run.options.out, places.iter_mut().map(|place| &mut place.drive), &mut outcome)?;
        outcome.timing.end("the run file is ended, and files come back");
        Ok(outcome)
    }

    /// All machines, running, with their programs unpacked. The drives are filled while the machines are restored.
    fn machines(&self, run: &Run, contents: &Contents, places: &[Wiring], timing: &mut Timing) -> Result<Vec<Machine>> {
        let kernel = kernel::find(&self.folder, &run.options, &run.requested(), &self.interrupt)?;
        thread::scope(|scope| {
            let filling = scope.spawn(|| {
                let mut nodes = run.nodes.iter().zip(places);
                let mut fill = |(node, place): (&Node, &Wiring)| {
                    payload::fill(&place.drive, run, node, &self.binaries, contents, &kernel)
                };
                nodes.try_for_each(&mut fill)
            });
            let (store, hardware) = (self.folder.join("state"), self.hardware(&kernel, &run.options)?);
            let states = States::new(&store, hardware, contents, &kernel, &self.interrupt)?;
            let mut machines = states.restore(places, timing)?;
            // It does not panic, and if it did, that would be the news.
            filling.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            machines.iter_mut().try_for_each(begin_to_unpack)?;
            let agents = machines.iter_mut().map(|machine| &mut machine.agent).collect();
            let deadline = Instant::now() + RESTORE_LIMIT;
            if let Err(error) = await_all(agents, "loaded", &self.interrupt, deadline) {
                // Not even this works in them: the next run gets others.
                if !error.is::<Stopped>() {
                    states.discard()?;
                }
                return Err(explain(&mut machines, error));
            }
            timing.end("the machines unpack the programs");
            Ok(machines)
        })
    }

    fn hardware(&self, kernel: &Kernel, options: &Options) -> Result<Hardware> {
        let qemu = libs::required(&format!("qemu-system-{ARCH}"))?;
        let kvm = kvm::runs(&self.folder, &qemu, kernel, &self.interrupt)?;
        let (kernel, initramfs) = (kernel.image.clone(), PathBuf::new());
        Ok(Hardware { qemu, kvm, memory: options.memory(), kernel, initramfs })
    }
}

/// Tells a restored machine the time and that its drive is ready.
fn begin_to_unpack(machine: &mut Machine) -> Result<()> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    machine.agent.say(&format!("load {}.{:09}", now.as_secs(), now.subsec_nanos()))
}
