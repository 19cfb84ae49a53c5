//! Deadlines: nothing in a lesson waits for ever, unless you ask it to (`-n 0`).
//!
//! Two limits hold for the whole program. They are set once, from the command line, and kept here, so that lessons
//! read like their C originals, which pass no time-outs around.

use std::borrow::Cow;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use smallvec::SmallVec;

use crate::error::{last_errno, Error};

const FOR_EVER: u64 = u64::MAX;

/// How long a peer that is there may take to answer, in ms.
static ANSWER: AtomicU64 = AtomicU64::new(10_000);
/// How long a server waits for somebody to knock, in ms: a person must walk over to the other machine first.
static KNOCK: AtomicU64 = AtomicU64::new(600_000);

/// Sets both limits (`--timeout`).
pub fn set(limit: Duration) {
    let millis = u64::try_from(limit.as_millis()).unwrap_or(FOR_EVER);
    ANSWER.store(millis, Ordering::Relaxed);
    KNOCK.store(millis, Ordering::Relaxed);
}

/// Lets the server wait for the next client without a limit (`-n 0`).
pub fn wait_for_ever_for_a_knock() {
    KNOCK.store(FOR_EVER, Ordering::Relaxed);
}

/// The limit for an answer from a peer.
pub fn answer_limit() -> Duration {
    Duration::from_millis(ANSWER.load(Ordering::Relaxed))
}

/// For `rdma_resolve_addr` and `rdma_resolve_route`, in ms. At most half the deadline, so that the kernel's verdict, which has
/// a reason in it, comes before our own. And not longer: an ARP reply that is back before the kernel has queued its question
/// is missed, and the kernel looks again only when this time is up (`queue_req` in drivers/infiniband/core/addr.c; seen on
/// loaded machines).
pub(crate) fn resolve_timeout() -> i32 {
    i32::try_from(answer_limit().as_millis() / 2).unwrap_or(i32::MAX).min(2000)
}

/// One wait: what is awaited, and until when.
pub struct Deadline {
    awaited: Cow<'static, str>,
    started: Instant,
    limit: Duration,
}

impl Deadline {
    /// Starts to wait for a peer's answer.
    pub fn answer(awaited: impl Into<Cow<'static, str>>) -> Self {
        Self { awaited: awaited.into(), started: Instant::now(), limit: answer_limit() }
    }

    /// Starts to wait for a client that has not knocked yet.
    pub fn knock(awaited: impl Into<Cow<'static, str>>) -> Self {
        let limit = Duration::from_millis(KNOCK.load(Ordering::Relaxed));
        Self { awaited: awaited.into(), started: Instant::now(), limit }
    }

    /// Starts to wait as long as this, whatever the command line says.
    pub fn within(limit: Duration, awaited: impl Into<Cow<'static, str>>) -> Self {
        Self { awaited: awaited.into(), started: Instant::now(), limit }
    }

    /// The time that is left, or the error to return when none is.
    ///
    /// # Errors
    /// `Error::Deadline`.
    pub fn left(&self) -> Result<Duration, Error> {
        match self.limit.checked_sub(self.started.elapsed()) {
            Some(left) if !left.is_zero() => Ok(left),
            _ => Err(Error::Deadline { awaited: self.awaited.to_string(), limit: self.limit }),
        }
    }

    /// Sleeps until one of the descriptors can be read (poll(2)), and tells which; or until the time is up.
    ///
    /// # Errors
    /// `Error::Deadline` if none can be read in time; `Error::Call` if poll(2) fails.
    pub fn wait_readable(&self, fds: &[BorrowedFd]) -> Result<usize, Error> {
        let poll = |fd: &BorrowedFd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let mut polls: SmallVec<[_; 4]> = fds.iter().map(poll).collect();
        loop {
            // At most a minute at a time: poll(2) takes an int of milliseconds. Rounded up, or the last fraction of a
            // millisecond would be spent spinning.
            let millis = self.left()?.min(Duration::from_secs(60)).as_millis() as i32 + 1;
            // SAFETY: `polls` holds as many valid pollfds as its length says, and lives across the call.
            let ready = unsafe { libc::poll(polls.as_mut_ptr(), polls.len() as libc::nfds_t, millis) };
            if ready < 0 {
                match last_errno("poll") {
                    Error::Call { errno: libc::EINTR, .. } => continue,
                    error => return Err(error),
                }
            }
            if let Some(first) = polls.iter().position(|poll| poll.revents != 0) {
                return Ok(first);
            }
        }
    }
}

/// True if something can be read now (poll(2)). Never waits.
pub fn is_readable(source: &impl AsFd) -> bool {
    let mut poll = libc::pollfd { fd: source.as_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid pollfd, which lives across the call.
    unsafe { libc::poll(&mut poll, 1, 0) == 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_with_what_was_awaited() {
        let deadline =
            Deadline { awaited: "the answer".into(), started: Instant::now(), limit: Duration::from_millis(20) };
        let (silent, other_end) = std::os::unix::net::UnixStream::pair().unwrap();
        let error = deadline.wait_readable(&[silent.as_fd()]).unwrap_err();
        assert!(error.to_string().contains("the answer"), "{error}");
        assert!(!is_readable(&silent));
        drop(other_end);
        assert!(is_readable(&silent), "an end of file can be read");
    }
}
