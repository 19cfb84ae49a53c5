//! Tables of what each call or event does, compared with the logs of a run: their order, and the states of the queue pairs.

use super::names::Names;
use super::page::{Table, Wrong};
use super::sources::{lines, rows, run, Sources};
use anyhow::{bail, ensure, Context, Result};
use run::file::Line;
use run::row::Row;
use run::said::Said;
use std::collections::BTreeSet;

/// The column of the packets, and whose the columns are that hold for all nodes.
const WIRE: &str = "wire";
const NOBODY: &str = "";

/// The rows that tell something else than the recorded run, each with its line; what the table does not tell, with the mark's.
pub fn problems(table: &Table, mark: usize, capture: &str, sources: &Sources) -> Result<Wrong> {
    let (names, lines) = (&sources.names, run(capture)?);
    let nodes: BTreeSet<&str> = lines.iter().map(|line| line.node.as_str()).collect();
    let owners = owners(table, &nodes);
    let mut found = packets(table, &rows(capture)?, names);
    ensure!(nodes.iter().any(|node| owners.contains(node)), "the table has no column of a node");
    for node in &nodes {
        let mut log = Log { lines: lines.iter().filter(|line| line.node == *node).collect(), names, at: 0 };
        let mut told = Vec::new();
        for (line, cells) in &table.rows {
            let of = |owner: &str| {
                let own = cells.iter().zip(&owners).filter(|(_, other)| **other == owner);
                own.map(|(cell, _)| cell.as_str()).collect::<Vec<_>>().join(" | ")
            };
            let own = of(node);
            if own.trim_matches([' ', '|']).is_empty() {
                continue;
            }
            let wrong = log.after(&format!("{} | {own}", of(NOBODY))).and_then(|()| log.told(&own));
            found.extend(wrong.err().map(|wrong| (*line, format!("{capture}: the {node}'s {wrong:#}"))));
            told.extend(of_kind(names, &own, "state"));
        }
        let missing = log.lines.iter().filter_map(|line| state(line)).find(|state| !told.contains(state));
        let missing = missing.filter(|_| owners.contains(node));
        found.extend(missing.map(|state| (mark, format!("{capture}: the {node} is in {state}, too"))));
    }
    Ok(found)
}

/// Rows whose calls and events do not come in the order of one node's log, from top to bottom.
pub fn order(table: &Table, capture: &str, node: &str, sources: &Sources) -> Result<Wrong> {
    let lines = lines(capture, node)?;
    let mut log = Log { lines: lines.iter().collect(), names: &sources.names, at: 0 };
    Ok(table.wrong(|cells| Some(format!("{capture}: the {node}'s {:#}", log.after(&cells.join(" | ")).err()?))))
}

/// Rows whose packets, in one column, don't come in the order of the capture, from top to bottom.
pub fn packets_in_order(table: &Table, capture: &str, column: &str, sources: &Sources) -> Result<Wrong> {
    let column = table.column(&[column]).with_context(|| format!("the table has no column `{column}`"))?;
    let packets = rows(capture)?;
    let mut packets = packets.iter().map(|row| of_kind(&sources.names, &row.label, "packet"));
    Ok(table.wrong(|cells| {
        let mut named = of_kind(&sources.names, &cells[column], "packet");
        // **ReadyToUse** (RTU) is one packet.
        named.dedup();
        let missing = named.into_iter().find(|name| !packets.any(|packet| packet.contains(name)))?;
        Some(format!("{capture} has no {missing} here"))
    }))
}

/// One node's log, read from the top to the bottom.
struct Log<'n> {
    lines: Vec<&'n Line>,
    names: &'n Names,
    /// The line that the last row was about.
    at: usize,
}

impl Log<'_> {
    /// Goes on to where the calls and events of a row happen.
    fn after(&mut self, row: &str) -> Result<()> {
        for name in self.names.of(row).into_iter().filter(|name| ["call", "event"].contains(&name.kind)) {
            let says = |line: &&Line| {
                let happens = name.kind == "call" || matches!(Said::of(line), Said::CmEvent { .. });
                happens && self.names.of(&line.text).iter().any(|other| other.thing == name.thing)
            };
            let Some(more) = self.lines[self.at..].iter().position(says) else {
                bail!("log has no `{}` here", name.text);
            };
            self.at += more;
        }
        Ok(())
    }

    /// Compares the states that a row tells with the dumps before and after the place.
    fn told(&self, own: &str) -> Result<()> {
        let told = of_kind(self.names, own, "state");
        let (Some(first), Some(last)) = (told.first(), told.last()) else { return Ok(()) };
        let (before, now) = (self.before(), self.now());
        ensure!(Some(last) == now.as_ref(), "QP is in {}, not {last}", now.unwrap_or_default());
        let changed = told.len() > 1 && first != "RESET";
        ensure!(
            !changed || Some(first) == before.as_ref(),
            "QP comes from {}, not {first}",
            before.unwrap_or_default()
        );
        Ok(())
    }

    fn before(&self) -> Option<String> {
        self.lines[..self.at].iter().rev().find_map(|line| state(line))
    }

    /// The dump that follows, before anything else happens; without one, the state is what it was.
    fn now(&self) -> Option<String> {
        let rest = self.lines[self.at + 1..].iter();
        let same = rest.take_while(|line| match Said::of(line) {
            Said::Call { name, .. } if name.contains("_ack_") => true,
            Said::CmEvent { .. } => false,
            _ => line.tag() == Some("INFO"),
        });
        same.filter_map(|line| state(line)).next().or_else(|| self.before())
    }
}

/// The state that a dump of a QP shows.
fn state(line: &Line) -> Option<String> {
    match Said::of(line) {
        Said::Qp { state, .. } => Some(state.into()),
        _ => None,
    }
}

/// The names in a column called `wire`, against the packets.
fn packets(table: &Table, packets: &[Row], names: &Names) -> Wrong {
    let Some(wire) = table.column(&[WIRE]) else { return Vec::new() };
    let (mut packets, mut found) = (packets.iter(), Vec::new());
    for (line, cells) in &table.rows {
        let from_client = cells[wire].contains('▶');
        for name in of_kind(names, &cells[wire], "packet") {
            let is_it = |row: &Row| of_kind(names, &row.label, "packet").contains(&name);
            if !packets.any(|row| row.from_client == from_client && is_it(row)) {
                let from = if from_client { "client" } else { "server" };
                found.push((*line, format!("the {from} does not send {name} here")));
            }
        }
    }
    found
}

/// For each column whose it is: that of the node that it names, or of the one before it; those before all nodes are nobody's.
fn owners<'n>(table: &Table, nodes: &BTreeSet<&'n str>) -> Vec<&'n str> {
    let mut owner = NOBODY;
    let mut owner_of = |name: &String| {
        let named = nodes.iter().chain(&[WIRE]).find(|node| name.contains(**node));
        owner = named.copied().unwrap_or(owner);
        owner
    };
    table.columns.iter().map(&mut owner_of).collect()
}

fn of_kind(names: &Names, text: &str, kind: &str) -> Vec<String> {
    names.of(text).into_iter().filter(|name| name.kind == kind).map(|name| name.thing).collect()
}
