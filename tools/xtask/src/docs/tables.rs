//! Tables that people wrote: of the fields of packets, of numbers and code of a file. Each check returns the lines that do
//! not hold, with what is wrong.

use super::headers::is_word;
use super::names::Name;
use super::page::{code, Page, Table, Wrong};
use super::sources::{files, tree, Sources};
use super::{excerpts, links, numbers};
use anyhow::{Context, Result};
use run::files::read;
use std::collections::BTreeSet;

/// Rows with more cells than columns: what is in them is not shown. A `|` within a cell is written `\|`. And a row with another
/// number than its place, where all others are numbered.
pub fn problems(page: &Page, _: &Sources) -> Wrong {
    let too_many = |table: Table| {
        let columns = table.columns.len();
        table.wrong(|cells| (cells.len() > columns).then(|| format!("{} cells in {columns} columns", cells.len())))
    };
    page.tables().flat_map(|table| [misplaced(&table), schedule(&table), too_many(table)].concat()).collect()
}

/// A plan with the columns `begin` and `minutes`: each row begins, as `1:05`, when the one before it is over.
fn schedule(table: &Table) -> Wrong {
    let (Some(begin), Some(minutes)) = (table.column(&["begin"]), table.column(&["minutes"])) else {
        return Wrong::new();
    };
    let at = |clock: &str| {
        clock.split_once(':').and_then(|(h, m)| Some(h.parse::<u32>().ok()? * 60 + m.parse::<u32>().ok()?))
    };
    let mut over = 0;
    table.wrong(|cells| {
        let before = std::mem::replace(&mut over, at(&cells[begin])? + cells[minutes].parse::<u32>().ok()?);
        (at(&cells[begin]) != Some(before))
            .then(|| format!("the row before ends at {}:{:02}", before / 60, before % 60))
    })
}

/// The one row of a table that counts differently from the others: 1, 2, 3 … in the first column.
fn misplaced(table: &Table) -> Wrong {
    let number = |cell: &str| cell.split([' ', '.']).next()?.parse::<usize>().ok();
    let is_place = |at: usize, cells: &[String]| number(&cells[0]) == Some(at + 1);
    let others: Vec<_> = table.rows.iter().enumerate().filter(|(at, (_, cells))| !is_place(*at, cells)).collect();
    match others[..] {
        [(at, (line, _))] if table.rows.len() > 3 => {
            vec![(*line, format!("this is row {} of a numbered table", at + 1))]
        }
        _ => Wrong::new(),
    }
}

/// Numbers of a packet's fields that are neither the value of that field nor what it means. The columns after the first show
/// the first packet of one step each; there may be one more, which explains.
pub fn fields(table: &Table, capture: &str, steps: &[&str]) -> Result<Wrong> {
    let mut wrong = Vec::new();
    for (column, step) in (1..table.columns.len()).zip(steps) {
        let shown = excerpts::packet(capture, step)?;
        for (line, cells) in &table.rows {
            let names: Vec<&str> = cells[0].split(", ").collect();
            let of_field = |line: &&str| line.split("  ").any(|word| names.contains(&word.trim()));
            let values: String = shown.lines().filter(of_field).filter_map(|line| line.get(32..)).collect();
            let what = |number| format!("in {step} of {capture}, {} has no {number}", cells[0]);
            wrong.extend(strange(&cells[column], &values).map(|number| (*line, what(number))));
        }
    }
    Ok(wrong)
}

/// A number of one text that the other one does not have.
fn strange(text: &str, source: &str) -> Option<String> {
    let known: BTreeSet<String> = numbers::all(source);
    numbers::all(text).into_iter().find(|number| !known.contains(number))
}

/// Numbers and names that are not in the files that the mark names.
pub fn inside(table: &Table, paths: &[&str], sources: &Sources) -> Result<Wrong> {
    let source = paths.iter().map(read).collect::<Result<String>>()?;
    let things: BTreeSet<String> = sources.names.of(&source).into_iter().map(|name| name.thing).collect();
    Ok(table.wrong(|cells| {
        let row = links::without_targets(&cells.join(" | "));
        let name = || sources.names.of(&row).into_iter().find(|name| !things.contains(&name.thing));
        let what = strange(&row, &source).map(|number| format!("number {number}"));
        Some(format!("{} has no {}", paths.join(" "), what.or_else(|| Some(name()?.text.to_owned()))?))
    }))
}

/// Rows whose numbers aren't all on one line of the files that the mark names.
pub fn rows(table: &Table, paths: &[&str]) -> Result<Wrong> {
    let text = paths.iter().map(read).collect::<Result<String>>()?;
    let lines: Vec<BTreeSet<String>> = text.lines().map(numbers::all).collect();
    Ok(table.wrong(|cells| {
        let row = numbers::all(&links::without_targets(&cells.join(" | ")));
        let is_there = lines.iter().any(|line| row.is_subset(line));
        (!is_there).then(|| format!("no line of {} says this", paths.join(" ")))
    }))
}

/// Rows that name two lessons: by a link, a step or a command.
pub fn one_lesson(table: &Table) -> Wrong {
    table.wrong(|cells| {
        let row = cells.join(" ");
        let words = row.split(|c: char| !(c.is_alphanumeric() || "_-".contains(c)));
        let number = |word: &str| {
            let word = ["break-", "try-", "lesson-"].iter().find_map(|verb| word.strip_prefix(verb)).unwrap_or(word);
            let is_one = word.len() == 2 || word.get(2..).is_some_and(|rest| rest.starts_with(['_', '-']));
            word.get(..2).filter(|number| is_one && number.bytes().all(|c| c.is_ascii_digit())).map(String::from)
        };
        let lessons: BTreeSet<String> = words.filter_map(number).collect();
        let named: Vec<String> = lessons.into_iter().collect();
        (named.len() > 1).then(|| format!("this row names lessons {}", named.join(" and ")))
    })
}

/// Steps of Write it yourself: those of the column `steps`, `01-1 to 01-4` or `06-4, 06-5`, are all that the lessons have, in
/// their order.
pub fn all_steps(table: &Table, sources: &Sources) -> Result<Wrong> {
    let column = table.column(&["steps"]).context("the table has no column `steps`")?;
    let mut there = Vec::new();
    for lesson in &sources.lessons {
        let files = files(&format!("lessons/{}/steps", lesson.name), ".judge.md").unwrap_or_default();
        let step = |path: &String| Some(format!("{}-{}", lesson.number(), path.rsplit('/').next()?.split('-').next()?));
        there.extend(files.iter().filter_map(step));
    }
    let last = table.rows.iter().rev().find_map(|(_, cells)| steps(&cells[column]).pop()).unwrap_or_default();
    let mut there = there.into_iter().take_while(|step| *step <= last).peekable();
    let mut wrong = table.wrong(|cells| {
        let other = steps(&cells[column]).into_iter().find(|step| there.next().as_ref() != Some(step))?;
        Some(format!("{other} isn't the step that comes next"))
    });
    let (end, _) = table.rows.last().context("the table has no rows")?;
    wrong.extend(there.next().map(|step| (*end, format!("step {step} is in no row"))));
    Ok(wrong)
}

/// The steps of a cell, with those that a range leaves out.
fn steps(cell: &str) -> Vec<String> {
    let words: Vec<&str> = cell.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    let of = |word: &str| {
        let (lesson, step) = word.split_once('-')?;
        Some((lesson.to_owned(), step.parse::<u8>().ok()?)).filter(|_| lesson.len() == 2)
    };
    let mut found: Vec<(String, u8)> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let Some((lesson, step)) = of(word) else { continue };
        let from = found.last().filter(|_| at > 0 && words[at - 1] == "to").map_or(step, |(_, last)| last + 1);
        found.extend((from..=step).map(|step| (lesson.clone(), step)));
    }
    found.into_iter().map(|(lesson, step)| format!("{lesson}-{step}")).collect()
}

/// Numbers (sections of the specification among them) and names that no file, or part of one, says which their row links to. A row may have a
/// number of its own, in the first column.
pub fn linked(table: &Table, page: &Page, sources: &Sources) -> Wrong {
    table.wrong(|cells| {
        let row = cells.join(" | ");
        let files = links::labelled(&row).filter_map(|(_, target)| links::section(page, target)).collect::<String>();
        let (known, upper) = (numbers::all(&files), files.to_uppercase());
        let words: BTreeSet<&str> = upper.split(|c: char| !is_word(c)).collect();
        let has = |number: &str| known.iter().any(|it| it == number || it.starts_with(&format!("{number}.")));
        let said = &cells[usize::from(cells[0].parse::<u32>().is_ok())..].join(" | ");
        let said = links::without_targets(said);
        let number = numbers::all(&said).into_iter().find(|number| !has(number));
        let is_said = |name: &Name| name.text.to_uppercase().split(' ').all(|word| words.contains(word));
        let name = || sources.names.of(&said).into_iter().find(|name| !is_said(name));
        let strange = number.or_else(|| Some(name()?.text.to_owned()))?;
        Some(format!("no file that this row links to says {strange}"))
    })
}

/// Sections of the specification: what the first column has must be named in these folders, and what the other columns have
/// is the same or a part of it.
pub fn cited(table: &Table, folders: &[&str]) -> Wrong {
    let sources: String = folders.iter().flat_map(|folder| tree(folder)).filter_map(|path| read(path).ok()).collect();
    let sources = joined(&sources);
    let known: BTreeSet<&str> = sections(&sources).collect();
    let mut above = Vec::new();
    table.wrong(|cells| {
        let cited = joined(&cells[0]);
        let own: BTreeSet<&str> = sections(&cited).collect();
        let number =
            |section: &str| section.split('.').map(|part| part.parse::<u32>().ok()).collect::<Option<Vec<_>>>();
        // Each row goes on behind the beginning of the one above, and within itself.
        let numbers: Vec<Vec<u32>> = sections(&cited).filter(|it| it.contains('.')).filter_map(number).collect();
        let is_sorted = numbers.windows(2).all(|two| two[0] < two[1]);
        let begin = numbers.into_iter().next().unwrap_or_else(|| above.clone());
        let before = std::mem::replace(&mut above, begin);
        if !is_sorted || before > above {
            return Some(format!("{} isn't in order, by itself or below the row above", cells[0]));
        }
        let is_part =
            |section: &str, whole: &str| section.strip_prefix(whole).is_some_and(|rest| rest.starts_with(['.', '-']));
        let is_known = |section: &str| known.contains(section) || known.iter().any(|it| is_part(it, section));
        let unknown = own.iter().find(|section| !is_known(section));
        let others = joined(&links::without_targets(&cells[1..].join(" | ")));
        let is_own = |section: &str| own.iter().any(|it| *it == section || is_part(section, it));
        let other = sections(&others).find(|section| section.matches('.').count() > 1 && !is_own(section));
        let what = |section: &&str| format!("{} name no section {section}", folders.join(" "));
        unknown.map(what).or_else(|| Some(format!("{} is no part of {}", other?, cells[0])))
    })
}

/// A text in which the number of a table is one word with what it counts: `table_38`.
fn joined(text: &str) -> String {
    text.replace("tables ", "table_").replace("table ", "table_").replace("Table ", "table_")
}

/// The words of a text that have a digit: `9.7.5.1.2`, `C9-88`, `A17.3`, `table_38`.
fn sections(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !(is_word(c) || ".-".contains(c))).map(|word| word.trim_matches(['.', '-']));
    words.filter(|word| word.contains(|c: char| c.is_ascii_digit()))
}

/// What is said to be tried, as code in the first column, and isn't in the tests that the mark names.
pub fn tried(table: &Table, paths: &[&str]) -> Result<Wrong> {
    let tests = paths.iter().map(read).collect::<Result<Vec<_>>>()?;
    let (tests, paths) = (tests.concat().replace('\\', ""), paths.join(" "));
    Ok(table.wrong(|cells| {
        let code = code(&cells[0]).find(|code| !tests.contains(code))?;
        Some(format!("{paths} does not try `{code}`"))
    }))
}
