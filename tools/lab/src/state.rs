//! Saved machines: booted once, restored for every run.
//!
//! The states of the first, the second … machine are in a folder named for a key, a hash of all they depend on. Each is built
//! when it is first needed, in a folder of another name, and moved when it is complete. Who builds or removes states has a lock to
//! himself; restoring only reads, and shares it with others that do.

use crate::agent::await_all;
use crate::files;
use crate::initramfs::{self, Contents};
use crate::interrupt::{Interrupt, Stopped};
use crate::kernel::Kernel;
use crate::machine::{Hardware, Machine, Start, Wiring};
use crate::port::SerialPort;
use crate::qmp::Qmp;
use anyhow::{Context, Error, Result};
use run::timing::Timing;
use run::waiting::wait_for;
use std::fs::{self, File};
use std::io;
use std::iter;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Increased when an older state cannot be used any more although nothing the key sees has changed.
const FORMAT: u32 = 5;
/// The states of this many keys are kept, 100 MB for each machine: a host on which KVM comes and goes needs two, another memory size or kernel one more.
const KEPT: usize = 3;
/// A restore takes a quarter of a second on an idle machine; a loaded one only gets slower.
pub const RESTORE_LIMIT: Duration = Duration::from_secs(60);
/// A boot takes 3 s on an idle machine; a loaded one only gets slower.
const BOOT_LIMIT: Duration = Duration::from_secs(120);

/// The states of machines that are the same but for their number.
pub struct States<'a> {
    store: &'a Path,
    /// The machines, but for the first file system, which is part of the state.
    hardware: Hardware,
    /// What goes into the first file system.
    contents: &'a Contents,
    kernel: &'a Kernel,
    interrupt: &'a Interrupt,
    folder: PathBuf,
}

impl<'a> States<'a> {
    pub fn new(
        store: &'a Path,
        hardware: Hardware,
        contents: &'a Contents,
        kernel: &'a Kernel,
        interrupt: &'a Interrupt,
    ) -> Result<Self> {
        let folder = store.join(key(&hardware, contents, kernel)?);
        Ok(Self { store, hardware, contents, kernel, interrupt, folder })
    }

    /// Starts all machines where they were saved, each in its place. Those that are not there are built first, and all of them if
    /// they turn out to be of no use.
    pub fn restore(&self, places: &[Wiring], timing: &mut Timing) -> Result<Vec<Machine>> {
        let reading = self.lock(files::READ)?;
        if self.missing(places).is_empty() {
            match self.start(places, timing) {
                Err(error) if !error.is::<Stopped>() => {
                    eprintln!("lab: cannot use the saved machines ({error:#}); building them again");
                    drop(reading);
                    self.discard()?;
                }
                machines => return machines,
            }
        } else {
            drop(reading);
        }
        let _changing = self.lock(files::CHANGE)?;
        // Another lab may have built them while this one waited.
        let missing = self.missing(places);
        if !missing.is_empty() {
            self.build(&missing)?;
        }
        self.start(places, timing)
    }

    fn missing(&self, places: &[Wiring]) -> Vec<u8> {
        (1..=places.len() as u8).filter(|index| !self.state(*index).exists()).collect()
    }

    /// Forgets states that turned out to be of no use.
    pub fn discard(&self) -> Result<()> {
        let _changing = self.lock(files::CHANGE)?;
        match fs::remove_dir_all(&self.folder) {
            // Another lab has done so.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done.with_context(|| format!("cannot remove {}", self.folder.display())),
        }
    }

    fn start(&self, places: &[Wiring], timing: &mut Timing) -> Result<Vec<Machine>> {
        timing.end("the machines' states are found, or built");
        // The state that was used last is the last to go. Where the time cannot be set, it is that of its building.
        let _ = File::open(&self.folder).and_then(|folder| folder.set_modified(SystemTime::now()));
        let hardware = Hardware { initramfs: self.folder.join("initramfs"), ..self.hardware.clone() };
        let start = |(index, place): (u8, &Wiring)| {
            Machine::start(&hardware, index, place, Start::Restore(&self.state(index).with_extension("memory")))
        };
        let _waiting =
            wait_for(format!("lab: waiting for the machines to be restored (until {} s)", RESTORE_LIMIT.as_secs()));
        let mut machines = (1..).zip(places).map(start).collect::<Result<Vec<_>>>()?;
        self.load(&machines, Instant::now() + RESTORE_LIMIT).map_err(|error| explain(&mut machines, error))?;
        timing.end("the machines are restored");
        Ok(machines)
    }

    /// Loads the states of all machines side by side, and waits until they run.
    fn load(&self, machines: &[Machine], deadline: Instant) -> Result<()> {
        let mut controls = Vec::new();
        for (index, machine) in (1..).zip(machines) {
            let mut control = Qmp::greet(&machine.qemu.control, self.interrupt, deadline)?;
            control.restore(&format!("cat {}", quoted(&self.state(index))?))?;
            controls.push(control);
        }
        controls.iter_mut().try_for_each(Qmp::await_running)
    }

    fn lock(&self, how: files::FlockOperation) -> Result<File> {
        files::lock(self.store, how, "building the machines", self.interrupt)
    }

    fn build(&self, indices: &[u8]) -> Result<()> {
        eprintln!("lab: booting {} once, to save the state", machines_of(indices));
        if !self.folder.exists() {
            files::keep_newest(self.store, KEPT - 1);
        }
        let scratch = files::scratch(self.store)?;
        self.boot_and_save(indices, scratch.path())?;
        // A machine is there once its state is: that comes last.
        let states = |index: &u8| [format!("{index}.memory"), format!("{index}.state")];
        let keep = || -> io::Result<()> {
            fs::create_dir_all(&self.folder)?;
            let mut files = iter::once("initramfs".to_owned()).chain(indices.iter().flat_map(states));
            files.try_for_each(|file| fs::rename(scratch.path().join(&file), self.folder.join(&file)))
        };
        keep().with_context(|| format!("cannot write to {}", self.folder.display()))
    }

    fn boot_and_save(&self, indices: &[u8], folder: &Path) -> Result<()> {
        let initramfs = folder.join("initramfs");
        files::write(&initramfs, &self.contents.archive(self.kernel)?)?;
        let hardware = Hardware { initramfs, ..self.hardware.clone() };
        let boot = |index: &u8| {
            let place = Wiring::new(&format!("machine {index}"), SerialPort::Output)?;
            Machine::start(&hardware, *index, &place, Start::Boot(&folder.join(format!("{index}.memory"))))
        };
        let mut machines = indices.iter().map(boot).collect::<Result<Vec<_>>>()?;
        let deadline = Instant::now() + BOOT_LIMIT;
        let agents = machines.iter_mut().map(|machine| &mut machine.agent).collect();
        let _waiting =
            wait_for(format!("lab: waiting for {} to boot (until {} s)", machines_of(indices), BOOT_LIMIT.as_secs()));
        let ready = await_all(agents, "ready", self.interrupt, deadline);
        ready.map_err(|error| explain(&mut machines, error))?;
        for (machine, index) in machines.iter().zip(indices) {
            let path = folder.join(format!("{index}.state"));
            let mut control = Qmp::greet(&machine.qemu.control, self.interrupt, deadline)?;
            let saved = control.save(&format!("cat >{}", quoted(&path)?));
            saved.with_context(|| format!("cannot write {} (is the disk full?)", path.display()))?;
        }
        Ok(())
    }

    /// The state of a machine's processor and devices; its memory is beside it.
    fn state(&self, index: u8) -> PathBuf {
        self.folder.join(format!("{index}.state"))
    }
}

fn machines_of(indices: &[u8]) -> &'static str {
    if indices.len() == 1 {
        "a machine"
    } else {
        "the machines"
    }
}

/// The states' name. Files count by path, size and time of change: reading them all would cost a part of each run.
fn key(hardware: &Hardware, contents: &Contents, kernel: &Kernel) -> Result<String> {
    let plan = kernel.plan(&[])?;
    // A state holds what a real processor can do, and must not move to another kind.
    let processor = hardware.kvm.then(processor_model);
    let arguments = hardware.arguments(1, Start::Restore(Path::new("")));
    let modules: Vec<PathBuf> = plan.files.iter().map(|module| kernel.file(module)).collect();
    let paths = [&hardware.qemu, &kernel.image].into_iter().chain(&modules).chain(contents.files.values());
    files::key(paths, (FORMAT, &kernel.release, &plan.dep, initramfs::written(kernel, &plan), arguments, processor))
}

/// Adds to an error what those of the machines' QEMUs have to say that have ended.
pub fn explain(machines: &mut [Machine], error: Error) -> Error {
    machines.iter_mut().fold(error, |error, machine| machine.qemu.explain(error, machine.agent.closed))
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
    use crate::driver::Driver;
    use crate::modules;

    #[test]
    fn the_key_follows_what_the_state_depends_on() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("modules.dep", "virtio_net.ko:\n");
        write("modules.builtin", &modules::wanted(Driver::Rxe).map(|name| format!("{name}.ko\n")).concat());
        let (image, modules) = (folder.path().join("vmlinux"), folder.path().to_owned());
        let driver = Driver::Rxe;
        let kernel = Kernel { release: "6.1".to_owned(), image: image.clone(), modules, driver, built: None };
        let contents = Contents::find(driver).unwrap();
        let key = |kvm| {
            let qemu = PathBuf::from("/bin/sh");
            let hardware = Hardware { qemu, kvm, memory: 256, kernel: image.clone(), initramfs: PathBuf::new() };
            super::key(&hardware, &contents, &kernel).unwrap()
        };
        let mut keys = Vec::new();
        for (kernel, module, kvm) in
            [("one", "", false), ("one", "", true), ("three", "", false), ("three", "longer", false)]
        {
            write("vmlinux", kernel);
            write("virtio_net.ko", module);
            keys.push(key(kvm));
            assert_eq!(keys.last(), Some(&key(kvm)));
        }
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 4, "another processor, kernel, module");
    }
}
