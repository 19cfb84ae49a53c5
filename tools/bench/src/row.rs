//! A row of the page: what the rounds of a figure come to, and what that says in words.

/// What a ratio has to hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wanted {
    AtMost(f64),
    AtLeast(f64),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub what: String,
    pub unit: String,
    pub ours: Values,
    /// What stands beside it; empty, if nothing does.
    pub beside: String,
    pub other: Option<Values>,
    pub ratio: Option<Values>,
    pub wanted: Option<Wanted>,
    /// Whether the run before came to the same; None where it does not have this row, or no spread.
    pub repeats: Option<bool>,
}

/// Median, lowest and highest of all rounds but those in which a program stood still. A single run has no spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Values {
    pub median: f64,
    pub spread: Option<(f64, f64)>,
    pub still: usize,
}

impl Values {
    pub fn one(median: f64) -> Self {
        Self { median, spread: None, still: 0 }
    }

    /// `1.04 (0.82–1.29)`
    pub fn with_spread(&self) -> String {
        let median = short(self.median);
        let still = if self.still > 0 { format!(", {} stood still", self.still) } else { String::new() };
        self.spread.map_or(format!("{median} (one run)"), |(low, high)| {
            format!("{median} ({}–{}{still})", short(low), short(high))
        })
    }
}

impl Wanted {
    pub fn held(self, ratio: f64) -> bool {
        match self {
            Self::AtMost(most) => ratio <= most,
            Self::AtLeast(least) => ratio >= least,
        }
    }
}

impl Row {
    /// What tells it from other rows.
    pub fn name(&self) -> String {
        if self.beside.is_empty() {
            self.what.clone()
        } else {
            format!("{}, beside {}", self.what, self.beside)
        }
    }

    /// Whether its limit is kept, if it has one.
    pub fn kept(&self) -> Option<bool> {
        Some(self.wanted?.held(self.ratio?.median))
    }

    /// Whether ours is better or worse, and by how much. Where some rounds say the one and some the other, neither.
    pub fn words(&self) -> String {
        let Some(Values { median: ratio, spread, .. }) = self.ratio else { return String::new() };
        if spread.is_some_and(|(low, high)| low <= 1.0 && 1.0 <= high) {
            return "no clear difference".into();
        }
        let (percent, far) = (|part: f64| percent(part * 100.0), ratio <= 0.5 || ratio >= 2.0);
        let rate = self.unit.ends_with("/s");
        let size = self.unit.starts_with("MB") && !rate || ["KB", ""].contains(&self.unit.as_str());
        let by = match (rate, size) {
            (true, _) if far && ratio < 1.0 => format!("{} of its speed", percent(ratio)),
            (true, _) if far => format!("{} times as fast", short(ratio)),
            (true, _) if ratio < 1.0 => format!("{} slower", percent(1.0 - ratio)),
            (true, _) => format!("{} faster", percent(ratio - 1.0)),
            (_, true) if ratio < 1.0 => format!("{} less", percent(1.0 - ratio)),
            (_, true) => format!("{} more", percent(ratio - 1.0)),
            _ if far && ratio < 1.0 => format!("{} times as fast", short(1.0 / ratio)),
            _ if far => format!("{} times the time", short(ratio)),
            _ if ratio < 1.0 => format!("{} less time", percent(1.0 - ratio)),
            _ => format!("{} more time", percent(ratio - 1.0)),
        };
        format!("{}: {by}", if (ratio > 1.0) == rate { "better" } else { "worse" })
    }
}

/// Three digits, or all before the point.
pub fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 || size == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

fn percent(value: f64) -> String {
    if value < 1.0 {
        format!("{value:.2} %")
    } else {
        format!("{value:.0} %")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(unit: &str, median: f64, spread: Option<(f64, f64)>) -> String {
        let ratio = Some(Values { median, spread, still: 0 });
        let (ours, other) = (Values::one(1.0), None);
        Row { what: "x".into(), unit: unit.into(), ours, beside: "y".into(), other, ratio, wanted: None, repeats: None }
            .words()
    }

    #[test]
    fn words_say_what_is_better_and_what_is_worse() {
        assert_eq!(words("µs", 1.45, Some((1.3, 1.65))), "worse: 45 % more time");
        assert_eq!(words("µs", 0.17, None), "better: 5.88 times as fast");
        assert_eq!(words("ns/packet", 0.9, None), "better: 10 % less time");
        assert_eq!(words("s", 3.0, None), "worse: 3.00 times the time");
        assert_eq!(words("MB/s", 0.4, Some((0.39, 0.57))), "worse: 40 % of its speed");
        assert_eq!(words("requests/s", 0.0008, None), "worse: 0.08 % of its speed");
        assert_eq!(words("requests/s", 2.73, None), "better: 2.73 times as fast");
        assert_eq!(words("1/s", 0.78, None), "worse: 22 % slower");
        assert_eq!(words("MB", 0.36, None), "better: 64 % less");
        assert_eq!(words("", 1.39, None), "worse: 39 % more");
        assert_eq!(words("µs", 1.04, Some((0.82, 1.29))), "no clear difference");
    }

    #[test]
    fn numbers_have_three_digits() {
        let values = Values { median: 2.0, spread: Some((1.0, 345.6)), still: 1 };
        assert_eq!(values.with_spread(), "2.00 (1.00–346, 1 stood still)");
        assert_eq!(Values::one(0.0022).with_spread(), "0.0022 (one run)");
    }
}
