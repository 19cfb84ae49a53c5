//! `xtask site`: the docs as a book, with every bundled run in it.
//!
//! Pages, sources and captures are laid out below target/book as they are in the repository, so that the links of a page are the
//! same in the book as on a forge. What a page only mentions there, because a forge cannot show it, stands in the book: the
//! player in the place of a ladder, the difference between two lessons, the run of a change. mdBook makes the rest.

mod code;
mod finish;
mod pages;
mod player;
mod policy;
mod summary;
mod wireshark;

use crate::docs::sources::Sources;
use crate::{docs, output};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub use summary::problems;

/// What stands only in the book: the pages in `tools/book/pages`, each as its file and its title there.
const OWN_PAGES: &str = "tools/book/pages";

/// Builds the book into `target/site`. Its pages can be edited where the repository is kept: at `forge`, if that is known.
pub fn build(root: &Path, target: &Path, forge: Option<&str>) -> Result<()> {
    let sources = Sources::new(root)?;
    fs::create_dir_all(target).with_context(|| format!("cannot make {}", target.display()))?;
    // mdBook takes a path that is not absolute for one below the book's folder.
    let target = target.canonicalize().with_context(|| format!("cannot find {}", target.display()))?;
    let (book, site) = (target.join("book"), target.join("site"));
    for folder in [&book, &site].into_iter().filter(|folder| folder.exists()) {
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    lay_out(&sources, &book)?;
    wireshark::lay_out(&sources, &target.join("tools/site"), &Folder(book.join("src/wireshark")))?;
    let mut mdbook = Command::new(target.join("tools/site/bin/mdbook"));
    output(mdbook.arg("build").arg("--dest-dir").arg(&site).arg(&book)).context("mdBook (`make site` brings it)")?;
    finish::pages(&sources, &site, forge)?;
    policy::mend_searcher(&sources, &site.to_string_lossy())?;
    println!("{}", site.join("index.html").display());
    Ok(())
}

/// Writes all that mdBook is to make a book of.
fn lay_out(sources: &Sources, book: &Path) -> Result<()> {
    let mut pages = docs::pages(sources)?;
    // What the changes of a lesson are stands on its page here.
    pages.retain(|page| !page.path.starts_with("lessons/"));
    let code = code::shown(sources, &pages);
    let src = Folder(book.join("src"));
    src.write("SUMMARY.md", &summary::text(sources, &code)?)?;
    for page in &pages {
        src.write(&pages::place(&page.path), &pages::in_book(page, sources)?)?;
        for file in pages::files(page, sources) {
            src.copy(sources, &file, &file)?;
        }
    }
    for path in &code {
        src.write(&format!("{path}.md"), &code::page(sources, path)?)?;
    }
    for path in sources.files(OWN_PAGES, ".md")? {
        let text = sources.text(&path)?.replace(player::LIST, &player::list(sources)?);
        src.write(path.trim_start_matches(OWN_PAGES), text)?;
    }
    player::lay_out(sources, &Folder(book.join("src/player")))?;
    let book = Folder(book.into());
    book.copy(sources, "tools/book/book.toml", "book.toml")?;
    for path in sources.tree("tools/book/theme") {
        book.copy(sources, &path, path.trim_start_matches("tools/book/"))?;
    }
    Ok(())
}

/// Where files are laid out.
struct Folder(PathBuf);

impl Folder {
    fn write(&self, path: &str, text: impl AsRef<[u8]>) -> Result<()> {
        let path = self.0.join(path.trim_start_matches('/'));
        let folder = path.parent().unwrap_or(&self.0);
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Takes a file of the repository.
    fn copy(&self, sources: &Sources, from: &str, to: &str) -> Result<()> {
        self.write(to, sources.bytes(from)?)
    }
}
