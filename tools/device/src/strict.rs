//! A device that is strict with its program: what a program must not rely on, though it holds on most machines, doesn't hold here.
//!
//! A judge runs programs so. A right one doesn't notice.

use crate::machine::{processor_time, Process};
use crate::node::Nic;
use nic::qp::State;
use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

/// How a device treats its program.
#[derive(Clone, Copy, Debug, Default)]
pub struct Manners {
    /// A completion queue is armed only when a completion has come, or when none does.
    pub arms_late: bool,
    /// A request is read some time after its doorbell.
    pub reads_late: bool,
    /// All that this module is about.
    pub is_strict: bool,
}

/// In C, memory that is given back is written over at once, and memory that is new isn't empty: a program that reads an event after
/// acknowledging it doesn't find what was there. (What glibc keeps in its caches for threads it leaves as it is, so it has none.)
pub const PERTURBED: (&str, &str) = ("GLIBC_TUNABLES", "glibc.malloc.perturb=165:glibc.malloc.tcache_count=0");
/// What freed memory is full of, by that.
pub const FREED: u8 = 165;

/// How long a sleep takes in place of the time that was asked for; None: as long as that. Nobody promises that something is done when a
/// sleep is over, so a program that sleeps in place of waiting fails, and one that sleeps between two looks doesn't.
pub fn hurried(time: Duration) -> Option<Duration> {
    /// A pause between two looks is shorter.
    const PAUSE: Duration = Duration::from_millis(20);
    const TIMES: u32 = 20;
    (time > PAUSE).then(|| PAUSE.max(time / TIMES))
}

impl Nic {
    /// Whether a program has reason to wait: a request of its own isn't complete, or a receive.
    pub fn owes(&self) -> bool {
        let mut ready = self.qps.iter().map(|(_, entry)| &entry.qp).filter(|qp| qp.state() == State::Rts);
        ready.any(|qp| qp.waiting() != (0, 0))
    }
}

/// Threads of programs that wait, and whether they do it asleep.
#[derive(Debug, Default)]
pub struct Idlers {
    awake: BTreeMap<u32, Awake>,
    was_told: bool,
}

/// A thread that was at work whenever we looked, and never waited in between.
#[derive(Debug, PartialEq)]
struct Awake {
    since: Instant,
    /// The time that its process had had a processor by then.
    worked: Duration,
    /// How often it had waited by then.
    waits: u64,
}

impl Idlers {
    /// Looks at all threads of the programs, and tells of one that goes in circles. To be called again and again.
    pub fn look(&mut self, nic: &Nic) {
        /// Somebody who waits is at work for so long, and has had a processor for so long: on a busy machine that's less.
        const LONG: Duration = Duration::from_millis(100);
        const WORK: Duration = Duration::from_millis(10);
        if self.was_told || !nic.owes() {
            self.awake.clear();
            return;
        }
        let now = Instant::now();
        let mut awake = BTreeMap::new();
        for process in nic.contexts.values().map(|context| &context.process) {
            let worked = processor_time(process.number()).unwrap_or_default();
            for (thread, waits) in threads_at_work(process) {
                let before = self.awake.remove(&thread).filter(|before| before.waits == waits);
                let begun = before.unwrap_or(Awake { since: now, worked, waits });
                self.was_told |= now - begun.since >= LONG && worked.saturating_sub(begun.worked) >= WORK;
                awake.insert(thread, begun);
            }
        }
        self.awake = awake;
        if self.was_told {
            nic.port.tap.say(|| "the program goes in circles while it waits: it never sleeps".to_owned());
        }
    }
}

/// Its threads that compute, or wait for a processor; and how often each has waited for something else (proc_pid_status(5)).
fn threads_at_work(process: &Process) -> Vec<(u32, u64)> {
    let threads = fs::read_dir(format!("/proc/{}/task", process.number())).into_iter().flatten().flatten();
    let at_work = threads.filter_map(|thread| {
        let status = fs::read_to_string(thread.path().join("status")).ok()?;
        let value = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let is_at_work = value("State:")?.starts_with('R');
        let waits = value("voluntary_ctxt_switches:")?.parse().ok()?;
        is_at_work.then_some((thread.file_name().to_str()?.parse().ok()?, waits))
    });
    at_work.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_as_long_as_asked_and_a_long_sleep_is_not() {
        let hurried = |ms| hurried(Duration::from_millis(ms)).map(|time| time.as_millis());
        assert_eq!([1, 20, 100, 1000, 2600].map(hurried), [None, None, Some(20), Some(50), Some(130)]);
    }
}
