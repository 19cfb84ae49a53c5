//! The parts of a page that this program writes.

use super::page::Page;
use super::sources::Sources;
use super::{changes, diffs, drawings, excerpts, lessons, reference};
use anyhow::{bail, Result};
use std::collections::BTreeMap;
use std::net::IpAddr;
use wire::show::row::Row;

/// What belongs between a mark `<!-- generated: WHAT -->` and the next `<!-- end -->`.
pub fn part(page: &Page, what: &[&str], sources: &Sources) -> Result<Vec<String>> {
    let lines = match what {
        ["packets", name] => {
            let capture = format!("captures/{name}.pcapng");
            packets(&sources.rows(&capture)?, &sources.nodes(&capture)?)
        }
        ["lanes", name, range] => vec![drawings::lanes_link(page, sources, name, range)?],
        ["log", name, side, stages @ ..] => fenced(excerpts::log(sources, name, side, stages)?),
        ["change", lesson, name] => changes::section(sources, lesson, name)?,
        ["diff", old, new] => diffs::folded(sources, old, new)?,
        ["ladder", name] => vec![drawings::ladder_link(sources, name)?],
        ["loss", name] => vec![drawings::loss_link(sources, name)?],
        ["captures"] => lessons::captures(sources)?,
        ["lessons"] => lessons::table(sources)?,
        ["needs"] => needs(&sources.text("lab/needs.txt")?),
        ["opcodes"] => reference::opcodes(sources)?,
        ["cm-messages"] => reference::messages()?,
        ["syndromes"] => reference::syndromes(),
        ["private-data"] => reference::private_data(),
        ["filters"] => reference::filters(),
        _ => bail!("no generated part is called `{}`: CONTRIBUTING.md lists them", what.join(" ")),
    };
    // A forge takes what stands right below a comment for a part of it.
    Ok([vec![String::new()], lines, vec![String::new()]].concat())
}

fn fenced(lines: Vec<String>) -> Vec<String> {
    [vec!["```text".into()], lines, vec!["```".into()]].concat()
}

/// What each stage needs, from set-up's own table.
fn needs(table: &str) -> Vec<String> {
    let mut stages: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let mut cells = line.split('|').map(str::trim);
        let (stage, what) = (cells.next().unwrap_or_default(), cells.next().unwrap_or_default());
        match stages.last_mut() {
            Some((last, things)) if *last == stage => things.push(what),
            _ => stages.push((stage, vec![what])),
        }
    }
    let rows = stages.iter().map(|(stage, things)| format!("| {stage} | {} |", things.join(", ")));
    ["| for | what |", "| --- | --- |"].map(str::to_owned).into_iter().chain(rows).collect()
}

/// The packet table of a capture.
fn packets(rows: &[Row], nodes: &BTreeMap<IpAddr, String>) -> Vec<String> {
    let name = |address| nodes.get(address).map_or_else(|| address.to_string(), String::clone);
    let head = ["| frame | ms | direction | packet | PSN | says | step |", "|--:|--:|---|---|---|---|---|"];
    let mut lines = head.map(String::from).to_vec();
    for row in rows {
        let ms = row.ms.map_or(String::new(), |ms| format!("{ms:.1}"));
        let arrow = if row.from_client { '→' } else { '←' };
        let direction = format!("{} {arrow} {}", name(&row.client), name(&row.server));
        let psn = row.psn.as_deref().map_or("", |psn| psn.trim_start_matches("psn "));
        let step = row.step().map_or(String::new(), |step| step.trim_start_matches("Step ").replacen(':', ".", 1));
        let details = row.details.join(", ");
        let Row { frame, label, .. } = row;
        lines.push(format!("| {frame} | {ms} | {direction} | {label} | {psn} | {details} | {step} |"));
    }
    lines
}
