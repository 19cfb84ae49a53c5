//! The changes of a lesson on its page: what is edited, what the reader predicts, and, folded away, what happens. Each is a
//! page of its own, `lessons/NN_topic/changes/NAME.md`, which [`course::page`] takes apart.

use super::lanes::Recorded;
use super::page;
use super::sources::Sources;
use anyhow::{Context, Result};
use course::page::{Page, OUTCOME};
use run::files::read;
use std::path::Path;

/// How the links of a change's page begin, and what they are on a page in docs/.
const LINKS: [(&str, &str); 2] = [("](../../../docs/", "]("), ("](../../../", "](../")];

/// What can be broken, each with its question, and a link to where the answer is.
pub fn table(sources: &Sources, lesson: &str, names: &[&str]) -> Result<Vec<String>> {
    let row = |name: &&str| {
        let (path, page) = (sources.change(lesson, name)?, load(sources, lesson, name)?);
        let ask = page.parts[0].prose().split_whitespace().collect::<Vec<_>>().join(" ");
        Ok([format!("[`{name}`](../{path})"), page.title, ask.replace('|', "\\|")])
    };
    let rows = names.iter().map(row).collect::<Result<Vec<_>>>()?;
    Ok(page::table(&["`CHANGE=`", "what it does", "and you are asked"], rows))
}

/// One change, with what was kept of its run: for the book, whose pages may be long where they are folded. `play` comes after
/// the question, and `says` after the answer.
pub fn with_run(sources: &Sources, lesson: &str, name: &str, play: &[String], says: &[String]) -> Result<Vec<String>> {
    let page = load(sources, lesson, name)?;
    let mut lines = vec![format!("**{}.** `{}`", page.title, page.command)];
    lines.extend(page.parts[0].lines.iter().map(|line| of_docs(line)));
    lines.extend_from_slice(play);
    lines.extend([format!("<details><summary>{OUTCOME}</summary>"), String::new()]);
    lines.extend(of_docs(&page.part(OUTCOME)?.prose()).lines().map(String::from));
    lines.extend_from_slice(says);
    // What does not compile has no run.
    if let Ok(run) = read(recorded(lesson, name)) {
        lines.push(String::new());
        lines.extend(Recorded::parse(&run).html(|_| true));
    }
    lines.extend(["", "</details>"].map(String::from));
    Ok(lines)
}

/// What is asked of a change, and the answer.
pub fn asked(sources: &Sources, lesson: &str, name: &str) -> Result<Vec<String>> {
    let page = load(sources, lesson, name)?;
    let text = format!("*{}*\n{}", page.parts[0].prose(), page.part(OUTCOME)?.prose());
    Ok(of_docs(&text).lines().map(String::from).collect())
}

/// Where the part of its run is that was kept.
pub fn recorded(lesson: &str, name: &str) -> String {
    format!("captures/changes/{lesson}-{name}.txt")
}

fn load(sources: &Sources, lesson: &str, name: &str) -> Result<Page> {
    let path = sources.change(lesson, name)?;
    Page::load(Path::new(&path)).context(path)
}

fn of_docs(text: &str) -> String {
    LINKS.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}
