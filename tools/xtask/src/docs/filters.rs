//! Display filters that the pages recommend: tshark must accept each of them, and it must find packets.

use super::page::Page;
use super::sources::files;
use anyhow::{Context, Result};
use run::files::{bytes, output};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::Command;
use tempfile::NamedTempFile;

/// The captures hold one kind of NAK, and no RNR NAK. Filters for the others only need to be accepted.
const MAY_FIND_NOTHING: &str = "infiniband.aeth.syndrome";

/// Filters that tshark refuses, or that find no packet in any of the bundled captures.
pub fn problems(pages: &[Page]) -> Result<Vec<String>> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for page in pages {
        for (line, filter) in filters(page) {
            places.entry(filter).or_default().push(page.place(line));
        }
    }
    let wrong = wrong(places.keys().map(String::as_str).collect()).context("no filter was tried")?;
    let named = |(filter, what): &(String, String)| {
        places[filter].iter().map(|place| format!("{place}: {what}")).collect::<Vec<_>>()
    };
    Ok(wrong.iter().flat_map(named).collect())
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
fn wrong(mut filters: Vec<&str>) -> Result<Vec<(String, String)>> {
    // pcapng files can be put one after the other.
    let mut captures = NamedTempFile::new()?;
    for path in files("captures", ".pcapng")? {
        captures.write_all(&bytes(&path)?)?;
    }
    let mut wrong = Vec::new();
    loop {
        let mut tshark = Command::new("tshark");
        tshark.args(["-n", "-q", "-r"]).arg(captures.path());
        // Protocol statistics take a filter with any characters in it, and any number of them.
        tshark.args(filters.iter().flat_map(|filter| ["-z".to_string(), format!("io,phs,{filter}")]));
        match output(&mut tshark) {
            Ok(told) => {
                let found = found(&told);
                let may = |filter: &str| found.contains(filter) || filter.starts_with(MAY_FIND_NOTHING);
                let what = |filter: &str| format!("the filter `{filter}` finds no packet in any bundled capture");
                wrong.extend(filters.iter().filter(|filter| !may(filter)).map(|it| (it.to_string(), what(it))));
                return Ok(wrong);
            }
            Err(error) => {
                let said = error.to_string();
                let refused = said.split_once("Filter \"").and_then(|(_, rest)| rest.split_once("\" is invalid - "));
                let (filter, why) = refused.ok_or(error)?;
                let place = filters.iter().position(|other| *other == filter);
                filters.remove(place.with_context(|| format!("nobody has asked for it: {said}"))?);
                let why = why.lines().next().unwrap_or_default();
                wrong.push((filter.to_owned(), format!("tshark refuses the filter `{filter}`: {why}")));
            }
        }
    }
}

/// The filters that find packets: a line has the filter, and others the number of packets for each protocol that there is.
fn found(statistics: &str) -> BTreeSet<&str> {
    let (mut found, mut current) = (BTreeSet::new(), "");
    for line in statistics.lines() {
        current = line.strip_prefix("Filter: ").unwrap_or(current);
        if line.contains("frames:") {
            found.insert(current);
        }
    }
    found
}
