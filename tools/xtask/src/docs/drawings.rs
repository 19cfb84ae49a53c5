//! What is drawn from the captures: their ladders, their lanes as text, and the parts of lanes that pages show as pictures.

use super::excerpts;
use super::page::{Page, Problem};
use super::sources::Sources;
use anyhow::{Context, Result};
use run::lanes::{self, Style};
use run::story;
use std::collections::BTreeMap;
use std::fs;

const FOLDER: &str = "docs/images";

/// Compares all drawings with what would be drawn now, or draws anew what is not like that.
pub fn renew(pages: &[Page], sources: &Sources, write: bool) -> Result<Vec<Problem>> {
    let mut problems = Vec::new();
    let drawings = all(pages, sources)?;
    for (path, drawing) in &drawings {
        match drawing {
            Err(error) => problems.push(Problem::new(path, format!("{error:#}"))),
            Ok(drawing) if sources.text(path).is_ok_and(|kept| kept == *drawing) => {}
            Ok(drawing) if write => {
                fs::write(sources.path(path), drawing).with_context(|| format!("cannot write {path}"))?;
                println!("{path} written");
            }
            Ok(_) => problems.push(Problem::new(path, "is not what `make docs` draws: run it and commit")),
        }
    }
    for path in sources.files(FOLDER, ".svg")?.iter().filter(|path| !drawings.contains_key(*path)) {
        if write {
            fs::remove_file(sources.path(path)).with_context(|| format!("cannot remove {path}"))?;
            println!("{path} removed: nothing shows it");
        } else {
            problems.push(Problem::new(path, "nothing shows it: run `make docs`"));
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
    for mark in pages.iter().flat_map(Page::marks) {
        if let ("generated", [what, name]) = (mark.kind.as_str(), mark.words.as_slice()) {
            if what == "ladder" {
                drawings.insert(format!("{FOLDER}/{name}.svg"), ladder(sources, name).map(|(svg, _)| svg));
            }
        }
        if let ("generated", [what, name, range]) = (mark.kind.as_str(), mark.words.as_slice()) {
            if what == "lanes" {
                let picture = picture(sources, name, range).map(|(svg, _)| svg);
                drawings.insert(format!("{FOLDER}/{}", file_name(name, range)), picture);
            }
        }
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

#[cfg(test)]
mod tests {
    use super::super::sources::tests::repository;
    use super::*;

    #[test]
    fn a_part_of_the_lanes_is_drawn_for_the_page_that_shows_it() {
        let (sources, mark) =
            (repository(), "<!-- generated: lanes 01_cm_listen client:knock..step2 -->\n<!-- end -->\n");
        let pages = [Page::new("README.md", mark)];
        let link = lanes_link(&pages[0], sources, "01_cm_listen", "client:knock..step2").unwrap();
        let path = "docs/images/01_cm_listen_client-knock_step2.svg";
        assert!(link.ends_with(&format!("]({path})")), "{link}");
        assert!(link.contains("client to server: REQ (ConnectRequest)"), "{link}");
        let drawings = all(&pages, sources).unwrap();
        let svg = drawings[path].as_ref().unwrap();
        assert!(svg.contains("rdma_connect") && !svg.contains("rdma_listen"));
        let problems = renew(&pages, sources, false).unwrap();
        let what =
            |path: &str| problems.iter().find(|problem| problem.place == path).map_or("", |problem| &problem.what);
        assert!(what(path).contains("is not what `make docs` draws"), "{problems:?}");
        assert!(what("docs/images/06_send_recv_state_machine_step4_step7.svg").starts_with("nothing shows it"));
        assert!(what("docs/images/01_cm_listen.svg").starts_with("nothing shows it"));
        let page = [Page::new("README.md", "<!-- generated: ladder 01_cm_listen -->\n<!-- end -->\n")];
        let problems = renew(&page, sources, false).unwrap();
        assert!(problems.iter().all(|problem| problem.place != "docs/images/01_cm_listen.svg"), "{problems:?}");
    }

    #[test]
    fn lanes_fit_a_page() {
        let text = all(&[], repository()).unwrap().remove("captures/04_rdma_write.txt").unwrap().unwrap();
        assert!(text.lines().count() > 100 && text.lines().all(|line| line.chars().count() <= 100));
    }
}
