//! The parts of a page that this program writes.

use super::page::Page;
use super::sources::Sources;
use super::{changes, diffs, drawings, excerpts, lessons, recorded, reference};
use anyhow::{bail, Context, Result};

/// What belongs between a mark `<!-- generated: WHAT -->` and the next `<!-- end -->`.
pub fn part(page: &Page, what: &[&str], sources: &Sources) -> Result<Vec<String>> {
    let lines = match what {
        ["lanes", name, range] => vec![drawings::lanes_link(page, sources, name, range)?],
        ["log", name, side, stages @ ..] => fenced(excerpts::log(sources, name, side, stages)?),
        ["changes", lesson, names @ ..] if !names.is_empty() => changes::table(sources, lesson, names)?,
        ["case", lesson, name] => recorded::case(sources, lesson, name)?,
        ["seen", lesson, name, words @ ..] if !words.is_empty() => recorded::linked(sources, lesson, name, words)?,
        ["diff", old, new] => diffs::counted(sources, old, new)?,
        ["ladder", name] => vec![drawings::ladder_link(sources, name)?],
        ["loss", name] => reference::loss(sources, name)?,
        ["captures"] => lessons::captures(sources)?,
        ["lessons"] => lessons::table(sources)?,
        ["differences"] => differences(&sources.text("tools/device/differences.toml")?)?,
        ["needs"] => needs(&sources.text("tools/lab/needs.txt")?),
        ["opcodes"] => reference::opcodes(sources)?,
        ["cm-messages"] => reference::messages()?,
        ["syndromes"] => reference::syndromes(),
        ["private-data"] => reference::private_data(),
        ["filters"] => reference::filters(),
        _ => bail!("no generated part is called `{}`: CONTRIBUTING.md lists them", what.join(" ")),
    };
    // A forge takes what stands right below a comment for a part of it.
    Ok([vec![String::new()], lines].concat())
}

fn fenced(lines: Vec<String>) -> Vec<String> {
    [vec!["```text".into()], lines, vec!["```".into()]].concat()
}

/// A row of the device's table of differences, as far as the page shows it.
#[derive(serde::Deserialize)]
struct Difference {
    what: String,
    rxe: String,
    device: String,
    specification: String,
}

#[derive(serde::Deserialize)]
struct Differences {
    difference: Vec<Difference>,
}

/// What the device does otherwise than rdma_rxe.
fn differences(file: &str) -> Result<Vec<String>> {
    let known: Differences = basic_toml::from_str(file).context("tools/device/differences.toml")?;
    let rows = known.difference.into_iter().map(|Difference { what, rxe, device, specification }| {
        format!("| {what} | {rxe} | {device} | {specification} |")
    });
    let head = ["| what | rdma_rxe | this device | the specification |", "| --- | --- | --- | --- |"];
    Ok(head.map(str::to_owned).into_iter().chain(rows).collect())
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
