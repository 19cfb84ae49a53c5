//! Puts a program under a supervisor: its child installs the filter between fork and exec, and sends us the listener
//! (SCM_RIGHTS, unix(7)).

use super::file::Files;
use super::filter;
use super::kernel;
use super::listener::Listener;
use super::poll::{Poll, Ready};
use super::process::Callers;
use super::sysfs::Sysfs;
use super::Machine;
use anyhow::{anyhow, bail, Context, Result};
use libc::sock_filter;
use rustix::event::{poll, PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{
    recvmsg, sendmsg, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};
use rustix::process::{getpid, getrlimit, pidfd_open, setrlimit, PidfdFlags, Resource, Rlimit};
use rustix::process::{set_child_subreaper, set_parent_process_death_signal, Signal};
use rustix::thread::set_no_new_privs;
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::{self, MaybeUninit};
use std::net::{IpAddr, Shutdown};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

/// How long a child may need from fork to its filter.
const PATIENCE: Duration = Duration::from_secs(20);

/// The variable that says where the machine's sysfs is, for a sandbox: there a program must find it by itself, at `/`.
const SYSFS: &str = "NIC_SYSFS";

impl Machine {
    /// Starts a command on a machine with a device of this address.
    ///
    /// Its sysfs is laid out below `folder`, and stays there: the next machine with this address starts some milliseconds sooner.
    ///
    /// If time is ours, a program's sleep is [asked](super::Asked::Sleeps) of the device.
    ///
    /// The program dies with the thread that calls this (PR_SET_PDEATHSIG, prctl(2)): without us its calls would fail.
    ///
    /// # Errors
    /// The folder cannot be made; the command cannot be started; or there can be no machine here, and what helps.
    pub fn start(
        command: &mut Command,
        address: IpAddr,
        folder: &Path,
        is_time_ours: bool,
    ) -> Result<(Child, Machine)> {
        let named = || format!("cannot lay out {}", folder.display());
        let sysfs = Sysfs::make(folder, address).with_context(named)?;
        // Orphans become our children, and stay descendants, whose memory Yama lets us reach.
        set_child_subreaper(Some(getpid())).context("prctl(PR_SET_CHILD_SUBREAPER)")?;
        command.env(SYSFS, sysfs.root());
        let (socket, theirs) = UnixStream::pair().context("socketpair")?;
        socket.set_read_timeout(Some(PATIENCE)).context("SO_RCVTIMEO")?;
        let (limit, program) = (raised_limit(), filter::program(is_time_ours));
        kernel::before_exec(command, move || surrender(&theirs, limit, &program));
        let (spawned, machine) = thread::scope(|scope| {
            let machine = scope.spawn(|| Machine::of_child(&socket, sysfs));
            let spawned = command.spawn();
            // That was it.
            let _ = socket.shutdown(Shutdown::Both);
            (spawned, machine.join().unwrap_or_else(|_| Err(anyhow!("its supervisor has failed"))))
        });
        // Why there can be no machine says more than what exec says then.
        match (spawned, machine) {
            (Ok(child), Ok(machine)) => Ok((child, machine)),
            (Ok(mut child), Err(error)) => {
                // Nobody would answer its calls.
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
            (Err(error), Ok(_)) => Err(error).with_context(|| format!("cannot start {:?}", command.get_program())),
            (Err(_), Err(error)) => Err(error),
        }
    }

    /// The machine of the child at the other end, which is served until the socket is shut down: to tell that it cannot become
    /// its program, the child uses a descriptor that may have one of our numbers.
    fn of_child(socket: &UnixStream, sysfs: Sysfs) -> Result<Machine> {
        let (program, listener) = received(socket)?;
        let mut machine = Machine::new(program, listener, sysfs)?;
        loop {
            let mut both = [PollFd::new(&machine, PollFlags::IN), PollFd::new(socket, PollFlags::empty())];
            let _ = poll(&mut both, None);
            if both[1].revents().contains(PollFlags::HUP) {
                return Ok(machine);
            }
            machine.attend();
        }
    }

    /// That of the program with this number, whose calls come to this listener: if the system allows all that it does.
    fn new(program: u32, listener: Listener, sysfs: Sysfs) -> Result<Machine> {
        // Any address will do: what we want to know is whether we may ask.
        let address = &PATIENCE as *const Duration as u64;
        match kernel::read_memory(program, address, &mut [0; 1]) {
            Err(errno @ (Errno::PERM | Errno::NOSYS)) => return Err(refused("process_vm_readv", errno)),
            _ if !listener.can_give() => return Err(refused("SECCOMP_IOCTL_NOTIF_ADDFD", Errno::NOSYS)),
            _ => {}
        }
        pidfd_open(getpid(), PidfdFlags::empty()).map_err(|errno| refused("pidfd_open", errno))?;
        let poll = Poll::new().context("epoll_create1")?;
        poll.add(&listener, Ready::Call).context("epoll_ctl")?;
        let files = Files::new(&poll).context("pipe2")?;
        let (callers, told) = (Callers::default(), VecDeque::new());
        Ok(Machine {
            listener,
            files,
            callers,
            sysfs,
            poll,
            is_deserted: false,
            told,
            was_called: false,
            is_shut_in: false,
            calls: BTreeMap::new(),
            alone: None,
        })
    }
}

/// Each open device costs its programs a descriptor, and us two: we take what we may have. What we had before, for programs.
fn raised_limit() -> Rlimit {
    static BEFORE: OnceLock<Rlimit> = OnceLock::new();
    let raise = || {
        let before = getrlimit(Resource::Nofile);
        let _ = setrlimit(Resource::Nofile, Rlimit { current: before.maximum, maximum: before.maximum });
        before
    };
    *BEFORE.get_or_init(raise)
}

/// In the child: installs the filter and sends its listener, with our number and errno. Allocates nothing.
fn surrender(socket: &UnixStream, limit: Rlimit, program: &[sock_filter]) -> io::Result<()> {
    let installed = setrlimit(Resource::Nofile, limit)
        .and_then(|()| set_parent_process_death_signal(Some(Signal::KILL)))
        // Without it only root may install a filter.
        .and_then(|()| set_no_new_privs(true))
        .and_then(|()| kernel::install(program));
    let errno = installed.as_ref().err().map_or(0, |errno| errno.raw_os_error()).to_ne_bytes();
    let number = getpid().as_raw_nonzero().get().to_ne_bytes();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let listener = installed.as_ref().ok().map(|listener| [listener.as_fd()]);
    if let Some(listener) = &listener {
        control.push(SendAncillaryMessage::ScmRights(listener));
    }
    sendmsg(socket, &[IoSlice::new(&number), IoSlice::new(&errno)], &mut control, SendFlags::NOSIGNAL)?;
    // The listener's own number may be one that the filter traps. Nobody looks at it any more: the kernel closes it at exec.
    installed.map(mem::forget).map_err(io::Error::from)
}

/// What the child has sent: its number and its listener.
fn received(socket: &UnixStream) -> Result<(u32, Listener)> {
    let (mut number, mut errno) = ([0; 4], [0; 4]);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut into = [IoSliceMut::new(&mut number), IoSliceMut::new(&mut errno)];
    let got = recvmsg(socket, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC);
    let listener = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    match (got, listener) {
        (Err(Errno::AGAIN), _) => {
            bail!("the program didn't start within {} s. If this machine is busy, try again", PATIENCE.as_secs())
        }
        (Err(errno), _) => Err(errno).context("recvmsg"),
        (Ok(_), Some(listener)) => Ok((u32::from_ne_bytes(number), Listener(Arc::new(listener)))),
        (Ok(got), None) if got.bytes == 8 => {
            Err(refused("seccomp", Errno::from_raw_os_error(i32::from_ne_bytes(errno))))
        }
        (Ok(_), None) => bail!("the program's process ended before the program began. Run the same command again"),
    }
}

/// Why there can be no machine, and what helps.
fn refused(call: &str, errno: Errno) -> anyhow::Error {
    let yama = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let next = match (call, errno) {
        ("seccomp", Errno::BUSY) => {
            "the program already runs under a supervisor, and there can be only one. Run it outside of `device`, or of the container \
             engine or sandbox that watches it"
        }
        ("seccomp", Errno::INVAL) | (_, Errno::NOSYS) => {
            "this kernel or sandbox doesn't offer it (gVisor doesn't, Linux does since 5.9). Run it elsewhere"
        }
        ("process_vm_readv", Errno::PERM) if yama.trim() == "2" => "`sudo sysctl kernel.yama.ptrace_scope=1` allows it",
        ("process_vm_readv", Errno::PERM) if yama.trim() == "3" => "reboot with kernel.yama.ptrace_scope=1",
        (_, Errno::PERM | Errno::ACCESS) => "a sandbox forbids it. Allow it there, as Docker and Podman do by default",
        _ => "its man page explains the error",
    };
    anyhow!("cannot give programs the device, because {call} fails: {errno}: {next}")
}
