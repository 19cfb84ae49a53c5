//! Tables that people wrote: of packets, of their fields, of numbers and code of a file. Each check returns the lines that do
//! not hold, with what is wrong.

use super::page::{Page, Problem, Table};
use super::sources::Sources;
use super::{excerpts, numbers};
use anyhow::{Context, Result};
use run::row::Row;
use std::collections::BTreeSet;

/// Rows with more cells than columns: what is in them is not shown. A `|` within a cell is written `\|`.
pub fn problems(page: &Page, _: &Sources) -> Vec<Problem> {
    let too_many = |table: Table| {
        let columns = table.columns.len();
        table.wrong(|cells| (cells.len() > columns).then(|| format!("{} cells in {columns} columns", cells.len())))
    };
    page.tables().flat_map(too_many).map(|(line, what)| page.problem(line, what)).collect()
}

/// Rows that say something else of a packet than the capture.
pub fn packets(table: &Table, capture: &str, sources: &Sources) -> Result<Vec<(usize, String)>> {
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
pub fn fields(table: &Table, capture: &str, steps: &[&str], sources: &Sources) -> Result<Vec<(usize, String)>> {
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
pub fn inside(table: &Table, path: &str, sources: &Sources) -> Result<Vec<(usize, String)>> {
    let source = sources.text(path)?;
    Ok(table.wrong(|cells| Some(format!("{path} has no number {}", strange(&cells.join(" | "), &source)?))))
}

/// What is said to be tried, as code in the first column, and does not stand in the tests that the mark names.
pub fn tried(table: &Table, paths: &[&str], sources: &Sources) -> Result<Vec<(usize, String)>> {
    let tests = paths.iter().map(|path| sources.text(path)).collect::<Result<Vec<_>>>()?;
    let (tests, paths) = (tests.concat().replace('\\', ""), paths.join(" "));
    Ok(table.wrong(|cells| {
        // Every second piece between the marks is code.
        let code = cells[0].split('`').skip(1).step_by(2).find(|code| !tests.contains(code))?;
        Some(format!("{paths} does not try `{code}`"))
    }))
}

#[cfg(test)]
mod tests {
    use super::super::marks;
    use super::super::sources::tests::repository;
    use super::*;

    fn check(text: &str) -> Vec<String> {
        marks::problems(&Page::new("docs/p.md", text), repository()).iter().map(Problem::to_string).collect()
    }

    #[test]
    fn what_is_tried_stands_in_the_test() {
        let table = |rule| {
            format!(
                "<!-- tried: tools/device/tests/all/programs/rules.rs -->\n| rule | |\n|---|---|\n| `{rule}` | x |\n"
            )
        };
        assert_eq!(check(&table("drop 1st REP")), [""; 0]);
        assert!(check(&table("drop 1st RTU"))[0].ends_with("does not try `drop 1st RTU`"));
    }

    #[test]
    fn a_bar_within_a_cell_is_escaped() {
        let found =
            |cell| problems(&Page::new("docs/p.md", &format!("| a | b |\n|---|---|\n| 1 | {cell} |\n")), repository());
        assert!(found("`x \\|\\| y`").is_empty());
        assert_eq!(found("`x || y`")[0].to_string(), "docs/p.md:3: 4 cells in 2 columns");
    }

    fn packet_table(rows: &str) -> String {
        format!("<!-- packets: captures/01_cm_listen.pcapng -->\n| step | from | packet |\n|---|---|---|\n{rows}")
    }

    #[test]
    fn steps_packets_and_senders_are_those_of_the_capture() {
        let right = "| 1 | client | ConnectRequest |\n| 2 | server | `REJ` |\n";
        assert_eq!(check(&packet_table(right)), [""; 0]);
        let other_name = check(&packet_table(&right.replace("REJ", "REP")));
        assert!(other_name[0].ends_with("is REJ (ConnectReject), not REP"), "{other_name:?}");
        assert!(other_name[0].starts_with("docs/p.md:5: "));
        assert!(check(&packet_table(&right.replace("| server", "| client")))[0].ends_with("is from the server"));
        assert!(check(&packet_table("| 99 | client | REQ |\n"))[0].contains("no packet of step 99"));
        assert!(check(&packet_table(""))[0].contains("no table with rows"));
    }
}
