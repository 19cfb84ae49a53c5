//! `xtask site`: the docs as a book, with every bundled run in it.
//!
//! Pages, sources and captures are laid out below target/book as they are in the repository, so that the links of a page are the
//! same in the book as on a forge. What a page only mentions there, because a forge cannot show it, is in the book: the
//! player in the place of a ladder, the difference between two lessons, the run of a change. mdBook makes the rest.

mod code;
mod explain;
mod finish;
mod pages;
mod player;
mod policy;
mod search;
mod summary;
mod wireshark;
mod workbench;

use crate::docs;
use crate::docs::sources::{files, tree, Sources};
use anyhow::{Context, Result};
use run::files::{bytes, name, output, read, write};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub use summary::problems;

/// What stands only in the book: the pages in `tools/book/pages`, each as its file and its title there.
const OWN_PAGES: &str = "tools/book/pages";

/// Folders of a lesson whose pages are chapters: what one writes.
const WRITTEN: [&str; 2] = ["steps", "holes"];

/// Builds the book into `target/site`. Its pages can be edited where the repository is kept: at `forge`, if that is known.
pub fn build(target: &Path, forge: Option<&str>) -> Result<()> {
    let sources = Sources::new()?;
    fs::create_dir_all(target).with_context(|| format!("cannot make {}", target.display()))?;
    // mdBook takes a path that is not absolute for one below the book's folder.
    let target = target.canonicalize().with_context(|| format!("cannot find {}", target.display()))?;
    let (book, site) = (target.join("book"), target.join("site"));
    for folder in [&book, &site].into_iter().filter(|folder| folder.exists()) {
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    let tools = target.join("tools/site");
    lay_out(&sources, &tools, &book)?;
    wireshark::lay_out(&tools, &book.join("src/wireshark"))?;
    let mut mdbook = Command::new(target.join("tools/site/bin/mdbook"));
    output(mdbook.arg("build").arg("--dest-dir").arg(&site).arg(&book)).context("mdBook (`make site` brings it)")?;
    finish::pages(&site, forge)?;
    write(site.join("404.html"), read("tools/book/404.html")?.replace("ROOT", &root(forge)))?;
    println!("{}", site.join("index.html").display());
    Ok(())
}

/// Where the book is, as its own server or a forge's pages have it. The page for what isn't found is shown at any path, so its links
/// begin there.
fn root(forge: Option<&str>) -> String {
    let repository = forge.and_then(|forge| forge.trim_end_matches('/').rsplit('/').next());
    repository.map_or("/".into(), |name| format!("/{name}/"))
}

/// Writes all that mdBook is to make a book of.
fn lay_out(sources: &Sources, tools: &Path, book: &Path) -> Result<()> {
    let mut pages = docs::pages(sources)?;
    // What the changes of a lesson are stands on its page here; what one writes is a chapter.
    let is_written = |path: &str| {
        WRITTEN.iter().any(|folder| path.contains(&format!("/{folder}/"))) && course::page::Page::is_at(Path::new(path))
    };
    pages.retain(|page| !page.path.starts_with("lessons/") || is_written(&page.path));
    let code = code::shown(sources, &pages);
    let src = book.join("src");
    write(src.join("SUMMARY.md"), summary::text(&code)?)?;
    for page in &pages {
        let text = pages::in_book(page, sources)?.replace(explain::PLACE, explain::here(tools));
        let text = workbench::here(tools, text)?;
        write(src.join(pages::place(&page.path)), text)?;
        for file in pages::files(page) {
            copy(&file, src.join(&file))?;
        }
    }
    for path in &code {
        write(src.join(format!("{path}.md")), code::page(path)?)?;
    }
    for path in files(OWN_PAGES, ".md")? {
        let text = read(&path)?.replace(player::LIST, &player::list()?);
        write(src.join(name(Path::new(&path))), text)?;
    }
    search::lay_out(&pages, &src.join("search"))?;
    player::lay_out(&src.join("player"))?;
    explain::lay_out(tools, &src.join("explain"))?;
    workbench::lay_out(tools, &src.join("workbench"))?;
    copy("tools/book/capture.js", src.join("capture.js"))?;
    copy("tools/book/book.toml", book.join("book.toml"))?;
    tree("tools/book/theme").iter().try_for_each(|path| copy(path, book.join(path.trim_start_matches("tools/book/"))))
}

/// Takes a file of the repository.
fn copy(from: &str, to: PathBuf) -> Result<()> {
    write(to, bytes(from)?)
}
