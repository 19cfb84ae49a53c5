//! What a person sees of the exercises: the list, the task, the verdict with a hint.

use anyhow::{ensure, Context, Result};
use course::attempt::attempt;
use course::exercise::{Exercise, State};
use course::project::Project;
use course::reading;
use course::run::Place;
use course::show::{self, bold};
use run::lanes::Style;
use std::io::{self, stdout, BufRead, IsTerminal, Write};
use std::thread::sleep;
use std::time::{Duration, SystemTime};

/// How often the files are looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Lists exercises, lays one out, or judges it: whatever comes next.
pub fn next(project: &Project, name: Option<&String>, place: Place, watch: bool) -> Result<bool> {
    let Some((number, name)) = name.and_then(|name| name.split_once('-')) else { return list(project, name) };
    let exercise = find(project, number, name)?;
    let is_new = exercise.state() == State::Untouched;
    if is_new {
        exercise.begin(project)?;
        tell(project, &exercise)?;
    }
    let mut is_solved = !is_new && judge(project, &exercise, place)?;
    if watch && !is_solved {
        writeln!(stdout(), "Waiting until you save a file; Ctrl-C ends that.")?;
        let mut seen = newest(&exercise);
        while !is_solved {
            sleep(LOOK);
            let now = newest(&exercise);
            if std::mem::replace(&mut seen, now) != now {
                is_solved = judge(project, &exercise, place)?;
            }
        }
    }
    Ok(is_solved || is_new)
}

/// Throws a copy away, if a person says so.
pub fn reset(project: &Project, name: Option<&String>) -> Result<bool> {
    let (number, name) = name.and_then(|name| name.split_once('-')).context("name an exercise, as 04-rights")?;
    let exercise = find(project, number, name)?;
    let folder = project.shown(&exercise.copy.folder);
    ensure!(exercise.state() != State::Untouched, "there is no {folder}: nothing to throw away");
    ensure!(io::stdin().is_terminal(), "this throws away {folder}, so it has to be asked for at a terminal");
    write!(stdout(), "Throw away {folder}, with all that you have written there? [y/N] ")?;
    stdout().flush()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    if line.trim().eq_ignore_ascii_case("y") {
        exercise.reset(project)?;
        writeln!(stdout(), "It is gone. `make try-{number}-{name}` begins again.")?;
    } else {
        writeln!(stdout(), "Nothing is thrown away.")?;
    }
    Ok(true)
}

fn find(project: &Project, number: &str, name: &str) -> Result<Exercise> {
    let found = Exercise::of(project, number)?.into_iter().find(|exercise| exercise.change.name == name);
    found
        .with_context(|| format!("there is no exercise {number}-{name}: `make try-{number}` lists those of the lesson"))
}

fn list(project: &Project, number: Option<&String>) -> Result<bool> {
    let exercises = number.map_or_else(|| Exercise::all(project), |number| Exercise::of(project, number))?;
    for exercise in &exercises {
        let state = match exercise.state() {
            State::Untouched => "untouched",
            State::Tried(_) => "tried",
            State::Solved => "solved",
        };
        writeln!(stdout(), "  make try-{:28} {state:10} {}", exercise.change.full_name(), exercise.change.title)?;
    }
    writeln!(stdout())?;
    progress(project)?;
    Ok(true)
}

/// How many exercises are solved, and which one comes next.
fn progress(project: &Project) -> Result<()> {
    let all = Exercise::all(project)?;
    let (solved, open): (Vec<_>, Vec<_>) = all.iter().partition(|exercise| exercise.state() == State::Solved);
    writeln!(stdout(), "Solved {} of {}.", solved.len(), all.len())?;
    if let Some(Exercise { change, .. }) = open.first() {
        writeln!(stdout(), "Next: make try-{}   {}", change.full_name(), change.title)?;
    }
    Ok(())
}

/// What there is to do.
fn tell(project: &Project, exercise: &Exercise) -> Result<()> {
    let (change, style) = (&exercise.change, Style::of_output());
    let again = format!("then: make try-{}", change.full_name());
    writeln!(stdout(), "{}\n", bold(&change.title, style.color))?;
    writeln!(stdout(), "{}", show::plain(change.task.as_deref().unwrap_or_default(), style.width))?;
    if change.is_reading() {
        let shown = |file: &str| project.shown(&exercise.copy.folder.join(file));
        writeln!(stdout(), "Look at it with: {}", project.to_look_at(&shown(reading::RUN)))?;
        writeln!(stdout(), "The questions are in {}. Answer them there, {again}", shown(reading::ANSWERS))?;
        return Ok(());
    }
    let files: Vec<String> =
        change.holes().iter().map(|file| project.shown(&exercise.copy.folder.join(file))).collect();
    writeln!(stdout(), "The place is in {}. Edit it, {again}", files.join(" and "))?;
    writeln!(stdout(), "An editor that knows Rust wants the folder {}.", project.shown(exercise.copy.workspace()))?;
    Ok(())
}

/// Judges what there is, and says how far that is.
fn judge(project: &Project, exercise: &Exercise, place: Place) -> Result<bool> {
    let style = Style::of_output();
    writeln!(stdout(), "{}\n", bold(&exercise.change.title, style.color))?;
    if !exercise.change.is_reading() {
        writeln!(stdout(), "Building it, and running it: {} …", place.name())?;
    }
    let verdict = attempt(project, exercise, place, style)?;
    writeln!(stdout(), "{}", verdict.text)?;
    if verdict.is_solved {
        progress(project)?;
    }
    Ok(verdict.is_solved)
}

/// When a file of the copy was saved last.
fn newest(exercise: &Exercise) -> Option<SystemTime> {
    let files = exercise.edited().unwrap_or_default();
    files.iter().filter_map(|path| path.metadata().ok()?.modified().ok()).max()
}
