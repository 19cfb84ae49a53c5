//! Links: each leads to a file of the repository, and to a heading that is there.

use super::page::{Page, Problem};
use super::sources::Sources;
use std::collections::HashMap;
use std::path::{Component, Path};

/// Every link that leads nowhere, or to another lesson than it names.
pub fn problems(page: &Page, sources: &Sources) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (at, line) in page.lines.iter().enumerate().filter(|(at, _)| !page.fenced[*at]) {
        problems.extend(labelled(line).filter_map(misnamed).map(|what| page.problem(at, what)));
        // What is code has no links.
        let text = line.split('`').step_by(2).collect::<Vec<_>>().join("``");
        let targets = text.split("](").skip(1).filter_map(|piece| piece.split([')', ' ']).next());
        problems.extend(targets.filter_map(|target| dead(page, target, sources)).map(|what| page.problem(at, what)));
    }
    problems
}

/// What is wrong with a link that names one lesson and leads to another: `[lesson 04](05_rdma_read.md)`.
fn misnamed((label, target): (&str, &str)) -> Option<String> {
    let number = |text: &str| text.get(..2).filter(|text| text.bytes().all(|c| c.is_ascii_digit())).map(String::from);
    let named = number(label.trim_start_matches("lesson ").trim_start_matches("Lesson "))?;
    let parts = target.split('#').next()?.split('/').filter(|part| !part.ends_with(".svg"));
    let leads_to = parts.filter(|part| part.get(2..3) == Some("_")).find_map(number)?;
    (named != leads_to).then(|| format!("this link names lesson {named} and leads to {target}"))
}

/// Why a link leads nowhere. Links out of the repository are not followed.
fn dead(page: &Page, target: &str, sources: &Sources) -> Option<String> {
    if ["https://", "http://", "mailto:"].iter().any(|scheme| target.starts_with(scheme)) {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let Some(file) = resolve(&page.path, path) else {
        return Some(format!("the link {target} leads out of the repository"));
    };
    if !path.is_empty() && !sources.path(&file).exists() {
        return Some(format!("the link {target} leads to {file}, which does not exist"));
    }
    let text = if path.is_empty() { page.text() } else { sources.text(&file).unwrap_or_default() };
    let found = anchor.is_empty() || anchors(&Page::new(&file, &text)).iter().any(|known| known == anchor);
    (!found).then(|| format!("the link {target} leads to a heading that {file} does not have"))
}

/// A link's file, from the repository's folder; None if it is outside.
pub fn resolve(page: &str, target: &str) -> Option<String> {
    if target.is_empty() {
        return Some(page.into());
    }
    let folder = Path::new(page).parent()?;
    let mut parts: Vec<String> = Vec::new();
    for part in folder.join(target).components() {
        match part {
            Component::Normal(name) => parts.push(name.to_string_lossy().into_owned()),
            Component::CurDir => {}
            Component::ParentDir => drop(parts.pop()?),
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts.join("/"))
}

/// The files and folders of the repository that a page links to.
pub fn files(page: &Page) -> impl Iterator<Item = String> + '_ {
    let lines = page.lines.iter().zip(&page.fenced).filter(|(_, fenced)| !**fenced);
    let targets =
        lines.flat_map(|(line, _)| line.split("](").skip(1)).filter_map(|piece| piece.split([')', '#', ' ']).next());
    let local = targets.filter(|target| !target.is_empty() && !target.contains(':'));
    local.filter_map(|target| resolve(&page.path, target))
}

/// The links of a text, each as what is to be read and where it leads. Either may go over the end of a line.
pub fn labelled(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.match_indices("](").filter_map(|(at, _)| {
        let label = &text[text[..at].rfind('[')? + 1..at];
        Some((label, text[at + 2..].split_once(')')?.0))
    })
}

/// A line without what its links lead to.
pub fn without_targets(line: &str) -> String {
    let mut pieces = line.split("](");
    let first = pieces.next().unwrap_or_default().to_string();
    pieces.fold(first, |text, piece| text + "]" + piece.split_once(')').map_or(piece, |(_, rest)| rest))
}

/// What stands below the heading that a link leads to, or the whole page.
pub fn section(page: &Page, target: &str, sources: &Sources) -> Option<String> {
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let text = sources.text(&resolve(&page.path, path)?).ok()?;
    if anchor.is_empty() {
        return Some(text);
    }
    let level = |line: &str| line.bytes().take_while(|c| *c == b'#').count();
    let lines: Vec<&str> = text.lines().collect();
    let start = lines.iter().position(|line| level(line) > 0 && slug(line.trim_start_matches('#').trim()) == anchor)?;
    let rest = lines[start + 1..].iter().take_while(|line| level(line) == 0 || level(line) > level(lines[start]));
    Some([&lines[start]].into_iter().chain(rest).flat_map(|line| [line, "\n"]).collect())
}

/// The names by which a forge lets a page's headings be linked to.
fn anchors(page: &Page) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    let mut times: HashMap<String, usize> = HashMap::new();
    for (line, fenced) in page.lines.iter().zip(&page.fenced) {
        let heading = line.trim_start_matches('#');
        if *fenced || heading.len() == line.len() || !heading.starts_with(' ') {
            anchors.extend(line.split("<a id=\"").skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_string())));
            continue;
        }
        let name = slug(heading.trim());
        let before = times.entry(name.clone()).or_default();
        anchors.push(if *before == 0 { name } else { format!("{name}-{before}") });
        *before += 1;
    }
    anchors
}

/// Lower case, blanks as hyphens, no punctuation; of a link only its text.
fn slug(heading: &str) -> String {
    let mut text = String::new();
    let mut rest = heading;
    while let Some((before, after)) = rest.split_once("](") {
        text.push_str(before);
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    let kept = text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::sources::tests::repository;
    use super::*;

    fn check(text: &str) -> Vec<String> {
        problems(&Page::new("docs/p.md", text), repository()).iter().map(Problem::to_string).collect()
    }

    #[test]
    fn links_lead_to_files_and_headings() {
        assert_eq!(
            check("## A `b`: C!\n[a](../Makefile) [b](#a-b-c) [c](../README.md#two-commands) [d](https://x.y)"),
            [""; 0]
        );
        assert_eq!(check("code `[a](none.md)`\n```\n[a](none.md)\n```\n"), [""; 0]);
        assert!(check("\n[a](none.md)")[0].starts_with("docs/p.md:2: the link none.md leads to docs/none.md"));
        assert!(check("![a](images/none.png)")[0].contains("does not exist"));
        assert!(check("[a](../README.md#three)")[0].contains("a heading that README.md does not have"));
        assert!(check("[a](#none)")[0].contains("a heading that docs/p.md does not have"));
        assert!(check("[a](../../x)")[0].contains("out of the repository"));
    }

    #[test]
    fn a_link_that_names_a_lesson_leads_to_it() {
        assert_eq!(check("[lesson 04](04_rdma_write.md) and [05 read](05_rdma_read.md)"), [""; 0]);
        assert!(check("[lesson 05](04_rdma_write.md)")[0].contains("names lesson 05 and leads to 04_rdma_write.md"));
    }

    #[test]
    fn headings_are_named_as_on_a_forge() {
        let page =
            Page::new("p.md", "# On the wire\n## On the wire\n### `wr_id`: [what](x.md)?\n<a id=\"mr\"></a>\n#no\n");
        assert_eq!(anchors(&page), ["on-the-wire", "on-the-wire-1", "wr_id-what", "mr"]);
    }
}
