//! A step of "Write it yourself": what a learner adds to a program of her own, and what the judge must see then.
//!
//! Its page is a [`STEP`].
//! The lesson's own source passes all its steps. The program of the lesson before fails each.

use crate::change::Change;
use crate::edited;
use crate::kind::STEP;
use crate::mine::Language;
use crate::page::{Name, Page, ANSWER, REFERENCE};
use crate::project::Project;
use crate::proof::Proof;
use crate::reference::{self, Reference};
use crate::run::Place;
use crate::task::is_for;
use anyhow::{ensure, Result};
use std::path::{Path, PathBuf};

/// How far a hint is indented: one is told.
const HINTED: &str = "      ";

#[derive(Debug, Clone)]
pub struct Step {
    /// As `01-1-listen`.
    pub name: Name,
    pub title: String,
    /// What is asked, in Markdown.
    pub task: String,
    /// What the question to predict has for an answer: told when the step is done.
    pub answer: String,
    /// What helps, one more each time.
    pub hints: Vec<String>,
    pub reference: Reference,
    /// How it's run, and what must be seen.
    pub change: Change,
    pub proofs: Vec<Proof>,
}

impl Step {
    /// The steps of a lesson, in order; none if it has no folder for them.
    pub fn of(lesson: &Path) -> Result<Vec<Self>> {
        STEP.of(lesson, Self::of_page)
    }

    /// The steps of all lessons.
    pub fn all(project: &Project) -> Result<Vec<Self>> {
        STEP.all(project, Self::of_page)
    }

    pub fn of_page(name: Name, page: &Page) -> Result<Self> {
        STEP.check(&name, page)?;
        let change = Change::judged(name, Vec::new(), page)?;
        let hints = page.hints()?;
        let are_all_helped = Language::ALL.iter().all(|language| hints.iter().any(|hint| is_for(hint, *language)));
        ensure!(are_all_helped, "a step has hints, in each language");
        Ok(Self {
            title: page.title.clone(),
            task: page.parts[0].lines.join("\n"),
            answer: page.part(ANSWER)?.prose(),
            hints,
            reference: basic_toml::from_str(&page.part(REFERENCE)?.code("toml"))?,
            proofs: proofs(&change, page)?,
            name: change.name.clone(),
            change,
        })
    }

    /// The page that all this is from.
    pub fn page(&self) -> PathBuf {
        STEP.file(&self.name)
    }

    /// Its number in its lesson.
    pub fn number(&self) -> &str {
        self.name.name.split('-').next().unwrap_or_default()
    }
}

/// The program of the lesson before; before the first, one that does nothing.
fn before(change: &Change) -> String {
    match change.name.number().parse::<u32>() {
        Ok(number) if number > 1 => format!("lesson-{:02}", number - 1),
        _ => "true".to_owned(),
    }
}

/// What proves the judge of a step: the lesson's own source passes, the references and other right ones do, and wrong ones do not.
fn proofs(change: &Change, page: &Page) -> Result<Vec<Proof>> {
    let lesson = |place| Proof::of(change, "lesson", Vec::new(), place);
    let mut proofs = vec![
        lesson(Place::Device),
        lesson(Place::Lab),
        Proof::of(change, "before", Vec::new(), Place::Device).refused(HINTED).by(before(change)),
    ];
    for (kind, program) in reference::programs(&change.name.lesson) {
        let reference = Proof::of(change, kind, Vec::new(), Place::Device).by(program);
        proofs.push(Proof { change: reference::told_lesson(&reference.change), ..reference });
    }
    for solution in page.solutions()? {
        let proof = Proof::of_solution(change, solution, Place::Device);
        proofs.push(match edited::file(&proof.change.edits) {
            Some(_) => Proof { change: reference::told_lesson(&proof.change), ..proof },
            None => proof,
        });
    }
    Ok(proofs)
}
