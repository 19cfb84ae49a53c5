//! A run, as tools/bench/figures.tsv keeps it: lines of cells with tabs between them.
//!
//! ```text
//! fact    NAME  VALUE
//! kind    NAME  SECONDS  LOAD
//! figure  WHAT  UNIT  OURS  BESIDE  OTHER  RATIO  WANTED    of the kind above
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

impl Run {
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
            ["figure", what, unit, ours, beside, other, ratio, wanted] => {
                let (ours, other, ratio) = (values(ours)?.context("no figure")?, values(other)?, values(ratio)?);
                let wanted = match wanted.split_once(' ') {
                    Some(("<=", most)) => Some(Wanted::AtMost(most.parse()?)),
                    Some((">=", least)) => Some(Wanted::AtLeast(least.parse()?)),
                    _ => None,
                };
                let (what, unit, beside) = (what.into(), unit.into(), beside.into());
                let row = Row { what, unit, ours, beside, other, ratio, wanted };
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
    let (ours, other, ratio) = (cell(&row.ours), optional(&row.other), optional(&row.ratio));
    format!("figure\t{}\t{}\t{ours}\t{}\t{other}\t{ratio}\t{wanted}\n", row.what, row.unit, row.beside)
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

    #[test]
    fn what_is_kept_is_read_again() {
        let rows = vec![
            Row::beside("a", "µs", &[0.9, 1.0, 1.1], "b", &[1.0; 3]).wanted(Wanted::AtMost(1.05)),
            Row::new("c", "s", &[0.5, 1.0, 2.0]),
            Row::new("d", "s", &[1.0]),
        ];
        let facts = vec![("date (UTC)".into(), "today".into())];
        let run = Run { facts, kinds: vec![Kind { name: "k".into(), seconds: 5.0, load: 1.5, rows }] };
        assert_eq!(Run::read(&run.text()).unwrap_or_default(), run);
        for wrong in ["figure", "fact\tname", "kind\tname\tsoon\t1", "figure\ta\tb\t1\tc\t1 2\t\t"] {
            assert!(Run::read(wrong).is_err_and(|error| error.to_string().starts_with("line 1: ")), "{wrong}");
        }
    }
}
