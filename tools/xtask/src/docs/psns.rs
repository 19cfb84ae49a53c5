//! Tables that follow one node's packets by their PSNs.

use super::lanes::{DrawnRow, Recorded};
use super::page::{Table, Wrong};
use anyhow::{Context, Result};
use run::files::read;

/// How a row says that its packets don't come right after those of the row above.
const LATER: [&str; 2] = [" again", " once more"];

/// Rows whose column `psn` (`+6, +7`, `+9 to +18`) isn't what the node sends next in the run, or that say lost when it wasn't, or don't
/// when it was. A row may mention its own PSNs, those of a NAK and the last one, and no other client.
pub fn problems(table: &Table, run: &str, node: &str) -> Result<Wrong> {
    let column = table.column(&["psn"]).context("the table has no column `psn`")?;
    let whole = Recorded::parse(&read(run)?);
    let sent: Vec<(u32, bool)> = whole.rows.iter().filter_map(|row| write_of(row, node)).collect();
    let naks = whole.rows.iter().filter(|row| row.text().contains(&format!("─▶ {node} NAK")));
    let naks: Vec<u32> = naks.filter_map(|row| named(&row.text()).next()).collect();
    let highest = sent.iter().map(|(psn, _)| *psn).max().context("that node sends no WRITE in this run")?;
    let mut rest = sent.iter();
    let mut wrong = table.wrong(|cells| {
        let (psns, told) = (listed(&cells[column]), cells[column + 1..].join(" | "));
        let is_later = LATER.iter().any(|word| cells[column].contains(word));
        for psn in &psns {
            let next = if is_later { rest.find(|(sent, _)| sent == psn) } else { rest.next() };
            let Some((_, lost)) = next.filter(|(sent, _)| sent == psn) else {
                return Some(format!("{run}: +{psn} isn't what {node} sends here"));
            };
            if *lost != told.contains("lost") {
                return Some(format!("{run}: +{psn} is {}lost here", if *lost { "" } else { "not " }));
            }
        }
        let other = named(&told).find(|psn| !psns.contains(psn) && !naks.contains(psn) && *psn != highest)?;
        Some(format!("{run}: nothing here is about +{other}"))
    });
    let (first, _) = table.rows.first().context("the table has no rows")?;
    let head = (first - 2, table.columns.join(" "));
    for (line, text) in table.rows.iter().map(|(line, cells)| (*line, cells.join(" "))).chain([head]) {
        let is_other = |word: &&str| word.starts_with("client-") && *word != node;
        let other = text.split(|c: char| !(c.is_alphanumeric() || c == '-')).find(is_other);
        wrong.extend(other.map(|other| (line, format!("this table is about {node}, not {other}"))));
    }
    Ok(wrong)
}

/// The PSN of a packet of a WRITE that this node has sent, and whether it was lost.
fn write_of(row: &DrawnRow, node: &str) -> Option<(u32, bool)> {
    let text = row.text();
    let is_its = text.contains(&format!("{node} ─▶")) && text.contains("RDMA Write");
    let psn = named(&text).next()?;
    is_its.then(|| (psn, text.contains("lab: dropped")))
}

/// The numbers of a text that are written with a plus.
fn named(text: &str) -> impl Iterator<Item = u32> + '_ {
    text.split_whitespace().filter_map(|word| {
        let digits = word.strip_prefix('+')?;
        digits.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().ok()
    })
}

/// The PSNs that a cell lists: `+6, +7` or `+9 to +18`.
fn listed(cell: &str) -> Vec<u32> {
    let psns: Vec<u32> = named(cell).collect();
    match psns[..] {
        [from, to] if cell.contains(" to ") => (from..=to).collect(),
        _ => psns,
    }
}
