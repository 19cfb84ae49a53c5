//! A timer that is a descriptor (man 2 timerfd_create): a program that sleeps in poll(2) until a channel has something is
//! woken by the clock in the same way.
//!
//! Drop closes the descriptor.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use crate::error::{last_errno, minus_one, Error, Kind, Result};
use crate::slow;

/// A timer that goes off again and again.
pub struct Timer(OwnedFd);

impl Timer {
    /// `timerfd_create` and `timerfd_settime`: goes off every so often, first when that time has passed.
    ///
    /// # Errors
    /// `Kind::Misuse` for 0; `Error::Call` if the process may have no more descriptors (EMFILE).
    #[track_caller]
    pub fn every(period: Duration) -> Result<Self> {
        if period.is_zero() {
            // To timerfd_settime, 0 means: never.
            return Err(Error::of(Kind::Misuse, "a timer cannot go off every 0 s", "Choose a longer time"));
        }
        slow!("timerfd_create every {} ms", period.as_millis());
        // SAFETY: the call takes no pointer; a descriptor that it returns is new, and has no other owner.
        let timer = unsafe {
            let fd = libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC);
            if fd < 0 {
                return Err(last_errno("timerfd_create"));
            }
            Self(OwnedFd::from_raw_fd(fd))
        };
        let time =
            libc::timespec { tv_sec: period.as_secs() as libc::time_t, tv_nsec: period.subsec_nanos() as libc::c_long };
        let times = libc::itimerspec { it_interval: time, it_value: time };
        let fd = timer.0.as_raw_fd();
        // SAFETY: the descriptor is open; the call copies the times, and writes none back.
        minus_one("timerfd_settime", unsafe { libc::timerfd_settime(fd, 0, &times, std::ptr::null_mut()) })?;
        Ok(timer)
    }

    /// True if it has gone off since the last time somebody asked. Never waits.
    ///
    /// # Errors
    /// `Error::Call` if the descriptor cannot be read.
    pub fn gone_off(&self) -> Result<bool> {
        let mut count = 0u64;
        // SAFETY: the descriptor is open, and `count` has room for the 8 bytes.
        let read = unsafe { libc::read(self.0.as_raw_fd(), (&mut count as *mut u64).cast(), 8) };
        if read == 8 {
            return Ok(true);
        }
        match last_errno("read") {
            Error::Call { errno: libc::EAGAIN | libc::EINTR, .. } => Ok(false),
            error => Err(error),
        }
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deadline::{is_readable, Deadline};

    #[test]
    fn it_goes_off_again_and_again_and_can_be_waited_for() {
        let timer = Timer::every(Duration::from_millis(20)).unwrap();
        assert!(!Timer::every(Duration::from_secs(3600)).unwrap().gone_off().unwrap());
        for _ in 0..2 {
            Deadline::answer("the timer").wait_readable(&[timer.as_fd()]).unwrap();
            assert!(timer.gone_off().unwrap());
        }
        assert!(Timer::every(Duration::ZERO).is_err(), "it would never go off");
        assert!(!is_readable(&Timer::every(Duration::from_secs(3600)).unwrap()));
    }
}
