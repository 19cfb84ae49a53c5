//! A step of "Write it yourself": what a learner adds to a program of her own, and what the judge has to see then.
//!
//! It is a page in Markdown, `lessons/NN_topic/steps/N-name.md`, with the command `make step`, and `N-name.judge.md` beside it, which has
//! all parts but the first. They are those of an
//! [exercise](crate::page), and these:
//!
//! | part | prose | fences |
//! |---|---|---|
//! | (no name) | a question to predict, the calls, what to write; a [paragraph](crate::task) may be for one language | without a word: a picture |
//! | Answer | to the question that was to be predicted | |
//! | Reference | | `toml`: where it stands in the lesson's source, in C and in Python: [`Reference`] |
//! | Right 1, Wrong 1 … | `The judge says: ` of a wrong one | `diff`: made to the lesson's own source, or to a [reference](crate::edited) |
//!
//! The lesson's own source passes all its steps. The program of the lesson before fails each.

use crate::change::{each, Again, Change, Name, Options};
use crate::edit::Edit;
use crate::edited;
use crate::exercise::{list, HINTS, OUTCOME};
use crate::expected::Told;
use crate::mine::Language;
use crate::page::{Page, AGAIN, RUN_BY};
use crate::project::Project;
use crate::proof::Proof;
use crate::reference::{self, Reference};
use crate::run::Place;
use crate::task::is_for;
use anyhow::{ensure, Result};
use std::path::{Path, PathBuf};

/// The folder in a lesson's own.
const FOLDER: &str = "steps";
const COMMAND: &str = "make step";
const ANSWER: &str = "Answer";
const REFERENCE: &str = "Reference";
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
        each(lesson, FOLDER, Self::of_page)
    }

    /// The steps of all lessons.
    pub fn all(project: &Project) -> Result<Vec<Self>> {
        let steps = project.lessons()?.iter().map(|lesson| Self::of(lesson)).collect::<Result<Vec<_>>>()?;
        Ok(steps.into_iter().flatten().collect())
    }

    pub fn of_page(name: Name, page: &Page) -> Result<Self> {
        ensure!(page.command == COMMAND, "its command is `{}`, and has to be `{COMMAND}`", page.command);
        let known = ["", RUN_BY, HINTS, OUTCOME, AGAIN, ANSWER, REFERENCE, "Right", "Wrong"];
        let unknown = page.parts.iter().find(|part| !known.contains(&part.kind()));
        ensure!(unknown.is_none(), "a step has no part `{}`", unknown.map_or("", |part| &part.name));
        let options = Options::of_page(page)?;
        let told = Told::parse(&page.part(OUTCOME)?.code("text"), options.sides())?;
        let again = Again::of_page(page, &told)?;
        let change = Change { name, edits: Vec::new(), options, told, again, is_exercise: true };
        let hints = list(&page.part(HINTS)?.prose());
        let are_all_helped = [Language::Rust, Language::C, Language::Python]
            .into_iter()
            .all(|language| hints.iter().any(|hint| is_for(hint, language)));
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
        self.name.lesson.join(FOLDER).join(&self.name.name).with_extension("md")
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
    let proof = |kind: &str, edits: Vec<Edit>, place, is_right, says: &str| {
        let name = Name { name: format!("{}-{kind}", change.name.name), ..change.name.clone() };
        let change = Change { name, edits, ..change.clone() };
        Proof { change, program: None, place, is_right, says: says.to_owned() }
    };
    let mut proofs = vec![
        proof("lesson", Vec::new(), Place::Device, true, ""),
        proof("lesson", Vec::new(), Place::Lab, true, ""),
        Proof { program: Some(before(change)), ..proof("before", Vec::new(), Place::Device, false, HINTED) },
    ];
    for (kind, program) in reference::programs(&change.name.lesson) {
        let reference = Proof { program: Some(program), ..proof(kind, Vec::new(), Place::Device, true, "") };
        proofs.push(Proof { change: reference::told_lesson(&reference.change), ..reference });
    }
    let (mut right, mut wrong) = (0, 0);
    for part in &page.parts {
        let (is_right, count) = match part.kind() {
            "Right" => (true, &mut right),
            "Wrong" => (false, &mut wrong),
            _ => continue,
        };
        *count += 1;
        let (kind, says) = (format!("{}-{count}", part.kind().to_lowercase()), part.said());
        ensure!(is_right == says.is_empty(), "what the judge says stands below each wrong one");
        let proof = proof(&kind, Edit::of_diff(&part.code("diff"))?, Place::Device, is_right, &says);
        proofs.push(match edited::file(&proof.change.edits) {
            Some(_) => Proof { change: reference::told_lesson(&proof.change), ..proof },
            None => proof,
        });
    }
    ensure!(right >= 1 && wrong >= 2, "a step has another right program, and two wrong ones");
    Ok(proofs)
}
