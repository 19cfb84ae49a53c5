//! The kinds of page, each as a table of its parts.
//!
//! | kind | where | command | what a reader does |
//! |---|---|---|---|
//! | [`BREAK`] | `changes/` | `make break-04 CHANGE=late` | predicts what a change to the lesson does, and sees it |
//! | [`REPAIR`] | `changes/` | `make try-04-early` | mends a lesson with a hole in it; the lesson as it is is one solution |
//! | [`READING`] | `changes/` | `make try-03-read` | answers questions about a capture |
//! | [`STEP`] | `steps/` | `make step` | adds a piece to a program of her own |
//! | [`HOLE`] | `holes/` | `make nic` | writes the body of one function of the NIC |
//!
//! A page has a part without a name first, which says what to do. The parts below it, of all kinds:
//!
//! | part | prose | fences |
//! |---|---|---|
//! | What happens | why a change does what it does | `text`: the [outcome](judge::expected) |
//! | How it's run | | `toml`: the [options](crate::change::Options) |
//! | Hints | a numbered list: one more after each failure | |
//! | Pass when | | `text`: the outcome; an indented line is the hint to the one above it |
//! | Once more, Once more 2 … | why it is run another time | `toml`: the options of that run; `text`: its outcome, if that is another |
//! | Solved | why | |
//! | Answer | to what the first part asks to predict | |
//! | Reference | | `toml`: where the lesson's source, C and Python have it: a [`Reference`](crate::reference::Reference) |
//! | The questions | | `toml`: see [`crate::reading`] |
//! | The hole | `The judge says: ` what it says of the hole | `diff`: makes it, in a lesson; `toml` and `rust`: its [place](crate::nic::hole::Cut) and the stub, in the NIC |
//! | Right 1 … | | `diff`: made to the hole (an exercise) or to the lesson's own source (a step), another solution; the tests try it |
//! | Wrong 1 … | `The judge says: ` a part of that | `diff`: what the judge must refuse |

use crate::page::{
    Name, Page, Part, AGAIN, ANSWER, CUT, HINTS, OUTCOME, PASS, QUESTIONS, REFERENCE, RIGHT, RUN_BY, SOLVED, WRONG,
};
use crate::project::Project;
use anyhow::{ensure, Context, Result};
use run::files::{files, name};
use std::path::{Path, PathBuf};

/// What a part must hold, if it isn't a fence.
const PROSE: &str = "prose";
const SAYS: &str = "`The judge says: …`";

/// A row of a kind's table: a part's name, how many there are at least, and what each must hold.
type PartRule = (&'static str, usize, &'static [&'static str]);

const TASK: [PartRule; 1] = [("", 1, &[PROSE])];
const HELP: [PartRule; 1] = [(HINTS, 1, &[PROSE])];
/// How it's run, and what the judge must see.
const RUNS: [PartRule; 3] = [(RUN_BY, 0, &["toml"]), (PASS, 1, &["text"]), (AGAIN, 0, &[])];
const RIGHT_ONES: [PartRule; 1] = [(RIGHT, 1, &["diff"])];
const WRONG_ONES: [PartRule; 1] = [(WRONG, 2, &["diff", SAYS])];

pub const BREAK: PageKind = PageKind {
    what: "a change",
    folder: "changes",
    command: |name| format!("make break-{} CHANGE={}", name.number(), name.name),
    parts: &[&TASK, &[(OUTCOME, 1, &[PROSE])]],
};
pub const REPAIR: PageKind = PageKind {
    what: "an exercise",
    folder: "changes",
    command: |name| format!("make try-{name}"),
    parts: &[&TASK, &HELP, &RUNS, &[(SOLVED, 1, &[PROSE]), (CUT, 1, &["diff", SAYS])], &RIGHT_ONES, &WRONG_ONES],
};
pub const READING: PageKind = PageKind {
    what: "an exercise in reading",
    parts: &[&TASK, &HELP, &[(QUESTIONS, 1, &["toml"]), (SOLVED, 1, &[PROSE])]],
    ..REPAIR
};
pub const STEP: PageKind = PageKind {
    what: "a step",
    folder: "steps",
    command: |_| "make step".to_owned(),
    parts: &[&TASK, &HELP, &RUNS, &[(ANSWER, 1, &[PROSE]), (REFERENCE, 1, &["toml"])], &RIGHT_ONES, &WRONG_ONES],
};
pub const HOLE: PageKind = PageKind {
    what: "a hole",
    folder: "holes",
    command: |_| "make nic".to_owned(),
    parts: &[&TASK, &HELP, &[(CUT, 1, &["toml", "rust", SAYS]), (ANSWER, 1, &[PROSE])], &WRONG_ONES],
};

pub struct PageKind {
    what: &'static str,
    /// The folder in a lesson's own.
    folder: &'static str,
    /// What a reader types, which a page says below its title.
    command: fn(&Name) -> String,
    /// Groups of rows: several kinds have some in common.
    parts: &'static [&'static [PartRule]],
}

impl PageKind {
    /// What a reader types for the page of this name.
    pub(crate) fn command(&self, name: &Name) -> String {
        (self.command)(name)
    }

    /// Where the page of this name is.
    pub fn file(&self, name: &Name) -> PathBuf {
        name.lesson.join(self.folder).join(&name.name).with_extension("md")
    }

    /// What the pages of all lessons are, also of those that have holes and no program.
    pub(crate) fn all<T>(&self, project: &Project, what: fn(Name, &Page) -> Result<T>) -> Result<Vec<T>> {
        let lessons = files(&project.root.join("lessons"), |lesson| lesson.join(self.folder).exists())?;
        let of_lessons = lessons.iter().map(|lesson| self.of(lesson, what));
        Ok(of_lessons.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    /// What the pages of a lesson are, in order; none if it has no folder for them.
    pub(crate) fn of<T>(&self, lesson: &Path, mut what: impl FnMut(Name, &Page) -> Result<T>) -> Result<Vec<T>> {
        let folder = lesson.join(self.folder);
        if !folder.exists() {
            return Ok(Vec::new());
        }
        let of_file = |file: &PathBuf| {
            let name = Name { lesson: lesson.to_owned(), name: name(&file.with_extension("")) };
            let page = Page::load(file);
            page.and_then(|page| what(name, &page)).with_context(|| file.display().to_string())
        };
        files(&folder, Page::is_at)?.iter().map(of_file).collect()
    }

    /// Whether a page has all that its kind has, and nothing else.
    pub(crate) fn check(&self, name: &Name, page: &Page) -> Result<()> {
        let (what, command) = (self.what, self.command(name));
        ensure!(page.command == command, "its command is `{}`, but must be `{command}`", page.command);
        let rules = || self.parts.iter().copied().flatten();
        for part in &page.parts {
            let known = rules().skip(1).map(|(name, ..)| format!("`{name}`"));
            let rule = rules().find(|(name, ..)| *name == part.kind());
            let (.., holds) = rule.with_context(|| {
                format!("{what} has no part `{}`. It may have {}", part.name, known.collect::<Vec<_>>().join(", "))
            })?;
            let missing = holds.iter().find(|it| !holds_it(part, it));
            ensure!(missing.is_none(), "its part `{}` lacks its {}", part.name, missing.unwrap_or(&""));
        }
        for (name, least, _) in rules() {
            let count = page.parts.iter().filter(|part| part.kind() == *name).count();
            ensure!(count >= *least, "{what} has at least {least} of the part `{name}`, and this one has {count}");
        }
        Ok(())
    }
}

fn holds_it(part: &Part, it: &str) -> bool {
    match it {
        PROSE => !part.prose().is_empty(),
        SAYS => !part.said().is_empty(),
        fence => !part.code(fence).is_empty(),
    }
}
