//! When something happens, counted from the start of the run.
//!
//! The device's core reads no clock, so it can't use [`std::time::Instant`], which only a clock can make. Whoever drives a NIC
//! says what time it is. That may be this machine's time, or a time that moves on whenever nothing else can happen.

use std::ops::{Add, AddAssign};
use std::time::Duration;

/// Nanoseconds since the start of the run. They last for 584 years; anything later than that counts as the last of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    pub const START: Time = Time(0);

    /// How long after an earlier time this is, or nothing if that time is later.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Time;

    fn add(self, duration: Duration) -> Time {
        Time(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}
