//! In virtual time one thread works at a time, the runner's or a device's, and wakes the next one. On one processor that takes
//! half as long as on several, and longest where processors are emulated: waking another one is an interrupt there.

use device::machine::allow_processors;
use rustix::process::getpid;
use rustix::thread::{sched_getaffinity, sched_setaffinity, CpuSet};
use std::process::Command;
use std::sync::OnceLock;

/// Where this process was allowed to run.
static BEFORE: OnceLock<CpuSet> = OnceLock::new();

/// From now on this thread, and those that it starts, have one processor: several runs at a time have different ones.
pub fn share_one() {
    let Ok(before) = sched_getaffinity(None) else { return };
    let all: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|processor| before.is_set(*processor)).collect();
    let number = getpid().as_raw_nonzero().get() as usize;
    let Some(own) = all.get(number % all.len().max(1)) else { return };
    let mut one = CpuSet::new();
    one.set(*own);
    // Without it all takes longer, and nothing else.
    let _ = sched_setaffinity(None, &one);
    let _ = BEFORE.set(before);
}

/// A program has all processors that we had.
pub fn give_all(command: &mut Command) {
    if let Some(before) = BEFORE.get() {
        allow_processors(command, *before);
    }
}
