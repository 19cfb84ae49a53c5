//! The marks of a page, `<!-- KIND: WORDS -->`: what each says of the part that follows it.

use super::headers::is_word;
use super::page::{Mark, Page, Wrong};
use super::sources::Sources;
use super::{
    changes, commands, diffs, drawings, excerpts, lessons, links, psns, recorded, reference, ring, states, tables,
};
use anyhow::{bail, ensure, Context, Result};
use run::files::read;
use std::ops::Range;
use workbench::challenge;

/// What comes of comparing a marked part with its source.
enum Verdict {
    /// These lines of the page can be written again, and this is what belongs there.
    Written(Range<usize>, Vec<String>),
    /// People wrote them. Those that do not hold, each with what is wrong.
    Compared(Wrong),
}

use Verdict::{Compared, Written};

/// What commands have printed, for pages to quote.
#[cfg(test)]
pub const PRINTED: &str = "captures/printed";
/// A line of quoted code that stands for lines left out.
const OMISSION: &str = "…";

fn verdict(page: &Page, mark: &Mark, sources: &Sources) -> Result<Verdict> {
    let block = || page.block_after(mark.line).context("no fenced block follows this mark");
    let table = || {
        let table = page.table_after(mark.line).filter(|table| !table.rows.is_empty());
        table.context("no table with rows follows this mark")
    };
    let words = mark.words();
    Ok(match (mark.kind.as_str(), words.as_slice()) {
        ("generated", what) => {
            let part = page.part_after(mark.line).context("no line <!-- end --> follows this mark")?;
            Written(part, generated(page, what, sources)?)
        }
        ("ladder", [capture, steps]) => Written(block()?, excerpts::ladder(capture, steps)?),
        ("bytes", [capture, step, sections @ ..]) if !sections.is_empty() => {
            Written(block()?, excerpts::sections(capture, step, sections)?)
        }
        ("code", [path]) => {
            code(&page.lines[block()?], path)?;
            Compared(Wrong::new())
        }
        ("printed", [path]) => {
            let missing = in_order(&page.lines[block()?], &read(path)?).err();
            ensure!(missing.is_none(), "{path} has no such line here: {}", missing.unwrap_or_default());
            Compared(Wrong::new())
        }
        ("recorded", [name]) => {
            commands::recorded(&page.lines[block()?], name)?;
            Compared(Wrong::new())
        }
        ("fields", [capture, steps @ ..]) => Compared(tables::fields(&table()?, capture, steps)?),
        ("in", ["linked"]) => Compared(tables::linked(&table()?, page, sources)),
        ("in", paths) if !paths.is_empty() => Compared(tables::inside(&table()?, paths, sources)?),
        ("rows", paths) if !paths.is_empty() => Compared(tables::rows(&table()?, paths)?),
        ("lesson", ["one"]) => Compared(tables::one_lesson(&table()?)),
        ("steps", ["all"]) => Compared(tables::all_steps(&table()?, sources)?),
        ("psns", [run, node]) => Compared(psns::problems(&table()?, run, node)?),
        ("cited", folders) if !folders.is_empty() => Compared(tables::cited(&table()?, folders)),
        ("tried", paths) if !paths.is_empty() => Compared(tables::tried(&table()?, paths)?),
        // The book has it there; a forge shows nothing.
        ("workbench", [name]) => {
            let is_known = ["all", "start"].contains(name) || challenge::all().iter().any(|of| of.page == *name);
            ensure!(is_known, "no challenge is of the page {name}: tools/workbench/challenges has them");
            Compared(Wrong::new())
        }
        ("caused", ["change"]) => Compared(recorded::caused(&table()?, page, sources)?),
        ("order", [capture, node]) => Compared(states::order(&table()?, capture, node, sources)?),
        ("packets", [capture, column]) => Compared(states::packets_in_order(&table()?, capture, column, sources)?),
        ("states", [capture]) => Compared(states::problems(&table()?, mark.line, capture, sources)?),
        (kind, _) => bail!("no mark is written `{kind}: {}`: CONTRIBUTING.md lists them", words.join(" ")),
    })
}

/// What belongs between a mark `<!-- generated: WHAT -->` and the next `<!-- end -->`.
fn generated(page: &Page, what: &[&str], sources: &Sources) -> Result<Vec<String>> {
    let lines = match what {
        ["ladder", _] | ["lanes", _, _] | ["plot", _] => vec![drawings::link(&page.path, what)?],
        ["two-flows"] => drawings::two_flows_with_table(&page.path)?,
        [folder @ ("met" | "over_tcp"), name] => vec![drawings::elsewhere(folder, name)?],
        ["protocol", name] => vec![drawings::protocol(name)?],
        ["log", name, side, stages @ ..] => fenced(excerpts::log(name, side, stages)?),
        ["explain", name] => fenced(excerpts::explained(name)?),
        ["story", name] => fenced(excerpts::story(name)?),
        ["changes", lesson, names @ ..] if !names.is_empty() => changes::table(sources, lesson, names)?,
        ["case", lesson, name] => recorded::case(sources, lesson, name)?,
        ["broken", lesson, name] => fenced(recorded::whole(lesson, name)?),
        ["broken", lesson, name, words @ ..] => fenced(recorded::some(&changes::recorded(lesson, name), words)?),
        ["run", name, words @ ..] if !words.is_empty() => {
            fenced(recorded::some(&format!("captures/{name}.txt"), words)?)
        }
        ["seen", lesson, name, words @ ..] if !words.is_empty() => recorded::linked(lesson, name, words)?,
        ["diff", old, new] => diffs::counted(sources, old, new)?,
        ["captures"] => lessons::captures()?,
        ["steps", name] => lessons::steps(name)?,
        ["lessons"] => lessons::table(sources)?,
        ["challenges"] => lessons::challenges(),
        ["differences"] => reference::differences()?,
        ["needs"] => reference::needs(&read("tools/lab/needs.txt")?),
        ["opcodes"] => reference::opcodes()?,
        ["cm-messages"] => reference::messages()?,
        ["syndromes"] => reference::syndromes(),
        ["filters"] => reference::filters(),
        ["explain-measured"] => reference::explain_measured(&read("tools/device/tests/all/explain.md")?),
        ["ring", what] => fenced(ring::drawn(what)?),
        _ => bail!("no generated part is called `{}`: CONTRIBUTING.md lists them", what.join(" ")),
    };
    // A forge takes what stands right below a comment for a part of it.
    Ok([vec![String::new()], links::below(page, &lines)].concat())
}

fn fenced(lines: Vec<String>) -> Vec<String> {
    [vec!["```text".into()], lines, vec!["```".into()]].concat()
}

/// The page with everything renewed that can be written, and the marks where that failed.
pub fn renew(page: &Page, sources: &Sources) -> (Page, Wrong) {
    let (mut lines, mut wrong) = (page.lines.clone(), Wrong::new());
    // From the end, so that the places before stay right.
    for mark in page.marks.iter().rev() {
        match verdict(page, mark, sources) {
            Ok(Written(range, content)) => drop(lines.splice(range, content)),
            Ok(Compared(_)) => {}
            Err(error) => wrong.push((mark.line, format!("{error:#}"))),
        }
    }
    (Page::new(&page.path, &(lines.join("\n") + "\n")), wrong)
}

/// What does not hold in the marked parts.
pub fn problems(page: &Page, sources: &Sources) -> Wrong {
    let wrong = |mark: &Mark| match verdict(page, mark, sources) {
        Ok(Written(range, lines)) if page.lines[range.clone()] == lines => Wrong::new(),
        Ok(Written(range, lines)) => {
            let same = page.lines[range.clone()].iter().zip(&lines).take_while(|(is, should)| is == should).count();
            vec![(range.start + same, "this part is not what `make docs` writes: run it and commit".into())]
        }
        Ok(Compared(wrong)) => wrong,
        Err(error) => vec![(mark.line, format!("{error:#}"))],
    };
    page.marks.iter().flat_map(wrong).collect()
}

/// Whole lines, each run of them in one piece; the quote as a whole may be indented less than the source.
fn code(quote: &[String], path: &str) -> Result<()> {
    ensure!(!quote.is_empty(), "the fenced block is empty");
    let source = read(path)?;
    let source: Vec<&str> = source.lines().collect();
    for run in quote.split(|line| line.trim() == OMISSION) {
        let run: Vec<&str> = run.iter().map(String::as_str).collect();
        let Some(first) = run.iter().find(|line| !line.trim().is_empty()) else { continue };
        let is_there = source.windows(run.len()).any(|lines| same(lines, &run));
        ensure!(is_there, "{path} has no such lines in one piece, from this one on: {first}");
    }
    Ok(())
}

/// What a program has printed, in its order; more may come in between. A `…` in a line stands for anything. How wide the lanes
/// are, and where their lines end, doesn't matter. If not, the first line that isn't there.
pub fn in_order(quote: &[String], printed: &str) -> Result<(), String> {
    let printed = squeezed(printed);
    let mut rest = printed.as_str();
    for line in quote {
        // A long command goes on in the next line.
        let line = line.strip_suffix('\\').unwrap_or(line);
        for piece in squeezed(line).split(OMISSION).map(str::trim).filter(|piece| !piece.is_empty()) {
            let end = end_of(piece, rest).ok_or_else(|| line.to_owned())?;
            rest = &rest[end..];
        }
    }
    Ok(())
}

/// Where some words end in a text that has them, whole.
fn end_of(words: &str, text: &str) -> Option<usize> {
    let begins = |at: usize| !(words.starts_with(is_word) && text[..at].ends_with(|c: char| is_word(c) || c == '.'));
    let ends = |at: usize| !(words.ends_with(is_word) && text[at..].starts_with(is_word));
    let found = text.match_indices(words).find(|(at, _)| begins(*at) && ends(at + words.len()));
    found.map(|(at, _)| at + words.len())
}

/// A text on one line, with one blank for each gap and one dash for each arrow.
fn squeezed(text: &str) -> String {
    let gap = |c: char| if c == '│' || c.is_whitespace() { ' ' } else { c };
    let mut text: Vec<char> = text.chars().map(gap).collect();
    text.dedup_by(|next, last| next == last && [' ', '─'].contains(next));
    text.into_iter().collect::<String>().trim().to_owned()
}

fn same(source: &[&str], quote: &[&str]) -> bool {
    let indent = |lines: &[&str]| {
        let filled = lines.iter().find(|line| !line.trim().is_empty());
        filled.map_or(0, |line| line.len() - line.trim_start().len())
    };
    let Some(less) = indent(source).checked_sub(indent(quote)) else { return false };
    let shifted = |line: &str| match line.trim().is_empty() {
        true => Some(String::new()),
        false => line.strip_prefix(&" ".repeat(less)).map(|line| line.trim_end().to_string()),
    };
    source.iter().zip(quote).all(|(source, quote)| shifted(source).as_deref() == Some(quote.trim_end()))
}
