//! Bells: what wakes a program that sleeps on a file descriptor, and the device's thread.
//!
//! An eventfd that counts. A queue with a bell has one count for each entry: its descriptor is readable exactly while there
//! is something to take, so `poll`, a blocking read, and a read that must not block all do what programs expect of a
//! completion channel or an event channel.

use libc::c_int;
use rustix::event::{eventfd, EventfdFlags};
use rustix::io::{preadv2, ReadWriteFlags};
use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// An eventfd.
#[derive(Debug)]
pub struct Bell(OwnedFd);

impl Bell {
    /// A bell that gives back one count a time, and waits for one unless the program has set `O_NONBLOCK`.
    pub fn counting() -> io::Result<Bell> {
        Ok(Bell(eventfd(0, EventfdFlags::SEMAPHORE | EventfdFlags::CLOEXEC)?))
    }

    /// A bell that gives back all counts at once and never waits: a doorbell.
    pub fn door() -> io::Result<Bell> {
        Ok(Bell(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?))
    }

    pub fn ring(&self) {
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Takes a count, or all of a doorbell's.
    ///
    /// # Errors
    /// There is none and the descriptor must not wait: `EAGAIN`. A signal came: `EINTR`.
    pub fn take(&self) -> Result<(), c_int> {
        rustix::io::read(&self.0, &mut [0; 8]).map(|_| ()).map_err(|error| error.raw_os_error())
    }

    /// Takes a count if there is one. Never waits: not even if another thread takes it at this moment.
    fn try_take(&self) {
        // An eventfd has no offset; this one means none.
        let _ = preadv2(&self.0, &mut [IoSliceMut::new(&mut [0; 8])], u64::MAX, ReadWriteFlags::NOWAIT);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A queue with a bell.
#[derive(Debug)]
pub struct BellQueue<T> {
    bell: Bell,
    entries: Mutex<VecDeque<T>>,
}

impl<T> BellQueue<T> {
    /// An empty one.
    pub fn new() -> io::Result<BellQueue<T>> {
        Ok(BellQueue { bell: Bell::counting()?, entries: Mutex::default() })
    }

    /// The descriptor, for structs that programs read.
    pub fn fd(&self) -> RawFd {
        self.bell.0.as_raw_fd()
    }

    pub fn push(&self, entry: T) {
        let mut entries = locked(&self.entries);
        entries.push_back(entry);
        self.bell.ring();
    }

    /// Takes the oldest entry; waits for one unless the descriptor must not. What `note` does with it comes before anybody can
    /// see that it is gone.
    ///
    /// # Errors
    /// As for [`Bell::take`].
    pub fn pop(&self, note: impl Fn(&T)) -> Result<T, c_int> {
        loop {
            self.bell.take()?;
            let mut entries = locked(&self.entries);
            // Somebody may have taken the entry back in between.
            if let Some(entry) = entries.pop_front() {
                note(&entry);
                return Ok(entry);
            }
        }
    }

    /// Takes out all entries that `wanted` says, with their counts. Never waits.
    pub fn take_out(&self, wanted: impl Fn(&T) -> bool) -> Vec<T> {
        let mut entries = locked(&self.entries);
        let (taken, kept): (Vec<T>, Vec<T>) = entries.drain(..).partition(wanted);
        entries.extend(kept);
        // A reader that has taken a count already finds no entry, and goes on waiting.
        taken.iter().for_each(|_| self.bell.try_take());
        taken
    }
}

/// Events that a program has got and not acknowledged. What they are about must not be destroyed before.
#[derive(Debug, Default)]
pub struct Unacked {
    count: Mutex<u32>,
    changed: Condvar,
}

impl Unacked {
    pub fn add(&self) {
        *locked(&self.count) += 1;
    }

    pub fn acknowledge(&self, events: u32) {
        let mut count = locked(&self.count);
        *count = count.saturating_sub(events);
        self.changed.notify_all();
    }

    /// Waits until all are acknowledged: for ever, if the program forgets one, as the real libraries do.
    pub fn wait_for_all(&self) {
        let count = locked(&self.count);
        drop(self.changed.wait_while(count, |count| *count > 0));
    }
}

/// A lock that does not care whether another thread has panicked.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{poll, PollFd, PollFlags, Timespec};

    #[test]
    fn a_queue_is_readable_while_it_holds_something() {
        let queue = BellQueue::new().unwrap();
        let readable = |queue: &BellQueue<i32>| {
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            poll(&mut [PollFd::new(&queue.bell.0, PollFlags::IN)], Some(&now)) == Ok(1)
        };
        assert!(!readable(&queue));
        (1..=3).for_each(|n| queue.push(n));
        assert_eq!((readable(&queue), queue.take_out(|n| *n == 2)), (true, vec![2]));
        assert_eq!((queue.pop(|_| ()), queue.pop(|_| ())), (Ok(1), Ok(3)));
        assert!(!readable(&queue));
        // A reader has the count of an entry that is then taken out: nobody waits for another one.
        queue.push(4);
        queue.bell.take().unwrap();
        assert_eq!(queue.take_out(|_| true), [4]);
    }
}
