//! The system calls that no crate offers: seccomp(2) and the commands of its listener (seccomp_unotify(2)),
//! process_vm_readv(2). All `unsafe` of the machine is here, and callers of these functions can do nothing wrong.

use libc::{c_int, c_ulong, c_void, iovec, seccomp_notif, seccomp_notif_addfd, seccomp_notif_resp, sock_filter};
use rustix::io::Errno;
use rustix::thread::{sched_setaffinity, CpuSet};
use std::backtrace::Backtrace;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The error of the call that has just said -1.
fn errno() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}

fn checked(result: c_int) -> Result<c_int, Errno> {
    if result < 0 {
        Err(errno())
    } else {
        Ok(result)
    }
}

/// Installs a filter in this thread, and what it will start; gives back its listener. Allocates nothing, so it may be called
/// between fork and exec.
pub fn install(filter: &[sock_filter]) -> Result<OwnedFd, Errno> {
    // Without the second flag, which came with Linux 5.19, a signal takes a thread out of a call that we have begun to answer.
    const ALL: c_ulong = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    let install = |flags: c_ulong| {
        // SAFETY: the kernel reads the program, which `filter` keeps alive, and writes nothing.
        let listener =
            unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &program as *const _) };
        checked(listener as c_int)
    };
    let listener = match install(ALL) {
        Err(Errno::INVAL) => install(libc::SECCOMP_FILTER_FLAG_NEW_LISTENER),
        result => result,
    }?;
    // SAFETY: the descriptor is new, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(listener) })
}

/// Has a child run this between fork and exec.
///
/// `hook` may call the kernel and nothing else: another thread may have held the allocator's lock while the process forked.
pub fn before_exec(command: &mut Command, hook: impl FnMut() -> io::Result<()> + Send + Sync + 'static) {
    // SAFETY: as said above; all callers are in start.rs and below.
    unsafe { command.pre_exec(hook) };
}

/// The number of a child that has ended, as soon as there is one. It is left to be waited for.
///
/// # Errors
/// `ECHILD`: there is no child.
pub fn ended_child() -> Result<u32, Errno> {
    // SAFETY: numbers alone, for which 0 is a value.
    let mut info: libc::siginfo_t = unsafe { mem::zeroed() };
    // SAFETY: the kernel writes to `info` alone, which lives until the call returns.
    checked(unsafe { libc::waitid(libc::P_ALL, 0, &mut info, libc::WEXITED | libc::WNOWAIT) })?;
    // SAFETY: of an ended child the kernel has written this field.
    Ok(unsafe { info.si_pid() } as u32)
}

/// A command of a listener. `T` is the struct that this command reads and writes.
fn command<T>(listener: BorrowedFd<'_>, request: libc::Ioctl, argument: &mut T) -> Result<c_int, Errno> {
    loop {
        // SAFETY: the callers below pair each request with its struct, which lives until the call returns.
        match checked(unsafe { libc::ioctl(listener.as_raw_fd(), request, argument as *mut T) }) {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

/// Takes a call that waits; blocks if there is none.
pub fn receive(listener: BorrowedFd<'_>) -> Result<seccomp_notif, Errno> {
    /// A later kernel may write more than we know.
    #[repr(C)]
    struct Room {
        known: seccomp_notif,
        more: [u64; 32],
    }
    // SAFETY: numbers alone, for which 0 is a value.
    let mut room: Room = unsafe { mem::zeroed() };
    command(listener, libc::SECCOMP_IOCTL_NOTIF_RECV, &mut room).map(|_| room.known)
}

pub fn send(listener: BorrowedFd<'_>, mut answer: seccomp_notif_resp) -> Result<(), Errno> {
    command(listener, libc::SECCOMP_IOCTL_NOTIF_SEND, &mut answer).map(|_| ())
}

/// Puts a descriptor into the table of the process that waits (Linux 5.9); its number there.
pub fn add(listener: BorrowedFd<'_>, mut what: seccomp_notif_addfd) -> Result<RawFd, Errno> {
    command(listener, libc::SECCOMP_IOCTL_NOTIF_ADDFD, &mut what)
}

/// Whether the call still waits for its answer.
pub fn is_valid(listener: BorrowedFd<'_>, mut id: u64) -> bool {
    command(listener, libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &mut id).is_ok()
}

/// Reads the memory of a process: all of it, or EFAULT.
pub fn read_memory(process: u32, address: u64, into: &mut [u8]) -> Result<(), Errno> {
    read_pieces(process, &[piece(address, into.len())], into)
}

/// Whether a process has all pages of a stretch of memory, and may read them: a NIC, which pins them, would notice.
pub fn has_memory(process: u32, start: u64, length: u64) -> Result<(), Errno> {
    const PAGE: u64 = 4096;
    /// IOV_MAX.
    const MOST: usize = 1024;
    let end = start.checked_add(length).ok_or(Errno::FAULT)?;
    let mut at = start;
    while at < end {
        // One byte of each page.
        let mut there = Vec::with_capacity(MOST);
        while at < end && there.len() < MOST {
            there.push(piece(at, 1));
            at = (at - at % PAGE).saturating_add(PAGE);
        }
        read_pieces(process, &there, &mut [0; MOST][..there.len()])?;
    }
    Ok(())
}

/// Writes to the memory of a process: all of it, or EFAULT; what comes before a page that is not there may be written then.
pub fn write_memory(process: u32, address: u64, bytes: &[u8]) -> Result<(), Errno> {
    let (here, there) = (piece(bytes.as_ptr() as u64, bytes.len()), piece(address, bytes.len()));
    // SAFETY: the kernel reads `bytes` alone. It checks the other address.
    let count = unsafe { libc::process_vm_writev(process as i32, &here, 1, &there, 1, 0) };
    whole(count, bytes.len())
}

fn read_pieces(process: u32, there: &[iovec], into: &mut [u8]) -> Result<(), Errno> {
    let here = piece(into.as_mut_ptr() as u64, into.len());
    // SAFETY: the kernel writes to `into` alone. It checks the other addresses.
    let count = unsafe { libc::process_vm_readv(process as i32, &here, 1, there.as_ptr(), there.len() as c_ulong, 0) };
    whole(count, into.len())
}

fn piece(address: u64, length: usize) -> iovec {
    iovec { iov_base: address as *mut c_void, iov_len: length }
}

fn whole(count: isize, length: usize) -> Result<(), Errno> {
    match usize::try_from(count) {
        Err(_) => Err(errno()),
        Ok(count) if count == length => Ok(()),
        Ok(_) => Err(Errno::FAULT),
    }
}

/// What programs get as the kernel has written it.
pub trait Bytes {}
impl Bytes for rustix::fs::Stat {}
impl Bytes for rustix::fs::Statx {}

pub fn bytes<T: Bytes>(value: &T) -> &[u8] {
    // SAFETY: the kernel has written each byte of it, and the slice lives as long.
    unsafe { std::slice::from_raw_parts((value as *const T).cast(), mem::size_of::<T>()) }
}

/// Has a program, and all that it starts, find its memory at the same addresses each time (personality(2),
/// ADDR_NO_RANDOMIZE). A sandbox may forbid it; then they differ.
pub fn place_alike(command: &mut Command) {
    before_exec(command, || {
        // SAFETY: numbers alone.
        unsafe { libc::personality(libc::ADDR_NO_RANDOMIZE as c_ulong) };
        Ok(())
    });
}

/// Has a program run on these processors.
pub fn allow_processors(command: &mut Command, set: CpuSet) {
    before_exec(command, move || sched_setaffinity(None, &set).map_err(io::Error::from));
}

/// How long a process has had a processor, to the nanosecond; None if it is gone.
pub fn processor_time(process: u32) -> Option<Duration> {
    time_of(process as i32, 0)
}

/// The same of a thread of this process.
pub fn processor_time_of_thread(thread: i32) -> Option<Duration> {
    const THREAD: i32 = 4;
    time_of(thread, THREAD)
}

/// clock_getcpuclockid(3): the clock of a process or thread is made of its number.
fn time_of(number: i32, kind: i32) -> Option<Duration> {
    const SCHEDULED: i32 = 2;
    clock((!number << 3) | kind | SCHEDULED)
}

/// What a clock says (clock_gettime(2)); None if there is none with this number.
pub fn clock(number: i32) -> Option<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes to `time` alone, which lives until the call returns.
    checked(unsafe { libc::clock_gettime(number, &mut time) }).ok()?;
    Some(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

/// Where a copy of this process says what the interrupted thread was calling.
static ANSWER: AtomicI32 = AtomicI32::new(-1);

/// What a thread of this process is calling, as a backtrace: a signal interrupts it (sigaction(2), tgkill(2)), and a copy of the
/// process looks, as looking needs memory, which the thread may just be asking for. One thread may be looked at at a time.
///
/// # Errors
/// `ESRCH`: the thread is gone. `EAGAIN`: the copy cannot tell.
pub fn calls_of(thread: i32) -> io::Result<String> {
    const PATIENCE: Duration = Duration::from_secs(5);
    let (answer, asked) = UnixDatagram::pair()?;
    answer.set_read_timeout(Some(PATIENCE))?;
    ANSWER.store(asked.as_raw_fd(), Relaxed);
    // SAFETY: the handler has the form that sigaction(2) wants of one without SA_SIGINFO, and a function stays for ever.
    let sent = unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = tell_calls as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGUSR2, &action, std::ptr::null_mut());
        libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, libc::SIGUSR2)
    };
    checked(sent as c_int)?;
    let mut calls = vec![0; 1 << 16];
    let length = answer.recv(&mut calls)?;
    Ok(String::from_utf8_lossy(&calls[..length]).into_owned())
}

/// The handler: makes the copy, by a call that takes no lock. The copy has its own memory, five seconds, and no voice.
extern "C" fn tell_calls(_signal: c_int) {
    const ALONE: c_ulong = 0;
    // SAFETY: fork(2) as the kernel has it; clone(2) with no flags sends nobody a signal when the copy ends.
    unsafe {
        if libc::syscall(libc::SYS_clone, ALONE, 0, 0, 0, 0) == 0 {
            libc::alarm(5);
            libc::close(libc::STDERR_FILENO);
            let calls = Backtrace::force_capture().to_string();
            let length = calls.len().min(1 << 16);
            libc::send(ANSWER.load(Relaxed), calls.as_ptr().cast(), length, libc::MSG_DONTWAIT);
            libc::_exit(0);
        }
    }
}
