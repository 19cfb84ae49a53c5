//! Being told to end, by a signal: Ctrl-C, or a time-out of somebody's CI. The run ends in order then, and keeps its record.

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag::register_usize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// Hears of these signals from its begin on. They end this process no more.
pub struct Stop(Arc<AtomicUsize>);

impl Stop {
    /// A program that has the terminal gets what is typed there, Ctrl-C among it, and decides itself what that means.
    pub fn begin(has_terminal: bool) -> Result<Stop> {
        let told = Arc::new(AtomicUsize::new(0));
        for signal in [SIGTERM, SIGHUP, SIGINT, SIGQUIT] {
            let is_heeded = !has_terminal || [SIGTERM, SIGHUP].contains(&signal);
            let value = if is_heeded { signal as usize } else { 0 };
            register_usize(signal, Arc::clone(&told), value).context("cannot prepare for signals")?;
        }
        Ok(Stop(told))
    }

    /// The signal that has come, if one has.
    pub fn signal(&self) -> Option<i32> {
        Some(self.0.load(Ordering::Relaxed) as i32).filter(|signal| *signal != 0)
    }
}
