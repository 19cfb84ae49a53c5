//! Who calls: a thread, its process, the memory and the descriptors of that.

use super::file::{self, FileId, Inode};
use super::kernel;
use super::listener::Call;
use bytemuck::Pod;
use nic::memory::Program;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fs::{open, AtFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::path::DecInt;
use rustix::process::{pidfd_open, Pid, PidfdFlags};
use std::collections::HashMap;
use std::ffi::CString;
use std::fs::{self, File};
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// So many threads are remembered: each costs a descriptor.
const REMEMBERED: usize = 64;

/// Whether this is the path of a process in /proc (proc(5)) that isn't descended from the first one of a machine.
pub(super) fn is_elsewhere(path: &[u8], first: u32) -> bool {
    let number = path.strip_prefix(b"/proc/").and_then(|rest| rest.split(|byte| *byte == b'/').next());
    let mut number = number.and_then(|number| std::str::from_utf8(number).ok()?.parse::<u32>().ok());
    while let Some(process) = number.filter(|process| *process != first) {
        number = parent(process);
        if number.is_none() {
            return true;
        }
    }
    false
}

/// The number of a process's parent; none if there's no such process, or if it has none.
fn parent(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // Its name is in parentheses, and may itself hold some.
    let parent = stat.rsplit(") ").next()?.split(' ').nth(1)?.parse().ok()?;
    (parent != 0).then_some(parent)
}

/// A process whose memory the device may reach (process_vm_readv(2)).
#[derive(Clone, Debug)]
pub struct Process {
    number: u32,
    /// Says when it has ended (pidfd_open(2)): its number may be another one's soon.
    end: Arc<OwnedFd>,
}

impl Process {
    /// The one that has this number now.
    fn with_number(number: u32) -> Option<Process> {
        let end = pidfd_open(Pid::from_raw(number as i32)?, PidfdFlags::empty()).ok()?;
        Some(Process { number, end: Arc::new(end) })
    }

    /// The one that runs the tests.
    #[cfg(test)]
    pub fn own() -> Process {
        Process::with_number(std::process::id()).unwrap()
    }

    /// The file name of what it executes.
    pub fn executes(&self) -> Option<String> {
        let file = fs::read_link(format!("/proc/{}/exe", self.number)).ok()?;
        Some(file.file_name()?.to_string_lossy().into_owned())
    }

    /// As getpid(2) names it.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Reads its memory: all of it, or nothing.
    ///
    /// # Errors
    /// `EFAULT`: it is not there, or may not be read. `ESRCH`: the process has ended.
    pub fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Errno> {
        self.check()?;
        kernel::read_memory(self.number, address, into)
    }

    /// Reads a value there.
    ///
    /// # Errors
    /// As for [`Process::read`].
    pub fn value<T: Pod>(&self, address: u64) -> Result<T, Errno> {
        let mut value = T::zeroed();
        self.read(address, bytemuck::bytes_of_mut(&mut value)).map(|()| value)
    }

    /// Writes to its memory. After an error a part may be written.
    ///
    /// # Errors
    /// As for [`Process::read`].
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Errno> {
        self.check()?;
        kernel::write_memory(self.number, address, bytes)
    }

    /// Whether all of this memory is there.
    ///
    /// # Errors
    /// As for [`Process::read`].
    pub fn has(&self, address: u64, length: u64) -> Result<(), Errno> {
        self.check()?;
        kernel::has_memory(self.number, address, length)
    }

    /// Whether the program itself may write to all of this memory, as /proc/PID/maps has it (proc(5)).
    pub fn may_write(&self, address: u64, length: u64) -> bool {
        let maps = fs::read_to_string(format!("/proc/{}/maps", self.number)).unwrap_or_default();
        let (mut at, end) = (address, address.saturating_add(length));
        // They come in the order of their addresses.
        for (from, to) in maps.lines().filter_map(writable) {
            if (from..to).contains(&at) {
                at = to;
            }
        }
        at >= end
    }

    /// The file of its memory, in which protections don't count (proc(5)).
    fn pages(&self) -> Option<File> {
        self.check().ok()?;
        File::options().read(true).write(true).open(format!("/proc/{}/mem", self.number)).ok()
    }

    /// Which file a descriptor means, as fstat(2) says it there.
    ///
    /// # Errors
    /// `EBADF`: there is none.
    pub fn inode(&self, descriptor: RawFd) -> Result<u64, Errno> {
        let file = rustix::fs::stat(format!("/proc/{}/fd/{descriptor}", self.number));
        file.map(|stat| stat.st_ino).map_err(|_| Errno::BADF)
    }

    fn check(&self) -> Result<(), Errno> {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        match poll(&mut [PollFd::new(&self.end, PollFlags::IN)], Some(&now)) {
            Ok(0) => Ok(()),
            _ => Err(Errno::SRCH),
        }
    }
}

/// Who has written a command to a device, and where it lies.
#[derive(Clone, Debug)]
pub struct Asker {
    pub file: FileId,
    pub process: Process,
    pub address: u64,
    pub length: usize,
}

impl Asker {
    /// A struct of the command, from byte `at` on.
    ///
    /// # Errors
    /// As for [`Process::read`].
    pub fn read<T: Pod>(&self, at: usize) -> Result<T, Errno> {
        self.process.value(self.address.wrapping_add(at as u64))
    }

    /// All that was written.
    ///
    /// # Errors
    /// The same; `EINVAL`: it is longer than that.
    pub fn bytes(&self, most: usize) -> Result<Vec<u8>, Errno> {
        if self.length > most {
            return Err(Errno::INVAL);
        }
        let mut bytes = vec![0; self.length];
        self.process.read(self.address, &mut bytes).map(|()| bytes)
    }
}

/// From where to where a line of /proc/PID/maps reaches, if one may write there: `55d0c0a00000-55d0c0a21000 rw-p …`.
fn writable(line: &str) -> Option<(u64, u64)> {
    let (range, rest) = line.split_once(' ')?;
    let (from, to) = range.split_once('-')?;
    let address = |text| u64::from_str_radix(text, 16).ok();
    Some((address(from)?, address(to)?)).filter(|_| rest.as_bytes().get(1) == Some(&b'w'))
}

/// Where regions lie. The rights of their memory were looked at when they were registered, and a NIC, which has pinned the pages, doesn't
/// look again: an mprotect(2) afterwards stops the program and not its device. So what fails with the program's rights is tried
/// without them. The kernel does that for private memory; in a shared mapping that was made read-only it still refuses to write.
impl Program for Process {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        Process::read(self, address, into).is_ok()
            || self.pages().is_some_and(|pages| pages.read_exact_at(into, address).is_ok())
    }

    fn write(&self, address: u64, bytes: &[u8]) -> bool {
        Process::write(self, address, bytes).is_ok()
            || self.pages().is_some_and(|pages| pages.write_all_at(bytes, address).is_ok())
    }
}

/// A string in the memory of a thread, up to the longest path.
///
/// # Errors
/// `EFAULT`, `ENAMETOOLONG`; `EPERM`: the kernel does not let us read there.
pub(super) fn string(thread: u32, address: u64) -> Result<CString, Errno> {
    const PAGE: u64 = 4096;
    let mut text = Vec::new();
    while text.len() < libc::PATH_MAX as usize {
        // The next page may not be there.
        let at = address.wrapping_add(text.len() as u64);
        let mut part = [0; 256];
        let part = &mut part[..256.min(PAGE - at % PAGE) as usize];
        kernel::read_memory(thread, at, part)?;
        match part.iter().position(|byte| *byte == 0) {
            Some(end) => {
                text.extend(&part[..end]);
                return CString::new(text).map_err(|_| Errno::INVAL);
            }
            None => text.extend(&*part),
        }
    }
    Err(Errno::NAMETOOLONG)
}

/// A thread that has called.
#[derive(Debug)]
pub(super) struct Caller {
    pub process: Process,
    /// The folder /proc/THREAD/fd. It is this thread's for ever: once that has ended, it is empty, whoever has its number then.
    descriptors: OwnedFd,
}

impl Caller {
    /// Which file a descriptor means.
    pub fn inode(&self, descriptor: RawFd) -> Option<Inode> {
        file::inode(&self.descriptors, DecInt::new(descriptor), AtFlags::empty()).ok()
    }

    /// Whether no file has this number.
    pub fn is_free(&self, descriptor: RawFd) -> bool {
        file::inode(&self.descriptors, DecInt::new(descriptor), AtFlags::SYMLINK_NOFOLLOW).is_err()
    }
}

/// The threads that have called, as long as they are remembered.
#[derive(Debug, Default)]
pub(super) struct Callers(HashMap<u32, Caller>);

impl Callers {
    /// A thread; None if it has ended.
    pub fn of(&mut self, thread: u32) -> Option<&Caller> {
        if !self.0.contains_key(&thread) {
            let folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let descriptors = open(format!("/proc/{thread}/fd"), folder, Mode::empty()).ok()?;
            let number = status(thread, "Tgid:")?.parse().ok()?;
            let mut known = self.0.values().map(|caller| &caller.process);
            let known = known.find(|process| process.number == number && process.check().is_ok()).cloned();
            let process = known.or_else(|| Process::with_number(number))?;
            if self.0.len() >= REMEMBERED {
                self.0.clear();
            }
            self.0.insert(thread, Caller { process, descriptors });
        }
        self.0.get(&thread)
    }

    /// Whoever has this number now may be another thread.
    pub fn forget(&mut self, thread: u32) {
        self.0.remove(&thread);
    }
}

impl Call {
    /// Whether a descriptor of the caller must not wait: it has O_NONBLOCK.
    pub fn must_not_wait(&self, descriptor: RawFd) -> bool {
        let info = fs::read_to_string(format!("/proc/{}/fdinfo/{descriptor}", self.thread)).unwrap_or_default();
        let flags = line(&info, "flags:").and_then(|text| u32::from_str_radix(text, 8).ok());
        flags.is_some_and(|flags| flags & OFlags::NONBLOCK.bits() != 0)
    }

    /// Whether a signal wants to interrupt the caller. One that is for the whole process goes to its first thread, unless that
    /// blocks it. Another one must not be told ERESTARTSYS then: with no signal of its own the kernel would hand it that number.
    pub(super) fn is_interrupted(&self) -> bool {
        let set = |thread, name| status(thread, name).and_then(|text| u64::from_str_radix(&text, 16).ok()).unwrap_or(0);
        let of_process = match status(self.thread, "Tgid:").and_then(|text| text.parse().ok()) {
            Some(first) if first != self.thread => set(first, "SigBlk:"),
            _ => u64::MAX,
        };
        let pending = set(self.thread, "SigPnd:") | set(self.thread, "ShdPnd:") & of_process;
        pending & !set(self.thread, "SigBlk:") & !set(self.thread, "SigIgn:") != 0
    }
}

/// A line of /proc/THREAD/status (proc(5)).
fn status(thread: u32, name: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    line(&text, name).map(str::to_owned)
}

fn line<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_reaches_for_the_memory_of_a_number_whose_process_has_ended() {
        let here = [7; 4];
        let read = |process: &Process| {
            let mut bytes = [0; 4];
            process.read(here.as_ptr() as u64, &mut bytes).map(|()| bytes)
        };
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let ended = Process::with_number(child.id()).unwrap();
        child.wait().unwrap();
        // The number is somebody's again: ours.
        let ended = Process { number: std::process::id(), ..ended };
        let thread = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        let mut callers = Callers::default();
        let process = callers.of(thread).unwrap().process.clone();
        assert_eq!((process.number(), read(&process), read(&ended)), (ended.number, Ok(here), Err(Errno::SRCH)));
        assert!(callers.of(u32::MAX).is_none());
    }
}
