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
        let text = capture(sources, &name).and_then(|run| lanes::text(&run, Style::FILE, 0..=u64::MAX));
        drawings.insert(format!("captures/{name}.txt"), text);
    }
    for mark in pages.iter().flat_map(|page| &page.marks).filter(|mark| mark.kind == "generated") {
        if let Some((path, drawn)) = picture(sources, &mark.words()) {
            drawings.insert(path, drawn.map(|(svg, _)| svg));
        }
    }
    Ok(drawings)
}

fn capture(sources: &Sources, name: &str) -> Result<Vec<u8>> {
    sources.bytes(&format!("captures/{name}.pcapng"))
}

/// The file of a picture, all packets of a run (`ladder NAME`) or a part of its lanes (`lanes NAME FROM..TO`), with the picture and
/// what it shows in words.
fn picture(sources: &Sources, what: &[&str]) -> Option<(String, Result<(String, String)>)> {
    Some(match what {
        ["ladder", name] => {
            let drawn = capture(sources, name).and_then(|run| lanes::ladder(&run));
            (format!("{FOLDER}/{name}.svg"), drawn)
        }
        ["lanes", name, range] => {
            let part = excerpts::part(sources, &format!("captures/{name}.pcapng"), range);
            let drawn = part.and_then(|part| lanes::picture(&capture(sources, name)?, part));
            (format!("{FOLDER}/{name}_{}.svg", range.replace("..", "_").replace([':', '@'], "-")), drawn)
        }
        _ => return None,
    })
}

/// The line that shows a picture on a page.
pub fn link(page: &str, sources: &Sources, what: &[&str]) -> Result<String> {
    let (path, drawn) = picture(sources, what).context("there is no such picture")?;
    let words = drawn?.1.replace('[', "(").replace(']', ")");
    let path = if page.starts_with("docs/") { path.trim_start_matches("docs/") } else { &path };
    Ok(format!("![{words}]({path})"))
}
