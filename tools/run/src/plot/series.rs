//! What changes over time, told by parts of the time.

/// A time in parts of the same length.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    begin: u64,
    /// Nanoseconds of each part; at least one.
    length: u64,
    count: usize,
}

impl Parts {
    /// So many parts, from one time to another, in nanoseconds. The end is in the last part.
    pub fn new((begin, end): (u64, u64), count: usize) -> Parts {
        let count = count.max(1);
        Parts { begin, length: end.saturating_sub(begin) / count as u64 + 1, count }
    }

    /// How long each of them is.
    pub fn seconds(&self) -> f64 {
        self.length as f64 / 1e9
    }

    /// The part that a time is in; the nearest one, if it is in none.
    fn of(&self, time: u64) -> usize {
        ((time.saturating_sub(self.begin) / self.length) as usize).min(self.count - 1)
    }

    fn begin_of(&self, part: usize) -> u64 {
        self.begin.saturating_add(self.length.saturating_mul(part as u64))
    }

    /// What comes together in each part, from times and amounts.
    pub fn sums(&self, amounts: impl Iterator<Item = (u64, u64)>) -> Vec<f64> {
        let mut sums = vec![0.0; self.count];
        amounts.for_each(|(time, amount)| sums[self.of(time)] += amount as f64);
        sums
    }

    /// The same per second, of bytes in bits.
    pub fn rates(&self, bytes: impl Iterator<Item = (u64, u64)>) -> Vec<f64> {
        let seconds = self.seconds();
        self.sums(bytes).into_iter().map(|bytes| bytes * 8.0 / seconds).collect()
    }
}

/// A value that stays what it is until it is told again; 0 before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Steps(Vec<(u64, f64)>);

impl Steps {
    /// It is this from now on, in nanoseconds. What comes with an earlier time than the one before counts from then on.
    pub fn push(&mut self, time: u64, value: f64) {
        let last = self.0.last().map_or(0, |(last, _)| *last);
        self.0.push((time.max(last), value));
    }

    /// When it changed.
    pub fn times(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.iter().map(|(time, _)| *time)
    }

    /// The value from this time on.
    pub fn at(&self, time: u64) -> f64 {
        let after = self.0.partition_point(|(since, _)| *since <= time);
        after.checked_sub(1).map_or(0.0, |last| self.0[last].1)
    }

    /// Each of its times becomes another one.
    pub fn moved(&mut self, to: impl Fn(u64) -> u64) {
        self.0.iter_mut().for_each(|(time, _)| *time = to(*time));
    }

    /// The highest value in each part.
    pub fn highest(&self, parts: &Parts) -> Vec<f64> {
        let mut highest = vec![0.0f64; parts.count];
        self.each(parts, |part, value, _| highest[part] = highest[part].max(value));
        highest
    }

    /// The mean over each part's time.
    pub fn means(&self, parts: &Parts) -> Vec<f64> {
        let mut means = vec![0.0; parts.count];
        self.each(parts, |part, value, share| means[part] += value * share);
        means
    }

    /// Each value, with each part in which it was, and for which share of that part.
    fn each(&self, parts: &Parts, mut see: impl FnMut(usize, f64, f64)) {
        let end = parts.begin_of(parts.count);
        let ends = self.0.iter().skip(1).map(|(time, _)| *time).chain([end]);
        for ((begin, value), end) in self.0.iter().zip(ends) {
            for part in parts.of(*begin)..=parts.of(end) {
                let (from, to) = (parts.begin_of(part).max(*begin), parts.begin_of(part + 1).min(end));
                if from < to {
                    see(part, *value, (to - from) as f64 / parts.length as f64);
                }
            }
        }
    }
}
