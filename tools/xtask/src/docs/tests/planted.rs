//! How much of the docs is checked? One false name or number at a time is planted, and the checks look for it.
//!
//! `make test-long group=docs` prints what was not found.

use super::super::page::Page;
use super::super::sources::Sources;
use super::super::{filters, numbers, of_page, pages};
use super::repository;
use std::ops::Range;

/// Numbers that look drawn at random, and are the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % end
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Zone {
    Table,
    Fenced,
    Prose,
}

/// What kind of part each line is; None for what `make docs` writes and for the marks.
fn zones(page: &Page) -> Vec<Option<Zone>> {
    let mut zones: Vec<Option<Zone>> =
        page.fenced.iter().map(|fenced| Some(if *fenced { Zone::Fenced } else { Zone::Prose })).collect();
    for (zone, line) in zones.iter_mut().zip(&page.lines) {
        if *zone == Some(Zone::Prose) && line.starts_with('|') {
            *zone = Some(Zone::Table);
        }
        if line.starts_with("<!--") || line.trim_start().starts_with("```") || line.starts_with("![") {
            *zone = None;
        }
    }
    for mark in page.marks.iter().filter(|mark| mark.kind == "generated") {
        for at in page.part_after(mark.line).unwrap_or_default() {
            zones[at] = None;
        }
    }
    zones
}

/// The names that people could mix up: all of one kind.
fn kinds(sources: &Sources, docs: &str) -> Vec<(&'static str, Vec<String>)> {
    let of_kind = |kind: &'static str| {
        let of_kind = sources.names.known.iter().filter(|(name, (of, _))| *of == kind && docs.contains(*name));
        (kind, of_kind.map(|(name, _)| name.clone()).collect())
    };
    ["call", "status", "event", "state", "packet"].map(of_kind).to_vec()
}

struct Claim {
    page: usize,
    line: usize,
    range: Range<usize>,
    zone: Zone,
    kind: &'static str,
}

/// Where the names and numbers of a line stand, each with the kind of thing that it is.
fn claims_of(line: &str, lists: &[(&'static str, Vec<String>)]) -> Vec<(Range<usize>, &'static str)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < line.len() {
        let rest = &line[at..];
        let before = line[..at].chars().next_back().unwrap_or(' ');
        // What a link leads to is checked as a link.
        if rest.starts_with("](") {
            at += rest.find(')').unwrap_or(rest.len() - 1) + 1;
            continue;
        }
        let starts = !before.is_alphanumeric() && before != '_';
        let whole = |word: &str| !rest[word.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
        let named = lists.iter().flat_map(|(kind, words)| words.iter().map(move |word| (*kind, word)));
        let named = named.filter(|(_, word)| starts && rest.starts_with(word.as_str()) && whole(word));
        if let Some((kind, word)) = named.max_by_key(|(_, word)| word.len()) {
            found.push((at..at + word.len(), kind));
            at += word.len();
            continue;
        }
        let digits = if starts && rest.starts_with(|c: char| c.is_ascii_digit()) {
            rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len())
        } else {
            0
        };
        if digits > 0 {
            // The number of a list's item, or of a heading, claims nothing.
            let item = rest[digits..].starts_with(". ") && line[..at].trim().trim_matches('#').is_empty();
            if !item {
                found.push((at..at + digits, "number"));
            }
            at += digits;
            continue;
        }
        at += rest.chars().next().map_or(1, char::len_utf8);
    }
    found
}

/// All names and numbers of all pages, but for those that `make docs` writes.
fn claims(pages: &[Page], lists: &[(&'static str, Vec<String>)]) -> Vec<Claim> {
    let mut claims = Vec::new();
    // A test of bench's compares the whole page of figures with what was measured; and a change's page is proven by its runs.
    let is_elsewhere = |page: &Page| page.path == numbers::MEASURED || page.path.starts_with("lessons/");
    for (at, page) in pages.iter().enumerate().filter(|(_, page)| !is_elsewhere(page)) {
        for (line, zone) in zones(page).into_iter().enumerate() {
            let Some(zone) = zone else { continue };
            let of_line = claims_of(&page.lines[line], lists);
            claims.extend(of_line.into_iter().map(|(range, kind)| Claim { page: at, line, range, zone, kind }));
        }
    }
    claims
}

fn wrong(was: &str, kind: &str, lists: &[(&'static str, Vec<String>)], random: &mut Random) -> String {
    if let Some((_, words)) = lists.iter().find(|(name, _)| *name == kind) {
        // Another name of the same kind and the same form, as a person would mix them up.
        let form = |word: &str| {
            (
                word.starts_with("RDMA_CM"),
                word.starts_with("IBV_"),
                word.starts_with("rdma_"),
                word.contains(' '),
                word.len() <= 4 && word.chars().all(char::is_uppercase),
                word.contains("et"),
            )
        };
        let same: Vec<&String> = words.iter().filter(|word| form(word) == form(was) && *word != was).collect();
        let others: Vec<&String> =
            if same.is_empty() { words.iter().filter(|word| *word != was).collect() } else { same };
        return others[random.below(others.len())].clone();
    }
    // One digit differs.
    if let Some(hex) = was.strip_prefix("0x").filter(|hex| !hex.contains(|c: char| c.is_ascii_digit())) {
        return format!("0x{}{hex}", random.below(9) + 1);
    }
    let digits: Vec<usize> = was
        .char_indices()
        .filter(|(at, c)| c.is_ascii_digit() && !(*at == 0 && was.starts_with("0x")))
        .map(|(at, _)| at)
        .collect();
    let at = digits[random.below(digits.len())];
    let digit = (was.as_bytes()[at] - b'0' + 1 + random.below(9) as u8) % 10;
    format!("{}{}{}", &was[..at], digit, &was[at + 1..])
}

/// How many problems the checks see on a page. Filters take tshark, so they are left out where none was changed.
fn found(page: &Page, filters: bool, sources: &Sources) -> usize {
    let mut problems = of_page(page, sources);
    if filters {
        problems.extend(filters::problems(std::slice::from_ref(page), sources).unwrap());
    }
    problems.len()
}

/// At least 6 of 10 in tables, 8 of 10 in fenced blocks, and 3 of 10 in prose: a little less than today's shares.
#[test]
#[ignore = "takes long: make test-long"]
fn planted_errors_are_found() {
    let sources = repository();
    let pages = pages(sources).unwrap();
    let all: String = pages.iter().map(Page::text).collect();
    let lists = kinds(sources, &all);
    let claims = claims(&pages, &lists);
    let before: Vec<usize> = pages.iter().map(|page| found(page, true, sources)).collect();
    let (mut random, mut too_few) = (Random(9), Vec::new());
    for (zone, least) in [(Zone::Table, 60), (Zone::Fenced, 80), (Zone::Prose, 30)] {
        let of_zone: Vec<&Claim> = claims.iter().filter(|claim| claim.zone == zone).collect();
        let (mut hits, tries) = (0, 1000);
        for _ in 0..tries {
            let claim = of_zone[random.below(of_zone.len())];
            let mut page = pages[claim.page].clone();
            let line = &mut page.lines[claim.line];
            let was = line[claim.range.clone()].to_string();
            let now = wrong(&was, claim.kind, &lists, &mut random);
            line.replace_range(claim.range.clone(), &now);
            let with_filters = page.lines[claim.line].contains("infiniband");
            if found(&Page::new(&page.path, &page.text()), with_filters, sources) > before[claim.page] {
                hits += 1;
            } else {
                println!("missed {}:{}: {was} -> {now}: {}", page.path, claim.line + 1, page.lines[claim.line]);
            }
        }
        println!("{zone:?}: {} claims; {hits} of {tries} planted errors are found", of_zone.len());
        too_few.extend((hits * 100 < tries * least).then(|| format!("{zone:?}: at least {least} of 100 are wanted")));
    }
    assert!(too_few.is_empty(), "{too_few:?}");
}
