//! A run, as tools/bench/figures.tsv keeps it: lines of cells with tabs between them.
//!
//! ```text
//! fact    NAME  VALUE
//! kind    NAME  SECONDS  LOAD
//! figure  WHAT  UNIT  OURS  BESIDE  OTHER  RATIO  WANTED  REPEATS    of the kind above
//! ```
//! OURS, OTHER and RATIO are a median, and of several rounds the lowest, the highest and how many stood still.

use crate::row::{Row, Values, Wanted};
use anyhow::{bail, Context, Result};

#[derive(Debug, Default, PartialEq)]
pub struct Run {
    /// Where and when.
    pub facts: Vec<(String, String)>,
    pub kinds: Vec<Kind>,
}

#[derive(Debug, PartialEq)]
pub struct Kind {
    pub name: String,
    /// How long it took to measure.
    pub seconds: f64,
    /// Of the machine while it was measured: processes that want to run, on average over a minute.
    pub load: f64,
    pub rows: Vec<Row>,
}

/// The fact that names the run which this one was compared with.
pub const BEFORE: &str = "the run before";

impl Run {
    pub fn fact(&self, name: &str) -> Option<&str> {
        self.facts.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.kinds.iter().flat_map(|kind| &kind.rows)
    }

    /// Marks the rows that `before` has, too. Two runs agree if the ratio of each (or the figure, where nothing stands beside it)
    /// lies between the lowest and highest of the other.
    pub fn compare(&mut self, before: &Run) {
        let spread = |row: &Row| {
            let values = row.ratio.unwrap_or(row.ours);
            Some((values.median, values.spread?))
        };
        let within = |median: f64, (low, high): (f64, f64)| low <= median && median <= high;
        for row in self.kinds.iter_mut().flat_map(|kind| &mut kind.rows) {
            let old = before.rows().find(|old| old.name() == row.name()).and_then(spread);
            row.repeats = spread(row).zip(old).map(|(new, old)| within(new.0, old.1) && within(old.0, new.1));
        }
        self.facts.extend(before.fact("date (UTC)").map(|date| (BEFORE.to_owned(), date.to_owned())));
    }

    pub fn text(&self) -> String {
        let facts = self.facts.iter().map(|(name, value)| format!("fact\t{name}\t{value}\n"));
        let kinds = self.kinds.iter().map(|Kind { name, seconds, load, rows }| {
            let rows: String = rows.iter().map(line).collect();
            format!("kind\t{name}\t{seconds}\t{load}\n{rows}")
        });
        facts.chain(kinds).collect()
    }

    pub fn read(text: &str) -> Result<Run> {
        let mut run = Run::default();
        for (at, line) in text.lines().enumerate() {
            run.take(line).with_context(|| format!("line {}: {line}", at + 1))?;
        }
        Ok(run)
    }

    fn take(&mut self, line: &str) -> Result<()> {
        match line.split('\t').collect::<Vec<_>>()[..] {
            ["fact", name, value] => self.facts.push((name.into(), value.into())),
            ["kind", name, seconds, load] => {
                let (seconds, load) = (seconds.parse()?, load.parse()?);
                self.kinds.push(Kind { name: name.into(), seconds, load, rows: Vec::new() });
            }
            ["figure", what, unit, ours, beside, other, ratio, wanted, repeats] => {
                let (ours, other, ratio) = (values(ours)?.context("no figure")?, values(other)?, values(ratio)?);
                let wanted = match wanted.split_once(' ') {
                    Some(("<=", most)) => Some(Wanted::AtMost(most.parse()?)),
                    Some((">=", least)) => Some(Wanted::AtLeast(least.parse()?)),
                    _ => None,
                };
                let repeats = ["no", "yes"].iter().position(|word| *word == repeats).map(|at| at == 1);
                let (what, unit, beside) = (what.into(), unit.into(), beside.into());
                let row = Row { what, unit, ours, beside, other, ratio, wanted, repeats };
                self.kinds.last_mut().context("a figure before the first kind")?.rows.push(row);
            }
            _ => bail!("neither a fact nor a kind nor a figure"),
        }
        Ok(())
    }
}

fn line(row: &Row) -> String {
    let cell = |values: &Values| match values.spread {
        Some((low, high)) => format!("{} {low} {high} {}", values.median, values.still),
        None => values.median.to_string(),
    };
    let optional = |values: &Option<Values>| values.as_ref().map(cell).unwrap_or_default();
    let wanted = match row.wanted {
        Some(Wanted::AtMost(most)) => format!("<= {most}"),
        Some(Wanted::AtLeast(least)) => format!(">= {least}"),
        None => String::new(),
    };
    let repeats = row.repeats.map_or("", |repeats| if repeats { "yes" } else { "no" });
    let (ours, other, ratio) = (cell(&row.ours), optional(&row.other), optional(&row.ratio));
    format!("figure\t{}\t{}\t{ours}\t{}\t{other}\t{ratio}\t{wanted}\t{repeats}\n", row.what, row.unit, row.beside)
}

fn values(cell: &str) -> Result<Option<Values>> {
    let numbers = cell.split_whitespace().map(str::parse).collect::<Result<Vec<f64>, _>>()?;
    Ok(match numbers[..] {
        [] => None,
        [median] => Some(Values::one(median)),
        [median, low, high, still] => Some(Values { median, spread: Some((low, high)), still: still as usize }),
        _ => bail!("{cell} is not a median, a lowest, a highest and how many stood still"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Figure;

    fn run(ratio: [f64; 3], seconds: [f64; 3]) -> Run {
        let rows = vec![
            Figure::new("a", "µs", ratio.to_vec()).beside("b", vec![1.0; 3]).wanted(Wanted::AtMost(1.05)).row(),
            Figure::new("c", "s", seconds.to_vec()).row(),
            Figure::new("d", "s", vec![1.0]).row(),
        ];
        let facts = vec![("date (UTC)".into(), "today".into())];
        Run { facts, kinds: vec![Kind { name: "k".into(), seconds: 5.0, load: 1.5, rows }] }
    }

    #[test]
    fn what_is_kept_is_read_again() {
        let mut run = run([0.9, 1.0, 1.1], [0.5, 1.0, 2.0]);
        run.compare(&Run::default());
        assert_eq!(Run::read(&run.text()).unwrap_or_default(), run);
        for wrong in ["figure", "fact\tname", "kind\tname\tsoon\t1", "figure\ta\tb\t1\tc\t1 2\t\t\t"] {
            assert!(Run::read(wrong).is_err_and(|error| error.to_string().starts_with("line 1: ")), "{wrong}");
        }
    }

    #[test]
    fn rows_agree_if_each_median_lies_in_the_others_spread() {
        let (old, mut same, mut other) = (
            run([0.9, 1.0, 1.1], [0.5, 1.0, 2.0]),
            run([0.9, 1.09, 1.1], [0.5, 1.9, 2.0]),
            run([1.1, 1.2, 1.3], [1.0; 3]),
        );
        same.compare(&old);
        other.compare(&old);
        let repeats = |run: &Run| run.rows().map(|row| row.repeats).collect::<Vec<_>>();
        assert_eq!(repeats(&same), [Some(true), Some(true), None]);
        assert_eq!(repeats(&other), [Some(false), Some(true), None]);
        assert_eq!(same.fact(BEFORE), Some("today"));
    }
}
