//! A hole: the body of one function of the device's core, which a learner writes.
//!
//! It is a page in Markdown, `lessons/NN_topic/holes/N-name.md`, with the command `make nic`, and `N-name.judge.md` beside it, which has
//! all parts but the first:
//!
//! | part | prose | fences |
//! |---|---|---|
//! | (no name) | a question to predict, what to write, the specification's section | without a word: a picture |
//! | The hole | `The judge says: ` what it says of the stub | `toml`: [`Place`]; `rust`: the stub, which works wrongly, and ends |
//! | Hints | a numbered list | |
//! | Answer | to the question that was to be predicted | |
//! | Wrong 1 … | `The judge says: ` | `diff`: made to the project's own body |
//!
//! The solution is the project's own source.

use crate::change::{each, Name};
use crate::edit::Edit;
use crate::exercise::{list, HINTS};
use crate::page::{Page, Part};
use crate::project::Project;
use anyhow::{ensure, Result};
use run::files::files;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// The folder in a lesson's own.
const FOLDER: &str = "holes";
const COMMAND: &str = "make nic";
const HOLE: &str = "The hole";
const ANSWER: &str = "Answer";
const WRONG: &str = "Wrong";

/// Where a hole is: a file below `tools/`, and below the learner's folder; and the function there.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    pub file: String,
    pub function: String,
}

/// What is wrong in the project's own body then, and a part of what the judge says about it.
#[derive(Debug, Clone)]
pub struct Wrong {
    pub edits: Vec<Edit>,
    pub says: String,
}

#[derive(Debug, Clone)]
pub struct Hole {
    /// As `14-1-since`.
    pub name: Name,
    pub title: String,
    /// What is asked, in Markdown.
    pub task: String,
    /// What the question to predict has for an answer: told when the hole is filled.
    pub answer: String,
    pub hints: Vec<String>,
    pub place: Place,
    pub stub: String,
    /// A part of what the judge says about the stub.
    pub says: String,
    pub wrong: Vec<Wrong>,
}

impl Hole {
    /// The holes of all lessons, in order.
    pub fn all(project: &Project) -> Result<Vec<Self>> {
        let lessons = files(&project.root.join("lessons"), |path| path.join(FOLDER).exists())?;
        let holes = lessons.iter().map(|lesson| Self::of(lesson)).collect::<Result<Vec<_>>>()?;
        Ok(holes.into_iter().flatten().collect())
    }

    fn of(lesson: &Path) -> Result<Vec<Self>> {
        each(lesson, FOLDER, Self::of_page)
    }

    fn of_page(name: Name, page: &Page) -> Result<Self> {
        ensure!(page.command == COMMAND, "its command is `{}`, and has to be `{COMMAND}`", page.command);
        let unknown = page.parts.iter().find(|part| !["", HOLE, HINTS, ANSWER, WRONG].contains(&part.kind()));
        ensure!(unknown.is_none(), "a hole has no part `{}`", unknown.map_or("", |part| &part.name));
        let (hole, hints) = (page.part(HOLE)?, list(&page.part(HINTS)?.prose()));
        let wrong = page.parts(WRONG).map(wrong).collect::<Result<Vec<_>>>()?;
        ensure!(!hints.is_empty() && wrong.len() >= 2, "a hole has hints, and two wrong bodies");
        let (stub, says) = (hole.code("rust"), hole.said());
        let are_judged = wrong.iter().map(|wrong| &wrong.says).chain([&says]).all(|says| !says.is_empty());
        ensure!(are_judged && !stub.is_empty(), "there is a stub, and it and each wrong body have what the judge says");
        Ok(Self {
            name,
            title: page.title.clone(),
            task: page.parts[0].lines.join("\n"),
            answer: page.part(ANSWER)?.prose(),
            hints,
            place: basic_toml::from_str(&hole.code("toml"))?,
            stub,
            says,
            wrong,
        })
    }

    /// The page that all this is from.
    pub fn page(&self) -> PathBuf {
        self.name.lesson.join(FOLDER).join(&self.name.name).with_extension("md")
    }
}

fn wrong(part: &Part) -> Result<Wrong> {
    Ok(Wrong { edits: Edit::of_diff(&part.code("diff"))?, says: part.said() })
}
