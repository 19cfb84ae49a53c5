//! `xtask docs`: keeps every claim of the documentation true.
//!
//! A page marks what it shows with an HTML comment, `<!-- KIND: WHAT -->`. Some marked parts are written by this program,
//! others are quotes that it compares with their source. `docs` writes the former anew, `docs --check` only looks.
//! The marks are described in CONTRIBUTING.md.

pub mod changes;
mod commands;
pub mod diffs;
pub mod drawings;
mod excerpts;
mod filters;
mod generated;
mod headers;
mod lanes;
mod lessons;
pub mod links;
mod marks;
mod names;
mod numbers;
pub mod page;
pub mod recorded;
mod reference;
pub mod sources;
mod states;
mod tables;
#[cfg(test)]
mod tests;
mod values;

use crate::{screenshots, site};
use anyhow::{ensure, Context, Result};
use page::Page;
use sources::Sources;
use std::fs;
use std::path::Path;

pub use page::Problem;

/// The pages outside docs/ that make claims, too.
const OTHER_PAGES: [&str; 3] = ["README.md", "CONTRIBUTING.md", "captures/README.md"];

/// Writes all generated parts of the pages, and what is drawn from the captures.
///
/// # Errors
/// A part cannot be generated, or a file not be written.
pub fn write(root: &Path) -> Result<()> {
    let sources = Sources::new(root)?;
    let pages = pages(&sources)?;
    let mut problems = drawings::renew(&pages, &sources, true)?;
    for page in pages {
        let (renewed, failed) = marks::renew(&page, &sources);
        problems.extend(failed);
        if renewed.text() != page.text() {
            fs::write(root.join(&page.path), renewed.text()).with_context(|| format!("cannot write {}", page.path))?;
            println!("{} written", page.path);
        }
    }
    report(&problems)
}

/// Looks whether everything that the pages claim holds, and changes nothing.
///
/// # Errors
/// Something does not hold; each such place is printed with what to do.
pub fn check(root: &Path) -> Result<()> {
    let sources = Sources::new(root)?;
    let pages = pages(&sources)?;
    let mut problems: Vec<Problem> = pages.iter().flat_map(|page| of_page(page, &sources)).collect();
    problems.extend(filters::problems(&pages, &sources));
    problems.extend(lessons::problems(&sources)?);
    problems.extend(diffs::problems(&sources));
    problems.extend(drawings::renew(&pages, &sources, false)?);
    problems.extend(screenshots::problems(root)?);
    problems.extend(site::problems(&pages, &sources)?);
    report(&problems)?;
    println!("docs: {} pages, and all that they claim holds", pages.len());
    Ok(())
}

/// What does not hold on one page.
fn of_page(page: &Page, sources: &Sources) -> Vec<Problem> {
    let checks = [
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
    checks.iter().flat_map(|check| check(page, sources)).collect()
}

/// All pages that make claims.
pub fn pages(sources: &Sources) -> Result<Vec<Page>> {
    let mut paths: Vec<String> = OTHER_PAGES.map(String::from).to_vec();
    paths.extend(sources.files("docs", ".md")?);
    let changes = sources.lessons.iter().map(|lesson| format!("lessons/{}/changes", lesson.name));
    paths.extend(changes.flat_map(|folder| sources.files(&folder, ".md").unwrap_or_default()));
    paths.iter().map(|path| Ok(Page::new(path, &sources.text(path)?))).collect()
}

fn report(problems: &[Problem]) -> Result<()> {
    for problem in problems {
        eprintln!("{problem}");
    }
    ensure!(problems.is_empty(), "claims of the docs that do not hold: {}", problems.len());
    Ok(())
}
