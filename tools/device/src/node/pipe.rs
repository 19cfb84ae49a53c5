//! Pipes in which programs find events: of a completion channel, and async events of a context.
//!
//! The program has the reading end, and reads structs of one size there; `poll` and `O_NONBLOCK` are the kernel's own work.

use bytemuck::{bytes_of, Pod};
use rustix::fs::{fstat, open, Mode, OFlags};
use rustix::io::{read, write, Errno, Result};
use rustix::pipe::{pipe_with, PipeFlags};
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;

#[derive(Debug)]
pub struct Pipe {
    write: OwnedFd,
    /// Another open file of the reading end, which never waits, whatever the program says of its own.
    read: OwnedFd,
    /// What fstat(2) says of it, wherever its descriptor is.
    inode: u64,
}

impl Pipe {
    /// A pipe, and the end that is for the program.
    pub fn new() -> Result<(Pipe, OwnedFd)> {
        let (for_program, write) = pipe_with(PipeFlags::CLOEXEC)?;
        let reopened = |descriptor: &OwnedFd, flags| {
            let path = format!("/proc/self/fd/{}", descriptor.as_raw_fd());
            open(path, flags | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())
        };
        let (read, own) = (reopened(&for_program, OFlags::RDONLY)?, reopened(&write, OFlags::WRONLY)?);
        let inode = fstat(&own)?.st_ino;
        Ok((Pipe { write: own, read, inode }, for_program))
    }

    pub fn inode(&self) -> u64 {
        self.inode
    }

    /// Adds an event. False if it is lost: the program has left thousands unread.
    pub fn send(&self, event: &impl Pod) -> bool {
        write(&self.write, bytes_of(event)).is_ok()
    }

    /// Takes back the events that nobody has read and whose first number is `element`; says how many they were.
    pub fn take_back<T: Pod>(&self, element: u64) -> u32 {
        let (mut kept, mut taken, size) = (Vec::new(), 0, std::mem::size_of::<T>());
        let mut bytes = [0; 4096];
        loop {
            let length = match read(&self.read, &mut bytes) {
                Ok(length) if length > 0 => length,
                Err(Errno::INTR) => continue,
                _ => break,
            };
            for event in bytes[..length].chunks(size) {
                match event.starts_with(&element.to_ne_bytes()) {
                    true => taken += 1,
                    false => kept.extend_from_slice(event),
                }
            }
        }
        for event in kept.chunks(size) {
            let _ = write(&self.write, event);
        }
        taken
    }
}

/// Events about one object: where they go to, if anywhere, and how many did.
#[derive(Debug)]
pub struct Notices {
    /// The program's own name of the object, with which each event begins.
    pub user: u64,
    pipe: Option<Rc<Pipe>>,
    sent: u32,
}

impl Notices {
    pub fn new(user: u64, pipe: Option<Rc<Pipe>>) -> Notices {
        Notices { user, pipe, sent: 0 }
    }

    pub fn send(&mut self, event: &impl Pod) {
        self.sent += u32::from(self.pipe.as_ref().is_some_and(|pipe| pipe.send(event)));
    }

    /// How many the program has read. The others are taken back.
    pub fn seen<T: Pod>(&self) -> u32 {
        self.sent.saturating_sub(self.pipe.as_ref().map_or(0, |pipe| pipe.take_back::<T>(self.user)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_that_nobody_has_read_are_taken_back() {
        let (pipe, program) = Pipe::new().unwrap();
        assert!([1u64, 2, 1, 3].iter().all(|event| pipe.send(event)));
        assert_eq!((pipe.take_back::<u64>(1), pipe.take_back::<u64>(1)), (2, 0));
        let mut bytes = [0; 64];
        assert_eq!(read(&program, &mut bytes), Ok(16));
        assert_eq!((bytes[0], bytes[8]), (2, 3));
    }
}
