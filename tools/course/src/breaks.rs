//! What a person sees of a change that breaks a lesson: the list, what is edited, the question, and what happens.

use anyhow::{bail, Context, Result};
use course::attempt::Attempt;
use course::change::Break;
use course::changes::{self, Changes};
use course::copy::Copy;
use course::differences;
use course::markdown;
use course::project::Project;
use course::run::{run, Outcome, Place};
use course::show::{self, bold};
use run::lanes::Style;
use std::io::{self, stdout, IsTerminal, Write};

/// Makes a change, and shows what happens.
pub fn make(project: &Project, number: &str, name: &str, quiet: bool, place: Place) -> Result<bool> {
    let Changes { breaks, exercises } = Changes::of(&project.lesson(number)?)?;
    if exercises.iter().any(|exercise| exercise.name.name == name) {
        bail!("{number}-{name} is an exercise, not a change to look at. Try it: `make try-{number}-{name}`");
    }
    let found = breaks.into_iter().find(|it| it.change.name.name == name);
    let it = found
        .with_context(|| format!("there is no change `{name}`. `make break-{number}` lists the lesson's changes"))?;
    let (change, copy, style) = (&it.change, Copy::lay_out(project, &it.change)?, Style::of_output());
    writeln!(stdout(), "{}\n", bold(&it.title, style.color))?;
    match Attempt::of(project, Some(number))?.iter().find(|attempt| attempt.is_told_by(change)) {
        Some(attempt) => writeln!(
            stdout(),
            "Its lines are the answer to an exercise, so they're shown once you've solved `make try-{}`.",
            attempt.exercise.name
        )?,
        None => write!(stdout(), "{}", show::edit(change, &copy, style.color)?)?,
    }
    writeln!(stdout(), "{}", show::options(change))?;
    let prediction = ask(&it, quiet, style)?;
    writeln!(stdout(), "Building it, and running it: {} …\n", place.name())?;
    let outcome = run(project, change, &copy, place, style.color)?;
    match &outcome {
        Outcome::Refused(said) => writeln!(stdout(), "{said}")?,
        Outcome::Ran { file, run, findings, .. } => {
            writeln!(stdout(), "{}", show::part(run, findings, style)?)?;
            let heading = bold("What should happen, and where it is in the run:", style.color);
            writeln!(stdout(), "{heading}\n{}", show::findings(findings, style))?;
            writeln!(stdout(), "The whole run:\n  {}\n", project.to_look_at(file))?;
        }
    }
    if let Some(prediction) = prediction {
        writeln!(stdout(), "{} {prediction}\n", bold("You said:", style.color))?;
    }
    let is_as_told = outcome.is_as_told(change);
    let known =
        if place == Place::Device { differences::known(&project.root, &change.name.to_string())? } else { None };
    match &known {
        _ if is_as_told => {}
        Some(row) => {
            let text = format!(
                "On the device this comes out differently. {}: {}. On the kernel's driver: {}.",
                row.what, row.device, row.rxe
            );
            writeln!(stdout(), "{}", markdown::plain(&text, style.width))?;
        }
        None => writeln!(stdout(), "This run didn't come out as the page says it should. {}\n", excuse(place))?,
    }
    write!(stdout(), "{}", markdown::plain(&it.why, style.width))?;
    writeln!(stdout(), "\nnext: make next")?;
    let is_made = is_as_told || known.is_some();
    if is_made {
        crate::next::mark(project, &change.name.to_string())?;
    }
    Ok(is_made)
}

/// What may be the reason for what did not come as told.
fn excuse(place: Place) -> &'static str {
    match place {
        Place::Lab => "That may happen on a machine under load. If it happens again, the page is wrong.",
        Place::Device => {
            "The page says what the kernel's driver does; docs/device_differences.md lists where this device differs."
        }
    }
}

/// Lists those of a lesson.
pub fn list(project: &Project, number: &str) -> Result<bool> {
    let breaks = Changes::of(&project.lesson(number)?)?.breaks;
    if breaks.is_empty() {
        writeln!(stdout(), "Lesson {number} has no changes yet.")?;
    }
    let (on_page, others): (Vec<Break>, Vec<Break>) =
        breaks.into_iter().partition(|it| changes::is_on_page(&it.change.name));
    for (heading, breaks) in [("", &on_page), ("More:\n", &others)] {
        write!(stdout(), "{}", if breaks.is_empty() { "" } else { heading })?;
        for Break { title, change, .. } in breaks {
            writeln!(stdout(), "  make break-{number} CHANGE={:24} {title}", change.name.name)?;
        }
    }
    Ok(true)
}

/// Asks for a prediction, if there is somebody to ask.
fn ask(it: &Break, quiet: bool, style: Style) -> Result<Option<String>> {
    writeln!(stdout(), "{}", markdown::plain(&it.ask, style.width))?;
    if quiet || !io::stdin().is_terminal() || !stdout().is_terminal() {
        return Ok(None);
    }
    let line = crate::typed("Your prediction, in a line: ")?;
    writeln!(stdout())?;
    Ok(Some(line).filter(|line| !line.is_empty()))
}
