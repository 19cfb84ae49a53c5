//! What is drawn from the captures: their ladders, their lanes as text, and the parts of lanes that pages show as pictures.

use super::excerpts;
use super::page::{Page, Problem};
use super::sources::Sources;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;
use wire::lanes::{self, Style};
use wire::story;

const FOLDER: &str = "docs/images";

/// Draws what is not as it would be drawn now; what could not be drawn is returned.
///
/// # Errors
/// A file cannot be written or removed.
pub fn write(pages: &[Page], sources: &Sources) -> Result<Vec<Problem>> {
    let mut problems = Vec::new();
    let drawings = all(pages, sources)?;
    for (path, drawing) in &drawings {
        let file = sources.path(path);
        match drawing {
            Ok(drawing) if fs::read_to_string(&file).map_or(true, |old| old != *drawing) => {
                fs::write(&file, drawing).with_context(|| format!("cannot write {}", file.display()))?;
                println!("{path} written");
            }
            Ok(_) => {}
            Err(error) => problems.push(Problem::new(path, format!("{error:#}"))),
        }
    }
    for path in left_over(&drawings, sources)? {
        fs::remove_file(sources.path(&path)).with_context(|| format!("cannot remove {path}"))?;
        println!("{path} removed: nothing shows it");
    }
    Ok(problems)
}

/// Drawings that are not what would be drawn now.
pub fn problems(pages: &[Page], sources: &Sources) -> Vec<Problem> {
    let found = all(pages, sources).and_then(|drawings| {
        let mut found: Vec<Problem> =
            drawings.iter().filter_map(|(path, drawing)| problem(path, drawing, sources)).collect();
        let left_over = left_over(&drawings, sources)?;
        found.extend(left_over.iter().map(|path| Problem::new(path, "nothing shows it: run `make docs`")));
        Ok(found)
    });
    found.unwrap_or_else(|error| vec![Problem::new(FOLDER, format!("{error:#}"))])
}

fn problem(path: &str, drawing: &Result<String>, sources: &Sources) -> Option<Problem> {
    let what = match (drawing, sources.text(path)) {
        (Ok(drawing), Ok(kept)) if *drawing == kept => return None,
        (Ok(_), Ok(_)) => "is not what `make docs` draws: run it and commit".into(),
        (Err(error), _) => format!("{error:#}"),
        (_, Err(error)) => format!("{error:#}"),
    };
    Some(Problem::new(path, what))
}

/// Every drawing by its path.
fn all(pages: &[Page], sources: &Sources) -> Result<BTreeMap<String, Result<String>>> {
    let mut drawings = BTreeMap::new();
    for story in story::bundled()? {
        let name = story.file_name();
        drawings.insert(format!("{FOLDER}/{name}.svg"), ladder(sources, &name));
        drawings.insert(format!("captures/{name}.txt"), text(sources, &name));
    }
    for mark in pages.iter().flat_map(Page::marks) {
        if let ("generated", [what, name, range]) = (mark.kind.as_str(), mark.words.as_slice()) {
            if what == "lanes" {
                let picture = picture(sources, name, range).map(|(svg, _)| svg);
                drawings.insert(format!("{FOLDER}/{}", file_name(name, range)), picture);
            }
        }
    }
    Ok(drawings)
}

fn left_over(drawings: &BTreeMap<String, Result<String>>, sources: &Sources) -> Result<Vec<String>> {
    let files = sources.files(FOLDER, ".svg")?;
    Ok(files.into_iter().filter(|path| !drawings.contains_key(path)).collect())
}

fn ladder(sources: &Sources, name: &str) -> Result<String> {
    Ok(lanes::ladder(&sources.bytes(&format!("captures/{name}.pcapng"))?)?.0)
}

fn text(sources: &Sources, name: &str) -> Result<String> {
    Ok(lanes::text(&sources.bytes(&format!("captures/{name}.pcapng"))?, Style::FILE, 0..=u64::MAX)?)
}

/// A part of the lanes, and what it shows in words.
fn picture(sources: &Sources, name: &str, range: &str) -> Result<(String, String)> {
    let part = excerpts::part(sources, name, range)?;
    Ok(lanes::picture(&sources.bytes(&format!("captures/{name}.pcapng"))?, part)?)
}

fn file_name(name: &str, range: &str) -> String {
    format!("{name}_{}.svg", range.replace("..", "_").replace(':', "-"))
}

/// The line that shows a capture's ladder, for a page in docs/.
///
/// # Errors
/// There is no such capture.
pub fn ladder_link(sources: &Sources, name: &str) -> Result<String> {
    let (_, words) = lanes::ladder(&sources.bytes(&format!("captures/{name}.pcapng"))?)?;
    Ok(format!("![{words}](images/{name}.svg)"))
}

/// The line that shows a part of a run's lanes.
///
/// # Errors
/// There is no such run, or no such part.
pub fn lanes_link(page: &Page, sources: &Sources, name: &str, range: &str) -> Result<String> {
    let (_, words) = picture(sources, name, range)?;
    let words = words.replace('[', "(").replace(']', ")");
    let folder = if page.path.starts_with("docs/") { "images" } else { FOLDER };
    Ok(format!("![{words}]({folder}/{})", file_name(name, range)))
}

#[cfg(test)]
mod tests {
    use super::super::sources::tests::repository;
    use super::*;

    #[test]
    fn a_drawing_that_shows_something_else_is_found() {
        let sources = repository();
        let drawing = ladder(&sources, "01_cm_listen").unwrap();
        let problem = |path: &str, drawing: &str| problem(path, &Ok(drawing.into()), &sources).map(|found| found.what);
        assert_eq!(problem("docs/images/01_cm_listen.svg", &drawing), None);
        assert!(problem("docs/images/01_cm_listen.svg", "<svg/>").unwrap().contains("is not what `make docs` draws"));
        assert!(problem("docs/images/none.svg", &drawing).unwrap().contains("cannot read docs/images/none.svg"));
    }

    #[test]
    fn a_part_of_the_lanes_is_drawn_for_the_page_that_shows_it() {
        let (sources, mark) =
            (repository(), "<!-- generated: lanes 01_cm_listen client:knock..step2 -->\n<!-- end -->\n");
        let page = Page::new("README.md", mark);
        let link = lanes_link(&page, &sources, "01_cm_listen", "client:knock..step2").unwrap();
        assert!(link.ends_with("](docs/images/01_cm_listen_client-knock_step2.svg)"), "{link}");
        assert!(link.contains("client to server: REQ (ConnectRequest)"), "{link}");
        let drawings = all(&[page], &sources).unwrap();
        let svg = drawings["docs/images/01_cm_listen_client-knock_step2.svg"].as_ref().unwrap();
        assert!(svg.contains("rdma_connect") && !svg.contains("rdma_listen"));
    }

    #[test]
    fn lanes_fit_a_page() {
        let text = text(&repository(), "04_rdma_write").unwrap();
        assert!(text.lines().count() > 100 && text.lines().all(|line| line.chars().count() <= 100));
    }
}
