//! The time of a node: this machine's, or one that the runner moves.

use std::time::{Duration, Instant};

/// Tells a node what time it is.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    begin: Instant,
    /// How long after its begin it is; None: as long as it is.
    set: Option<Duration>,
}

impl Clock {
    /// This machine's.
    pub fn real() -> Clock {
        Clock { begin: Instant::now(), set: None }
    }

    /// One that stands still until it is [set](Clock::set).
    pub fn still() -> Clock {
        Clock { begin: Instant::now(), set: Some(Duration::ZERO) }
    }

    pub fn is_real(&self) -> bool {
        self.set.is_none()
    }

    /// Now it is so long after the begin.
    pub fn set(&mut self, time: Duration) {
        self.set = Some(time);
    }

    pub fn now(&self) -> Instant {
        self.set.map_or_else(Instant::now, |time| self.begin + time)
    }

    /// How long after the begin a time is.
    pub fn time_of(&self, instant: Instant) -> Duration {
        instant.saturating_duration_since(self.begin)
    }
}
