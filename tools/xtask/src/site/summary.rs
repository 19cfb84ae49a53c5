//! The book's list of chapters. docs/README.md has it: each table below a heading is a part, each row a chapter.

use crate::docs::page::Page;
use crate::docs::sources::files;
use crate::docs::{self, links};
use anyhow::Result;
use run::files::{name, read};
use std::collections::BTreeSet;
use std::path::Path;

const LIST: &str = "docs/README.md";
/// The list of errors, which has one page for each.
const ERRORS: &str = "docs/errors/README.md";

/// The chapters, and the pages of code behind them.
pub fn text(code: &BTreeSet<String>) -> Result<String> {
    let mut text = "# Summary\n\n[RDMA, packet by packet](index.md)\n\n[All pages](docs/index.md)\n".to_string();
    for (part, chapters) in parts(&Page::new(LIST, &read(LIST)?)) {
        text += &format!("\n# {part}\n\n");
        for (title, path) in chapters {
            let below = if path.starts_with(docs::MORE) { "  " } else { "" };
            text += &format!("{below}- [{title}]({})\n", super::pages::place(&path));
            for page in written(&path)? {
                let heading = heading(&page)?;
                text += &format!("  - [Write it: {heading}]({page})\n");
            }
            if path == ERRORS {
                for page in errors()? {
                    text += &format!("  - [{}]({page})\n", heading(&page)?);
                }
            }
        }
    }
    text += "\n# In your browser\n\n- [Play a run](play.md)\n- [A run in Wireshark](wireshark.md)\n";
    text += "\n# The code\n\n";
    // A folder that is shown is a chapter, with its files below it.
    for path in code {
        let above = code.iter().filter(|folder| path.starts_with(&format!("{folder}/"))).collect::<Vec<_>>();
        let title = above.last().map_or(path.as_str(), |folder| &path[folder.len() + 1..]);
        text += &format!("{}- [{title}]({path}.md)\n", "  ".repeat(above.len()));
    }
    Ok(text)
}

/// The pages of what one writes in a lesson, if this is the page of a lesson.
fn written(path: &str) -> Result<Vec<String>> {
    let lesson = path.strip_prefix("docs/").and_then(|path| path.strip_suffix(".md")).unwrap_or_default();
    let folders = super::WRITTEN.map(|folder| format!("lessons/{lesson}/{folder}"));
    let there = folders.iter().filter(|folder| !lesson.contains('/') && Path::new(folder).is_dir());
    let all = there.map(|folder| files(folder, ".md")).collect::<Result<Vec<_>>>()?.concat();
    Ok(all.into_iter().filter(|path| course::page::Page::is_at(Path::new(path))).collect())
}

fn heading(page: &str) -> Result<String> {
    Ok(read(page)?.lines().next().unwrap_or_default().trim_start_matches("# ").to_owned())
}

/// The pages that the list of errors has.
fn errors() -> Result<Vec<String>> {
    Ok(files(docs::ERRORS, ".md")?.into_iter().filter(|page| page != ERRORS).collect())
}

/// The headings of the list, each with the pages in its table: what each is called, and its file. A row is about the first page
/// that it links to; another one is in it if it says more about that.
fn parts(list: &Page) -> Vec<(String, Vec<(String, String)>)> {
    let mut parts: Vec<(String, Vec<(String, String)>)> = Vec::new();
    for line in &list.lines {
        if let Some(heading) = line.strip_prefix("## ") {
            parts.push((heading.to_owned(), Vec::new()));
        } else if let (Some((_, chapters)), true) = (parts.last_mut(), line.starts_with("| [")) {
            let pages = links::labelled(line)
                .filter_map(|(title, target)| Some((title.to_owned(), links::resolve(LIST, target)?)));
            let of_row = pages.enumerate().filter(|(at, (_, path))| *at == 0 || path.starts_with(docs::MORE));
            chapters.extend(of_row.map(|(_, page)| page));
        }
    }
    parts.retain(|(_, chapters)| !chapters.is_empty());
    parts
}

/// Pages that no table of the list has.
pub fn problems(pages: &[Page]) -> Result<Vec<String>> {
    let parts = parts(&Page::new(LIST, &read(LIST)?));
    let listed = |page: &&Page| parts.iter().flat_map(|(_, chapters)| chapters).any(|(_, path)| *path == page.path);
    let errors = errors()?;
    let of_book = pages.iter().filter(|page| !page.path.starts_with("lessons/") && !errors.contains(&page.path));
    let missing = of_book.filter(|page| ![LIST, "README.md"].contains(&page.path.as_str()) && !listed(page));
    let missing = missing.map(|page| format!("{LIST}: no table lists {}: the book would not have it", page.path));
    let list = read(ERRORS)?;
    let unlisted = errors.iter().filter(|page| !list.contains(&format!("]({})", name(Path::new(page)))));
    Ok(missing.chain(unlisted.map(|page| format!("{ERRORS} does not list {page}"))).collect())
}
