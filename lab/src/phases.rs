//! Where a run's time goes.

use std::fmt;
use std::time::{Duration, Instant};

/// The parts of a run, one after the other, each with the time that it took.
#[derive(Debug, Clone)]
pub struct Phases {
    ended: Vec<(&'static str, Duration)>,
    since: Instant,
}

impl Default for Phases {
    fn default() -> Self {
        Self { ended: Vec::new(), since: Instant::now() }
    }
}

impl Phases {
    /// What was done since the last call, or the beginning, was this.
    pub(crate) fn end(&mut self, name: &'static str) {
        let now = Instant::now();
        self.ended.push((name, now - std::mem::replace(&mut self.since, now)));
    }
}

impl fmt::Display for Phases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, time) in &self.ended {
            write!(f, "{name} {} ms, ", time.as_millis())?;
        }
        write!(f, "in all {} ms", self.ended.iter().map(|(_, time)| *time).sum::<Duration>().as_millis())
    }
}
