//! Display filters that the pages recommend: tshark must accept each of them, and it must find packets.

use super::page::{Page, Problem};
use super::sources::Sources;
use anyhow::{bail, Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Command, Stdio};

/// The captures hold one kind of NAK, and no RNR NAK. Filters for the others only have to be accepted.
const MAY_FIND_NOTHING: &str = "infiniband.aeth.syndrome";

/// Filters that tshark refuses, or that find no packet in any of the bundled captures.
pub fn problems(pages: &[Page], sources: &Sources) -> Vec<Problem> {
    let mut places: BTreeMap<String, Vec<(&Page, usize)>> = BTreeMap::new();
    for page in pages {
        for (line, filter) in filters(page) {
            places.entry(filter).or_default().push((page, line));
        }
    }
    let wrong = match wrong(places.keys().map(String::as_str).collect(), sources) {
        Ok(wrong) => wrong,
        Err(error) => return vec![Problem::new("docs", format!("no filter was tried: {error:#}"))],
    };
    let at_place = |(filter, what): &(String, String)| {
        places[filter].iter().map(|(page, line)| page.problem(*line, what)).collect::<Vec<_>>()
    };
    wrong.iter().flat_map(at_place).collect()
}

/// The filters of a page with their lines: in backquotes after the word "filter", or in a table's column of that name.
fn filters(page: &Page) -> BTreeSet<(usize, String)> {
    let mut found = BTreeSet::new();
    let mut before = String::new();
    for (at, line) in page.lines.iter().enumerate() {
        if page.fenced[at] {
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
                found.insert((at, piece.into()));
            }
            before.push('`');
        }
        before.push(' ');
    }
    for table in page.tables() {
        let column = table.column(&["filter", "display filter"]);
        let cells = table.rows.iter().filter_map(|(line, cells)| Some((*line, &cells[column?])));
        found.extend(cells.map(|(line, cell)| (line, cell.trim_matches('`').to_string())));
    }
    found
}

/// The filters that are no good, each with the reason. All are tried at once, because starting tshark takes the most time.
fn wrong(mut filters: Vec<&str>, sources: &Sources) -> Result<Vec<(String, String)>> {
    // pcapng files can be put one after the other.
    let captures: Vec<Vec<u8>> =
        sources.files("captures", ".pcapng")?.iter().map(|path| sources.bytes(path)).collect::<Result<_>>()?;
    let captures = captures.concat();
    let mut wrong = Vec::new();
    let counts = loop {
        match run(&captures, &filters)? {
            Ok(counts) => break counts,
            Err((filter, why)) => {
                let all = filters.len();
                filters.retain(|other| *other != filter);
                if filters.len() == all {
                    bail!("tshark refuses the filter `{filter}`, which was not asked for: {why}");
                }
                wrong.push((filter.clone(), format!("tshark refuses the filter `{filter}`: {why}")));
            }
        }
    };
    let nothing = filters.iter().filter(|filter| !counts.contains(**filter) && !filter.starts_with(MAY_FIND_NOTHING));
    wrong.extend(
        nothing.map(|filter| {
            (filter.to_string(), format!("the filter `{filter}` finds no packet in any bundled capture"))
        }),
    );
    Ok(wrong)
}

/// The filters that find packets; or one that tshark refuses, and why.
fn run(captures: &[u8], filters: &[&str]) -> Result<Result<BTreeSet<String>, (String, String)>> {
    let mut tshark = Command::new("tshark");
    tshark.args(["-n", "-q", "-r", "-"]);
    // Protocol statistics take a filter with any characters in it, and any number of them.
    tshark.args(filters.iter().flat_map(|filter| ["-z".to_string(), format!("io,phs,{filter}")]));
    let mut child = tshark
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot run tshark; `make test` gets it, elsewhere install the package tshark")?;
    if let Some(mut input) = child.stdin.take() {
        // A tshark that refuses a filter ends without reading: its message tells more than the broken pipe.
        let _ = input.write_all(captures);
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        let refused = errors.split_once("Filter \"").and_then(|(_, rest)| rest.split_once("\" is invalid - "));
        let Some((filter, why)) = refused else { bail!("tshark: {}", errors.trim()) };
        return Ok(Err((filter.into(), why.lines().next().unwrap_or_default().into())));
    }
    // A line with the filter, then one with the number of packets for each protocol that there is.
    let mut found = BTreeSet::new();
    let mut current = "";
    let text = String::from_utf8_lossy(&output.stdout);
    for line in text.lines() {
        current = line.strip_prefix("Filter: ").unwrap_or(current);
        if line.contains("frames:") {
            found.insert(current.to_string());
        }
    }
    Ok(Ok(found))
}

#[cfg(test)]
mod tests {
    use super::super::sources::tests::repository;
    use super::*;

    fn check(text: &str) -> Vec<String> {
        let pages = [Page::new("docs/p.md", text)];
        problems(&pages, repository()).iter().map(Problem::to_string).collect()
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
