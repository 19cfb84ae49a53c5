//! A page of a change, `lessons/NN_topic/changes/NAME.md`: Markdown that a forge shows as it is, taken apart here by its title,
//! its command, its parts and their fences.
//!
//! A part begins where something is folded away (`<details><summary>NAME</summary>`), or with a heading `## NAME`. What comes
//! before the first of them has no name: a reader sees it without having opened anything. There may be prose around fences.
//!
//! What the judge knows about an exercise, a step or a hole is in a file beside its page, `NAME.judge.md`, so that somebody can
//! read the page in an editor and still find the answer alone. That file has a title, which is for people only, and parts.
//!
//! Which parts a page of a kind has is in [`crate::kind`].

use crate::edit::Edit;
use anyhow::{ensure, Context, Result};
use run::files::{name, read};
use std::fmt;
use std::path::{Path, PathBuf};

/// What becomes of a lesson that is broken, and why.
pub const OUTCOME: &str = "What happens";
/// The options of the first run.
pub(crate) const RUN_BY: &str = "How it's run";
pub const HINTS: &str = "Hints";
/// What the judge must see.
pub const PASS: &str = "Pass when";
/// Another run, which must show the same unless it says what.
pub const AGAIN: &str = "Once more";
pub(crate) const SOLVED: &str = "Solved";
pub const ANSWER: &str = "Answer";
pub(crate) const REFERENCE: &str = "Reference";
pub(crate) const QUESTIONS: &str = "The questions";
pub const CUT: &str = "The hole";
pub(crate) const RIGHT: &str = "Right";
pub(crate) const WRONG: &str = "Wrong";

/// How the name of the file ends that has the other parts of a page.
pub const JUDGE: &str = "judge.md";
/// How the link to the recorded run begins, which is no prose.
const RUN: &str = "[What the run shows](";
const FENCE: &str = "```";
/// What is in fences.
const KINDS: [&str; 5] = ["", "diff", "rust", "toml", "text"];

/// What a page of a lesson's changes is called. People say `03-late-receive`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    pub lesson: PathBuf,
    /// The file's name without its ending.
    pub name: String,
}

impl Name {
    /// The lesson's number: `03`.
    pub fn number(&self) -> String {
        let folder = self.lesson.file_name().unwrap_or_default().to_string_lossy();
        folder.split('_').next().unwrap_or_default().to_owned()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // As text, so that it can be filled up to a width.
        f.pad(&format!("{}-{}", self.number(), self.name))
    }
}

#[derive(Debug, Clone)]
pub struct Page {
    /// What is done, in a few words.
    pub title: String,
    /// How a reader has it made.
    pub command: String,
    /// The parts, in order; the first has no name.
    pub parts: Vec<Part>,
}

/// What is below a heading, or is folded away.
#[derive(Debug, Clone, Default)]
pub struct Part {
    pub name: String,
    pub lines: Vec<String>,
}

impl Page {
    /// Whether a file is a page of its own. The others belong to one, and nobody is to read them by mistake.
    pub fn is_at(file: &Path) -> bool {
        let name = name(file);
        name.ends_with(".md") && !name.ends_with(&format!(".{JUDGE}"))
    }

    /// Reads a page, and what the judge knows about it, if there is such a file.
    pub fn load(file: &Path) -> Result<Self> {
        let (mut page, beside) = (Self::parse(&read(file)?)?, file.with_extension(JUDGE));
        if beside.exists() {
            ensure!(page.parts.len() == 1, "the folded part and everything after it belongs in {}", name(&beside));
            page.add(&read(&beside)?).with_context(|| beside.display().to_string())?;
        }
        Ok(page)
    }

    pub fn parse(text: &str) -> Result<Self> {
        let (title, rest) = text.split_once('\n').unwrap_or((text, ""));
        let title = title.strip_prefix("# ").context("the first line must be the title, like `# Forget to answer`")?;
        let (command, rest) = rest.trim_start().split_once('\n').context("it ends after its title")?;
        let command = command.strip_prefix('`').and_then(|command| command.strip_suffix('`'));
        let command = command.context("the command must follow the title, like `make break-01 CHANGE=no-answer`")?;
        Ok(Self { title: title.to_owned(), command: command.to_owned(), parts: parts(rest)? })
    }

    /// Adds the parts of the judge's file.
    fn add(&mut self, text: &str) -> Result<()> {
        let (title, rest) = text.split_once('\n').unwrap_or_default();
        let more = parts(rest)?.split_off(1);
        ensure!(
            title.starts_with("# ") && !more.is_empty(),
            "it must have a title, and parts with headings like `## NAME`"
        );
        self.parts.extend(more);
        Ok(())
    }

    /// The parts whose names begin like this.
    pub fn parts<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Part> {
        self.parts.iter().filter(move |part| part.name.starts_with(name))
    }

    /// The solutions, the right ones first.
    pub fn solutions(&self) -> Result<Vec<Solution>> {
        let of_kind = |(kind, is_right): (&'static str, bool)| {
            self.parts(kind).zip(1..).map(move |(part, number)| {
                let says = if is_right { String::new() } else { part.said() };
                let name = format!("{}-{number}", kind.to_lowercase());
                Ok(Solution { name, is_right, edits: Edit::of_diff(&part.code("diff"))?, says })
            })
        };
        [(RIGHT, true), (WRONG, false)].into_iter().flat_map(of_kind).collect()
    }

    /// What helps, one more after each failure.
    pub fn hints(&self) -> Result<Vec<String>> {
        Ok(list(&self.part(HINTS)?.prose()))
    }

    /// The part of a name, which must be there.
    pub fn part<'a>(&'a self, name: &'a str) -> Result<&'a Part> {
        self.parts(name).next().with_context(|| format!("the page has no part `{name}`"))
    }
}

/// What somebody may make of what a page asks for.
#[derive(Debug, Clone)]
pub struct Solution {
    /// As `wrong-2`.
    pub name: String,
    pub is_right: bool,
    pub edits: Vec<Edit>,
    /// A part of what the judge says about one that is wrong.
    pub says: String,
}

/// The parts of a text, in order; the first has no name.
fn parts(text: &str) -> Result<Vec<Part>> {
    let (mut parts, mut is_code) = (vec![Part::default()], false);
    for line in text.lines() {
        if let Some(kind) = line.strip_prefix(FENCE) {
            ensure!(KINDS.contains(&kind), "a fence must hold diff, rust, toml or text, not `{kind}`");
            is_code = !is_code;
        }
        let folded = line.strip_prefix("<details><summary>").and_then(|line| line.strip_suffix("</summary>"));
        match (folded.or(line.strip_prefix("## ")), parts.last_mut()) {
            (Some(name), _) if !is_code => parts.push(Part { name: name.to_owned(), lines: Vec::new() }),
            (_, Some(part)) if is_code || line != "</details>" => part.lines.push(line.to_owned()),
            _ => {}
        }
    }
    ensure!(!is_code, "a fence isn't closed");
    Ok(parts)
}

impl Part {
    /// Its name without a number, or what else is said behind a comma.
    pub fn kind(&self) -> &str {
        let name = self.name.split(',').next().unwrap_or_default();
        name.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end()
    }

    /// What is outside of fences; the link to the recorded run is left out.
    pub fn prose(&self) -> String {
        let mut is_code = false;
        let mut is_prose = |line: &&String| {
            let is_fence = line.starts_with(FENCE);
            is_code ^= is_fence;
            !is_code && !is_fence && !line.starts_with(RUN)
        };
        let lines: Vec<&str> = self.lines.iter().filter(|line| is_prose(line)).map(String::as_str).collect();
        lines.join("\n").trim().to_owned()
    }

    /// The first fence of a kind; empty if there is none.
    pub fn code(&self, kind: &str) -> String {
        let inside = self.lines.iter().skip_while(|line| line.strip_prefix(FENCE) != Some(kind)).skip(1);
        inside.take_while(|line| !line.starts_with(FENCE)).map(|line| format!("{line}\n")).collect()
    }

    /// What comes after a label: `The judge says: `.
    pub fn said(&self) -> String {
        let prose = self.prose().split_whitespace().collect::<Vec<_>>().join(" ");
        prose.split_once(": ").map_or(String::new(), |(_, said)| said.to_owned())
    }
}

/// The items of a numbered list.
fn list(text: &str) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    for line in text.lines() {
        let item = line.split_once(". ").filter(|(number, _)| number.parse::<u8>().is_ok());
        match (item, items.last_mut()) {
            (Some((_, item)), _) => items.push(item.to_owned()),
            (None, Some(last)) => *last = format!("{last} {}", line.trim()),
            (None, None) => items.push(line.to_owned()),
        }
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;
    use run::files::{files, root, write};

    #[test]
    fn a_page_is_taken_apart_and_mistakes_are_named() {
        let text = "# T\n\n`make x`\n\nAsk.\n\n```diff\n--- f\n## no part\n```\nMore.\n";
        let page = Page::parse(text).unwrap();
        assert_eq!((page.parts.len(), page.parts[0].prose()), (1, "Ask.\n\nMore.".into()));
        for (from, to, said) in [
            ("# T", "T", "title"),
            ("`make x`", "make x", "command"),
            ("```\n", "", "isn't closed"),
            ("diff", "dif", "not `dif`"),
        ] {
            let error = Page::parse(&text.replace(from, to)).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn a_page_that_is_read_in_an_editor_spoils_nothing() {
        let lessons = files(&root().unwrap().join("lessons"), |path| path.is_dir()).unwrap();
        let folders = lessons.iter().flat_map(|lesson| ["steps", "holes", "changes"].map(|part| lesson.join(part)));
        let pages = folders.filter(|folder| folder.exists()).flat_map(|folder| files(&folder, Page::is_at).unwrap());
        let (mut hidden, mut open) = (0, Vec::new());
        for path in pages {
            let text = read(&path).unwrap();
            if text.contains("`make break-") {
                continue;
            }
            let page = Page::parse(&text).unwrap();
            let tells = page.parts.len() > 1 || KINDS[1..].iter().any(|kind| !page.parts[0].code(kind).is_empty());
            open.extend((tells || !path.with_extension(JUDGE).exists()).then_some(path));
            hidden += 1;
        }
        assert!(open.is_empty() && hidden > 120, "{hidden}, and these tell too much: {open:?}");
    }

    #[test]
    fn what_the_judge_knows_is_in_a_file_beside_the_page() {
        let folder = std::env::temp_dir().join(format!("course-page-{}", std::process::id()));
        let (file, beside) = (folder.join("1-x.md"), folder.join("1-x.judge.md"));
        let page = "# X\n\n`make step`\n\nWrite it.\n";
        write(&file, page).unwrap();
        write(&beside, "# X: what the judge knows\n\n## Hints\n\n1. Look.\n\n## Right 1\n").unwrap();
        assert!(Page::is_at(&file) && !Page::is_at(&beside));
        let read = Page::load(&file).unwrap();
        assert_eq!(read.parts.iter().map(|part| &*part.name).collect::<Vec<_>>(), ["", "Hints", "Right 1"]);
        assert_eq!((read.parts[0].prose(), read.parts[1].prose()), ("Write it.".into(), "1. Look.".into()));
        write(&beside, "## Hints\n").unwrap();
        assert!(format!("{:#}", Page::load(&file).unwrap_err()).contains("1-x.judge.md: it must have a title"));
        write(&file, format!("{page}\n## Hints\n\n1. Look.\n")).unwrap();
        assert!(format!("{:#}", Page::load(&file).unwrap_err()).contains("belongs in 1-x.judge.md"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
