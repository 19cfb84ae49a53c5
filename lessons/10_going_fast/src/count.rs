//! What is measured, and what is counted.

use std::time::{Duration, Instant};

use crate::wait::Waiter;

/// What a device has counted since it was made, as the driver tells it in sysfs: the names and their numbers. Empty where
/// there is none: a device in user space is not there. SoftRoCE and NICs do not count the same things.
pub struct DeviceCounters(Vec<(String, u64)>);

impl DeviceCounters {
    pub fn read(device: &str) -> Self {
        let folder = format!("/sys/class/infiniband/{device}/ports/1/hw_counters");
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let counter = |file: std::fs::DirEntry| {
            let number = std::fs::read_to_string(file.path()).ok()?.trim().parse().ok()?;
            Some((file.file_name().to_string_lossy().into_owned(), number))
        };
        Self(files.filter_map(counter).collect())
    }

    /// How much a counter has grown since an earlier look. None if there is no such counter.
    pub fn since(&self, earlier: &Self, name: &str) -> Option<u64> {
        let find = |counters: &Self| counters.0.iter().find(|(found, _)| found == name).map(|(_, number)| *number);
        Some(find(self)?.saturating_sub(find(earlier)?))
    }
}

/// What one run has brought.
pub struct Counts {
    device: String,
    pub before: DeviceCounters,
    pub after: DeviceCounters,
    started: Instant,
    pub took: Duration,
    pub requests: usize,
    /// From the post of a signaled request to its completion in the program's hands. Sorted at the end.
    pub latencies: Vec<Duration>,
    pub posts: u64,
    pub completions: u64,
    pub polls: u64,
    pub sleeps: u64,
}

impl Counts {
    /// With room for so many latencies, so that none has to be made while the time runs.
    pub fn begin(device: String, latencies: usize) -> Self {
        Self {
            before: DeviceCounters::read(&device),
            after: DeviceCounters(Vec::new()),
            device,
            took: Duration::ZERO,
            requests: 0,
            latencies: Vec::with_capacity(latencies),
            posts: 0,
            completions: 0,
            polls: 0,
            sleeps: 0,
            started: Instant::now(),
        }
    }

    pub fn end(&mut self, waiter: &Waiter, requests: usize) {
        self.took = self.started.elapsed();
        self.after = DeviceCounters::read(&self.device);
        self.requests = requests;
        self.latencies.sort_unstable();
        (self.completions, self.polls, self.sleeps) = (waiter.completions, waiter.polls, waiter.sleeps);
    }

    /// The latency below which so many of a thousand are.
    pub fn per_mille(&self, share: usize) -> Duration {
        let at = self.latencies.len().saturating_sub(1) * share / 1000;
        self.latencies.get(at).copied().unwrap_or_default()
    }
}
