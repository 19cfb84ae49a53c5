//! Display filters that the pages recommend: tshark must accept each of them, and it must find packets.

use super::page::{Page, Problem};
use super::sources::Sources;
use anyhow::{bail, Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Command, Stdio};

/// Filters for what no lesson does: its runs go well, so no capture has a NAK, and none has atomics. They only have to be accepted.
const FINDS_NOTHING: [&str; 2] = ["infiniband.aeth.syndrome", "infiniband.bth.opcode in {19..20}"];

/// Filters that tshark refuses, or that find no packet in any of the bundled captures.
pub fn problems(pages: &[Page], sources: &Sources) -> Vec<Problem> {
    let named: Vec<(&Page, usize, String)> = pages
        .iter()
        .flat_map(|page| filters(page).into_iter().map(move |(line, filter)| (page, line, filter)))
        .collect();
    let distinct: BTreeSet<&str> = named.iter().map(|(.., filter)| filter.as_str()).collect();
    let verdicts = match all_captures(sources).and_then(|captures| verdicts(&captures, &distinct)) {
        Ok(verdicts) => verdicts,
        Err(error) => return vec![Problem::new("docs", format!("no filter was tried: {error:#}"))],
    };
    let failed = |(page, line, filter): &(&Page, usize, String)| {
        let what = match verdicts.get(filter.as_str())? {
            Verdict::Finds(0) if !FINDS_NOTHING.iter().any(|known| filter.starts_with(known)) => {
                format!("the filter `{filter}` finds no packet in any bundled capture")
            }
            Verdict::Finds(_) => return None,
            Verdict::Refused(why) => format!("tshark refuses the filter `{filter}`: {why}"),
        };
        Some(page.problem(*line, what))
    };
    named.iter().filter_map(failed).collect()
}

/// The filters of a page with their lines: in backquotes after the word "filter", or in a table's column of that name.
fn filters(page: &Page) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut before = String::new();
    for ((at, line), fenced) in page.lines.iter().enumerate().zip(page.fenced()) {
        if fenced {
            before.clear();
            continue;
        }
        for (place, piece) in line.split('`').enumerate() {
            if place % 2 == 0 {
                before.push_str(piece);
                continue;
            }
            let words = before.trim_end().to_lowercase();
            if words.ends_with("filter") && !words.ends_with("capture filter") {
                found.push((at, piece.into()));
            }
            before.push('`');
        }
        before.push(' ');
        if let Some(table) = page.table_at(at) {
            let column = table.column(&["filter", "display filter"]);
            let cells = table.rows.iter().filter_map(|(line, cells)| Some((*line, cells.get(column?)?)));
            found.extend(cells.map(|(line, cell)| (line, cell.trim_matches('`').to_string())));
        }
    }
    // What a column of filters says may have the word in it, too.
    found.sort();
    found.dedup();
    found
}

#[derive(Debug, PartialEq)]
enum Verdict {
    /// How many packets.
    Finds(u64),
    /// What tshark says.
    Refused(String),
}

/// All bundled captures in one: pcapng files can be put one after the other.
fn all_captures(sources: &Sources) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    for path in sources.files("captures", ".pcapng")? {
        all.extend(sources.bytes(&path)?);
    }
    Ok(all)
}

/// Tries all filters at once, because starting tshark takes the most time; if one is refused, one by one.
fn verdicts<'f>(captures: &[u8], filters: &BTreeSet<&'f str>) -> Result<BTreeMap<&'f str, Verdict>> {
    let all: Vec<&str> = filters.iter().copied().collect();
    if let Ok(counts) = run(captures, &all)? {
        return Ok(all
            .into_iter()
            .map(|filter| (filter, Verdict::Finds(counts.get(filter).copied().unwrap_or(0))))
            .collect());
    }
    let mut verdicts = BTreeMap::new();
    for filter in all {
        let verdict = match run(captures, &[filter])? {
            Ok(counts) => Verdict::Finds(counts.get(filter).copied().unwrap_or(0)),
            Err(why) => Verdict::Refused(why),
        };
        verdicts.insert(filter, verdict);
    }
    Ok(verdicts)
}

/// How many packets each filter finds, or what tshark says against one of them.
fn run(captures: &[u8], filters: &[&str]) -> Result<Result<BTreeMap<String, u64>, String>> {
    let mut tshark = Command::new("tshark");
    tshark.args(["-n", "-q", "-r", "-"]);
    // Protocol statistics take a filter with any characters in it, and any number of them.
    tshark.args(filters.iter().flat_map(|filter| ["-z".to_string(), format!("io,phs,{filter}")]));
    let mut child = tshark
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot run tshark; `make test` installs it, elsewhere install the package tshark")?;
    if let Some(mut input) = child.stdin.take() {
        // A tshark that refuses a filter ends without reading: its message tells more than the broken pipe.
        let _ = input.write_all(captures);
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        let Some((_, why)) = errors.split_once(" is invalid - ") else { bail!("tshark: {}", errors.trim()) };
        return Ok(Err(why.lines().next().unwrap_or_default().into()));
    }
    Ok(Ok(counts(&String::from_utf8_lossy(&output.stdout))))
}

/// Reads the statistics: a line with the filter, then one with the number of packets for each protocol.
fn counts(text: &str) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    let mut current = String::new();
    for line in text.lines() {
        if let Some(filter) = line.strip_prefix("Filter: ") {
            current = filter.into();
        }
        let frames = line.split_once("frames:").and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok());
        if let Some(frames) = frames {
            // The first protocol has all packets; the others are inside of it.
            counts.entry(current.clone()).or_insert(frames);
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::super::sources::tests::repository;
    use super::*;

    fn check(text: &str) -> Vec<String> {
        let pages = [Page::new("docs/p.md", text)];
        problems(&pages, &repository()).iter().map(Problem::to_string).collect()
    }

    #[test]
    fn filters_are_found_where_they_are_named() {
        let text = "Use the filter `a`, or the display filter\n`b`. A capture filter `c`, code `d`.\n\n\
                    | filter | shows |\n|---|---|\n| `e \\|\\| f` | `g` |\n```\nfilter `h`\n```\n";
        let found: Vec<String> = filters(&Page::new("p.md", text)).into_iter().map(|(_, filter)| filter).collect();
        assert_eq!(found, ["a", "b", "e || f"]);
    }

    #[test]
    fn tshark_accepts_them_and_finds_packets() {
        assert_eq!(check("filter `infiniband.bth.opcode in {6..8,10}` and filter `infiniband`"), [""; 0]);
        assert_eq!(check("filter `infiniband.aeth.syndrome.opcode == 3`"), [""; 0]);
        let refused = check("filter `infiniband`\n\nfilter `infinibad`");
        assert!(refused.len() == 1 && refused[0].starts_with("docs/p.md:3: tshark refuses"), "{refused:?}");
        let nothing = check("filter `infiniband.bth.opcode == 99`");
        assert!(nothing[0].ends_with("finds no packet in any bundled capture"), "{nothing:?}");
    }
}
