//! Changes of lessons, as a reader can try them here. Each is an edit of a lesson's script, `stories/NAME.txt`, and a section of a page in
//! `changes/`; or the section says what the change needs that isn't here. The page of the book links to what comes of the edit, with the
//! script in the link, so that none of it is in the program.

use crate::challenge::{fenced, prose};
use anyhow::{ensure, Result};

/// A section of a page in `changes/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change<'a> {
    /// As the change's page is called.
    pub name: &'a str,
    /// How the workbench differs from the recorded run; or, without an edit, why the change can't be tried here.
    pub says: String,
    /// The edit: the name of a story, and what's in it and shall be there instead. It's written like the diffs of changes.
    edit: Option<&'a str>,
    /// What a run must show, as [`judge::expected`] reads it, if that isn't what the change's own page says.
    pub shows: Option<&'a str>,
}

/// All changes of a page.
pub fn changes(page: &str) -> Vec<Change<'_>> {
    page.split("\n## ").skip(1).map(Change::read).collect()
}

impl<'a> Change<'a> {
    fn read(section: &'a str) -> Change<'a> {
        let (name, text) = section.split_once('\n').unwrap_or((section, ""));
        let says = prose(text.split("```").next().unwrap_or_default());
        Change { name, says, edit: fenced(text, "diff"), shows: fenced(text, "text") }
    }

    /// The name of the story that's edited, if the change can be tried.
    pub fn story(&self) -> Option<&'a str> {
        self.edit?.lines().next()?.strip_prefix("--- ")
    }

    /// The story with the edit in it. Instead of its title there's what it's about, and the edit, so that a reader sees what has been
    /// changed.
    ///
    /// # Errors
    /// The lines to be edited aren't there, or more than once.
    pub fn script(&self, about: &str, story: &str) -> Result<String> {
        let edit = self.edit.and_then(|edit| edit.split_once('\n')).map_or("", |(_, edit)| edit);
        let (_, story) = story.split_once('\n').unwrap_or_default();
        let (mut head, mut script) = (format!("# {about}\n"), story.to_owned());
        ensure!(
            edit.lines().all(|line| line.starts_with([' ', '-', '+', '@'])),
            "a line begins with none of blank, - and +"
        );
        for place in edit.split_terminator("@@\n") {
            let lines = |signs| place.lines().filter_map(move |line| Some(line.strip_prefix(signs)?.to_owned() + "\n"));
            let (from, to): (String, String) = (lines([' ', '-']).collect(), lines([' ', '+']).collect());
            // What's only added comes at the end.
            let count = script.matches(&from).count();
            ensure!(from.is_empty() || count == 1, "this must be there once, but is {count} times:\n{from}");
            script = if from.is_empty() { script + &to } else { script.replacen(&from, &to, 1) };
            head.extend(place.lines().map(|line| format!("# {} {}\n", &line[..1], &line[1..])));
        }
        Ok(head + &script)
    }
}
