//! Whether all programs sleep: while time is virtual, it goes on only then.
//!
//! A program that looks again and again, without end and without a system call to the device, never sleeps. It gets some time of
//! a processor to see what is new, and then time goes on all the same: what it sees when is then a matter of chance.

use super::processes::entries;
use device::machine::processor_time;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::time::Duration;

/// Who has worked so long for one thing that was new looks again and again, or computes for long: time does not wait.
const LONG: Duration = Duration::from_millis(50);
/// And who was seen at work so often: on a machine that is itself emulated, a process can be charged for time that it did not get.
const OFTEN: u32 = 100;
/// How long one that is known to do so has for each new thing.
const LOOK: Duration = Duration::from_micros(100);

/// What the processes of a run do.
#[derive(Debug, PartialEq, Eq)]
pub enum Doing {
    AllSleep,
    /// Some work, but have had their time.
    AllHadTime,
    Work,
}

#[derive(Debug, Default)]
pub struct Still {
    /// The processor time of each process when something was new.
    before: HashMap<u32, Duration>,
    /// How often somebody has worked since then.
    looks: u32,
    /// They do not sleep when there is nothing for them to do.
    is_polled: bool,
}

impl Still {
    /// From now on there is something new for the programs.
    pub fn news(&mut self, guardian: u32) {
        self.before = times(&children(guardian));
        self.looks = 0;
    }

    /// What they do; a program that ends meanwhile also counts as a change.
    pub fn look(&mut self, guardian: u32) -> Doing {
        let all = children(guardian);
        let begin = times(&all);
        let working: Vec<u32> = all.iter().copied().filter(|process| works(*process)).collect();
        // Who has slept when we looked may have been woken since, by one whom we looked at later: that one has worked.
        if working.is_empty() && times(&children(guardian)) == begin {
            self.is_polled = false;
            return Doing::AllSleep;
        }
        let (share, often) = if self.is_polled { (LOOK, 0) } else { (LONG, OFTEN) };
        self.looks += 1;
        let had = |process: &u32| {
            let now = begin.get(process).copied().unwrap_or_default();
            now.saturating_sub(self.before.get(process).copied().unwrap_or_default()) >= share
        };
        if !working.is_empty() && self.looks > often && working.iter().all(had) {
            self.is_polled = true;
            return Doing::AllHadTime;
        }
        Doing::Work
    }
}

fn times(processes: &[u32]) -> HashMap<u32, Duration> {
    processes.iter().filter_map(|process| Some((*process, processor_time(*process)?))).collect()
}

/// All our children and theirs; orphans are our own. Not the guardian.
fn children(guardian: u32) -> Vec<u32> {
    let mut all = vec![process::id()];
    let mut next = 0;
    while let Some(process) = all.get(next) {
        for thread in threads(*process) {
            let list = fs::read_to_string(thread.join("children")).unwrap_or_default();
            all.extend(list.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
        }
        next += 1;
    }
    all.remove(0);
    all.retain(|process| *process != guardian);
    all
}

fn threads(process: u32) -> impl Iterator<Item = PathBuf> {
    entries(Path::new(&format!("/proc/{process}/task")))
}

/// Whether one of its threads does anything but sleep.
fn works(process: u32) -> bool {
    threads(process).any(|thread| {
        let stat = fs::read(thread.join("stat")).unwrap_or_default();
        let state = String::from_utf8_lossy(&stat).rsplit_once(") ").and_then(|(_, state)| state.chars().next());
        !matches!(state, None | Some('S' | 'T' | 't' | 'Z' | 'X' | 'I'))
    })
}
