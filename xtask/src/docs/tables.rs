//! Tables that people wrote: of packets, and of the states of the queue pairs.

use super::page::{Mark, Page, Problem, Table};
use super::sources::Sources;
use anyhow::{bail, ensure, Context, Result};
use wire::show::row::Row;
use wire::story::timeline::{Lane, Timeline};
use wire::story::Side;

/// Every table of a page that says something else than the capture or the timeline that it names.
pub fn problems(page: &Page, sources: &Sources) -> Vec<Problem> {
    let check = |mark: &Mark| match mark.kind.as_str() {
        "packets" => packets(page, mark, sources).unwrap_or_else(|error| vec![(mark.line, format!("{error:#}"))]),
        "states" => match states(page, mark, sources) {
            Ok(()) => Vec::new(),
            Err(error) => vec![(mark.line, format!("{error:#}"))],
        },
        _ => Vec::new(),
    };
    let marks = page.marks();
    let found = marks.iter().flat_map(check);
    found.map(|(line, what)| page.problem(line, what)).collect()
}

fn table(page: &Page, mark: &Mark) -> Result<Table> {
    let table = page.table_after(mark.line).context("no table follows this mark")?;
    ensure!(!table.rows.is_empty(), "the table has no rows");
    Ok(table)
}

/// The rows of a packet table that do not fit the capture, each with its line.
fn packets(page: &Page, mark: &Mark, sources: &Sources) -> Result<Vec<(usize, String)>> {
    let [capture] = mark.words.as_slice() else { bail!("write <!-- packets: captures/NAME.pcapng -->") };
    let (table, packets) = (table(page, mark)?, sources.rows(capture)?);
    let frame = table.column(&["frame"]).context("the table has no column `frame`")?;
    let name = table.column(&["packet", "opcode"]).context("the table has no column `packet` or `opcode`")?;
    let from = table.column(&["from", "direction"]);
    let wrong = |(line, cells): &(usize, Vec<String>)| {
        let cell = |column: usize| cells.get(column).map_or("", |cell| cell.trim_matches('`'));
        let found = packets.iter().find(|row| row.frame.to_string() == cell(frame));
        let what = match found {
            None => format!("{capture} has no RoCE packet with the frame number {}", cell(frame)),
            Some(row) if !is_called(row, cell(name)) => {
                format!("frame {} of {capture} is {}, not {}", row.frame, row.label, cell(name))
            }
            Some(row) if from.is_some_and(|column| !cell(column).starts_with(sender(row))) => {
                format!("frame {} of {capture} is from the {}", row.frame, sender(row))
            }
            Some(_) => return None,
        };
        Some((*line, what))
    };
    Ok(table.rows.iter().filter_map(wrong).collect())
}

fn sender(row: &Row) -> &'static str {
    if row.from_client {
        "client"
    } else {
        "server"
    }
}

/// `REQ (ConnectRequest)` is called so, or by either of its names; others also with the service before them.
fn is_called(row: &Row, name: &str) -> bool {
    let name = name.strip_prefix("RC ").unwrap_or(name);
    let mut names = row.label.trim_end_matches(')').split(" (");
    row.label == name || names.any(|one| one == name)
}

const STATES: [&str; 7] = ["RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"];
/// States that a QP only passes through within one call, so that no log line shows them.
const PASSED: [&str; 2] = ["RESET", "RTR"];

/// Whether each side's queue pair goes through the states that the log shows, in this order.
fn states(page: &Page, mark: &Mark, sources: &Sources) -> Result<()> {
    let [path] = mark.words.as_slice() else { bail!("write <!-- states: captures/NAME.txt -->") };
    let (table, timeline) = (table(page, mark)?, sources.timeline(path)?);
    let mut columns = 0;
    for side in [Side::Client, Side::Server] {
        let of_side = columns_of(&table, side);
        columns += of_side.len();
        if of_side.is_empty() {
            continue;
        }
        let cells = table.rows.iter().flat_map(|(_, cells)| of_side.iter().filter_map(|&at| cells.get(at)));
        let words = cells.flat_map(|cell| cell.split(|c: char| !c.is_alphanumeric() && c != '_'));
        let logged = logged(&timeline, side);
        let told = words.filter(|word| STATES.contains(word));
        let told = distinct(told.filter(|word| !PASSED.contains(word) || logged.contains(word)));
        ensure!(
            told == logged,
            "the {}'s states here are {}, in {path} they are {}",
            side.name(),
            told.join(" "),
            logged.join(" ")
        );
    }
    ensure!(columns > 0, "the table has no column of the client or the server");
    Ok(())
}

/// The columns of one side: those that name it, and those after them that name no side.
fn columns_of(table: &Table, side: Side) -> Vec<usize> {
    let mut current = None;
    let mut columns = Vec::new();
    for (at, name) in table.columns.iter().enumerate() {
        if name.contains("client") {
            current = Some(Side::Client);
        } else if name.contains("server") {
            current = Some(Side::Server);
        }
        if current == Some(side) {
            columns.push(at);
        }
    }
    columns
}

/// The states in a side's dumps of its queue pair.
fn logged(timeline: &Timeline, side: Side) -> Vec<&'static str> {
    let lines = timeline.entries().iter().filter(|entry| entry.lane == Lane::Log(side));
    let dumps = lines.filter_map(|entry| entry.text.split_once("QP:qpn=")?.1.split_once("state="));
    distinct(dumps.filter_map(|(_, rest)| STATES.into_iter().find(|state| rest.starts_with(state))))
}

fn distinct<'s>(states: impl Iterator<Item = &'s str>) -> Vec<&'s str> {
    let mut distinct: Vec<&str> = states.collect();
    distinct.dedup();
    distinct
}

#[cfg(test)]
mod tests {
    use super::super::sources::tests::repository;
    use super::*;

    fn check(text: &str) -> Vec<String> {
        problems(&Page::new("docs/p.md", text), &repository()).iter().map(Problem::to_string).collect()
    }

    /// The frame numbers of lesson 01's two packets.
    fn frames() -> (u64, u64) {
        let rows = repository().rows("captures/01_cm_listen.pcapng").unwrap();
        (rows[0].frame, rows[1].frame)
    }

    fn packet_table(rows: &str) -> String {
        format!("<!-- packets: captures/01_cm_listen.pcapng -->\n| frame | from | packet |\n|---|---|---|\n{rows}")
    }

    #[test]
    fn frames_packets_and_senders_are_those_of_the_capture() {
        let (req, rej) = frames();
        let right = format!("| {req} | client | ConnectRequest |\n| {rej} | server | `REJ` |\n");
        assert_eq!(check(&packet_table(&right)), [""; 0]);
        let other_name = check(&packet_table(&right.replace("REJ", "REP")));
        assert!(other_name[0].ends_with("is REJ (ConnectReject), not REP"), "{other_name:?}");
        assert!(other_name[0].starts_with("docs/p.md:5: "));
        assert!(check(&packet_table(&right.replace("| server", "| client")))[0].ends_with("is from the server"));
        assert!(check(&packet_table("| 99 | client | REQ |\n"))[0].contains("no RoCE packet with the frame number 99"));
        assert!(check(&packet_table(""))[0].contains("no rows"));
    }

    #[test]
    fn states_are_those_of_the_timeline() {
        let table =
            "<!-- states: captures/02_resources.txt -->\n| client | its QP | server | its QP |\n|---|---|---|---|\n\
                     | create | RESET → INIT | | |\n| connect | | accept | INIT → RTR → RTS |\n\
                     | | RTS | | |\n| | ERR | | ERR |\n";
        assert_eq!(check(table), [""; 0]);
        let problems = check(&table.replace("| | RTS | | |\n", ""));
        assert!(problems[0].contains("the client's states here are INIT ERR, in"), "{problems:?}");
        assert_eq!(check(&table.replace("client", "left").replace("server", "right")).len(), 1);
    }
}
