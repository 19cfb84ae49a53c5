//! The parts of a page that this program writes.

use super::page::Page;
use super::sources::Sources;
use super::{changes, diffs, drawings, excerpts, lessons, recorded, reference};
use anyhow::{bail, Result};

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
        ["differences"] => reference::differences(&sources.text("tools/device/differences.toml")?)?,
        ["needs"] => reference::needs(&sources.text("tools/lab/needs.txt")?),
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
