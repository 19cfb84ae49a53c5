//! What a run has measured, as tools/bench/figures.jsonl keeps it: rows, each with what was measured again and again of ours, and of
//! its reference in the same rounds.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// A run: where and when it was made, and its rows.
#[derive(Debug, Default)]
pub struct Run {
    pub facts: Vec<(String, String)>,
    pub rows: Vec<Row>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What kind of figures it belongs to, by its name in `main`.
    pub kind: String,
    pub what: String,
    pub unit: String,
    pub ours: Values,
    pub beside: Option<Beside>,
    /// What the ratio must hold: a rate at least that, a time at most.
    pub limit: Option<f64>,
}

/// What stands beside ours: its name and values, and ours divided by these, in single rounds, which take seconds.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Beside {
    pub name: String,
    pub values: Values,
    pub ratio: Values,
}

/// Median, lowest and highest of all rounds but those in which a program stood still.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Values {
    pub median: f64,
    pub low: f64,
    pub high: f64,
    pub still: usize,
}

impl Run {
    /// A line for the facts, then one for each row.
    pub fn text(&self) -> Result<String> {
        let rows = self.rows.iter().map(serde_json::to_string);
        let lines = std::iter::once(serde_json::to_string(&self.facts)).chain(rows);
        lines.map(|line| Ok(line? + "\n")).collect()
    }

    /// All but what one kind of figures has.
    pub fn without(mut self, kind: &str) -> Self {
        self.facts.retain(|(name, _)| *name != format!("measuring {kind}"));
        self.rows.retain(|row| row.kind != kind);
        self
    }

    pub fn read(text: &str) -> Result<Self> {
        let (facts, rows) = text.split_once('\n').context("no line of facts")?;
        let rows = rows.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        Ok(Self { facts: serde_json::from_str(facts)?, rows })
    }
}

impl Row {
    /// With one value of each round, in order; NaN where a program stood still.
    pub fn new(what: &str, unit: &str, ours: &[f64]) -> Self {
        let (kind, ours) = (String::new(), Values::of(ours));
        Self { kind, what: what.into(), unit: unit.into(), ours, beside: None, limit: None }
    }

    /// Beside something else, with its values in the same rounds.
    pub fn beside(what: &str, unit: &str, ours: &[f64], name: &str, others: &[f64]) -> Self {
        let ratios: Vec<f64> = ours.iter().zip(others).map(|(ours, other)| ours / other).collect();
        let beside = Beside { name: name.into(), values: Values::of(others), ratio: Values::of(&ratios) };
        Self { beside: Some(beside), ..Self::new(what, unit, ours) }
    }

    pub fn limit(self, limit: f64) -> Self {
        Self { limit: Some(limit), ..self }
    }

    pub fn is_rate(&self) -> bool {
        self.unit.ends_with("/s")
    }

    /// The share of its former speed that it has. If something stands beside it, the ratios say that, because both had the same load.
    pub fn speed_since(&self, before: &Row) -> f64 {
        let figure = |row: &Row| row.beside.as_ref().map_or(row.ours.median, |beside| beside.ratio.median);
        let times = figure(self) / figure(before);
        if self.is_rate() {
            times
        } else {
            1.0 / times
        }
    }

    /// Whether its limit is kept, if it has one.
    pub fn kept(&self) -> Option<bool> {
        let (limit, ratio) = (self.limit?, self.beside.as_ref()?.ratio.median);
        Some(if self.is_rate() { ratio >= limit } else { ratio <= limit })
    }
}

impl Values {
    fn of(rounds: &[f64]) -> Self {
        let mut sorted: Vec<f64> = rounds.iter().copied().filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let at = |at: usize| sorted.get(at).copied().unwrap_or(f64::NAN);
        let last = sorted.len().saturating_sub(1);
        let median = (at(last / 2) + at(sorted.len() / 2)) / 2.0;
        Self { median, low: at(0), high: at(last), still: rounds.len() - sorted.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_medians_and_spreads_of_the_rounds_that_did_not_stand_still_and_is_read_again() -> Result<()> {
        let row = Row::beside("x", "µs", &[3.0, 1.0, 2.0, 9.0], "y", &[3.0, 2.0, 2.0, f64::NAN]);
        assert_eq!(row.ours, Values { median: 2.5, low: 1.0, high: 9.0, still: 0 });
        let beside = row.beside.as_ref().context("y")?;
        assert_eq!(beside.values, Values { median: 2.0, low: 2.0, high: 3.0, still: 1 });
        assert_eq!(beside.ratio, Values { median: 1.0, low: 0.5, high: 1.0, still: 1 });
        let run = Run { facts: vec![("date (UTC)".into(), "today".into())], rows: vec![row.limit(1.05)] };
        let again = Run::read(&run.text()?)?;
        assert_eq!((again.facts, again.rows), (run.facts, run.rows));
        Ok(())
    }
}
