//! What a person sees of the exercises: the list, the task, the verdict with a hint.

use crate::watch;
use anyhow::{ensure, Context, Result};
use course::attempt::{Attempt, State};
use course::exercise::Assignment;
use course::markdown;
use course::project::Project;
use course::reading;
use course::run::Place;
use course::show::bold;
use course::verdict::judged;
use run::lanes::Style;
use std::io::{self, stdout, IsTerminal, Write};
use std::mem;

/// Lists exercises, lays one out, or judges it: whatever comes next.
pub fn next(project: &Project, name: Option<&str>, place: Place, watch: bool) -> Result<bool> {
    let Some((number, name)) = name.and_then(|name| name.split_once('-')) else { return list(project, name) };
    let attempt = find(project, number, name)?;
    let mut is_new = attempt.state() == State::Untouched;
    if is_new {
        attempt.begin(project)?;
        tell(project, &attempt)?;
        if !watch {
            return Ok(true);
        }
    }
    let is_good = || Ok(!mem::take(&mut is_new) && judge(project, &attempt, place)?);
    watch::judged(watch, || attempt.edited(), is_good)
}

/// Throws a copy away, if a person says so.
pub fn reset(project: &Project, name: &str) -> Result<bool> {
    let (number, name) = name.split_once('-').context("name an exercise, like 04-rights; `make try` lists them")?;
    let attempt = find(project, number, name)?;
    let folder = project.shown(&attempt.copy.folder);
    ensure!(attempt.state() != State::Untouched, "there is no {folder}, so there is nothing to throw away");
    ensure!(io::stdin().is_terminal(), "this throws away {folder}, so it asks first, and for that it needs a terminal");
    let prompt = format!("Throw away {folder}, with all that you have written there? [y/N] ");
    if crate::typed(&prompt)?.eq_ignore_ascii_case("y") {
        attempt.reset(project)?;
        writeln!(stdout(), "It's gone. `make try-{number}-{name}` starts over.")?;
    } else {
        writeln!(stdout(), "Nothing was thrown away.")?;
    }
    Ok(true)
}

fn find(project: &Project, number: &str, name: &str) -> Result<Attempt> {
    let found = Attempt::of(project, Some(number))?.into_iter().find(|attempt| attempt.exercise.name.name == name);
    found
        .with_context(|| format!("there is no exercise {number}-{name}: `make try-{number}` lists those of the lesson"))
}

fn list(project: &Project, number: Option<&str>) -> Result<bool> {
    for attempt in Attempt::of(project, number)? {
        let state = match attempt.state() {
            State::Untouched => "untouched",
            State::Tried(_) => "tried",
            State::Solved => "solved",
        };
        writeln!(stdout(), "  make try-{:28} {state:10} {}", attempt.exercise.name, attempt.exercise.title)?;
    }
    writeln!(stdout())?;
    progress(project)?;
    Ok(true)
}

/// How many exercises are solved, and which one comes next.
fn progress(project: &Project) -> Result<()> {
    let all = Attempt::of(project, None)?;
    let (solved, open): (Vec<_>, Vec<_>) = all.iter().partition(|attempt| attempt.state() == State::Solved);
    writeln!(stdout(), "Solved {} of {}.", solved.len(), all.len())?;
    if let Some(Attempt { exercise, .. }) = open.first() {
        writeln!(stdout(), "Next: make try-{}   {}", exercise.name, exercise.title)?;
    }
    Ok(())
}

fn tell(project: &Project, Attempt { exercise, copy }: &Attempt) -> Result<()> {
    let style = Style::of_output();
    let again = format!("then: make try-{}", exercise.name);
    writeln!(stdout(), "{}\n", bold(&exercise.title, style.color))?;
    writeln!(stdout(), "{}", markdown::plain(&exercise.task, style.width))?;
    let shown = |file: &str| project.shown(&copy.folder.join(file));
    let Assignment::Repair(repair) = &exercise.kind else {
        writeln!(stdout(), "Look at it with:\n  {}", project.to_look_at(&copy.folder.join(reading::RUN)))?;
        writeln!(stdout(), "The questions are in {}. Answer them there, {again}", shown(reading::ANSWERS))?;
        return Ok(());
    };
    let files: Vec<String> = repair.change.holes().into_iter().map(shown).collect();
    writeln!(stdout(), "The place to edit is in {}. Edit it, {again}", files.join(" and "))?;
    writeln!(stdout(), "If your editor knows Rust, open the folder {} in it.", project.shown(copy.workspace()))?;
    Ok(())
}

/// Judges what there is, and says how far that is.
fn judge(project: &Project, attempt: &Attempt, place: Place) -> Result<bool> {
    let style = Style::of_output();
    writeln!(stdout(), "{}\n", bold(&attempt.exercise.title, style.color))?;
    if attempt.exercise.repair().is_some() {
        writeln!(stdout(), "Building it, and running it: {} …", place.name())?;
    }
    let verdict = judged(project, attempt, place, style)?;
    writeln!(stdout(), "{}", verdict.text)?;
    if verdict.is_solved {
        progress(project)?;
        writeln!(stdout(), "Where you are in the whole course: make next")?;
    }
    Ok(verdict.is_solved)
}
