//! An attempt at an exercise: a copy of a lesson with a hole in it, or a capture with questions, in a folder of the reader's own;
//! and how far it has got.

use crate::change::Change;
use crate::changes::Changes;
use crate::copy::Copy;
use crate::edit::Edit;
use crate::exercise::{Assignment, Exercise};
use crate::progress::Progress;
use crate::project::Project;
use crate::reading::{ANSWERS, RUN};
use crate::workspace;
use anyhow::{Context, Result};
use run::files::{bytes, tree, write};
use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};

/// The folder of the copies, in the repository's folder: not below `target`, which `make clean` removes.
pub const FOLDER: &str = "try";
/// Where a copy says how far the reader has got: what was laid out, what has failed, and what solved it, each by its fingerprint.
const NOTE: &str = ".course";
const BEGUN: &str = "begun";
const FAILED: &str = "failed";
const SOLVED: &str = "solved";

/// How far an exercise has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is not laid out.
    Untouched,
    /// It failed so often, with something else each time.
    Tried(usize),
    /// It was solved once.
    Solved,
}

pub struct Attempt {
    pub exercise: Exercise,
    pub copy: Copy,
}

impl Attempt {
    pub fn new(exercise: Exercise, folder: &Path) -> Self {
        Self { copy: Copy::of(&exercise.name, folder), exercise }
    }

    pub fn of(project: &Project, number: Option<&str>) -> Result<Vec<Self>> {
        let changes = match number {
            Some(number) => Changes::of(&project.lesson(number)?)?,
            None => Changes::all(project)?,
        };
        let folder = project.root.join(FOLDER);
        Ok(changes.exercises.into_iter().map(|exercise| Self::new(exercise, &folder)).collect())
    }

    /// How far it has got.
    pub fn state(&self) -> State {
        let all = self.progress().all();
        let failures = all.iter().filter(|(what, _)| what == FAILED).count();
        match all.iter().any(|(what, _)| what == SOLVED) {
            _ if !self.copy.folder.exists() => State::Untouched,
            true => State::Solved,
            false => State::Tried(failures),
        }
    }

    fn progress(&self) -> Progress {
        Progress { file: self.copy.folder.join(NOTE) }
    }

    /// Whether a change takes out a line that is still looked for here: its difference would tell the solution.
    pub fn is_told_by(&self, change: &Change) -> bool {
        let holes = self.exercise.repair().map_or(&[][..], |repair| &repair.change.edits);
        let is_told = |hole: &Edit| change.edits.iter().any(|edit| hole.is_told_by(edit));
        self.state() != State::Solved && holes.iter().any(is_told)
    }

    /// Lays the copy out, unless there is one: what the reader has written is never written over.
    pub fn begin(&self, project: &Project) -> Result<()> {
        let folder = &self.copy.folder;
        if folder.exists() {
            return Ok(());
        }
        match &self.exercise.kind {
            Assignment::Repair(repair) => self.copy.write(project, &repair.change)?,
            Assignment::Reading(reading) => {
                write(folder.join(RUN), reading.nameless(project)?)?;
                write(folder.join(ANSWERS), reading.sheet(&[]))?;
            }
        }
        self.progress().note(BEGUN, self.fingerprint()?)
    }

    /// Files of the copy that are gone.
    pub fn missing(&self) -> Result<Vec<PathBuf>> {
        let names = match &self.exercise.kind {
            Assignment::Repair(repair) => Copy::sources(&repair.change)?,
            Assignment::Reading(_) => vec![ANSWERS.to_owned()],
        };
        let paths = names.iter().map(|name| self.copy.folder.join(name));
        Ok(paths.filter(|path| !path.exists()).collect())
    }

    /// Whether the reader has saved nothing since it was laid out or judged last.
    pub fn is_unchanged(&self) -> Result<bool> {
        let fingerprint = self.fingerprint()?;
        Ok(self.progress().all().last().is_some_and(|(_, last)| *last == fingerprint))
    }

    /// Takes note of a verdict. The same text fails only once.
    pub fn note(&self, is_solved: bool) -> Result<State> {
        let (what, fingerprint) = (if is_solved { SOLVED } else { FAILED }, self.fingerprint()?);
        if self.progress().all().last() != Some(&(what.to_owned(), fingerprint.clone())) {
            self.progress().note(what, fingerprint)?;
        }
        Ok(self.state())
    }

    pub fn reset(&self, project: &Project) -> Result<()> {
        let (folder, workspace) = (&self.copy.folder, self.copy.workspace());
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
        if self.exercise.repair().is_some() {
            // An editor that has the workspace open looks for the copies that it names.
            workspace::furnish(project, workspace, &workspace::members(workspace)?)?;
        }
        Ok(())
    }

    pub fn edited(&self) -> Result<Vec<PathBuf>> {
        let folder = self.copy.folder.join(if self.exercise.repair().is_some() { "src" } else { "" });
        Ok(tree(&folder)?.iter().map(|file| folder.join(file)).collect())
    }

    fn fingerprint(&self) -> Result<String> {
        let mut hasher = DefaultHasher::new();
        for path in self.edited()? {
            (bytes(&path)?, path).hash(&mut hasher);
        }
        Ok(hasher.finish().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use run::files::read;

    /// An attempt in a folder that is no reader's.
    fn attempt(project: &Project, name: &str, folder: &str) -> Attempt {
        let exercises = Changes::of(&project.lesson(&name[..2]).unwrap()).unwrap().exercises;
        let exercise = exercises.into_iter().find(|exercise| exercise.name.to_string() == name).unwrap();
        Attempt::new(exercise, &project.target.join("course").join(folder))
    }

    #[test]
    fn a_change_that_takes_out_what_an_exercise_asks_for_is_known() {
        let project = Project::find().unwrap();
        let breaks = Changes::all(&project).unwrap().breaks;
        for (asks, tells, is_told) in [
            ("01-words", "01-no-answer", true),
            ("01-words", "01-skipped-step", false),
            ("04-rights", "04-no-remote-write", true),
            ("04-rights", "04-wrong-key", false),
            ("09-again", "09-not-armed", true),
        ] {
            let change = &breaks.iter().find(|it| it.change.name.to_string() == tells).unwrap().change;
            assert_eq!(attempt(&project, asks, "nowhere").is_told_by(change), is_told, "{asks} {tells}");
        }
    }

    #[test]
    fn what_a_reader_wrote_stays_and_what_was_solved_once() {
        let project = Project::find().unwrap();
        let attempt = attempt(&project, "04-whose", "test-of-exercises");
        let hole = &attempt.exercise.repair().unwrap().change.edits[0];
        let file = attempt.copy.folder.join(&hole.file);
        let _ = attempt.reset(&project);
        assert_eq!(attempt.state(), State::Untouched);
        attempt.begin(&project).unwrap();
        assert!(read(&file).unwrap().contains(&hole.to) && attempt.is_unchanged().unwrap());
        fs::write(&file, "mine").unwrap();
        attempt.begin(&project).unwrap();
        assert_eq!((read(&file).unwrap().as_str(), attempt.state()), ("mine", State::Tried(0)));
        fs::remove_file(&file).unwrap();
        assert_eq!(attempt.missing().unwrap(), [file]);
        for is_solved in [true, false] {
            assert_eq!(attempt.note(is_solved).unwrap(), State::Solved);
        }
        attempt.reset(&project).unwrap();
        assert_eq!(attempt.state(), State::Untouched);
    }
}
