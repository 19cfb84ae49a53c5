//! A page as it is in the book.

use super::workbench::Tried;
use super::{code, player, workbench};
use crate::docs::links;
use crate::docs::page::Page;
use crate::docs::sources::Sources;
use crate::docs::{changes, diffs, drawings, recorded};
use anyhow::Result;
use course::mine::Language;
use course::page::{Part, AGAIN, ANSWER, CUT, HINTS, PASS};
use course::step::Step;
use run::files::read;
use std::path::Path;

/// The picture of the player, and the run that it shows: in the book there is the player itself.
const PLAYER: (&str, &str) = ("tools/book/player.png", "04_rdma_write");

/// The parts of the judge's file that a reader finds below the page, folded.
const FOLDED: [&str; 5] = [CUT, PASS, AGAIN, HINTS, ANSWER];

/// Where a reader says which language is theirs. The book's script makes the switch, and hides what is about the others; without
/// it all of them are there.
const SWITCH: &str = "<div class=\"languages\"></div>";
/// How a quotation's like in another language begins.
const TAB: &str = "<details class=\"tab\">";

/// Where a page is in the book: that of a folder is what one sees there.
pub fn place(path: &str) -> String {
    path.replace("README.md", "index.md")
}

/// The page's Markdown for the book.
pub fn in_book(page: &Page, sources: &Sources) -> Result<String> {
    let lines = page.lines.iter().zip(&page.fenced);
    let mut lines: Vec<String> =
        lines.map(|(line, fenced)| if *fenced { line.clone() } else { linked(page, line) }).collect();
    for line in lines.iter_mut().filter(|line| line.starts_with("![") && line.ends_with(&format!("]({})", PLAYER.0))) {
        *line = player::run(PLAYER.1, line).join("\n");
    }
    let mut is_first = true;
    // From the end, so that the places before stay right.
    for mark in page.marks.iter().rev() {
        let words = mark.words();
        let end = page.part_after(mark.line).map_or(mark.line, |part| part.end);
        let instead = match (mark.kind.as_str(), words.as_slice()) {
            ("generated", what @ ["ladder", name]) => {
                links::below(page, &player::run(name, &drawings::link(&page.path, what)?))
            }
            ("generated", [folder @ ("met" | "over_tcp"), name]) => {
                links::below(page, &player::run(&format!("{folder}/{name}"), &drawings::elsewhere(folder, name)?))
            }
            ("generated", ["protocol", name]) => {
                links::below(page, &player::run(&format!("protocols/{name}"), &drawings::protocol(name)?))
            }
            // As the terminal has it, and then to be played.
            ("generated", ["story", name]) => {
                let told = block("class=\"story\"", page.lines[mark.line + 1..end].join("\n").trim());
                [told, vec![String::new()], player::run(name, "")].concat()
            }
            ("generated", ["diff", old, new]) => diffs::folded(sources, old, new)?,
            ("generated", ["changes", lesson, names @ ..]) => {
                // Those that pages on a forge leave to others can be played here.
                let more = if is_first { player::recorded(lesson)? } else { Vec::new() };
                let more = more.into_iter().filter(|name| !changed(page).any(|words| words.contains(&name.as_str())));
                is_first = false;
                let runs: Result<Vec<_>> = names
                    .iter()
                    .map(|name| (*name).to_owned())
                    .chain(more)
                    .map(|name| {
                        let Tried { link, says } = workbench::tried(lesson, &name)?;
                        let play = [player::beside(lesson, &name)?, link].concat();
                        changes::with_run(sources, lesson, &name, &play, &says)
                    })
                    .collect();
                links::below(page, &runs?.join(&String::new()))
            }
            ("generated", ["case", lesson, name]) => {
                let Tried { link, says } = workbench::tried(lesson, name)?;
                let play = [vec![String::new()], player::beside(lesson, name)?, link, says].concat();
                lines.splice(end..end, play);
                continue;
            }
            ("generated", ["seen", lesson, name, words @ ..]) => recorded::seen(lesson, name, words)?,
            ("workbench", [name]) => workbench::place(name),
            ("code", [path]) if !page.lines[mark.line].starts_with(' ') => {
                if let Some(quoted) = page.block_after(mark.line) {
                    let more = elsewhere(path, &page.lines[quoted.clone()])?;
                    lines.splice(quoted.end + 1..quoted.end + 1, more);
                }
                block("class=\"source\"", &format!("[{path}]({}{path})", up(&page.path)))
            }
            _ => continue,
        };
        // What comes after HTML is Markdown again only behind an empty line.
        let instead = instead.iter().map(|line| linked(page, line)).chain([String::new()]);
        lines.splice(mark.line..=end, instead);
    }
    lines.extend(folded(page)?);
    if page.path.contains("/steps/") || lines.iter().any(|line| line.starts_with(TAB)) {
        lines.splice(1..1, ["", SWITCH, ""].map(str::to_owned));
    }
    Ok(lines.join("\n") + "\n")
}

/// What the judge knows about a step or a hole and a reader of its page may open there. How the judge itself is tried is for those
/// who work on it.
fn folded(page: &Page) -> Result<Vec<String>> {
    let beside = Path::new(&page.path).with_extension(course::page::JUDGE);
    if !beside.exists() {
        return Ok(Vec::new());
    }
    let known = course::page::Page::load(Path::new(&page.path))?;
    let parts = known.parts.iter().filter(|part| FOLDED.contains(&part.kind()));
    let of_part = |part: &Part| {
        let head = [String::new(), format!("<details><summary>{}</summary>", part.name), String::new()];
        let lines = part.lines.iter().map(|line| linked(page, line));
        head.into_iter().chain(lines).chain(["</details>".to_owned()]).collect::<Vec<_>>()
    };
    Ok(parts.flat_map(of_part).collect())
}

/// The functions in C and Python that do what the quoted function of a lesson does, as the lesson's steps tell.
fn elsewhere(path: &str, quoted: &[String]) -> Result<Vec<String>> {
    let Some((lesson, file)) = path.split_once("/src/") else { return Ok(Vec::new()) };
    let names = around(&read(path)?, quoted);
    let is_it = |named: &String| names.iter().any(|name| *named == format!("src/{file}: {name}"));
    let steps = Step::of(Path::new(lesson))?;
    let found = steps.iter().find_map(|step| Some((&step.reference, step.reference.rust.iter().position(is_it)?)));
    let Some((reference, at)) = found else { return Ok(Vec::new()) };
    let mut lines = Vec::new();
    for (language, name, word) in [(Language::C, "C", "c"), (Language::Python, "Python", "python")] {
        let all = reference.functions(Path::new(lesson), language)?;
        // One beside the other; where there are others, all of them do what those do.
        let text = if all.len() == reference.rust.len() { all[at].clone() } else { all.join("\n") };
        lines.extend([String::new(), format!("{TAB}<summary>In {name}</summary>"), String::new()]);
        lines.extend([format!("````{word}\n{}\n````", text.trim_end()), String::new(), "</details>".to_owned()]);
    }
    Ok(lines)
}

/// The function, and the type with its functions, that a quotation is in.
fn around(source: &str, quoted: &[String]) -> Vec<String> {
    let begin = quoted.iter().find(|line| !line.trim().is_empty());
    let lines: Vec<&str> = source.lines().collect();
    let at = lines.iter().position(|line| begin.is_some_and(|begin| line == begin)).unwrap_or_default();
    let last = |word: &str| {
        let named =
            lines[..=at].iter().rev().find_map(|line| line.trim_start().trim_start_matches("pub ").strip_prefix(word));
        named.map(|named| named.split(['(', '<', ' ', '{']).next().unwrap_or_default().to_owned())
    };
    ["fn ", "impl "].into_iter().filter_map(last).collect()
}

/// The changes of each table of them.
fn changed(page: &Page) -> impl Iterator<Item = Vec<&str>> {
    page.marks.iter().map(|mark| mark.words()).filter(|words| words.first() == Some(&"changes"))
}

/// Markdown in a block of its own, which the book's script or style finds.
pub fn block(attributes: &str, text: &str) -> Vec<String> {
    [&format!("<div {attributes}>"), "", text, "", "</div>", ""].map(str::to_owned).to_vec()
}

/// The files that the page shows or links to as they are: pictures and captures.
pub fn files(page: &Page) -> Vec<String> {
    let files = links::files(page).chain(page.quoted_files());
    let files = files.filter(|file| !file.ends_with(".md") && code::place(file).is_none());
    files.filter(|file| Path::new(file).is_file()).collect()
}

/// A line whose links lead to the book's pages: a page of a folder, or a file of code, has another name there.
fn linked(page: &Page, line: &str) -> String {
    links::replaced(line, |target| {
        let (path, anchor) = target.find('#').map_or((target, ""), |at| target.split_at(at));
        let file = links::resolve(&page.path, path).filter(|_| !path.is_empty() && !path.contains(':'));
        match file.and_then(|file| code::place(&file)) {
            Some((code, anchor)) => format!("({}{code}.md{anchor})", up(&page.path)),
            None => format!("({}{anchor})", place(path)),
        }
    })
}

/// From a page to the book's root.
fn up(path: &str) -> String {
    "../".repeat(path.matches('/').count())
}
