//! How long something takes this thread's processor: whoever else is busy meanwhile changes nothing.

use rustix::time::{clock_gettime, ClockId};
use std::time::Duration;

/// What an act gives, and the least time that it took of three: caches and the kernel's own work only ever add.
pub fn cost<T>(act: impl Fn() -> T) -> (T, Duration) {
    let spent = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
    let turn = || {
        let before = spent();
        (act(), spent() - before)
    };
    (0..3).map(|_| turn()).min_by_key(|(_, time)| *time).unwrap()
}
