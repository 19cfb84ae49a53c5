//! Exercises: a copy of a lesson with a hole in it, in a folder of the reader's own, and how far it has got.

use crate::change::Change;
use crate::copy::Copy;
use crate::project::Project;
use anyhow::{Context, Result};
use std::fs;
use std::path::PathBuf;

/// The folder of the copies, in the repository's folder: not below `target`, which `make clean` removes.
const FOLDER: &str = "try";
/// Where a copy says how far the reader has got.
const NOTE: &str = ".practice";
const SOLVED: &str = "solved";

/// How far an exercise has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is not laid out.
    Untouched,
    /// It was judged so often, and is not solved.
    Tried(usize),
    /// It was solved once.
    Solved,
}

/// One exercise.
pub struct Exercise {
    /// What it is about.
    pub change: Change,
    /// The reader's copy.
    pub copy: Copy,
}

impl Exercise {
    /// All exercises of a lesson.
    ///
    /// # Errors
    /// A file of the lesson's changes is not as it should be.
    pub fn of(project: &Project, number: &str) -> Result<Vec<Self>> {
        let changes = Change::of(&project.lesson(number)?)?.into_iter().filter(|change| change.task.is_some());
        let exercise = |change: Change| Self { copy: Copy::of(&change, &project.root.join(FOLDER)), change };
        Ok(changes.map(exercise).collect())
    }

    /// All exercises of all lessons.
    ///
    /// # Errors
    /// As for [`Exercise::of`].
    pub fn all(project: &Project) -> Result<Vec<Self>> {
        let folders = project.lessons()?;
        let numbers = folders.iter().filter_map(|folder| folder.file_name()?.to_str()?.split('_').next());
        Ok(numbers.map(|number| Self::of(project, number)).collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    /// How far it has got.
    #[must_use]
    pub fn state(&self) -> State {
        if !self.copy.folder.exists() {
            return State::Untouched;
        }
        let note = fs::read_to_string(self.note_file()).unwrap_or_default();
        match note.trim() {
            SOLVED => State::Solved,
            tries => State::Tried(tries.parse().unwrap_or(0)),
        }
    }

    /// Lays the copy out, unless there is one: what the reader has written is never written over.
    ///
    /// # Errors
    /// The hole does not fit the lesson, or a file cannot be written.
    pub fn begin(&self, project: &Project) -> Result<()> {
        match self.copy.folder.exists() {
            true => Ok(()),
            false => self.copy.write(project, &self.change),
        }
    }

    /// Takes note of a verdict.
    ///
    /// # Errors
    /// The copy's folder cannot be written to.
    pub fn note(&self, is_solved: bool) -> Result<State> {
        let state = match (is_solved, self.state()) {
            (true, _) | (_, State::Solved) => State::Solved,
            (false, State::Tried(tries)) => State::Tried(tries + 1),
            (false, State::Untouched) => State::Tried(1),
        };
        let text = if let State::Tried(tries) = state { tries.to_string() } else { SOLVED.to_owned() };
        fs::write(self.note_file(), text + "\n")
            .with_context(|| format!("cannot write {}", self.note_file().display()))?;
        Ok(state)
    }

    /// The hint after so many failures; the last one stays.
    #[must_use]
    pub fn hint(&self, failures: usize) -> &str {
        let hints = &self.change.hints;
        hints.get(failures.saturating_sub(1)).or(hints.last()).map_or("", String::as_str)
    }

    /// Throws the reader's copy away.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn reset(&self) -> Result<()> {
        let folder = &self.copy.folder;
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))
    }

    fn note_file(&self) -> PathBuf {
        self.copy.folder.join(NOTE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_reader_wrote_stays_and_failures_are_counted_until_it_is_solved() {
        let project = Project::find().unwrap();
        let mut exercise = Exercise::of(&project, "04").unwrap().remove(0);
        exercise.copy = Copy::of(&exercise.change, &project.target.join("practice/test-of-exercises"));
        let file = exercise.copy.folder.join(&exercise.change.edits[0].file);
        let _ = exercise.reset();
        assert_eq!(exercise.state(), State::Untouched);
        exercise.begin(&project).unwrap();
        assert!(fs::read_to_string(&file).unwrap().contains(&exercise.change.edits[0].to));
        fs::write(&file, "mine").unwrap();
        exercise.begin(&project).unwrap();
        assert_eq!((fs::read_to_string(&file).unwrap().as_str(), exercise.state()), ("mine", State::Tried(0)));
        assert_eq!((exercise.note(false).unwrap(), exercise.note(false).unwrap()), (State::Tried(1), State::Tried(2)));
        assert_eq!((exercise.hint(1), exercise.hint(99)), (&*exercise.change.hints[0], &*exercise.change.hints[2]));
        assert_eq!((exercise.note(true).unwrap(), exercise.note(false).unwrap()), (State::Solved, State::Solved));
        exercise.reset().unwrap();
        assert_eq!(exercise.state(), State::Untouched);
    }
}
