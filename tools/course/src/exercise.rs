//! Exercises: a copy of a lesson with a hole in it, in a folder of the reader's own, and how far it has got.

use crate::change::Change;
use crate::copy::{tree, Copy};
use crate::project::Project;
use crate::reading::{self, sheet, ANSWERS, RUN};
use crate::workspace;
use anyhow::{Context, Result};
use std::collections::hash_map::DefaultHasher;
use std::collections::BTreeMap;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};

/// The folder of the copies, in the repository's folder: not below `target`, which `make clean` removes.
pub const FOLDER: &str = "try";
/// Where a copy says how far the reader has got: the failures, or that it is solved; and what was judged last.
const NOTE: &str = ".course";
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

/// One exercise.
pub struct Exercise {
    /// What it is about.
    pub change: Change,
    /// The reader's copy.
    pub copy: Copy,
}

impl Exercise {
    /// An exercise whose copy is in a folder.
    #[must_use]
    pub fn new(change: Change, folder: &Path) -> Self {
        Self { copy: Copy::of(&change, folder), change }
    }

    /// All exercises of a lesson.
    ///
    /// # Errors
    /// A file of the lesson's changes is not as it should be.
    pub fn of(project: &Project, number: &str) -> Result<Vec<Self>> {
        let changes = Change::of(&project.lesson(number)?)?.into_iter().filter(|change| change.task.is_some());
        Ok(changes.map(|change| Self::new(change, &project.root.join(FOLDER))).collect())
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
        match self.note_said().0.as_str() {
            SOLVED => State::Solved,
            tries => State::Tried(tries.parse().unwrap_or(0)),
        }
    }

    /// Whether a change takes out a line that is still looked for here: its difference would tell the solution.
    #[must_use]
    pub fn is_told_by(&self, change: &Change) -> bool {
        self.state() != State::Solved && self.change.is_told_by(change)
    }

    /// Lays the copy out, unless there is one: what the reader has written is never written over.
    ///
    /// # Errors
    /// The hole does not fit the lesson, or a file cannot be written.
    pub fn begin(&self, project: &Project) -> Result<()> {
        let folder = &self.copy.folder;
        if folder.exists() {
            return Ok(());
        }
        if self.change.is_reading() {
            let (sheet, run) = (sheet(&self.change, &BTreeMap::new()), reading::nameless(project, &self.change)?);
            let attempt = fs::create_dir_all(folder).and_then(|()| fs::write(folder.join(RUN), run));
            let attempt = attempt.and_then(|()| fs::write(folder.join(ANSWERS), sheet));
            attempt.with_context(|| format!("cannot write into {}", folder.display()))?;
        } else {
            self.copy.write(project, &self.change)?;
        }
        self.write_note("0")
    }

    /// Files of the copy that are gone.
    ///
    /// # Errors
    /// The lesson cannot be read.
    pub fn missing(&self) -> Result<Vec<PathBuf>> {
        let names = if self.change.is_reading() { vec![ANSWERS.to_owned()] } else { Copy::sources(&self.change)? };
        let paths = names.iter().map(|name| self.copy.folder.join(name));
        Ok(paths.filter(|path| !path.exists()).collect())
    }

    /// Whether the reader has saved nothing since it was laid out or judged last.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn is_unchanged(&self) -> Result<bool> {
        Ok(self.note_said().1 == self.fingerprint()?)
    }

    /// Takes note of a verdict. The same text fails only once.
    ///
    /// # Errors
    /// The copy's folder cannot be read or written to.
    pub fn note(&self, is_solved: bool) -> Result<State> {
        let state = match self.state() {
            _ if is_solved => State::Solved,
            State::Solved => State::Solved,
            State::Tried(tries @ 1..) if self.is_unchanged()? => State::Tried(tries),
            State::Tried(tries) => State::Tried(tries + 1),
            State::Untouched => State::Tried(1),
        };
        self.write_note(&if let State::Tried(tries) = state { tries.to_string() } else { SOLVED.to_owned() })?;
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
    pub fn reset(&self, project: &Project) -> Result<()> {
        let (folder, workspace) = (&self.copy.folder, self.copy.workspace());
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
        if !self.change.is_reading() {
            // An editor that has the workspace open looks for the copies that it names.
            workspace::furnish(project, workspace, &workspace::members(workspace)?)?;
        }
        Ok(())
    }

    /// The files that the reader edits.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn edited(&self) -> Result<Vec<PathBuf>> {
        let folder = &self.copy.folder;
        match self.change.is_reading() {
            true => Ok(vec![folder.join(ANSWERS)]),
            false => Ok(tree(&folder.join("src"))?.iter().map(|file| folder.join("src").join(file)).collect()),
        }
    }

    fn fingerprint(&self) -> Result<String> {
        let mut hasher = DefaultHasher::new();
        for path in self.edited()? {
            let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            (path, text).hash(&mut hasher);
        }
        Ok(hasher.finish().to_string())
    }

    fn note_said(&self) -> (String, String) {
        let note = fs::read_to_string(self.copy.folder.join(NOTE)).unwrap_or_default();
        let (state, judged) = note.trim().split_once(' ').unwrap_or((note.trim(), ""));
        (state.to_owned(), judged.to_owned())
    }

    fn write_note(&self, state: &str) -> Result<()> {
        let file = self.copy.folder.join(NOTE);
        let note = format!("{state} {}\n", self.fingerprint()?);
        fs::write(&file, note).with_context(|| format!("cannot write {}", file.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_that_takes_out_what_an_exercise_asks_for_is_known() {
        let project = Project::find().unwrap();
        let exercise = |name: &str| {
            let (number, name) = name.split_once('-').unwrap();
            let change = Change::load(&project.lesson(number).unwrap(), name).unwrap();
            Exercise::new(change, &project.target.join("course/nowhere"))
        };
        let twins = [
            ("01-words", "01-no-answer"),
            ("01-route", "01-skipped-step"),
            ("04-rights", "04-no-remote-write"),
            ("08-doors", "08-closed-pair"),
            ("09-count", "09-lost-count"),
            ("09-again", "09-not-armed"),
        ];
        for (asks, tells) in twins {
            assert!(exercise(asks).is_told_by(&exercise(tells).change), "{asks} {tells}");
        }
        assert!(!exercise("04-rights").is_told_by(&exercise("04-wrong-key").change));
        assert!(!exercise("01-words").is_told_by(&exercise("01-skipped-step").change));
    }

    #[test]
    fn what_a_reader_wrote_stays_and_failures_are_counted_until_it_is_solved() {
        let project = Project::find().unwrap();
        let change = Change::load(&project.lesson("04").unwrap(), "whose").unwrap();
        let exercise = Exercise::new(change, &project.target.join("course/test-of-exercises"));
        let file = exercise.copy.folder.join(&exercise.change.edits[0].file);
        let _ = exercise.reset(&project);
        assert_eq!(exercise.state(), State::Untouched);
        exercise.begin(&project).unwrap();
        assert!(fs::read_to_string(&file).unwrap().contains(&exercise.change.edits[0].to));
        assert!(exercise.is_unchanged().unwrap());
        fs::write(&file, "mine").unwrap();
        exercise.begin(&project).unwrap();
        assert_eq!((fs::read_to_string(&file).unwrap().as_str(), exercise.state()), ("mine", State::Tried(0)));
        assert!(!exercise.is_unchanged().unwrap());
        let fails = || exercise.note(false).unwrap();
        assert_eq!((fails(), fails()), (State::Tried(1), State::Tried(1)), "the same text fails once");
        fs::write(&file, "mine, too").unwrap();
        assert_eq!(fails(), State::Tried(2));
        assert_eq!((exercise.hint(1), exercise.hint(99)), (&*exercise.change.hints[0], &*exercise.change.hints[2]));
        assert!(exercise.missing().unwrap().is_empty());
        fs::remove_file(&file).unwrap();
        assert_eq!(exercise.missing().unwrap(), [file]);
        assert_eq!((exercise.note(true).unwrap(), fails()), (State::Solved, State::Solved));
        exercise.reset(&project).unwrap();
        assert_eq!(exercise.state(), State::Untouched);
    }
}
