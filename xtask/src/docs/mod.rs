//! `xtask docs`: keeps every claim of the documentation true.
//!
//! A page marks what it shows with an HTML comment, `<!-- KIND: WHAT -->`. Some marked parts are written by this program,
//! others are quotes that it compares with their source. `docs` writes the former anew, `docs --check` only looks.
//! The marks are described in CONTRIBUTING.md.

mod commands;
mod diffs;
mod drawings;
mod excerpts;
mod filters;
mod generated;
mod headers;
mod length;
mod lessons;
mod links;
mod names;
mod numbers;
mod page;
mod pictures;
#[cfg(test)]
mod planted;
mod prototypes;
mod quotes;
mod reference;
mod sources;
mod states;
mod tables;
mod values;

use anyhow::{bail, Context, Result};
use page::{Page, Problem};
use sources::Sources;
use std::fs;
use std::path::Path;

pub use pictures::{record as record_screenshots, stale as stale_screenshots};

/// The pages outside docs/ that make claims, too.
const OTHER_PAGES: [&str; 3] = ["README.md", "CONTRIBUTING.md", "captures/README.md"];

/// Writes all generated parts of the pages, and what is drawn from the captures.
///
/// # Errors
/// A part cannot be generated, or a file not be written.
pub fn write(root: &Path) -> Result<()> {
    let sources = Sources::new(root);
    let pages = pages(&sources)?;
    let mut problems = drawings::write(&pages, &sources)?;
    for page in pages {
        let (renewed, failed) = generated::renew(&page, &sources);
        problems.extend(failed);
        if renewed.text() != page.text() {
            let file = root.join(&page.path);
            fs::write(&file, renewed.text()).with_context(|| format!("cannot write {}", file.display()))?;
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
    let sources = Sources::new(root);
    let pages = pages(&sources)?;
    let mut problems = Vec::new();
    for page in &pages {
        problems.extend(of_page(page, &sources));
    }
    problems.extend(links::problems(&pages, &sources));
    problems.extend(filters::problems(&pages, &sources));
    problems.extend(lessons::problems(&sources));
    problems.extend(diffs::problems(&sources));
    problems.extend(drawings::problems(&pages, &sources));
    problems.extend(pictures::problems(&sources));
    report(&problems)?;
    println!("docs: {} pages, and all that they claim holds", pages.len());
    Ok(())
}

/// What does not hold on one page.
fn of_page(page: &Page, sources: &Sources) -> Vec<Problem> {
    let mut problems = generated::problems(page, sources);
    problems.extend(quotes::problems(page, sources));
    problems.extend(tables::problems(page, sources));
    problems.extend(names::problems(page, sources));
    problems.extend(prototypes::problems(page, sources));
    problems.extend(numbers::problems(page, sources));
    problems.extend(values::problems(page, sources));
    problems.extend(commands::problems(page, sources));
    problems.extend(length::problems(page));
    problems
}

fn pages(sources: &Sources) -> Result<Vec<Page>> {
    let mut paths: Vec<String> = OTHER_PAGES.map(String::from).to_vec();
    paths.extend(sources.files("docs", ".md")?);
    paths.iter().map(|path| Ok(Page::new(path, &sources.text(path)?))).collect()
}

fn report(problems: &[Problem]) -> Result<()> {
    for problem in problems {
        eprintln!("{problem}");
    }
    match problems.len() {
        0 => Ok(()),
        1 => bail!("1 claim of the docs does not hold"),
        count => bail!("{count} claims of the docs do not hold"),
    }
}
