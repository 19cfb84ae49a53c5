//! What is drawn from the captures: their ladders, their lanes as text, and the parts of lanes that pages show as pictures.

use super::excerpts;
use super::page::Page;
use super::sources::Sources;
use anyhow::{Context, Result};
use run::lanes::{self, Style};
use run::story;
use std::collections::BTreeMap;
use std::fs;

const FOLDER: &str = "docs/images";

/// Compares all drawings with what would be drawn now, or draws anew what is not like that.
pub fn renew(pages: &[Page], sources: &Sources, write: bool) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    let drawings = all(pages, sources)?;
    for (path, drawing) in &drawings {
        match drawing {
            Err(error) => problems.push(format!("{path}: {error:#}")),
            Ok(drawing) if sources.text(path).is_ok_and(|kept| kept == *drawing) => {}
            Ok(drawing) if write => {
                fs::write(sources.path(path), drawing).with_context(|| format!("cannot write {path}"))?;
                println!("{path} written");
            }
            Ok(_) => problems.push(format!("{path}: is not what `make docs` draws: run it and commit")),
        }
    }
    for path in sources.files(FOLDER, ".svg")?.iter().filter(|path| !drawings.contains_key(*path)) {
        if write {
            fs::remove_file(sources.path(path)).with_context(|| format!("cannot remove {path}"))?;
            println!("{path} removed: nothing shows it");
        } else {
            problems.push(format!("{path}: nothing shows it: run `make docs`"));
        }
    }
    Ok(problems)
}

/// Every drawing by its path.
fn all(pages: &[Page], sources: &Sources) -> Result<BTreeMap<String, Result<String>>> {
    let mut drawings = BTreeMap::new();
    for story in story::bundled()? {
        let name = story.file_name();
        let text = capture(sources, &name).and_then(|run| Ok(lanes::text(&run, Style::FILE, 0..=u64::MAX)?));
        drawings.insert(format!("captures/{name}.txt"), text);
    }
    for mark in pages.iter().flat_map(|page| &page.marks).filter(|mark| mark.kind == "generated") {
        let (path, drawn) = match mark.words()[..] {
            ["ladder", name] => (format!("{name}.svg"), ladder(sources, name)),
            ["lanes", name, range] => (file_name(name, range), picture(sources, name, range)),
            _ => continue,
        };
        drawings.insert(format!("{FOLDER}/{path}"), drawn.map(|(svg, _)| svg));
    }
    Ok(drawings)
}

fn capture(sources: &Sources, name: &str) -> Result<Vec<u8>> {
    sources.bytes(&format!("captures/{name}.pcapng"))
}

/// All packets of a run, and what that shows in words.
fn ladder(sources: &Sources, name: &str) -> Result<(String, String)> {
    Ok(lanes::ladder(&capture(sources, name)?)?)
}

/// A part of the lanes, and what it shows in words.
fn picture(sources: &Sources, name: &str, range: &str) -> Result<(String, String)> {
    let part = excerpts::part(sources, &format!("captures/{name}.pcapng"), range)?;
    Ok(lanes::picture(&capture(sources, name)?, part)?)
}

fn file_name(name: &str, range: &str) -> String {
    format!("{name}_{}.svg", range.replace("..", "_").replace([':', '@'], "-"))
}

/// The line that shows a capture's ladder, for a page in docs/.
pub fn ladder_link(sources: &Sources, name: &str) -> Result<String> {
    let (_, words) = ladder(sources, name)?;
    Ok(format!("![{words}](images/{name}.svg)"))
}

/// The line that shows a part of a run's lanes.
pub fn lanes_link(page: &Page, sources: &Sources, name: &str, range: &str) -> Result<String> {
    let (_, words) = picture(sources, name, range)?;
    let words = words.replace('[', "(").replace(']', ")");
    let folder = if page.path.starts_with("docs/") { "images" } else { FOLDER };
    Ok(format!("![{words}]({folder}/{})", file_name(name, range)))
}
