//! The time of a node: this machine's, or one that the runner moves. Nothing else turns what a clock shows into a NIC's time.

use nic::time::Time;
use std::time::Instant;

/// Tells a node what time it is.
#[derive(Clone, Copy, Debug)]
pub enum Clock {
    /// This machine's, and when it was looked at first.
    Real(Instant),
    /// One that stands still until it's set.
    Still(Time),
}

impl Clock {
    /// This machine's.
    pub fn real() -> Clock {
        Clock::Real(Instant::now())
    }

    pub fn is_real(&self) -> bool {
        matches!(self, Clock::Real(_))
    }

    pub fn now(&self) -> Time {
        match self {
            Clock::Real(start) => Time::START + start.elapsed(),
            Clock::Still(time) => *time,
        }
    }
}
