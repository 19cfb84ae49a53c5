//! What makes a program believe that it runs on a machine with an RDMA device: a supervisor that answers its system calls
//! (seccomp_unotify(2)). The program, its libraries and their provider are the distribution's own.
//!
//! | | |
//! |---|---|
//! | `filter` | which calls come to us |
//! | `start` | installs it in a program's process, before that is one |
//! | `listener` | calls that wait, and the answers |
//! | `calls` | what each is answered |
//! | `process` | who calls; memory |
//! | `file` | open files of /dev/infiniband, and their end |
//! | `sysfs` | the folder that stands for /sys/class/infiniband |
//! | `poll`, `kernel` | what is waited for; system calls that no crate has |
//!
//! It is no security boundary: a program that wants to get around it can. Programs see no device if they are of another
//! architecture (32 bits), if the kernel hides their memory (PR_SET_DUMPABLE, prctl(2)), and if they open it by openat2(2) or
//! io_uring(7); and nobody can chdir(2) to where it is not.

mod calls;
mod file;
mod filter;
#[allow(unsafe_code)]
mod kernel;
mod listener;
mod poll;
mod process;
mod start;
mod sysfs;

pub use file::{FileId, Files, Kind};
pub use filter::RESERVED;
pub use kernel::{allow_processors, calls_of, ended_child, place_alike, processor_time, processor_time_of_thread};
pub use listener::Call;
pub use process::{Asker, Process};

use listener::Listener;
use poll::{Poll, Ready};
use process::Callers;
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::time::Duration;
use sysfs::Sysfs;

/// What only the device can answer, or must know.
#[derive(Debug)]
pub enum Asked {
    /// A program has opened a device. It is answered already.
    Opened { file: FileId, kind: Kind, process: Process },
    /// A write(2) to an open device, which waits for its [answer](Call::answer).
    Written { call: Call, kind: Kind, asker: Asker },
    /// A program maps a part of an open uverbs0; it waits for its [answer](Call::answer).
    Maps { call: Call, file: FileId, offset: u64, length: u64 },
    /// A write(2) to a number that no descriptor has. The kernel has answered.
    WrittenNowhere,
    /// A program closes a descriptor of this file.
    Closes { file: FileId },
    /// The same of something else that has one of our numbers: its inode.
    ClosesOther { inode: u64 },
    /// Nobody has this file open any more: it was closed, or its programs have ended, however.
    Closed { file: FileId, kind: Kind },
    /// A program wants to sleep so long; it is to be [answered](Call::answer) when that is over.
    Sleeps { call: Call, time: Duration },
    /// No program is left on this machine, and no file is open.
    Deserted,
}

/// One node's machine: the programs that were started on it, and all that they start.
#[derive(Debug)]
pub struct Machine {
    listener: Listener,
    pub files: Files,
    callers: Callers,
    sysfs: Sysfs,
    poll: Poll,
    /// No program is left.
    is_deserted: bool,
    /// What is not fetched yet.
    told: VecDeque<Asked>,
    /// Somebody has called since that was asked last.
    was_called: bool,
    /// Its program is in a sandbox, where it finds by itself what is in sysfs.
    is_shut_in: bool,
    /// How often each thread has called, and waited for nothing but the answer; counted where the device is strict.
    calls: BTreeMap<u32, u64>,
    /// The first program, if what isn't descended from it runs on another machine as far as the programs can see.
    alone: Option<u32>,
}

/// Readable while there may be something [asked](Machine::asked).
impl AsFd for Machine {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poll.as_fd()
    }
}

impl Machine {
    /// What is asked next, if it is there already. Never waits.
    pub fn asked(&mut self) -> Option<Asked> {
        loop {
            if let Some(asked) = self.told.pop_front() {
                return Some(asked);
            }
            if !self.attend() {
                return None;
            }
        }
    }

    /// Does what is to be done at this moment. False if there is nothing.
    fn attend(&mut self) -> bool {
        let ready = self.poll.ready();
        let is_any = !ready.is_empty();
        self.was_called |= is_any;
        ready.into_iter().for_each(|ready| self.take(ready));
        // The kernel may take the filter off a program that ends before it closes its files.
        if self.is_deserted && self.files.is_empty() {
            self.is_deserted = false;
            self.told.push_back(Asked::Deserted);
        }
        is_any
    }

    fn take(&mut self, ready: Ready) {
        match ready {
            Ready::Call => {
                let call = self.listener.receive();
                let asked = call.and_then(|call| self.serve(call));
                self.told.extend(asked);
            }
            Ready::Deserted => {
                self.poll.remove(&self.listener);
                self.is_deserted = true;
            }
            Ready::Closing => self.files.ended().into_iter().for_each(|file| self.closed(file)),
            Ready::NoReader(file) => self.closed(file),
        }
    }

    /// Hides the processes of other machines from this one's programs, which in fact they share a /proc with: the command line of
    /// the program at the other end isn't theirs to read. `first` is the program that the machine was started with.
    pub fn hide_others(&mut self, first: u32) {
        self.alone = Some(first);
    }

    /// How many calls of a thread we have answered at once. A thread that sleeps in a call isn't counted for that.
    pub fn calls_of(&self, thread: u32) -> u64 {
        self.calls.get(&thread).copied().unwrap_or_default()
    }

    /// Whether a program has called since this was asked last: also what the kernel does, or what needs no device.
    pub fn was_called(&mut self) -> bool {
        std::mem::take(&mut self.was_called)
    }

    fn closed(&mut self, file: FileId) {
        if let Some(kind) = self.files.close(file) {
            self.told.push_back(Asked::Closed { file, kind });
        }
    }

    /// Which open device another descriptor of the caller is.
    pub fn file_of(&mut self, call: &Call, descriptor: RawFd) -> Option<FileId> {
        self.meant(call, descriptor).map(|(file, _)| file)
    }
}
