//! All that a machine waits for, behind one descriptor (epoll(7)).

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::Timespec;
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// So many things are taken at a time.
const BATCH: usize = 64;

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ready {
    /// A call waits.
    Call,
    /// No process is left under the filter.
    Deserted,
    /// An open uverbs0 was closed.
    Closing,
    /// Nobody can read an rdma_cm any more: its number.
    NoReader(u32),
}

#[derive(Debug)]
pub(super) struct Poll(OwnedFd);

impl AsFd for Poll {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Poll {
    pub fn new() -> Result<Poll, Errno> {
        epoll::create(CreateFlags::CLOEXEC).map(Poll)
    }

    /// Also waits for this. It ends when the descriptor is closed.
    pub fn add(&self, what: impl AsFd, ready: Ready) -> Result<(), Errno> {
        let (kind, number, flags) = match ready {
            Ready::Call => (0, 0, EventFlags::IN),
            // These two the kernel tells always.
            Ready::Deserted => (1, 0, EventFlags::empty()),
            Ready::NoReader(number) => (2, number, EventFlags::empty()),
            Ready::Closing => (3, 0, EventFlags::IN),
        };
        epoll::add(&self.0, what, EventData::new_u64(kind << 32 | u64::from(number)), flags)
    }

    pub fn remove(&self, what: impl AsFd) {
        let _ = epoll::delete(&self.0, what);
    }

    /// What has happened, without waiting. Ends come first and a call comes last, and not before all ends are told: who closes
    /// a channel and then binds its port again finds the port free.
    pub fn ready(&self) -> Vec<Ready> {
        let mut buffer = [MaybeUninit::uninit(); BATCH];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let Ok((events, _)) = epoll::wait(&self.0, &mut buffer, Some(&now)) else { return Vec::new() };
        let mut ready: Vec<Ready> = events.iter().map(Poll::told).collect();
        ready.sort_by_key(|ready| *ready == Ready::Call);
        if ready.len() == BATCH {
            ready.retain(|ready| *ready != Ready::Call);
        }
        ready
    }

    fn told(event: &Event) -> Ready {
        let (data, flags) = (event.data.u64(), event.flags);
        let number = data as u32;
        match data >> 32 {
            0 if flags.contains(EventFlags::IN) => Ready::Call,
            0 | 1 => Ready::Deserted,
            2 => Ready::NoReader(number),
            _ => Ready::Closing,
        }
    }
}
