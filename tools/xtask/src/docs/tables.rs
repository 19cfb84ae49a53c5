//! Tables that people wrote: of packets, of their fields, of numbers and code of a file. Each check returns the lines that do
//! not hold, with what is wrong.

use super::page::{code, Page, Table, Wrong};
use super::sources::Sources;
use super::{excerpts, numbers};
use anyhow::{Context, Result};
use run::row::Row;
use std::collections::BTreeSet;

/// Rows with more cells than columns: what is in them is not shown. A `|` within a cell is written `\|`.
pub fn problems(page: &Page, _: &Sources) -> Wrong {
    let too_many = |table: Table| {
        let columns = table.columns.len();
        table.wrong(|cells| (cells.len() > columns).then(|| format!("{} cells in {columns} columns", cells.len())))
    };
    page.tables().flat_map(too_many).collect()
}

/// Rows that say something else of a packet than the capture.
pub fn packets(table: &Table, capture: &str, sources: &Sources) -> Result<Wrong> {
    let packets = sources.rows(capture)?;
    let step = table.column(&["step"]).context("the table has no column `step`")?;
    let name = table.column(&["packet", "opcode"]).context("the table has no column `packet` or `opcode`")?;
    let from = table.column(&["from", "direction"]);
    let wrong = |cells: &[String]| {
        let cell = |column: usize| cells[column].trim_matches('`');
        let number = cell(step);
        let Some(row) = packets.iter().find(|row| excerpts::is_step(row, &format!("step{number}"))) else {
            return Some(format!("{capture} has no packet of step {number}"));
        };
        let sender = if row.from_client { "client" } else { "server" };
        let known = numbers::all(&row.words().collect::<Vec<_>>().join(" "));
        let foreign = |found: &String| found != number && !known.contains(found);
        let what = if !is_called(row, cell(name)) {
            format!("is {}, not {}", row.label, cell(name))
        } else if from.is_some_and(|column| !cell(column).starts_with(sender)) {
            format!("is from the {sender}")
        } else {
            format!("has no {}", numbers::all(&cells.join(" | ")).into_iter().find(foreign)?)
        };
        Some(format!("step {number} of {capture} {what}"))
    };
    Ok(table.wrong(wrong))
}

/// `REQ (ConnectRequest)` is called so, or by either of its names; others also with the service before them.
fn is_called(row: &Row, name: &str) -> bool {
    let name = name.strip_prefix("RC ").unwrap_or(name);
    let mut names = row.label.trim_end_matches(')').split(" (");
    row.label == name || names.any(|one| one == name)
}

/// Numbers of a packet's fields that are neither the value of that field nor what it means. The columns after the first show
/// the first packet of one step each; there may be one more, which explains.
pub fn fields(table: &Table, capture: &str, steps: &[&str], sources: &Sources) -> Result<Wrong> {
    let mut wrong = Vec::new();
    for (column, step) in (1..table.columns.len()).zip(steps) {
        let shown = excerpts::packet(sources, capture, step)?;
        for (line, cells) in &table.rows {
            let names: Vec<&str> = cells[0].split(", ").collect();
            let of_field = |line: &&str| line.split("  ").any(|word| names.contains(&word.trim()));
            let values: String = shown.lines().filter(of_field).filter_map(|line| line.get(32..)).collect();
            let what = |number| format!("in {step} of {capture}, {} has no {number}", cells[0]);
            wrong.extend(strange(&cells[column], &values).map(|number| (*line, what(number))));
        }
    }
    Ok(wrong)
}

/// A number of one text that the other one does not have.
fn strange(text: &str, source: &str) -> Option<String> {
    let known: BTreeSet<String> = numbers::all(source);
    numbers::all(text).into_iter().find(|number| !known.contains(number))
}

/// Numbers that are not in the file that the mark names.
pub fn inside(table: &Table, path: &str, sources: &Sources) -> Result<Wrong> {
    let source = sources.text(path)?;
    Ok(table.wrong(|cells| Some(format!("{path} has no number {}", strange(&cells.join(" | "), &source)?))))
}

/// What is said to be tried, as code in the first column, and does not stand in the tests that the mark names.
pub fn tried(table: &Table, paths: &[&str], sources: &Sources) -> Result<Wrong> {
    let tests = paths.iter().map(|path| sources.text(path)).collect::<Result<Vec<_>>>()?;
    let (tests, paths) = (tests.concat().replace('\\', ""), paths.join(" "));
    Ok(table.wrong(|cells| {
        let code = code(&cells[0]).find(|code| !tests.contains(code))?;
        Some(format!("{paths} does not try `{code}`"))
    }))
}
