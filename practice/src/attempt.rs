//! One attempt at an exercise: what the judge says to the reader.

use crate::exercise::{Exercise, State};
use crate::project::Project;
use crate::reading;
use crate::run::{run, Outcome, Place, MOST_TROUBLE};
use crate::show::{self, bold};
use crate::trouble::trouble;
use anyhow::Result;
use std::fs;

/// What the judge says.
#[derive(Debug)]
pub struct Verdict {
    /// Whether the exercise is solved by what there is now.
    pub is_solved: bool,
    /// All that there is to say.
    pub text: String,
}

/// Judges what the reader has made of an exercise. What cannot be judged uses up no hint.
///
/// # Errors
/// The judge cannot do its work: that says nothing about the reader's.
pub fn attempt(project: &Project, exercise: &Exercise, place: Place, color: bool) -> Result<Verdict> {
    let not_judged = |text: String| Ok(Verdict { is_solved: false, text });
    let change = &exercise.change;
    if let Some(path) = exercise.missing()?.first() {
        return not_judged(format!(
            "There is no {} any more. Put it back, or begin again with `make reset-{}`.\n",
            project.shown(path),
            change.full_name()
        ));
    }
    let mut text = String::new();
    if exercise.state() != State::Solved && exercise.is_unchanged()? {
        text += "Nothing has changed here since the last time. Is the file saved?\n\n";
    }
    let is_solved = if change.is_reading() {
        let capture = reading::capture(project, change)?;
        let answers = fs::read_to_string(exercise.copy.folder.join(reading::ANSWERS))?;
        let wrong = match reading::wrong(change, &capture, &answers) {
            Ok(wrong) => wrong,
            Err(error) => return not_judged(format!("{}: {error:#}\n", reading::ANSWERS)),
        };
        for question in &change.questions {
            let is_wrong = wrong.iter().any(|other| other.name == question.name);
            text += &show::checked(&question.name, !is_wrong, if is_wrong { &question.hint } else { "" }, color);
        }
        wrong.is_empty()
    } else {
        exercise.copy.furnish(project, change)?;
        let outcome = run(project, change, &exercise.copy, place, color)?;
        let is_solved = outcome.is_as_told(change);
        match outcome {
            Outcome::Refused(said) => {
                return not_judged(format!("{said}\nIt does not build yet: the compiler says where.\n"))
            }
            Outcome::Ran { file, run, findings } => {
                text += &show::findings(&findings, color);
                if !is_solved {
                    let trouble = trouble(&run)?.into_iter().take(MOST_TROUBLE);
                    let trouble: String = trouble.map(|line| format!("  {line}\n")).collect();
                    text += &format!("\n{trouble}\n{}", show::packets(&run, color)?);
                }
                text += &format!("\nThe whole run: wireshark {}\n", project.shown(&file));
            }
        }
        is_solved
    };
    text += &match exercise.note(is_solved)? {
        State::Tried(failures) => format!("\n{} {}\n", bold("Hint:", color), show::plain(exercise.hint(failures))),
        _ if is_solved => format!("\n{}\n{}", bold("Solved.", color), show::plain(&change.why)),
        _ => "\nIt was solved before, and is not now.\n".to_owned(),
    };
    Ok(Verdict { is_solved, text })
}
