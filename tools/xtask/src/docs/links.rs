//! Links: each leads to a file of the repository, and to a heading that is there.

use super::names::Name;
use super::numbers;
use super::page::{Page, Wrong};
use super::sources::Sources;
use run::files::read;
use std::collections::HashMap;
use std::path::{Component, Path};

/// Every link that leads nowhere, or to another lesson than it names, or where nobody speaks of what it names.
pub fn problems(page: &Page, sources: &Sources) -> Wrong {
    let mut wrong = Wrong::new();
    for (at, line) in page.lines.iter().enumerate().filter(|(at, _)| !page.fenced[*at]) {
        let dead = targets(line).filter_map(|target| dead(page, target));
        let of_label = |(label, target)| misnamed(label, target).or_else(|| unspoken(page, label, target, sources));
        wrong.extend(labelled(line).filter_map(of_label).chain(dead).map(|what| (at, what)));
    }
    wrong
}

/// What is wrong with a link that names one lesson and leads to another: `[More about lesson 04](more/05_rdma_read.md)`.
fn misnamed(label: &str, target: &str) -> Option<String> {
    let number = |text: &str| text.get(..2).filter(|text| text.bytes().all(|c| c.is_ascii_digit())).map(String::from);
    let named = label.to_lowercase().split_once("lesson ").map_or_else(|| number(label), |(_, after)| number(after))?;
    let parts = target.split('#').next()?.split('/').filter(|part| !part.ends_with(".svg"));
    let leads_to = parts.filter(|part| part.get(2..3) == Some("_")).find_map(number)?;
    (named != leads_to).then(|| format!("this link names lesson {named} and leads to {target}"))
}

/// What is wrong with a link that names something (a number, a call, a packet) of which nobody speaks where it leads:
/// `[status 12](local_length.md)`, or `[UCX 406](https://github.com/openucx/ucx/issues/604)`.
fn unspoken(page: &Page, label: &str, target: &str, sources: &Sources) -> Option<String> {
    let is_picture = [".png", ".svg"].iter().any(|ending| target.ends_with(ending));
    let issue = ["/issues/", "/pull/"].iter().find_map(|part| target.split_once(part)).map(|(_, issue)| issue);
    let place = match issue {
        Some(issue) => issue.to_owned(),
        None if is_picture || is_elsewhere(target) => return None,
        // A lesson's number is in the names of its files.
        None => format!("{} {}", target.replace(['_', '-'], " "), section(page, target)?),
    };
    // What is code may be more than a name: `poll(cq, 16)`.
    let words: String = label.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    let (known, things) = (numbers::all(&place), sources.names.of(&place));
    let number = numbers::all(&words).into_iter().find(|number| !known.contains(number));
    let is_there = |name: &Name| issue.is_some() || things.iter().any(|it| it.thing == name.thing);
    let name = || sources.names.of(label).into_iter().find(|name| !is_there(name)).map(|name| name.text.to_owned());
    Some(format!("this link names {}, and where it leads, to {target}, nobody speaks of that", number.or_else(name)?))
}

/// Why a link leads nowhere. Links out of the repository are not followed.
fn dead(page: &Page, target: &str) -> Option<String> {
    if is_elsewhere(target) {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let Some(file) = resolve(&page.path, path) else {
        return Some(format!("the link {target} leads out of the repository"));
    };
    if !Path::new(&file).exists() {
        return Some(format!("the link {target} leads to {file}, which does not exist"));
    }
    let text = if path.is_empty() { page.text() } else { read(&file).unwrap_or_default() };
    let found = anchor.is_empty() || anchors(&Page::new(&file, &text)).iter().any(|(_, known)| known == anchor);
    (!found).then(|| format!("the link {target} leads to a heading that {file} does not have"))
}

fn is_elsewhere(target: &str) -> bool {
    ["https://", "http://", "mailto:"].iter().any(|scheme| target.starts_with(scheme))
}

/// A link's file, from the repository's folder; None if it is outside.
pub fn resolve(page: &str, target: &str) -> Option<String> {
    if target.is_empty() {
        return Some(page.into());
    }
    let mut parts: Vec<&str> = Vec::new();
    let path = Path::new(page).parent()?.join(target);
    for part in path.components() {
        match part {
            Component::Normal(name) => parts.push(name.to_str()?),
            Component::ParentDir => drop(parts.pop()?),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts.join("/"))
}

/// The files and folders of the repository that a page links to.
pub fn files(page: &Page) -> impl Iterator<Item = String> + '_ {
    let lines = page.lines.iter().zip(&page.fenced).filter(|(_, fenced)| !**fenced);
    let paths = lines.flat_map(|(line, _)| targets(line)).filter(|target| !is_elsewhere(target));
    let paths = paths.filter_map(|target| target.split('#').next()).filter(|path| !path.is_empty());
    paths.filter_map(|path| resolve(&page.path, path))
}

/// Where the links of a line lead; what is code has none.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let starts = line.match_indices("](").filter(|(at, _)| line[..*at].matches('`').count() % 2 == 0);
    starts.filter_map(|(at, _)| line[at + 2..].split([')', ' ']).next())
}

/// The links of a text, each as what is to be read and where it leads. Either may go over the end of a line.
pub fn labelled(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.match_indices("](").filter_map(|(at, _)| {
        let label = &text[text[..at].rfind('[')? + 1..at];
        Some((label, text[at + 2..].split_once(')')?.0))
    })
}

/// A text whose links lead elsewhere: each `(target)` is replaced.
pub fn replaced(text: &str, instead: impl Fn(&str) -> String) -> String {
    let mut pieces = text.split("](");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, piece| match piece.split_once(')') {
        Some((target, rest)) => text + "]" + &instead(target) + rest,
        None => text + "](" + piece,
    })
}

/// Lines that were written for a page in docs/, on this one: in a folder below, their links lead from there.
pub fn below(page: &Page, lines: &[String]) -> Vec<String> {
    let up = "../".repeat(page.path.strip_prefix("docs/").map_or(0, |path| path.matches('/').count()));
    let leads = |target: &str| match is_elsewhere(target) || target.starts_with('#') {
        true => format!("({target})"),
        false => format!("({up}{target})"),
    };
    lines.iter().map(|line| replaced(line, leads)).collect()
}

/// A text without what its links lead to.
pub fn without_targets(text: &str) -> String {
    replaced(text, |_| String::new())
}

/// What is below the heading that a link leads to, or the whole page.
pub fn section(page: &Page, target: &str) -> Option<String> {
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let file = resolve(&page.path, path)?;
    let there = Page::new(&file, &read(&file).ok()?);
    if anchor.is_empty() {
        return Some(there.text());
    }
    let level = |line: &String| line.bytes().take_while(|c| *c == b'#').count();
    let (start, _) =
        anchors(&there).into_iter().find(|(at, known)| known == anchor && there.lines[*at].starts_with('#'))?;
    let (heading, rest) = there.lines[start..].split_first()?;
    let rest = rest.iter().take_while(|line| level(line) == 0 || level(line) > level(heading));
    Some([heading].into_iter().chain(rest).flat_map(|line| [line, "\n"]).collect())
}

/// The names by which a forge lets a page's headings be linked to, and those that the page itself gives to a place; with their lines.
pub fn anchors(page: &Page) -> Vec<(usize, String)> {
    let mut anchors = Vec::new();
    let mut times: HashMap<String, usize> = HashMap::new();
    for (at, line) in page.lines.iter().enumerate() {
        match line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#') && !page.fenced[at]) {
            Some(heading) => {
                let name = slug(heading.trim());
                let before = times.entry(name.clone()).or_default();
                anchors.push((at, if *before == 0 { name } else { format!("{name}-{before}") }));
                *before += 1;
            }
            None => {
                let named = line.split("<a id=\"").skip(1).filter_map(|rest| rest.split_once('"'));
                anchors.extend(named.map(|(name, _)| (at, name.to_owned())));
            }
        }
    }
    anchors
}

/// Lower case, blanks as hyphens, no punctuation; of a link only its text.
fn slug(heading: &str) -> String {
    let text = without_targets(heading);
    let kept = text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}
