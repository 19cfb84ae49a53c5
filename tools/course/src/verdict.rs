//! What the judge says to a reader of an attempt at an exercise.

use crate::attempt::{Attempt, State};
use crate::change::Change;
use crate::exercise::Assignment;
use crate::markdown;
use crate::project::Project;
use crate::reading::{Reading, ANSWERS};
use crate::run::{run, Outcome, Place};
use crate::show::{self, bold};
use anyhow::Result;
use judge::seen;
use run::files;
use run::lanes::Style;

/// What comes before a hint.
const HINT: &str = "Hint:";

#[derive(Debug)]
pub struct Verdict {
    /// Whether the exercise is solved by what there is now.
    pub is_solved: bool,
    pub text: String,
}

/// What was seen of an attempt: whether it is a solution, and what there is to say. Else why it could not be judged.
type Judged = Result<(bool, String), String>;

/// Judges what the reader has made of an exercise. What cannot be judged uses up no hint. An error says nothing about the
/// reader's work: the judge cannot do its own.
pub fn judged(project: &Project, attempt: &Attempt, place: Place, style: Style) -> Result<Verdict> {
    let (exercise, unsolved) = (&attempt.exercise, |text| Ok(Verdict { is_solved: false, text }));
    if let Some(path) = attempt.missing()?.first() {
        let (path, name) = (project.shown(path), &exercise.name);
        return unsolved(format!("{path} is gone. Put it back, or start over with `make reset-{name}`.\n"));
    }
    let was_solved = attempt.state() == State::Solved;
    let is_again = matches!(attempt.state(), State::Tried(1..)) && attempt.is_unchanged()?;
    let again = if is_again { "Nothing has changed here since the last time. Is the file saved?\n\n" } else { "" };
    let seen = match &exercise.kind {
        Assignment::Reading(reading) => read(project, attempt, reading, style)?,
        Assignment::Repair(repair) => build_and_run(project, attempt, &repair.change, place, style)?,
    };
    let (is_solved, seen) = match seen {
        Ok(seen) => seen,
        Err(why) => return unsolved(why),
    };
    let told = match attempt.note(is_solved)? {
        State::Tried(failures) => {
            let hint = markdown::plain(exercise.hint(failures), style.width - HINT.len());
            format!("{} {}\n", bold(HINT, style.color), hint.trim_end())
        }
        _ if is_solved => {
            let why = markdown::plain(&exercise.why, style.width);
            format!("{}\n{why}{}", bold("Solved.", style.color), of_lesson(attempt, was_solved, style)?)
        }
        _ => "You had solved it before, but it isn't solved any more.\n".to_owned(),
    };
    Ok(Verdict { is_solved, text: format!("{again}{seen}\n{told}") })
}

/// How the lesson does it, for somebody who has solved it before.
fn of_lesson(attempt: &Attempt, was_solved: bool, style: Style) -> Result<String> {
    let Some(repair) = attempt.exercise.repair() else { return Ok(String::new()) };
    let edit = show::edit(&repair.change, &attempt.copy, style.color)?;
    Ok(match (was_solved, edit.is_empty()) {
        (_, true) => "\nThe lesson has the same lines.\n".to_owned(),
        (true, _) => format!("\nThe lesson (-), and you (+):\n{edit}"),
        _ => format!("\n`make try-{}` now shows how the lesson does it.\n", attempt.exercise.name),
    })
}

/// Looks at the answers.
fn read(project: &Project, attempt: &Attempt, reading: &Reading, style: Style) -> Result<Judged> {
    let file = attempt.copy.folder.join(ANSWERS);
    let wrong = match reading.wrong(&seen::read(&reading.capture(project)?)?, &files::read(&file)?) {
        Ok(wrong) => wrong,
        Err(error) => return Ok(Err(format!("{}: {error:#}\n", project.shown(&file)))),
    };
    let checked = reading.questions.iter().map(|question| {
        let is_wrong = wrong.iter().any(|other| other.name == question.name);
        show::checked(&question.name, !is_wrong, if is_wrong { &question.hint } else { "" }, style)
    });
    Ok(Ok((wrong.is_empty(), checked.collect())))
}

/// Looks at a run.
fn build_and_run(project: &Project, attempt: &Attempt, change: &Change, place: Place, style: Style) -> Result<Judged> {
    let (copy, mut text) = (&attempt.copy, String::new());
    for path in copy.furnish(project, change)? {
        text += &format!(
            "{} isn't part of the exercise, so it's been restored from the repository.\n",
            project.shown(&path)
        );
    }
    let outcome = run(project, change, copy, place, style.color)?;
    let is_solved = outcome.is_as_told(change);
    let (file, run, findings) = match outcome {
        Outcome::Ran { file, run, findings, .. } => (file, run, findings),
        Outcome::Refused(said) => {
            let folder = project.shown(copy.workspace());
            let why = format!("{said}\nIt doesn't build yet. The compiler says where, as seen from {folder}.\n");
            return Ok(Err(why));
        }
    };
    text += &show::findings_without_run(&findings, style);
    if !is_solved {
        text += &format!("\n{}\n{}", show::trouble(&run, style)?, show::packets(&run, style)?);
    }
    Ok(Ok((is_solved, text + &format!("\nThe whole run:\n  {}\n", project.to_look_at(&file)))))
}
