//! A row of the page: what was measured again and again of ours, and of its reference in the same rounds, and what that comes to.

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
}

/// Median, lowest and highest of all rounds but those in which a program stood still. A single run has no spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Values {
    pub median: f64,
    pub spread: Option<(f64, f64)>,
    pub still: usize,
}

impl Row {
    /// With one value of each round, in order; NaN where a program stood still.
    pub fn new(what: &str, unit: &str, ours: &[f64]) -> Self {
        let (what, unit, beside, ours) = (what.into(), unit.into(), String::new(), Values::of(ours));
        Self { what, unit, ours, beside, other: None, ratio: None, wanted: None }
    }

    /// Beside something else, with its values in the same rounds. The ratio is that of single rounds: what was measured within the
    /// same seconds.
    pub fn beside(what: &str, unit: &str, ours: &[f64], other: &str, others: &[f64]) -> Self {
        let ratios: Vec<f64> = ours.iter().zip(others).map(|(ours, other)| ours / other).collect();
        let (other, others, ratio) = (other.into(), Some(Values::of(others)), Some(Values::of(&ratios)));
        Self { beside: other, other: others, ratio, ..Self::new(what, unit, ours) }
    }

    pub fn wanted(self, wanted: Wanted) -> Self {
        Self { wanted: Some(wanted), ..self }
    }

    /// What tells it from other rows.
    pub fn name(&self) -> String {
        let beside = if self.beside.is_empty() { "" } else { ", beside " };
        format!("{}{beside}{}", self.what, self.beside)
    }

    /// Whether its limit is kept, if it has one.
    pub fn kept(&self) -> Option<bool> {
        let ratio = self.ratio?.median;
        Some(match self.wanted? {
            Wanted::AtMost(most) => ratio <= most,
            Wanted::AtLeast(least) => ratio >= least,
        })
    }

    /// Whether ours is better. Where some rounds say the one and some the other, it is neither.
    pub fn verdict(&self) -> &'static str {
        let is_rate = self.unit.ends_with("/s");
        match self.ratio {
            None => "",
            Some(Values { spread: Some((low, high)), .. }) if low <= 1.0 && 1.0 <= high => "no clear difference",
            Some(ratio) if (ratio.median > 1.0) == is_rate => "better",
            Some(_) => "worse",
        }
    }
}

impl Values {
    pub fn one(median: f64) -> Self {
        Self { median, spread: None, still: 0 }
    }

    fn of(rounds: &[f64]) -> Self {
        let mut sorted: Vec<f64> = rounds.iter().copied().filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let at = |at: usize| sorted.get(at).copied().unwrap_or(f64::NAN);
        let (half, last) = (sorted.len() / 2, sorted.len().saturating_sub(1));
        let median = if sorted.len() % 2 == 0 && half > 0 { (at(half - 1) + at(half)) / 2.0 } else { at(half) };
        let spread = (rounds.len() > 1).then_some((at(0), at(last)));
        Self { median, spread, still: rounds.len() - sorted.len() }
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

/// Three digits, or all before the point.
pub fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 || size == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_medians_and_spreads_of_the_rounds_that_did_not_stand_still() {
        let row = Row::beside("x", "µs", &[3.0, 1.0, 2.0, 9.0], "y", &[3.0, 2.0, 2.0, f64::NAN]);
        assert_eq!(row.ours, Values { median: 2.5, spread: Some((1.0, 9.0)), still: 0 });
        assert_eq!(row.other, Some(Values { median: 2.0, spread: Some((2.0, 3.0)), still: 1 }));
        assert_eq!(row.ratio, Some(Values { median: 1.0, spread: Some((0.5, 1.0)), still: 1 }));
        assert_eq!(Row::new("x", "", &[1.0]).ours, Values::one(1.0));
    }

    #[test]
    fn what_is_less_is_better_but_for_a_rate() {
        let verdict = |unit, ours: &[f64]| Row::beside("x", unit, ours, "y", &[1.0, 1.0]).verdict();
        assert_eq!((verdict("µs", &[1.3, 1.6]), verdict("µs", &[0.1, 0.2])), ("worse", "better"));
        assert_eq!((verdict("MB/s", &[0.3, 0.5]), verdict("1/s", &[2.0, 3.0])), ("worse", "better"));
        assert_eq!((verdict("ns/packet", &[0.5, 0.5]), verdict("µs", &[0.8, 1.3])), ("better", "no clear difference"));
    }

    #[test]
    fn numbers_have_three_digits() {
        let values = Values { median: 2.0, spread: Some((1.0, 345.6)), still: 1 };
        assert_eq!(values.with_spread(), "2.00 (1.00–346, 1 stood still)");
        assert_eq!(Values::one(0.0022).with_spread(), "0.0022 (one run)");
    }
}
