//! A hole: the body of one function of the device's core, which a learner writes.
//!
//! Its page is a [`HOLE`]. The stub works wrongly, and ends.
//! The solution is the project's own source.

use crate::kind::HOLE;
use crate::page::{Name, Page, Solution, ANSWER, CUT};
use crate::project::Project;
use anyhow::Result;
use serde::Deserialize;
use std::path::PathBuf;

/// Where a hole is: a file below `tools/`, and below the learner's folder; and the function there.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cut {
    pub file: String,
    pub function: String,
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
    pub place: Cut,
    pub stub: String,
    /// A part of what the judge says about the stub.
    pub says: String,
    /// What is wrong in the project's own body then.
    pub wrong: Vec<Solution>,
}

impl Hole {
    /// The holes of all lessons, in order.
    pub fn all(project: &Project) -> Result<Vec<Self>> {
        HOLE.all(project, Self::of_page)
    }

    fn of_page(name: Name, page: &Page) -> Result<Self> {
        HOLE.check(&name, page)?;
        let hole = page.part(CUT)?;
        Ok(Self {
            name,
            title: page.title.clone(),
            task: page.parts[0].lines.join("\n"),
            answer: page.part(ANSWER)?.prose(),
            hints: page.hints()?,
            place: basic_toml::from_str(&hole.code("toml"))?,
            stub: hole.code("rust"),
            says: hole.said(),
            wrong: page.solutions()?,
        })
    }

    /// The page that all this is from.
    pub fn page(&self) -> PathBuf {
        HOLE.file(&self.name)
    }
}
