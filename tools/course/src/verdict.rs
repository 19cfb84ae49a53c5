//! What the judge says to a reader of an attempt at an exercise.

use crate::attempt::{Attempt, State};
use crate::change::Change;
use crate::exercise::Kind;
use crate::files;
use crate::project::Project;
use crate::reading::{Reading, ANSWERS};
use crate::run::{run, Outcome, Place};
use crate::show::{self, bold};
use anyhow::Result;
use run::lanes::Style;

/// What stands before a hint.
const HINT: &str = "Hint:";

/// What the judge says.
#[derive(Debug)]
pub struct Verdict {
    /// Whether the exercise is solved by what there is now.
    pub is_solved: bool,
    /// All that there is to say.
    pub text: String,
}

/// What was seen of an attempt, if it could be judged: whether it is a solution. Else why it could not.
type Seen = Result<bool, String>;

/// Judges what the reader has made of an exercise. What cannot be judged uses up no hint.
pub fn judged(project: &Project, attempt: &Attempt, place: Place, style: Style) -> Result<Verdict> {
    let (exercise, mut text) = (&attempt.exercise, String::new());
    if let Some(path) = attempt.missing()?.first() {
        let (path, name) = (project.shown(path), &exercise.name);
        text += &format!("There is no {path} any more. Put it back, or begin again with `make reset-{name}`.\n");
        return Ok(Verdict { is_solved: false, text });
    }
    if matches!(attempt.state(), State::Tried(1..)) && attempt.is_unchanged()? {
        text += "Nothing has changed here since the last time. Is the file saved?\n\n";
    }
    let seen = match &exercise.kind {
        Kind::Reading(reading) => read(project, attempt, reading, style, &mut text)?,
        Kind::Repair(repair) => build_and_run(project, attempt, &repair.change, place, style, &mut text)?,
    };
    let is_solved = match seen {
        Ok(is_solved) => is_solved,
        Err(why) => return Ok(Verdict { is_solved: false, text: why }),
    };
    text += &match attempt.note(is_solved)? {
        State::Tried(failures) => {
            let hint = show::plain(exercise.hint(failures), style.width - HINT.len());
            format!("\n{} {}\n", bold(HINT, style.color), hint.trim_end())
        }
        _ if is_solved => format!("\n{}\n{}", bold("Solved.", style.color), show::plain(&exercise.why, style.width)),
        _ => "\nIt was solved before, and is not now.\n".to_owned(),
    };
    Ok(Verdict { is_solved, text })
}

/// Looks at the answers.
fn read(project: &Project, attempt: &Attempt, reading: &Reading, style: Style, text: &mut String) -> Result<Seen> {
    let file = attempt.copy.folder.join(ANSWERS);
    let wrong = match reading.wrong(&reading.capture(project)?, &files::read(&file)?) {
        Ok(wrong) => wrong,
        Err(error) => return Ok(Err(format!("{}: {error:#}\n", project.shown(&file)))),
    };
    for question in &reading.questions {
        let is_wrong = wrong.iter().any(|other| other.name == question.name);
        *text += &show::checked(&question.name, !is_wrong, if is_wrong { &question.hint } else { "" }, style);
    }
    Ok(Ok(wrong.is_empty()))
}

/// Looks at a run.
fn build_and_run(
    project: &Project,
    attempt: &Attempt,
    change: &Change,
    place: Place,
    style: Style,
    text: &mut String,
) -> Result<Seen> {
    let copy = &attempt.copy;
    for path in copy.furnish(project, change)? {
        *text += &format!("{} is no part of the exercise: it is as in the repository again.\n", project.shown(&path));
    }
    let outcome = run(project, change, copy, place, style.color)?;
    let is_solved = outcome.is_as_told(change);
    match outcome {
        Outcome::Refused(said) => {
            let folder = project.shown(copy.workspace());
            Ok(Err(format!("{said}\nIt does not build yet: the compiler says where, as seen from {folder}.\n")))
        }
        Outcome::Ran { file, run, findings } => {
            *text += &show::findings(&findings, style);
            if !is_solved {
                *text += &format!("\n{}\n{}", show::trouble(&run, style)?, show::packets(&run, style.color)?);
            }
            *text += &format!("\nThe whole run: {}\n", project.to_look_at(&project.shown(&file)));
            Ok(Ok(is_solved))
        }
    }
}
