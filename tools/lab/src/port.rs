//! The host's end of a machine's second serial port.

use rustix::pipe::PipeFlags;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// How much a program may print before the lab must read it.
const OUTPUT_ROOM: usize = 1 << 20;

/// What the port is connected to. A machine does not notice the difference, so one saved state serves both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SerialPort {
    /// A pipe, for a program that only prints. QEMU writes byte by byte, and a socket is full after a few hundred such
    /// writes. The rest would leave the machine late, after the packets that the program sends.
    Output,
    /// A socket, which also carries keys to the program. What is printed may be late, as said above.
    Terminal,
}

impl SerialPort {
    /// The lab's end, which does not wait, and QEMU's.
    pub fn open(self) -> io::Result<(File, OwnedFd)> {
        if self == Self::Terminal {
            let (lab, qemu) = UnixStream::pair()?;
            lab.set_nonblocking(true)?;
            return Ok((OwnedFd::from(lab).into(), qemu.into()));
        }
        let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // A user may have used up his share of such room; the usual 64 KiB will also do, unless the lab is very slow.
        let _ = rustix::pipe::fcntl_setpipe_size(&write, OUTPUT_ROOM);
        Ok((read.into(), write))
    }

    /// QEMU's arguments for its end: the character device `program`, which standard error's port shares, so that order is
    /// kept. It shares no terminal, as QEMU would take some keys for itself then: a shell's standard error is its terminal.
    pub fn arguments(self, end: &OwnedFd) -> Vec<String> {
        let (program, error) = match self {
            Self::Output => (format!("file,id=program,mux=on,path=/proc/self/fd/{}", end.as_raw_fd()), "program"),
            Self::Terminal => (format!("socket,id=program,fd={}", end.as_raw_fd()), "none"),
        };
        let card = format!("pci-serial,chardev={error}");
        ["-chardev", &program, "-chardev", "null,id=none", "-device", &card].map(str::to_owned).into()
    }
}
