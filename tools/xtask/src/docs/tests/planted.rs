//! How much of the docs is checked? One false name or number at a time is planted, and the checks look for it.
//!
//! `make test-long group=docs` prints what was not found.

use super::super::headers::is_word;
use super::super::names::Names;
use super::super::page::{Mark, Page};
use super::super::sources::Sources;
use super::super::{filters, links, numbers, of_page, pages};
use super::repository;
use std::env;
use std::iter;
use std::ops::Range;
use std::thread;

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

/// Something false on a page.
struct Planted {
    page: Page,
    line: usize,
    /// What it says instead of what.
    said: String,
}

impl Planted {
    fn new(claim: &Claim, pages: &[Page], known: &[(&String, &'static str)], random: &mut Random) -> Planted {
        let mut page = pages[claim.page].clone();
        let line = &mut page.lines[claim.line];
        let was = line[claim.range.clone()].to_string();
        let now = wrong(&was, claim.kind, known, random);
        line.replace_range(claim.range.clone(), &now);
        let mut page = Page::new(&page.path, &page.text());
        // A mark speaks of what comes right after it, as do those right above it. The marks of other parts would find what they
        // have found before.
        let mut nearest: Vec<Mark> = Vec::new();
        for mark in page.marks.iter().rev().filter(|mark| mark.line < claim.line && mark.kind != "generated") {
            if nearest.last().is_some_and(|below| below.line != mark.line + 1) {
                break;
            }
            nearest.push(mark.clone());
        }
        page.marks = nearest;
        Planted { page, line: claim.line, said: format!("{was} -> {now}") }
    }

    /// Whether the checks see it. Filters take tshark, so they are left out where none was changed.
    fn is_found(&self, sources: &Sources) -> bool {
        let may_be_filter = self.page.lines[self.line].contains("infiniband");
        !of_page(&self.page, sources).is_empty()
            || may_be_filter && !filters::problems(std::slice::from_ref(&self.page)).unwrap().is_empty()
    }
}

/// Those that no check sees. All processors look for them.
fn missed<'t>(tries: &'t [Planted], sources: &Sources) -> Vec<&'t Planted> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let of_part = |part: &'t [Planted]| move || part.iter().filter(|it| !it.is_found(sources)).collect::<Vec<_>>();
        let parts = tries.chunks(tries.len().div_ceil(processors)).map(|part| scope.spawn(of_part(part)));
        let parts: Vec<_> = parts.collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    })
}

/// Of 1,000 errors in tables, in fenced blocks and in prose so many at least: a little less than today. `SEED=1` plants others.
#[test]
#[ignore = "takes long: make test-long"]
fn planted_errors_are_found() {
    let sources = repository();
    let pages = pages(sources).unwrap();
    let all: String = pages.iter().map(Page::text).collect();
    let named = sources.names.known.iter().filter(|(name, _)| all.contains(*name));
    let known: Vec<(&String, &'static str)> = named.map(|(name, (kind, _))| (name, *kind)).collect();
    let claims = claims(&pages, &sources.names);
    // Otherwise any error on that page would count as found.
    let wrong: Vec<String> = pages.iter().flat_map(|page| of_page(page, sources)).collect();
    assert_eq!(wrong, [""; 0], "first mend the pages themselves");
    let seed = env::var("SEED").map_or(9, |seed| seed.parse().unwrap());
    let (mut random, mut too_few) = (Random(seed), Vec::new());
    for (zone, least) in [("table", 652), ("fenced", 859), ("prose", 340)] {
        let of_zone: Vec<&Claim> = claims.iter().filter(|claim| claim.zone == zone).collect();
        let plant = || {
            let claim = of_zone[random.below(of_zone.len())];
            Planted::new(claim, &pages, &known, &mut random)
        };
        let tries: Vec<Planted> = iter::repeat_with(plant).take(1000).collect();
        let missed = missed(&tries, sources);
        for Planted { page, line, said } in &missed {
            println!("missed {}: {said}: {}", page.place(*line), page.lines[*line]);
        }
        let hits = tries.len() - missed.len();
        println!("{zone}: {} claims; {hits} of {} planted errors are found", of_zone.len(), tries.len());
        too_few.extend((hits < least).then(|| format!("{zone}: at least {least} are wanted")));
    }
    assert!(too_few.is_empty(), "{too_few:?}");
}
