//! A device that is strict with its program: what a program must not rely on, though it holds on most machines, doesn't hold here.
//!
//! A judge runs programs so. A right one doesn't notice.

use crate::machine::{processor_time, Machine, Process};
use crate::node::Nic;
use nic::fact::Fact;
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
    threads: BTreeMap<u32, Thread>,
    was_told: bool,
}

/// A thread as it was when it began to be at work whenever we look.
#[derive(Debug)]
struct Thread {
    since: Instant,
    /// How often it had called when we looked last, and by then.
    last: u64,
    calls: u64,
    /// The time that its process had had a processor by then.
    worked: Duration,
    /// How often it had slept by then.
    slept: i64,
}

impl Idlers {
    /// Looks at all threads of the programs, and tells of one that goes in circles. To be called again and again.
    pub fn look(&mut self, nic: &Nic, machine: &Machine) {
        /// Somebody who waits is at work for so long, and has had a processor for so long, which on a busy machine is less, or has
        /// called so often: then it's we who had the processor.
        const LONG: Duration = Duration::from_millis(100);
        const WORK: Duration = Duration::from_millis(10);
        const CALLS: u64 = 100;
        if self.was_told || !nic.owes() {
            self.threads.clear();
            return;
        }
        let now = Instant::now();
        let mut threads = BTreeMap::new();
        for process in nic.contexts.values().map(|context| &context.process) {
            let worked = processor_time(process.number()).unwrap_or_default();
            for (thread, is_running, waits) in threads_of(process) {
                let calls = machine.calls_of(thread);
                // In a call to us it waits as well, but only for our answer. One call more may be under way.
                let slept = waits as i64 - calls as i64;
                let is_at_work = |before: &Thread| (is_running || calls > before.last) && slept <= before.slept + 1;
                let begun = self.threads.remove(&thread).filter(is_at_work);
                let begun = begun.unwrap_or(Thread { since: now, last: calls, calls, worked, slept });
                let is_busy = worked.saturating_sub(begun.worked) >= WORK || calls - begun.calls >= CALLS;
                self.was_told |= now - begun.since >= LONG && is_busy;
                threads.insert(thread, Thread { last: calls, ..begun });
            }
        }
        self.threads = threads;
        if self.was_told {
            nic.port.tap.say(|| Fact::new("circles"));
        }
    }
}

/// Its threads: whether each computes, or waits for a processor; and how often it has waited for something else (proc_pid_status(5)).
fn threads_of(process: &Process) -> Vec<(u32, bool, u64)> {
    let threads = fs::read_dir(format!("/proc/{}/task", process.number())).into_iter().flatten().flatten();
    let known = threads.filter_map(|thread| {
        let status = fs::read_to_string(thread.path().join("status")).ok()?;
        let value = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let is_running = value("State:")?.starts_with('R');
        let waits = value("voluntary_ctxt_switches:")?.parse().ok()?;
        Some((thread.file_name().to_str()?.parse().ok()?, is_running, waits))
    });
    known.collect()
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
