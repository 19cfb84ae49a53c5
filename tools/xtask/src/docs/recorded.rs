//! The recorded runs of changes, `captures/changes/NN-NAME.txt`: excerpts of them, and whether they show what a page says
//! that its change makes happen.

use super::lanes::{DrawnRow, Recorded};
use super::links::without_targets;
use super::names::Name;
use super::numbers;
use super::page::{code, Page, Table, Wrong};
use super::sources::Sources;
use super::{changes, excerpts};
use anyhow::{bail, ensure, Context, Result};
use run::capture::Reader;
use run::file::Event;
use run::files::{bytes, read};
use std::collections::BTreeSet;
use std::path::Path;

/// What a table says of an outcome that no change brings about.
const NOT_SEEN: &str = "not seen";
/// The statement that somebody has tried it, which has to say with what.
const TRIED: &str = "tried in the lab";
/// Where the tests are that try what is no change of a lesson.
const TESTS: &str = "tools/lab/tests/all/";

/// So many packets of a case are shown.
const MOST: usize = 8;

/// What is asked of a change, the answer, and the packets of its run.
pub fn case(sources: &Sources, lesson: &str, name: &str) -> Result<Vec<String>> {
    let (run, path) = (Recorded::load(lesson, name)?, changes::recorded(lesson, name));
    let mut lines = changes::asked(sources, lesson, name)?;
    lines.push("```text".into());
    let packets: Vec<&DrawnRow> = run.rows.iter().filter(|row| row.is_packet()).collect();
    let (begin, end) = (packets.len().min(MOST / 2), packets.len().saturating_sub(MOST / 2).max(MOST / 2));
    // That the wire lost it shows in its arrow; what the wire did else does not.
    let shown =
        |row: &&DrawnRow| row.lines.iter().filter(|line| !line.contains("lab: dropped")).cloned().collect::<Vec<_>>();
    lines.extend(packets[..begin].iter().flat_map(shown));
    lines.extend((packets.len() > MOST).then(|| "   …".into()));
    lines.extend(packets.get(end..).unwrap_or_default().iter().flat_map(shown));
    let mut told = format!("`make break-{lesson} CHANGE={name}`: [all that matters of its run](../{path})");
    let capture = path.replace(".txt", ".pcapng");
    if Path::new(&capture).exists() {
        told += &format!(", [capture](../{capture})");
    }
    lines.extend(["```".into(), told]);
    Ok(lines)
}

/// All that matters of a change's run, as `make break-NN CHANGE=NAME` shows it.
pub fn whole(lesson: &str, name: &str) -> Result<Vec<String>> {
    Ok(read(changes::recorded(lesson, name))?.lines().map(String::from).collect())
}

/// The rows of a recorded run that have one of these words; `WORD@2` is only the second row with it.
pub fn some(path: &str, words: &[&str]) -> Result<Vec<String>> {
    let run = Recorded::at(path)?;
    let mut shown: BTreeSet<usize> = BTreeSet::new();
    for word in words {
        let (text, which) = word.split_once('@').map_or((*word, None), |(text, which)| (text, Some(which)));
        let found: Vec<usize> = (0..run.rows.len()).filter(|at| run.rows[*at].text().contains(text)).collect();
        let found = excerpts::nth(&found, which)?;
        ensure!(!found.is_empty(), "{path} has no `{word}`");
        shown.extend(found);
    }
    Ok(run.text(|at| shown.contains(&at)))
}

/// Where a run is that shows these words.
pub fn linked(lesson: &str, name: &str, words: &[&str]) -> Result<Vec<String>> {
    seen(lesson, name, words)?;
    let path = changes::recorded(lesson, name);
    Ok(vec![format!("`make break-{lesson} CHANGE={name}` makes it happen: [the run](../{path}).")])
}

/// The first row of a run with these words, and the last packet before it.
pub fn seen(lesson: &str, name: &str, words: &[&str]) -> Result<Vec<String>> {
    let (run, words) = (Recorded::load(lesson, name)?, words.join(" "));
    let found = run.rows.iter().position(|row| row.text().contains(&words));
    let found = found.with_context(|| format!("the recorded run of {lesson}-{name} has no `{words}`"))?;
    let packet = (0..found).rev().find(|at| run.rows[*at].is_packet());
    let mut lines = vec![format!("`make break-{lesson} CHANGE={name}` makes it happen:"), String::new()];
    lines.extend(run.html(|at| at == found || Some(at) == packet));
    Ok(lines)
}

/// Rows of a table whose column "change" names a change that does not show what the row is about: the code in the column "in
/// the run", or else the first code of the row, which is a status, an event or words of a packet.
pub fn caused(table: &Table, page: &Page, sources: &Sources) -> Result<Wrong> {
    let is_row = |at: &usize| table.rows.iter().any(|(row, _)| row == at);
    let explained = (0..page.lines.len()).filter(|at| !is_row(at)).map(|at| page.lines[at].as_str());
    let explained = numbers::all(&explained.collect::<Vec<_>>().join("\n"));
    let column = table.column(&["change"]).context("the table has no column `change`")?;
    let words = table.column(&["in the run"]);
    let first = |cell: &String| code(cell).next().map(|code| code.replace("RDMA_CM_EVENT_", "CM event: "));
    let mut above = BTreeSet::new();
    Ok(table.wrong(|cells| {
        let is_again = table.columns[0] == "event" && !above.insert(cells[0].clone());
        if is_again {
            return Some(format!("{} is in a row above", cells[0]));
        }
        let what = words.and_then(|words| first(&cells[words])).or_else(|| cells[..column].iter().find_map(first));
        let (what, how) = (what.unwrap_or_default(), &cells[column]);
        let named: Vec<_> = changes_in(sources, how).collect();
        if named.is_empty() {
            return (!how.starts_with(NOT_SEEN)).then(|| format!("say which change shows `{what}`, or: {NOT_SEEN}"));
        }
        if let Some(strange) = strange(table, cells, &named, &explained, sources) {
            return Some(strange);
        }
        let shows = |(lesson, name): &&(&str, &str)| {
            Recorded::load(lesson, name).is_ok_and(|run| !what.is_empty() && run.shows(&what))
        };
        let (lesson, name) = named.iter().find(|named| !shows(named))?;
        Some(format!("the recorded run of {lesson}-{name} does not show `{what}`"))
    }))
}

/// A name of a row that its changes don't have, neither in their recorded runs nor on their pages; or a number that, besides,
/// the rest of the page doesn't explain. A status and a value are the headers' business.
fn strange(
    table: &Table,
    cells: &[String],
    named: &[(&str, &str)],
    explained: &BTreeSet<String>,
    sources: &Sources,
) -> Option<String> {
    let text = |(lesson, name): &(&str, &str)| {
        let paths = [changes::recorded(lesson, name), sources.change(lesson, name).ok()?];
        Some(paths.map(|path| read(path).unwrap_or_default()).concat())
    };
    let shown: String = named.iter().filter_map(text).collect();
    let (numbers, names) = (numbers::all(&shown), sources.names.of(&shown));
    let is_here = |(at, _): &(usize, &String)| !["value", "status", "syndrome"].contains(&table.columns[*at].as_str());
    let row: Vec<String> = cells.iter().enumerate().filter(is_here).map(|(_, cell)| without_targets(cell)).collect();
    let row = row.join(" | ");
    let is_known = |number: &String| numbers.contains(number) || explained.contains(number);
    let number = numbers::all(&row).into_iter().find(|number| !is_known(number) && sources.lesson(number).is_none());
    let is_there = |name: &Name| names.iter().any(|it| it.thing == name.thing);
    let name = || sources.names.of(&row).into_iter().find(|name| !is_there(name)).map(|name| name.text.to_owned());
    Some(format!("the change has no {}", number.or_else(name)?))
}

/// The changes that stand as code in a text, and exist.
fn changes_in<'t>(sources: &'t Sources, text: &'t str) -> impl Iterator<Item = (&'t str, &'t str)> {
    code(text).filter_map(named).filter(|(lesson, name)| sources.change(lesson, name).is_ok())
}

/// The change that a piece of code names: `04-lost-write`, or `make break-04 CHANGE=lost-write`.
fn named(code: &str) -> Option<(&str, &str)> {
    let (lesson, name) = match code.split_once("make break-") {
        Some((_, command)) => {
            let (lesson, rest) = command.split_once(' ')?;
            (lesson, rest.trim_start().strip_prefix("CHANGE=")?.split(' ').next()?)
        }
        None => code.split_once('-').filter(|(_, name)| name.chars().all(|c| c.is_ascii_lowercase() || c == '-'))?,
    };
    let is_one =
        lesson.len() == 2 && lesson.bytes().all(|c| c.is_ascii_digit()) && name.starts_with(char::is_lowercase);
    is_one.then_some((lesson, name))
}

/// Changes that do not exist, and statements that something was tried that do not say with which change or test.
pub fn problems(page: &Page, sources: &Sources) -> Wrong {
    let mut wrong = Wrong::new();
    for (at, code) in page.code() {
        let missing = named(&code).filter(|(lesson, name)| sources.change(lesson, name).is_err());
        wrong.extend(missing.map(|(lesson, name)| (at, format!("lesson {lesson} has no change {name}"))));
    }
    wrong.extend(reports(page, sources));
    let tried = |line: &str| line.to_lowercase().contains(TRIED) && !line.contains(&format!("\"{TRIED}\""));
    for (at, _) in page.prose().filter(|(_, line)| tried(line)) {
        let paragraph = page.paragraph(at);
        if changes_in(sources, &paragraph).next().is_none() && !paragraph.contains(TESTS) {
            wrong.push((at, format!("\"{TRIED}\": with which change, or which test in {TESTS}?")));
        }
    }
    wrong
}

/// What the judge of part three is quoted with, `01_cm_listen, frame 24, ConnectRequest`, and is not so in that capture: the
/// names of that line, and the bytes of the next one, if it begins with `rdma_rxe`.
fn reports(page: &Page, sources: &Sources) -> Wrong {
    let of_report = |(at, line): (usize, &String)| {
        let (name, rest) = line.split_once(", frame ").filter(|_| page.fenced[at])?;
        let (capture, number) = (format!("captures/{}.pcapng", name.trim()), rest.split([',', ':']).next()?);
        let shown = excerpts::packet(&capture, number);
        let Ok(shown) = shown else { return Some((at, format!("{capture} has no frame {number}"))) };
        let (names, shown) = (sources.names.of(rest), shown.lines().next().unwrap_or_default().to_owned());
        let called = sources.names.of(&shown);
        let is_called = |name: &Name| called.iter().any(|it| it.thing == name.thing);
        let other = names.iter().find(|name| name.kind == "packet" && !is_called(name));
        let bytes = page.lines.get(at + 1).and_then(|line| line.trim().strip_prefix("rdma_rxe"));
        let quoted = bytes.map_or("", |bytes| bytes.trim().split_once("  ").map_or(bytes, |(_, bytes)| bytes));
        let is_there = hex(&capture, number).is_ok_and(|recorded| recorded.contains(quoted));
        let what = other.map(|name| name.text).or((!is_there).then_some("such bytes"))?;
        Some((at, format!("frame {number} of {capture} has no {what}")))
    };
    page.lines.iter().enumerate().filter_map(of_report).collect()
}

/// The bytes of a frame, as a report has them: `64 00 ff ff`.
fn hex(capture: &str, number: &str) -> Result<String> {
    let bytes = bytes(capture)?;
    let mut reader = Reader::new(bytes.as_slice())?;
    while let Some(event) = reader.event()? {
        if let Event::Packet(record) = event {
            if record.number.to_string() == number {
                return Ok(record.data.iter().map(|byte| format!("{byte:02x} ")).collect());
            }
        }
    }
    bail!("{capture} has no packet {number}")
}
