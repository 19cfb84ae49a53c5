//! One attempt at an exercise: what the judge says to the reader.

use crate::exercise::{Exercise, State};
use crate::project::Project;
use crate::reading;
use crate::run::{run, Outcome, Place, MOST_TROUBLE};
use crate::show::{self, bold};
use crate::trouble::trouble;
use anyhow::{Context, Result};
use run::lanes::Style;
use std::fs;

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
///
/// # Errors
/// The judge cannot do its work: that says nothing about the reader's.
pub fn attempt(project: &Project, exercise: &Exercise, place: Place, style: Style) -> Result<Verdict> {
    let (change, mut text) = (&exercise.change, String::new());
    if let Some(path) = exercise.missing()?.first() {
        let (path, name) = (project.shown(path), change.full_name());
        text += &format!("There is no {path} any more. Put it back, or begin again with `make reset-{name}`.\n");
        return Ok(Verdict { is_solved: false, text });
    }
    if matches!(exercise.state(), State::Tried(1..)) && exercise.is_unchanged()? {
        text += "Nothing has changed here since the last time. Is the file saved?\n\n";
    }
    let seen = match change.is_reading() {
        true => read(project, exercise, style, &mut text)?,
        false => build_and_run(project, exercise, place, style, &mut text)?,
    };
    let is_solved = match seen {
        Ok(is_solved) => is_solved,
        Err(why) => return Ok(Verdict { is_solved: false, text: why }),
    };
    text += &match exercise.note(is_solved)? {
        State::Tried(failures) => {
            let hint = show::plain(exercise.hint(failures), style.width - HINT.len());
            format!("\n{} {}\n", bold(HINT, style.color), hint.trim_end())
        }
        _ if is_solved => format!("\n{}\n{}", bold("Solved.", style.color), show::plain(&change.why, style.width)),
        _ => "\nIt was solved before, and is not now.\n".to_owned(),
    };
    Ok(Verdict { is_solved, text })
}

/// Looks at the answers.
fn read(project: &Project, exercise: &Exercise, style: Style, text: &mut String) -> Result<Seen> {
    let (change, file) = (&exercise.change, exercise.copy.folder.join(reading::ANSWERS));
    let answers = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let wrong = match reading::wrong(change, &reading::capture(project, change)?, &answers) {
        Ok(wrong) => wrong,
        Err(error) => return Ok(Err(format!("{}: {error:#}\n", project.shown(&file)))),
    };
    for question in &change.questions {
        let is_wrong = wrong.iter().any(|other| other.name == question.name);
        *text += &show::checked(&question.name, !is_wrong, if is_wrong { &question.hint } else { "" }, style);
    }
    Ok(Ok(wrong.is_empty()))
}

/// Looks at a run.
fn build_and_run(
    project: &Project,
    exercise: &Exercise,
    place: Place,
    style: Style,
    text: &mut String,
) -> Result<Seen> {
    let (change, copy) = (&exercise.change, &exercise.copy);
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
                let trouble = trouble(&run)?.into_iter().take(MOST_TROUBLE);
                let trouble: String = trouble.map(|line| show::hanging("  ", &line, style.width)).collect();
                *text += &format!("\n{trouble}\n{}", show::packets(&run, style.color)?);
            }
            *text += &format!("\nThe whole run: {}\n", project.to_look_at(&project.shown(&file)));
            Ok(Ok(is_solved))
        }
    }
}
