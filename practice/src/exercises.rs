//! What a person sees of the exercises: the list, the task, the verdict with a hint.

use crate::{bold, color};
use anyhow::{ensure, Context, Result};
use practice::exercise::{Exercise, State};
use practice::judge::trouble;
use practice::project::Project;
use practice::run::{run, Outcome, Place};
use practice::show;
use std::fs;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, SystemTime};

/// So much of what stands out in a run is shown.
const MOST_TROUBLE: usize = 4;
/// How often the files are looked at.
const LOOK: Duration = Duration::from_millis(300);

/// Lists exercises, lays one out, or judges it: whatever comes next.
pub fn attempt(project: &Project, name: Option<&String>, watch: bool) -> Result<bool> {
    let Some((number, name)) = name.and_then(|name| name.split_once('-')) else { return list(project, name) };
    let exercise = find(project, number, name)?;
    let is_new = exercise.state() == State::Untouched;
    if is_new {
        exercise.begin(project)?;
        tell(project, &exercise);
    }
    let mut is_solved = is_new || judge(project, &exercise)?;
    if watch && (is_new || !is_solved) {
        println!("Waiting until you save a file; Ctrl-C ends that.");
        let mut seen = None;
        loop {
            let now = newest(&exercise.copy.folder);
            if seen.is_some_and(|seen| seen != now) && judge(project, &exercise)? {
                break;
            }
            seen = Some(now);
            sleep(LOOK);
        }
        is_solved = true;
    }
    Ok(is_solved)
}

/// Throws a copy away, if a person says so.
pub fn reset(project: &Project, name: Option<&String>) -> Result<bool> {
    let (number, name) = name.and_then(|name| name.split_once('-')).context("name an exercise, as 04-rights")?;
    let exercise = find(project, number, name)?;
    let folder = shown(project, &exercise.copy.folder);
    ensure!(exercise.state() != State::Untouched, "there is no {folder}: nothing to throw away");
    ensure!(io::stdin().is_terminal(), "this throws away {folder}, so it has to be asked for at a terminal");
    print!("Throw away {folder}, with all that you have written there? [y/N] ");
    io::stdout().flush()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    if line.trim().eq_ignore_ascii_case("y") {
        exercise.reset()?;
        println!("It is gone. `make try-{number}-{name}` begins again.");
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
        println!("  make try-{:28} {state:10} {}", exercise.change.full_name(), exercise.change.title);
    }
    progress(project)
}

/// One line over all exercises.
fn progress(project: &Project) -> Result<bool> {
    let all = Exercise::all(project)?;
    let solved = all.iter().filter(|exercise| exercise.state() == State::Solved).count();
    println!("\nSolved {solved} of {}.", all.len());
    Ok(true)
}

/// What there is to do.
fn tell(project: &Project, exercise: &Exercise) {
    let change = &exercise.change;
    println!("{}\n", bold(&change.title));
    println!("{}", show::plain(change.task.as_deref().unwrap_or_default()));
    let mut files: Vec<String> =
        change.edits.iter().map(|edit| shown(project, &exercise.copy.folder.join(&edit.file))).collect();
    files.dedup();
    println!("The place is in {}. Edit it, then: make try-{}", files.join(" and "), change.full_name());
}

/// Builds and runs what there is, and says what is missing.
fn judge(project: &Project, exercise: &Exercise) -> Result<bool> {
    println!("{}: building it, and running it in the lab …\n", exercise.change.title);
    let outcome = run(project, &exercise.change, &exercise.copy, Place::Lab, color())?;
    let is_solved = outcome.is_as_told(&exercise.change);
    if let Outcome::Ran { file, run, findings } = &outcome {
        println!("{}", show::findings(findings, color()));
        if !is_solved {
            explain(run)?;
        }
        println!("The whole run: wireshark {}\n", shown(project, file));
    }
    if let Outcome::Refused(said) = &outcome {
        // Nothing was judged: no hint is due.
        println!("{said}\nIt does not build yet: the compiler says where.");
        return Ok(false);
    }
    match exercise.note(is_solved)? {
        State::Tried(failures) => println!("{} {}", bold("Hint:"), exercise.hint(failures)),
        _ if is_solved => {
            println!("{}\n{}", bold("Solved."), show::plain(&exercise.change.why));
            progress(project)?;
        }
        _ => println!("It was solved before, and is not now."),
    }
    Ok(is_solved)
}

/// What stands out, and all packets.
fn explain(run: &[u8]) -> Result<()> {
    let trouble = trouble(run)?;
    for line in trouble.iter().take(MOST_TROUBLE) {
        println!("  {line}");
    }
    println!("{}{}", if trouble.is_empty() { "" } else { "\n" }, show::packets(run, color())?);
    Ok(())
}

/// When a file of the copy was changed last.
fn newest(folder: &Path) -> Option<SystemTime> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let newest_of = |path: &Path| match path.is_dir() {
        true => newest(path),
        false if path.extension().is_some_and(|ending| ending == "rs") => path.metadata().ok()?.modified().ok(),
        false => None,
    };
    entries.filter_map(|entry| newest_of(&entry.path())).max()
}

fn shown(project: &Project, path: &Path) -> String {
    path.strip_prefix(&project.root).unwrap_or(path).display().to_string()
}
