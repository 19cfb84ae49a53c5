//! One QEMU process: a machine with a network card, three serial ports and a drive.
//!
//! All its connections are socket pairs that it inherits, so that no port and no socket file is opened. It
//! never gets the terminal, and it cannot outlive the lab.

use crate::agent::Agent;
use crate::arch::{self, HOST};
use crate::libs;
use crate::port::SerialPort;
use anyhow::{Context, Result};
use rustix::io::{fcntl_setfd, FdFlags};
use rustix::process::{getppid, set_parent_process_death_signal, Pid, Signal};
use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Size of a drive in bytes. A saved machine remembers it, so it is more than any machine's memory holds; only what is
/// written to it takes room.
const DRIVE_SIZE: u64 = 16 << 30;

/// All machines of a lab have this in common. It is part of the key of their saved states.
#[derive(Debug, Clone)]
pub struct Hardware {
    pub qemu: PathBuf,
    /// Whether the processor is the real one (KVM) or emulated.
    pub kvm: bool,
    /// Memory of each machine in MiB.
    pub memory: u32,
    pub kernel: PathBuf,
    pub initramfs: PathBuf,
}

impl Hardware {
    /// The part of the command line that must be the same when a state is saved and when it is restored (what the kernel
    /// is passed separately, because only a kernel that boots reads it). `index` counts machines from 1.
    pub fn arguments(&self, index: u8, start: Start<'_>) -> Vec<OsString> {
        let (accelerator, processor) = if self.kvm { ("kvm", "host") } else { ("tcg,thread=single", HOST.processor) };
        let kernel_arguments = format!(
            "console={console} loglevel=5 printk.devkmsg=on 8250.nr_uarts=4 panic=-1 printk.time=1 {} {} \
             lab_index={index} lab_console={console} lab_program={} lab_error={}",
            HOST.kernel_arguments,
            if self.kvm { String::new() } else { start.clock() },
            HOST.program,
            HOST.error,
            console = HOST.console
        );
        // The guest does not announce itself after a restore: the capture begins with the lesson. Its kernel warns of a card
        // that does not tell how fast it is.
        let card = format!("virtio-net-pci,netdev=wire,mac=02:00:00:00:00:{index:02x},speed=1000,duplex=full,guest_announce=off,romfile=");
        let board = format!("{},memory-backend=ram", HOST.machine);
        let mut arguments: Vec<OsString> = Vec::new();
        let mut add = |words: &[&str]| arguments.extend(words.iter().map(OsString::from));
        add(&["-M", &board, "-accel", accelerator, "-cpu", processor, "-m", &self.memory.to_string()]);
        add(&["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
        add(&["-global", "migration.announce-rounds=0"]);
        add(&["-serial", "chardev:console"]);
        add(&HOST.program_port);
        add(&["-mon", "chardev=control,mode=control"]);
        add(&["-device", &card, "-device", "virtio-blk-pci,drive=payload", "-append", &kernel_arguments]);
        arguments.extend(["-kernel".into(), self.kernel.clone().into(), "-initrd".into()]);
        arguments.push(self.initramfs.clone().into());
        arguments
    }
}

/// How a machine begins its life. Its memory is a file: a machine that boots writes to the file, and one that is
/// restored sees what is there, but keeps its own changes to itself. So nothing has to be copied to save or restore it.
#[derive(Debug, Clone, Copy)]
pub enum Start<'a> {
    /// It boots, with this file as its memory.
    Boot(&'a Path),
    /// It waits for [`Qmp::restore`](crate::qmp::Qmp::restore), with this file as its memory at first.
    Restore(&'a Path),
}

impl Start<'_> {
    /// The kernel argument that tells how fast the emulated time stamp counter counts, which is how fast this host's does. A
    /// kernel measures it in its first moments, and on a busy host it finds a tenth: that machine's clock would run ten times
    /// too fast for ever.
    fn clock(self) -> String {
        let rate = if let Self::Boot(_) = self { arch::time_stamps_per_ms() } else { None };
        rate.map_or(String::new(), |rate| format!("tsc_early_khz={rate}"))
    }

    /// QEMU's arguments for it.
    fn arguments(self, size: u32) -> Vec<String> {
        let (file, share, more) = match self {
            Self::Boot(file) => (file, "on", &[][..]),
            Self::Restore(file) => (file, "off", &["-incoming", "defer"][..]),
        };
        // A comma in the file's name would begin the next option; QEMU reads a doubled one as the character.
        let file = file.to_string_lossy().replace(',', ",,");
        let memory = format!("memory-backend-file,id=ram,size={size}M,mem-path={file},share={share}");
        ["-object", &memory].into_iter().chain(more.iter().copied()).map(str::to_owned).collect()
    }
}

/// A running machine.
pub struct Machine {
    pub qemu: Qemu,
    /// On the first serial port, between the kernel's messages.
    pub agent: Agent,
    /// Second serial port: the program's output, and its input if the port is a terminal. What the program says on the third
    /// one, standard error, comes here, too.
    pub program: File,
    /// Its network card: Ethernet frames, each after its length in 4 bytes, big-endian.
    pub card: UnixStream,
}

/// What is different with each machine.
pub struct Wiring {
    /// For messages.
    pub name: String,
    pub port: SerialPort,
    /// A file without a name: nothing is left of it, however the lab ends.
    pub drive: File,
}

impl Wiring {
    /// With a drive that has nothing on it.
    pub fn new(name: &str, port: SerialPort) -> Result<Self> {
        let attempt = || -> io::Result<File> {
            let drive = tempfile::tempfile()?;
            drive.set_len(DRIVE_SIZE)?;
            Ok(drive)
        };
        let drive =
            attempt().with_context(|| format!("cannot create a temporary file in {}", env::temp_dir().display()))?;
        Ok(Self { name: name.to_owned(), port, drive })
    }
}

impl Machine {
    /// Starts machine number `index` (from 1). It ends with the thread that calls this.
    pub fn start(hardware: &Hardware, index: u8, place: &Wiring, start: Start<'_>) -> Result<Self> {
        let pair = || UnixStream::pair().context("cannot create a socket pair");
        let (console, console_end) = pair()?;
        let (program, program_end) = place.port.open().context("cannot create a serial port")?;
        let (card, card_end) = pair()?;
        let (control, control_end) = pair()?;

        let mut command = Command::new(&hardware.qemu);
        command.args(hardware.arguments(index, start)).args(start.arguments(hardware.memory));
        if let Some(root) = libs::unpacked().filter(|root| hardware.qemu.starts_with(root)) {
            // QEMU looks for its firmware and its modules beside itself. They were unpacked there, unless this host has their
            // packages installed, as it has with another architecture's QEMU.
            let roots = [root.as_path(), Path::new("/")];
            for root in roots {
                for folder in ["usr/share/qemu", "usr/share/seabios"] {
                    command.arg("-L").arg(root.join(folder));
                }
            }
            let modules = roots.map(|root| root.join("usr/lib").join(arch::library_folder()).join("qemu"));
            command.envs(modules.iter().find(|folder| folder.exists()).map(|folder| ("QEMU_MODULE_DIR", folder)));
        }
        for (name, end) in [("console", &console_end), ("control", &control_end)] {
            command.arg("-chardev").arg(format!("socket,id={name},fd={}", end.as_raw_fd()));
        }
        command.args(place.port.arguments(&program_end));
        command.arg("-netdev").arg(format!("socket,id=wire,fd={}", card_end.as_raw_fd()));
        // QEMU wants a descriptor for reading alone, and one for both.
        let drive = &place.drive;
        let read = File::open(format!("/proc/self/fd/{}", drive.as_raw_fd())).context("cannot open the drive")?;
        for drive in [&read, drive] {
            command.arg("-add-fd").arg(format!("set=1,fd={}", drive.as_raw_fd()));
        }
        // What a machine writes there is read once, and lost with the lab: it need not reach a disk.
        command.args(["-drive", "id=payload,if=none,format=raw,cache=unsafe,file=/dev/fdset/1"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        // A group of its own: Ctrl-C is for the lab, which then ends its machines in order.
        command.process_group(0);
        let sockets = [&console_end, &control_end, &card_end].map(UnixStream::as_fd);
        let inherited = [&sockets[..], &[read.as_fd(), drive.as_fd(), program_end.as_fd()]].concat();
        let process = spawn(&mut command, &inherited)
            .with_context(|| format!("cannot start `{}`; {}", hardware.qemu.display(), libs::GET))?;
        Ok(Self { qemu: Qemu { process, control }, agent: Agent::new(&place.name, console)?, program, card })
    }
}

/// How long QEMU may take to end when it has closed its console, and when nobody knows whether it ends.
const ENDING: Duration = Duration::from_secs(10);
const MOMENT: Duration = Duration::from_millis(50);
const LOOK: Duration = Duration::from_millis(10);

/// The process behind a machine. Dropping it ends it.
pub struct Qemu {
    process: Child,
    /// QEMU's own control protocol.
    pub control: UnixStream,
}

impl Qemu {
    /// Adds to an error what QEMU itself has to say, if it has ended: it did not like its command line or state. One that has closed
    /// its console `is_ending`, and a busy machine needs a while to give its memory back.
    pub fn explain(&mut self, error: anyhow::Error, is_ending: bool) -> anyhow::Error {
        let deadline = Instant::now() + if is_ending { ENDING } else { MOMENT };
        let status = loop {
            match self.process.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if Instant::now() < deadline => sleep(LOOK),
                _ => return error,
            }
        };
        let mut words = format!("QEMU ended ({status})");
        if status.signal() == Some(Signal::BUS.as_raw()) {
            words.push_str(": its memory's file could not grow; is the disk full?");
        }
        let mut complaint = String::new();
        if let Some(stderr) = &mut self.process.stderr {
            // It has ended, so this does; what cannot be read is not worth a second error.
            let _ = stderr.read_to_string(&mut complaint);
        }
        error.context(format!("{words}\n{complaint}").trim().to_owned())
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        // Fails only if it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts a process that inherits `descriptors` under the same numbers and dies with this thread.
fn spawn(command: &mut Command, descriptors: &[BorrowedFd<'_>]) -> io::Result<Child> {
    let numbers: Vec<i32> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
    let parent = rustix::process::getpid();
    let prepare = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The lab may have ended before the line above took effect.
        if getppid().map(Pid::as_raw_nonzero) != Some(parent.as_raw_nonzero()) {
            return Err(io::ErrorKind::NotConnected.into());
        }
        for number in &numbers {
            // SAFETY: the callers' `descriptors` are open until `spawn` returns, and the child has copies of them.
            let descriptor = unsafe { BorrowedFd::borrow_raw(*number) };
            fcntl_setfd(descriptor, FdFlags::empty())?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec only system calls are made (prctl, getppid, fcntl); nothing allocates or locks.
    unsafe { command.pre_exec(prepare) };
    command.spawn()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test may end with a panic.
mod tests {
    use super::*;

    #[test]
    fn a_qemu_that_takes_its_time_to_end_is_still_heard() {
        let explained = |script: &str, is_ending| {
            let mut command = Command::new("sh");
            command.args(["-c", script]).stderr(Stdio::piped());
            let mut qemu = Qemu { process: command.spawn().unwrap(), control: UnixStream::pair().unwrap().0 };
            format!("{:#}", qemu.explain(anyhow::anyhow!("the machine ended"), is_ending))
        };
        let said = explained("sleep 0.3; echo terminating on signal 15 >&2", true);
        assert!(said.contains("terminating on signal 15"), "{said}");
        let said = explained("exec sleep 60", false);
        assert_eq!(said, "the machine ended", "nobody waits long for one that may go on");
    }
}
