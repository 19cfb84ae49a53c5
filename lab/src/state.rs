//! Saved machines: booted once, restored for every run.
//!
//! The states of the first, the second … machine lie in a folder named for a key, a hash of all they depend on. Each is built
//! when it is first needed, under a file lock, in a folder of another name, and renamed when it is complete; restoring only
//! reads.

use crate::agent::{await_all, Agent, Message};
use crate::files;
use crate::initramfs::{self, Contents};
use crate::interrupt::Interrupt;
use crate::kernel::Kernel;
use crate::machine::{Hardware, Machine, Start};
use crate::payload;
use crate::port::Port;
use crate::qmp::Qmp;
use anyhow::{Context, Result};
use std::collections::hash_map::DefaultHasher;
use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// Increased when an older state cannot be used any more although nothing the key sees has changed.
const FORMAT: u32 = 5;
/// The states of so many keys are kept, 100 MB for each machine: a host on which KVM comes and goes needs two, another memory size or kernel one more.
const KEPT: usize = 3;
/// A boot takes 3 s on an idle machine; a loaded one only gets slower.
const BOOT_LIMIT: Duration = Duration::from_secs(120);

/// All the states on this host.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
}

/// The states of one key, ready to be restored.
#[derive(Debug)]
pub struct Saved {
    folder: PathBuf,
    /// The folder itself: while it is open, none that is built later can have its inode.
    opened: File,
    hardware: Hardware,
}

/// What a state is built from.
#[derive(Debug)]
pub struct Recipe<'a> {
    /// The machines, but for the first file system, which is part of the state.
    pub hardware: Hardware,
    /// What goes into the first file system.
    pub contents: &'a Contents,
    /// The kernel and its modules.
    pub kernel: &'a Kernel,
}

impl Recipe<'_> {
    /// The states' name. Files count by path, size and time of change: reading them all would cost a part of each run.
    ///
    /// # Errors
    /// One of the files is not there.
    fn key(&self) -> Result<String> {
        let mut hasher = DefaultHasher::new();
        let plan = self.kernel.plan()?;
        (FORMAT, initramfs::written(&self.kernel.release, &plan)).hash(&mut hasher);
        self.hardware.arguments(1, Start::Restore(Path::new(""))).hash(&mut hasher);
        if self.hardware.kvm {
            // A state holds what the processor can do, and must not move to another kind.
            processor_model().hash(&mut hasher);
        }
        let modules: Vec<PathBuf> = plan.files.iter().map(|module| self.kernel.modules.join(module)).collect();
        let own = [self.hardware.qemu.as_path(), &self.kernel.image];
        for path in own.into_iter().chain(modules.iter().map(PathBuf::as_path)).chain(self.contents.sources()) {
            let metadata = fs::metadata(path).with_context(|| format!("cannot look at {}", path.display()))?;
            (path, metadata.len(), metadata.mtime(), metadata.mtime_nsec()).hash(&mut hasher);
        }
        Ok(format!("{:016x}", hasher.finish()))
    }
}

impl Store {
    /// The states in `folder`.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Finds the states of machines 1 to `count`, or builds those that are not there.
    ///
    /// # Errors
    /// The machines do not boot, the disk is full, or the lab was interrupted. No half state is left.
    pub fn obtain(&self, recipe: &Recipe<'_>, count: usize, interrupt: &Interrupt) -> Result<Saved> {
        let folder = self.folder.join(recipe.key()?);
        let missing = || (1..=count as u8).filter(|index| !state_file(&folder, *index).exists()).collect::<Vec<_>>();
        if !missing().is_empty() {
            let _lock = files::lock(&self.folder, "building the machines", interrupt)?;
            // Another lab may have built them while this one waited.
            let missing = missing();
            if !missing.is_empty() {
                self.build(recipe, &folder, &missing, interrupt)?;
            }
        }
        let hardware = Hardware { initramfs: folder.join("initramfs"), ..recipe.hardware.clone() };
        let opened = File::open(&folder).with_context(|| format!("cannot open {}", folder.display()))?;
        // The state that was used last is the last to go. Where the time cannot be set, it is that of its building.
        let _ = opened.set_modified(SystemTime::now());
        Ok(Saved { folder, opened, hardware })
    }

    /// Forgets states that turned out to be of no use, unless another lab has built them again since.
    ///
    /// # Errors
    /// They cannot be removed.
    pub fn discard(&self, saved: &Saved, interrupt: &Interrupt) -> Result<()> {
        let _lock = files::lock(&self.folder, "building the machines", interrupt)?;
        let inode = |metadata: fs::Metadata| metadata.ino();
        if fs::metadata(&saved.folder).map(inode).ok() != saved.opened.metadata().map(inode).ok() {
            return Ok(());
        }
        match fs::remove_dir_all(&saved.folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", saved.folder.display()))
            }
            _ => Ok(()),
        }
    }

    fn build(&self, recipe: &Recipe<'_>, folder: &Path, indices: &[u8], interrupt: &Interrupt) -> Result<()> {
        let machines = if indices.len() == 1 { "a machine" } else { "the machines" };
        eprintln!("lab: booting {machines} once, to save the state");
        let is_new = !folder.exists();
        if is_new {
            files::keep_newest(&self.folder, KEPT - 1);
        }
        let scratch = tempfile::Builder::new().prefix(".new-").tempdir_in(&self.folder);
        let scratch = scratch.with_context(|| format!("cannot write to {}", self.folder.display()))?;
        let initramfs = scratch.path().join("initramfs");
        files::write(&initramfs, &recipe.contents.archive(recipe.kernel)?)?;
        let hardware = Hardware { initramfs, ..recipe.hardware.clone() };

        let mut machines = Vec::new();
        for &index in indices {
            let (memory, drive) = (memory_file(scratch.path(), index), payload::empty()?);
            machines.push((index, Machine::start(&hardware, index, &drive, Port::Output, Start::Boot(&memory))?));
        }
        let deadline = Instant::now() + BOOT_LIMIT;
        let console = |machine: &Machine| machine.console.try_clone().context("cannot use the console");
        let agents = machines.iter().map(|(index, machine)| Agent::new(&format!("machine {index}"), console(machine)?));
        let mut agents = agents.collect::<Result<Vec<_>>>()?;
        await_all(&mut agents, &Message::Ready, interrupt, deadline).map_err(|(place, error)| match place {
            Some(place) => machines[place].1.explain(error),
            None => error,
        })?;
        save_all(&machines, scratch.path(), interrupt, deadline)?;
        let keep =
            |from: &Path, to: &Path| fs::rename(from, to).with_context(|| format!("cannot create {}", to.display()));
        if is_new {
            keep(scratch.path(), folder)?;
            // The folder has another name now, so there is nothing left to remove.
            let _ = scratch.keep();
            return Ok(());
        }
        // A machine is there once its state is: that comes last.
        indices.iter().try_for_each(|index| {
            keep(&memory_file(scratch.path(), *index), &memory_file(folder, *index))?;
            keep(&state_file(scratch.path(), *index), &state_file(folder, *index))
        })
    }
}

impl Saved {
    /// Starts machine `index` (from 1) where it was saved, with another drive and perhaps another port.
    /// [`Saved::load`] makes it go on.
    ///
    /// # Errors
    /// QEMU cannot be started.
    pub fn start(&self, index: u8, payload: &File, port: Port) -> Result<Machine> {
        Machine::start(&self.hardware, index, payload, port, Start::Restore(&memory_file(&self.folder, index)))
    }

    /// Loads the states of all machines side by side, and waits until they run.
    ///
    /// # Errors
    /// A state is unusable, or the deadline has passed.
    pub fn load(&self, machines: &mut [Machine], interrupt: &Interrupt, deadline: Instant) -> Result<()> {
        let mut controls = Vec::new();
        for (index, machine) in machines.iter_mut().enumerate() {
            let path = state_file(&self.folder, index as u8 + 1);
            controls.push(begin_to_load(machine, &path, interrupt, deadline).map_err(|error| machine.explain(error))?);
        }
        for (machine, mut control) in machines.iter_mut().zip(controls) {
            control.await_running().map_err(|error| machine.explain(error))?;
        }
        Ok(())
    }
}

fn begin_to_load<'a>(machine: &Machine, state: &Path, interrupt: &'a Interrupt, deadline: Instant) -> Result<Qmp<'a>> {
    let control = machine.control.try_clone().context("cannot use QEMU's control socket")?;
    let mut qmp = Qmp::greet(control, interrupt, deadline)?;
    qmp.restore(&format!("cat {}", quoted(state)?))?;
    Ok(qmp)
}

/// Saves the machines side by side.
fn save_all(machines: &[(u8, Machine)], folder: &Path, interrupt: &Interrupt, deadline: Instant) -> Result<()> {
    thread::scope(|scope| {
        let save = |index: u8, machine: &Machine| -> Result<()> {
            let control = machine.control.try_clone().context("cannot use QEMU's control socket")?;
            let path = state_file(folder, index);
            let command = format!("cat >{}", quoted(&path)?);
            let mut qmp = Qmp::greet(control, interrupt, deadline)?;
            qmp.save(&command).with_context(|| format!("cannot write {} (is the disk full?)", path.display()))
        };
        let threads: Vec<_> =
            machines.iter().map(|(index, machine)| scope.spawn(move || save(*index, machine))).collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })
}

/// The state of a machine's processor and devices.
fn state_file(folder: &Path, index: u8) -> PathBuf {
    folder.join(format!("{index}.state"))
}

/// Its memory.
fn memory_file(folder: &Path, index: u8) -> PathBuf {
    folder.join(format!("{index}.memory"))
}

fn quoted(path: &Path) -> Result<String> {
    let text = path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))?;
    Ok(shlex::try_quote(text).context("a path holds a NUL")?.into_owned())
}

fn processor_model() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    // One processor's lines: what follows is the same again, and its clock rate changes from moment to moment.
    let first = cpuinfo.split("\n\n").next().unwrap_or_default();
    first.lines().filter(|line| !line.contains("MHz")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch;

    #[test]
    fn the_key_follows_what_the_state_depends_on() {
        let arch = arch::host().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("vmlinux");
        let kernel = Kernel { release: "6.1".to_owned(), image: image.clone(), modules: folder.path().to_owned() };
        fs::write(&image, b"one").unwrap();
        let module = folder.path().join("virtio_net.ko");
        fs::write(&module, b"").unwrap();
        fs::write(folder.path().join("modules.dep"), b"virtio_net.ko:\n").unwrap();
        let builtin: String = crate::modules::WANTED.iter().map(|name| format!("{name}.ko\n")).collect();
        fs::write(folder.path().join("modules.builtin"), builtin).unwrap();
        let contents = Contents::find(arch).unwrap();
        let key = |kvm| {
            let qemu = PathBuf::from("/bin/sh");
            let hardware = Hardware { arch, qemu, kvm, memory: 256, kernel: image.clone(), initramfs: PathBuf::new() };
            Recipe { hardware, contents: &contents, kernel: &kernel }.key().unwrap()
        };
        let first = key(false);
        assert_eq!(first, key(false));
        assert_ne!(first, key(true), "another processor");
        fs::write(&image, b"three").unwrap();
        let second = key(false);
        assert_ne!(first, second, "another kernel");
        fs::write(&module, b"longer").unwrap();
        assert_ne!(second, key(false), "another module");
    }

    #[test]
    fn a_second_lab_waits_for_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path().to_owned());
        let held = files::lock(&store.folder, "testing", &Interrupt::default()).unwrap();
        thread::scope(|scope| {
            let second = scope.spawn(|| files::lock(&store.folder, "testing", &Interrupt::default()));
            thread::sleep(Duration::from_millis(100));
            assert!(!second.is_finished());
            drop(held);
            assert!(second.join().unwrap().is_ok());
        });
    }
}
