//! `xtask docs`: keeps every claim of the documentation true.
//!
//! A page marks what it shows with an HTML comment, `<!-- KIND: WHAT -->`. Some marked parts are written by this program,
//! others are quotes that it compares with their source. `docs` renews the former, `docs --check` only looks.
//! The marks are described in CONTRIBUTING.md.

pub mod changes;
mod commands;
pub mod diffs;
pub mod drawings;
mod excerpts;
mod filters;
mod headers;
mod lanes;
mod lessons;
pub mod links;
mod marks;
mod names;
mod numbers;
pub mod page;
mod psns;
pub mod recorded;
mod reference;
mod ring;
pub mod sources;
mod states;
mod tables;
#[cfg(test)]
pub mod tests;
mod values;
mod wording;

use crate::{screenshots, site};
use anyhow::{ensure, Result};
use page::{Page, Wrong};
use run::files::{self, read};
use sources::Sources;

/// The pages outside docs/ that also make claims.
const OTHER_PAGES: [&str; 3] = ["README.md", "CONTRIBUTING.md", "captures/README.md"];

/// What is deeper than a lesson's page: `docs/more/NN_topic.md`.
pub const MORE: &str = "docs/more";
/// Errors by their text: `docs/errors/NAME.md`, and the list of them.
pub const ERRORS: &str = "docs/errors";

/// What is looked at on each page.
const CHECKS: [fn(&Page, &Sources) -> Wrong; 9] = [
    marks::problems,
    names::problems,
    headers::problems,
    tables::problems,
    numbers::problems,
    values::problems,
    commands::problems,
    recorded::problems,
    links::problems,
];

/// Writes all generated parts of the pages, and what is drawn from the captures.
pub fn write() -> Result<()> {
    let sources = Sources::new()?;
    let pages = pages(&sources)?;
    let mut problems = drawings::renew(&pages, true)?;
    for page in pages {
        let (renewed, wrong) = marks::renew(&page, &sources);
        problems.extend(named(&page, wrong));
        if renewed.text() != page.text() {
            files::write(&page.path, renewed.text())?;
            println!("{} written", page.path);
        }
    }
    report(&problems)
}

/// Looks whether everything that the pages claim holds, and changes nothing; each place where it does not is printed with what to do.
pub fn check() -> Result<()> {
    let sources = Sources::new()?;
    let pages = pages(&sources)?;
    let of_pages: Vec<String> = pages.iter().flat_map(|page| of_page(page, &sources)).collect();
    let of_all = [
        filters::problems(&pages)?,
        lessons::problems(&sources)?,
        diffs::problems(&sources)?,
        diffs::unshown(&sources, &pages)?,
        drawings::renew(&pages, false)?,
        screenshots::problems()?,
        site::problems(&pages)?,
        wording::problems()?,
    ];
    report(&[of_pages, of_all.concat()].concat())?;
    println!("docs: {} pages, and all that they claim holds", pages.len());
    Ok(())
}

fn of_page(page: &Page, sources: &Sources) -> Vec<String> {
    CHECKS.iter().flat_map(|check| named(page, check(page, sources))).collect()
}

fn named(page: &Page, wrong: Wrong) -> Vec<String> {
    wrong.into_iter().map(|(line, what)| format!("{}: {what}", page.place(line))).collect()
}

pub fn pages(sources: &Sources) -> Result<Vec<Page>> {
    let mut paths: Vec<String> = OTHER_PAGES.map(String::from).to_vec();
    for folder in ["docs", MORE, ERRORS] {
        paths.extend(sources::files(folder, ".md")?);
    }
    for part in ["changes", "steps"] {
        let folders = sources.lessons.iter().map(|lesson| format!("lessons/{}/{part}", lesson.name));
        paths.extend(folders.flat_map(|folder| sources::files(&folder, ".md").unwrap_or_default()));
    }
    for folder in &sources.without_program {
        paths.extend(sources::files(&format!("{folder}/holes"), ".md")?);
    }
    paths.iter().map(|path| Ok(Page::new(path, &read(path)?))).collect()
}

fn report(problems: &[String]) -> Result<()> {
    problems.iter().for_each(|problem| eprintln!("{problem}"));
    ensure!(problems.is_empty(), "claims of the docs that do not hold: {}", problems.len());
    Ok(())
}
