//! How much of the docs is checked? One false name or number at a time is planted, and the checks look for it.
//!
//! `make test-long group=docs` prints what was not found.

use super::super::headers::is_word;
use super::super::names::Names;
use super::super::page::Page;
use super::super::sources::Sources;
use super::super::{filters, links, numbers, of_page, pages};
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

/// A name or a number: where it stands, and what kind of thing it is.
struct Claim {
    page: usize,
    line: usize,
    range: Range<usize>,
    zone: &'static str,
    kind: &'static str,
}

/// What kind of part a line is in; None for what `make docs` writes and for the marks.
fn zone(page: &Page, at: usize) -> Option<&'static str> {
    let line = &page.lines[at];
    let written =
        page.marks.iter().filter(|mark| mark.kind == "generated").filter_map(|mark| page.part_after(mark.line));
    let claims_nothing = ["<!--", "```", "!["].iter().any(|start| line.trim_start().starts_with(start));
    // An error's page begins with what somebody else's program has printed: a quote, whose addresses and times are that machine's.
    let is_quote = page.fenced[at] && page.path.starts_with(super::super::ERRORS);
    if claims_nothing || is_quote || written.into_iter().any(|part| part.contains(&at)) {
        return None;
    }
    Some(if page.fenced[at] { "fenced" } else { ["prose", "table"][usize::from(line.starts_with('|'))] })
}

/// Where the names and numbers of a line stand, each with the kind of thing that it is.
fn claims_of(line: &str, names: &Names) -> Vec<(Range<usize>, &'static str)> {
    // What a link leads to is checked as a link.
    let line = links::replaced(line, |target| " ".repeat(target.len() + 2));
    let of_name = |text: &str, kind| {
        let at = text.as_ptr() as usize - line.as_ptr() as usize;
        (at..at + text.len(), kind)
    };
    let mut found: Vec<_> = names.of(&line).iter().map(|name| of_name(name.text, name.kind)).collect();
    let digits = line.match_indices(|c: char| c.is_ascii_digit()).map(|(at, _)| at);
    for at in digits.filter(|at| !line[..*at].ends_with(is_word)) {
        let end = line[at..].find(|c: char| !c.is_ascii_alphanumeric()).map_or(line.len(), |length| at + length);
        // The number of a list's item, or of a heading, claims nothing.
        let is_item = line[end..].starts_with(". ") && line[..at].trim().trim_matches('#').is_empty();
        if !is_item && found.iter().all(|(range, _)| !range.contains(&at)) {
            found.push((at..end, "number"));
        }
    }
    found.sort_by_key(|(range, _)| range.start);
    found
}

/// All names and numbers of all pages, but for those that `make docs` writes.
fn claims(pages: &[Page], names: &Names) -> Vec<Claim> {
    let mut claims = Vec::new();
    // A test of bench's compares the whole page of figures with what was measured; and a change's page is proven by its runs.
    let is_elsewhere = |page: &Page| page.path == numbers::MEASURED || page.path.starts_with("lessons/");
    for (at, page) in pages.iter().enumerate().filter(|(_, page)| !is_elsewhere(page)) {
        for (line, text) in page.lines.iter().enumerate() {
            let Some(zone) = zone(page, line) else { continue };
            let of_line = claims_of(text, names).into_iter();
            claims.extend(of_line.map(|(range, kind)| Claim { page: at, line, range, zone, kind }));
        }
    }
    claims
}

/// Another name of the same kind, or a number of which one digit differs.
fn wrong(was: &str, kind: &str, known: &[(&String, &'static str)], random: &mut Random) -> String {
    if kind != "number" {
        // Of the same form, too, as a person would mix them up.
        let form = |word: &str| {
            let is_short = word.len() <= 4 && word.chars().all(char::is_uppercase);
            let starts = ["RDMA_CM", "IBV_", "rdma_"].map(|start| word.starts_with(start));
            (starts, word.contains(' '), is_short, word.contains("et"))
        };
        let others: Vec<_> = known.iter().filter(|(name, of)| *of == kind && *name != was).collect();
        let same: Vec<_> = others.iter().filter(|(name, _)| form(name) == form(was)).copied().collect();
        let others = if same.is_empty() { others } else { same };
        return others[random.below(others.len())].0.clone();
    }
    if let Some(hex) = was.strip_prefix("0x").filter(|hex| !hex.contains(|c: char| c.is_ascii_digit())) {
        return format!("0x{}{hex}", random.below(9) + 1);
    }
    let first = if was.starts_with("0x") { 2 } else { 0 };
    let digits: Vec<usize> = (first..was.len()).filter(|at| was.as_bytes()[*at].is_ascii_digit()).collect();
    let at = digits[random.below(digits.len())];
    let digit = (was.as_bytes()[at] - b'0' + 1 + random.below(9) as u8) % 10;
    format!("{}{}{}", &was[..at], digit, &was[at + 1..])
}

/// How many problems the checks see on a page. Filters take tshark, so they are left out where none was changed.
fn found(page: &Page, filters: bool, sources: &Sources) -> usize {
    let mut problems = of_page(page, sources);
    if filters {
        problems.extend(filters::problems(std::slice::from_ref(page)).unwrap());
    }
    problems.len()
}

/// At least 65 of 100 in tables, 80 in fenced blocks, and 30 in prose: a little less than today's shares.
#[test]
#[ignore = "takes long: make test-long"]
fn planted_errors_are_found() {
    let sources = repository();
    let pages = pages(sources).unwrap();
    let all: String = pages.iter().map(Page::text).collect();
    let named = sources.names.known.iter().filter(|(name, _)| all.contains(*name));
    let known: Vec<(&String, &'static str)> = named.map(|(name, (kind, _))| (name, *kind)).collect();
    let claims = claims(&pages, &sources.names);
    let before: Vec<usize> = pages.iter().map(|page| found(page, true, sources)).collect();
    let (mut random, mut too_few) = (Random(9), Vec::new());
    for (zone, least) in [("table", 65), ("fenced", 80), ("prose", 30)] {
        let of_zone: Vec<&Claim> = claims.iter().filter(|claim| claim.zone == zone).collect();
        let (mut hits, tries) = (0, 1000);
        for _ in 0..tries {
            let claim = of_zone[random.below(of_zone.len())];
            let mut page = pages[claim.page].clone();
            let line = &mut page.lines[claim.line];
            let was = line[claim.range.clone()].to_string();
            let now = wrong(&was, claim.kind, &known, &mut random);
            line.replace_range(claim.range.clone(), &now);
            let with_filters = page.lines[claim.line].contains("infiniband");
            if found(&Page::new(&page.path, &page.text()), with_filters, sources) > before[claim.page] {
                hits += 1;
            } else {
                println!("missed {}:{}: {was} -> {now}: {}", page.path, claim.line + 1, page.lines[claim.line]);
            }
        }
        println!("{zone}: {} claims; {hits} of {tries} planted errors are found", of_zone.len());
        too_few.extend((hits * 100 < tries * least).then(|| format!("{zone}: at least {least} of 100 are wanted")));
    }
    assert!(too_few.is_empty(), "{too_few:?}");
}
