//! A page of a change, `lessons/NN_topic/changes/NAME.md`: Markdown that a forge shows as it is, taken apart here by its title,
//! its command, its parts and their fences.
//!
//! A part begins where something is folded away (`<details><summary>NAME</summary>`), or with a heading `### NAME`. What stands
//! before the first of them has no name: a reader sees it without having opened anything. Prose may stand around fences.
//!
//! One that is broken, with the command `make break-NN CHANGE=NAME`:
//!
//! | part | prose | fences |
//! |---|---|---|
//! | (no name) | what the reader is asked to predict | `diff`: the [edits](crate::edit); `toml`: the [options](crate::change::Options) |
//! | What comes of it | why | `text`: the [outcome](crate::expected) |
//!
//! An exercise, with the command `make try-NN-NAME`: it is mended, and the lesson as it is is a solution.
//!
//! | part | prose | fences |
//! |---|---|---|
//! | (no name) | what has to be mended, and where to look | `toml`: options |
//! | Hints | a numbered list: one more after each failure | |
//! | What has to come of it | | `text`: the outcome; a line that is indented is the hint to the one above |
//! | Once more, Once more 2 … | why it is run another time | `toml`: the options of that; `text`: its outcome, if that is another |
//! | Solved | why | |
//! | The hole, … | `The judge says: ` a part of what it says about the hole | `diff`: makes the hole |
//! | Right 1, Right 2 … | | `diff`: made to the hole, another solution; the tests try it |
//! | Wrong 1 … | `The judge says: ` a part of that | `diff`: one that is none |
//!
//! An exercise in reading has a part "The questions, …" in place of all that is run: see [`crate::reading`].

use anyhow::{ensure, Context, Result};

/// What the folded part of a page is called that tells what comes of a change.
pub const OUTCOME: &str = "What comes of it";
/// The part that tells another run, which must show the same unless it says what.
pub const AGAIN: &str = "Once more";
/// How the link to the recorded run begins, which is no prose.
const RUN: &str = "[What the run shows](";
const FENCE: &str = "```";
/// What stands in fences.
const KINDS: [&str; 5] = ["", "diff", "rust", "toml", "text"];

#[derive(Debug, Clone)]
pub struct Page {
    /// What is done, in a few words.
    pub title: String,
    /// How a reader has it made.
    pub command: String,
    /// The parts, in order; the first has no name.
    pub parts: Vec<Part>,
}

/// What stands below a heading, or is folded away.
#[derive(Debug, Clone, Default)]
pub struct Part {
    pub name: String,
    pub lines: Vec<String>,
}

impl Page {
    pub fn parse(text: &str) -> Result<Self> {
        let (title, rest) = text.split_once('\n').unwrap_or((text, ""));
        let title = title.strip_prefix("# ").context("the first line is the title: `# Forget to answer`")?;
        let (command, rest) = rest.trim_start().split_once('\n').context("it ends behind its title")?;
        let command = command.strip_prefix('`').and_then(|command| command.strip_suffix('`'));
        let command = command.context("below the title stands the command: `make break-01 CHANGE=no-answer`")?;
        let (mut parts, mut is_code) = (vec![Part::default()], false);
        for line in rest.lines() {
            if let Some(kind) = line.strip_prefix(FENCE) {
                ensure!(KINDS.contains(&kind), "a fence holds diff, rust, toml or text, and no `{kind}`");
                is_code = !is_code;
            }
            let folded = line.strip_prefix("<details><summary>").and_then(|line| line.strip_suffix("</summary>"));
            match (folded.or(line.strip_prefix("### ")), parts.last_mut()) {
                (Some(name), _) if !is_code => parts.push(Part { name: name.to_owned(), lines: Vec::new() }),
                (_, Some(part)) if is_code || line != "</details>" => part.lines.push(line.to_owned()),
                _ => {}
            }
        }
        ensure!(!is_code, "a fence is not closed");
        Ok(Self { title: title.to_owned(), command: command.to_owned(), parts })
    }

    /// The parts whose names begin like this.
    pub fn parts<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Part> {
        self.parts.iter().filter(move |part| part.name.starts_with(name))
    }

    /// The part of a name, which must be there.
    pub fn part<'a>(&'a self, name: &'a str) -> Result<&'a Part> {
        self.parts(name).next().with_context(|| format!("the page has no part `{name}`"))
    }
}

impl Part {
    /// Its name without a number, or what else is said behind a comma.
    pub fn kind(&self) -> &str {
        let name = self.name.split(',').next().unwrap_or_default();
        name.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end()
    }

    /// What stands outside of fences; the link to the recorded run is left out.
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

    /// What stands behind a label: `The judge says: `.
    pub fn said(&self) -> String {
        let prose = self.prose().split_whitespace().collect::<Vec<_>>().join(" ");
        prose.split_once(": ").map_or(String::new(), |(_, said)| said.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_taken_apart_and_mistakes_are_named() {
        let text = "# T\n\n`make x`\n\nAsk.\n\n```diff\n--- f\n### no part\n```\nMore.\n";
        let page = Page::parse(text).unwrap();
        assert_eq!((page.parts.len(), page.parts[0].prose()), (1, "Ask.\n\nMore.".into()));
        for (from, to, said) in [
            ("# T", "T", "title"),
            ("`make x`", "make x", "command"),
            ("```\n", "", "not closed"),
            ("diff", "dif", "no `dif`"),
        ] {
            let error = Page::parse(&text.replace(from, to)).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
