//! Waiting with a deadline, and being told to stop (Ctrl-C and the like) while waiting.

use anyhow::{Context, Result};
use run::exit::signal_name;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::fmt;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Why the lab ended, other than that it could not do its work.
#[derive(Debug)]
pub enum Stopped {
    /// It was told to, by this signal, or by a terminal that has gone. Everything it has started ends, and what it has recorded
    /// is kept.
    Interrupted(Option<i32>),
    /// A command line is not understood, by a program or by the lab: what is said about it.
    Usage(String),
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted(None) => f.write_str("interrupted"),
            Self::Interrupted(Some(signal)) => write!(f, "interrupted by {}", signal_name(*signal)),
            Self::Usage(text) => f.write_str(text.trim()),
        }
    }
}

impl std::error::Error for Stopped {}

/// Hears of SIGINT, SIGTERM, SIGHUP and SIGQUIT, or of nothing.
#[derive(Debug, Default)]
pub struct Interrupt {
    pipe: Option<UnixStream>,
    /// Which one has come.
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// From now on these signals no longer end this process but make waits fail with [`Stopped::Interrupted`].
    pub fn on_signals() -> Result<Self> {
        let (read, write) = UnixStream::pair().context("cannot create a socket pair")?;
        read.set_nonblocking(true).context("cannot prepare for signals")?;
        let told = Arc::new(AtomicUsize::new(0));
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
            // Before the pipe: whoever is woken by that finds it.
            let registered = signal_hook::flag::register_usize(signal, Arc::clone(&told), signal as usize);
            registered.context("cannot prepare for signals")?;
            let end = write.try_clone().context("cannot prepare for signals")?;
            signal_hook::low_level::pipe::register(signal, end).context("cannot prepare for signals")?;
        }
        Ok(Self { pipe: Some(read), signal: told })
    }

    /// Fails if a signal has come since the last call.
    pub fn check(&self) -> Result<()> {
        let told = self.pipe.as_ref().is_some_and(|mut pipe| pipe.read(&mut [0]).is_ok());
        let signal = self.signal.load(Ordering::Relaxed) as i32;
        anyhow::ensure!(!told, Stopped::Interrupted(Some(signal).filter(|signal| *signal != 0)));
        Ok(())
    }

    /// Waits until one of `streams` can be read, one whose flag is set can be written, or `limit` has come.
    pub fn wait(&self, streams: &[(BorrowedFd<'_>, bool)], limit: Instant) -> Result<()> {
        let flags = |writes: bool| if writes { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let signals = self.pipe.iter().map(|pipe| (pipe.as_fd(), false));
        let entries = streams.iter().copied().chain(signals);
        let mut entries: Vec<_> =
            entries.map(|(stream, writes)| PollFd::from_borrowed_fd(stream, flags(writes))).collect();
        let left = limit.saturating_duration_since(Instant::now());
        let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        match poll(&mut entries, Some(&left)) {
            Ok(_) | Err(Errno::INTR) => self.check(),
            Err(error) => Err(error).context("poll failed"),
        }
    }

    pub fn pause(&self, moment: Duration) -> Result<()> {
        self.wait(&[], Instant::now() + moment)
    }
}
