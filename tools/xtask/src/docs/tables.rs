//! Tables that people wrote: of the fields of packets, of numbers and code of a file. Each check returns the lines that do
//! not hold, with what is wrong.

use super::headers::is_word;
use super::names::Name;
use super::page::{code, Page, Table, Wrong};
use super::sources::Sources;
use super::{excerpts, links, numbers};
use anyhow::Result;
use run::files::read;
use std::collections::BTreeSet;

/// Rows with more cells than columns: what is in them is not shown. A `|` within a cell is written `\|`.
pub fn problems(page: &Page, _: &Sources) -> Wrong {
    let too_many = |table: Table| {
        let columns = table.columns.len();
        table.wrong(|cells| (cells.len() > columns).then(|| format!("{} cells in {columns} columns", cells.len())))
    };
    page.tables().flat_map(too_many).collect()
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

/// Numbers that are not in the file that the mark names.
pub fn inside(table: &Table, path: &str) -> Result<Wrong> {
    let source = read(path)?;
    Ok(table.wrong(|cells| Some(format!("{path} has no number {}", strange(&cells.join(" | "), &source)?))))
}

/// Numbers (sections of the specification among them) and names that no file says which their row links to. A row may have a
/// number of its own, in the first column.
pub fn linked(table: &Table, page: &Page, sources: &Sources) -> Wrong {
    table.wrong(|cells| {
        let row = cells.join(" | ");
        let files = links::labelled(&row).filter_map(|(_, target)| read(links::resolve(&page.path, target)?).ok());
        let files = files.collect::<String>();
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

/// What is said to be tried, as code in the first column, and isn't in the tests that the mark names.
pub fn tried(table: &Table, paths: &[&str]) -> Result<Wrong> {
    let tests = paths.iter().map(read).collect::<Result<Vec<_>>>()?;
    let (tests, paths) = (tests.concat().replace('\\', ""), paths.join(" "));
    Ok(table.wrong(|cells| {
        let code = code(&cells[0]).find(|code| !tests.contains(code))?;
        Some(format!("{paths} does not try `{code}`"))
    }))
}
