//! Waiting with a deadline, and being told to stop (Ctrl-C and the like) while waiting.

use anyhow::{Context, Result};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::fmt;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// The lab was told to stop. Everything it has started ends, and what it has recorded is kept.
#[derive(Debug)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// Hears of SIGINT, SIGTERM, SIGHUP and SIGQUIT, or of nothing.
#[derive(Debug, Default)]
pub struct Interrupt {
    pipe: Option<UnixStream>,
}

impl Interrupt {
    /// One that nothing tells to stop.
    #[must_use]
    pub const fn never() -> Self {
        Self { pipe: None }
    }

    /// From now on these signals no longer end this process but make waits fail with [`Interrupted`].
    ///
    /// # Errors
    /// The handlers cannot be installed.
    pub fn on_signals() -> Result<Self> {
        let (read, write) = UnixStream::pair().context("cannot create a socket pair")?;
        read.set_nonblocking(true).context("cannot prepare for signals")?;
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
            let end = write.try_clone().context("cannot prepare for signals")?;
            signal_hook::low_level::pipe::register(signal, end).context("cannot prepare for signals")?;
        }
        Ok(Self { pipe: Some(read) })
    }

    /// Fails if a signal has come since the last call.
    ///
    /// # Errors
    /// [`Interrupted`].
    pub fn check(&self) -> Result<()> {
        let told = self.pipe.as_ref().is_some_and(|mut pipe| pipe.read(&mut [0]).is_ok());
        anyhow::ensure!(!told, Interrupted);
        Ok(())
    }

    /// Waits until one of `streams` can be read, one whose flag is set can be written, or `limit` has come.
    ///
    /// # Errors
    /// [`Interrupted`], or poll fails.
    pub fn wait(&self, streams: &[(BorrowedFd<'_>, bool)], limit: Instant) -> Result<()> {
        let mut descriptors: Vec<PollFd<'_>> = Vec::with_capacity(streams.len() + 1);
        for (stream, wants_to_write) in streams {
            let flags = if *wants_to_write { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
            descriptors.push(poll_entry(*stream, flags));
        }
        if let Some(pipe) = &self.pipe {
            descriptors.push(poll_entry(pipe.as_fd(), PollFlags::IN));
        }
        let left = limit.saturating_duration_since(Instant::now());
        match poll(&mut descriptors, Some(&timespec(left))) {
            Ok(_) | Err(Errno::INTR) => self.check(),
            Err(error) => Err(error).context("poll failed"),
        }
    }
}

fn poll_entry(descriptor: BorrowedFd<'_>, flags: PollFlags) -> PollFd<'_> {
    PollFd::from_borrowed_fd(descriptor, flags)
}

fn timespec(duration: Duration) -> Timespec {
    Timespec { tv_sec: duration.as_secs() as i64, tv_nsec: duration.subsec_nanos().into() }
}
