//! `course break`: changes a lesson on purpose, and shows what comes of it. `course try`: judges how somebody mends one.
//! `course prove`: says whether all that still holds.
//!
//! Exit status: 0 all came as told, or the exercise is solved, 1 something came otherwise, 2 wrong usage, 3 nothing could be
//! tried.

mod exercises;
mod prove;

use anyhow::{ensure, Context, Result};
use clap::{Arg, ArgAction, ArgMatches, Command};
use course::change::Change;
use course::copy::Copy;
use course::exercise::Exercise;
use course::project::Project;
use course::run::{run, Outcome, Place};
use course::show::{self, bold};
use run::lanes::Style;
use std::io::{self, stdout, BufRead, IsTerminal, Write};
use std::process::ExitCode;

fn command() -> Command {
    let lesson = Arg::new("lesson").value_name("NN").required(true).help("The lesson's number, for example 03");
    let change = Arg::new("change").value_name("CHANGE").help("The change's name; without it, all are listed");
    let on = Arg::new("on").long("on").value_name("PLACE").value_parser(["lab", "device"]);
    let on = on.help("Where: in the lab, on the kernel's driver, or on the device in user space");
    let quiet = Arg::new("quiet").long("quiet").action(ArgAction::SetTrue).help("Ask nothing");
    let exercise = Arg::new("exercise").value_name("NN[-NAME]");
    let again = exercise.clone().required(true).help("The exercise, for example 04-rights");
    let exercise = exercise.help("The exercise, for example 04-rights; those of a lesson, or all, are listed");
    let watch = Arg::new("watch").long("watch").action(ArgAction::SetTrue);
    let watch = watch.help("Judge again whenever a file is saved, until Ctrl-C");
    let names = Arg::new("names").value_name("NN[-CHANGE]").action(ArgAction::Append);
    let keep = Arg::new("keep").long("keep").action(ArgAction::SetTrue);
    let keep = keep.help("Write the part of each run that matters beside the change, for the lesson's page");
    let only = on.clone().help("Only what is tried there");
    Command::new("course")
        .about("Change the lessons on purpose, and see what comes of it")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(Command::new("break").about("Make one change, and run it").args([
            lesson,
            change,
            quiet,
            on.clone(),
        ]))
        .subcommand(
            Command::new("try")
                .about("Lay an exercise out, or judge what somebody has made of it")
                .args([exercise, watch, on]),
        )
        .subcommand(Command::new("reset").about("Throw away what was made of an exercise").arg(again))
        .subcommand(
            Command::new("prove")
                .about("Say of changes whether they still come out as told")
                .arg(names.help("Only those of this lesson, or only this one; all unless some are named"))
                .args([keep, only]),
        )
}

fn main() -> ExitCode {
    let matches = command().get_matches();
    let result = Project::find().and_then(|project| match matches.subcommand() {
        Some(("break", arguments)) => break_it(&project, arguments),
        Some(("try", arguments)) => {
            let watch = arguments.get_flag("watch");
            exercises::next(&project, arguments.get_one("exercise"), place(arguments, Place::Device), watch)
        }
        Some(("reset", arguments)) => exercises::reset(&project, arguments.get_one("exercise")),
        Some((_, arguments)) => {
            let names: Vec<&String> = arguments.get_many("names").unwrap_or_default().collect();
            let only = arguments.contains_id("on").then(|| place(arguments, Place::Lab));
            prove::prove(&project, &names, only, arguments.get_flag("keep"))
        }
        None => Ok(true),
    });
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        // The reader of our output has seen enough: `course try | head`.
        Err(error) if error.downcast_ref().map(io::Error::kind) == Some(io::ErrorKind::BrokenPipe) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("course: {error:#}");
            ExitCode::from(3)
        }
    }
}

fn break_it(project: &Project, arguments: &ArgMatches) -> Result<bool> {
    let number = arguments.get_one::<String>("lesson").map_or("", String::as_str);
    let lesson = project.lesson(number)?;
    let Some(name) = arguments.get_one::<String>("change") else { return list(&Change::of(&lesson)?, number) };
    let change = Change::load(&lesson, name)?;
    let name = change.full_name();
    ensure!(change.task.is_none(), "{name} is an exercise, and no change to look at: `make try-{name}`");
    let copy = Copy::lay_out(project, &change)?;
    let style = Style::of_output();
    writeln!(stdout(), "{}\n", bold(&change.title, style.color))?;
    match Exercise::of(project, number)?.iter().find(|exercise| exercise.is_told_by(&change)) {
        Some(exercise) => {
            let name = exercise.change.full_name();
            writeln!(
                stdout(),
                "Its lines are those that an exercise asks for: they are shown when `make try-{name}` is solved."
            )?;
        }
        None => write!(stdout(), "{}", show::edit(&change, &copy, style.color)?)?,
    }
    writeln!(stdout(), "{}", show::options(&change))?;
    let prediction = ask(&change, arguments.get_flag("quiet"), style)?;
    let place = place(arguments, Place::Lab);
    writeln!(stdout(), "Building it, and running it: {} …\n", place.name())?;
    let outcome = run(project, &change, &copy, place, style.color)?;
    match &outcome {
        Outcome::Refused(said) => writeln!(stdout(), "{said}")?,
        Outcome::Ran { file, run, findings } => {
            writeln!(stdout(), "{}", show::part(run, findings, style)?)?;
            writeln!(
                stdout(),
                "{}\n{}",
                bold("What had to come of it, and where it is in the run:", style.color),
                show::findings(findings, style)
            )?;
            writeln!(stdout(), "The whole run: {}\n", project.to_look_at(&project.shown(file)))?;
        }
    }
    if let Some(prediction) = prediction {
        writeln!(stdout(), "{} {prediction}\n", bold("You said:", style.color))?;
    }
    let is_as_told = outcome.is_as_told(&change);
    if !is_as_told {
        writeln!(stdout(), "This time it came otherwise than it had to. {}\n", excuse(place))?;
    }
    write!(stdout(), "{}", show::plain(&change.why, style.width))?;
    Ok(is_as_told)
}

/// What may be the reason for what did not come as told.
fn excuse(place: Place) -> &'static str {
    match place {
        Place::Lab => "A machine under load can do that; else the page is wrong.",
        Place::Device => {
            "The page tells what the kernel's driver does: docs/device.md says what this device does otherwise."
        }
    }
}

fn list(changes: &[Change], number: &str) -> Result<bool> {
    let changes = changes.iter().filter(|change| change.task.is_none());
    let (on_page, others): (Vec<_>, Vec<_>) = changes.partition(|change| change.is_on_page());
    for (heading, changes) in [("", &on_page), ("More:", &others)] {
        if !heading.is_empty() && !changes.is_empty() {
            writeln!(stdout(), "{heading}")?;
        }
        for change in changes {
            writeln!(stdout(), "  make break-{number} CHANGE={:24} {}", change.name, change.title)?;
        }
    }
    if on_page.is_empty() && others.is_empty() {
        writeln!(stdout(), "Lesson {number} has no changes yet.")?;
    }
    Ok(true)
}

/// Asks for a prediction, if there is somebody to ask.
fn ask(change: &Change, quiet: bool, style: Style) -> Result<Option<String>> {
    writeln!(stdout(), "{}", show::plain(&change.ask, style.width))?;
    if quiet || !io::stdin().is_terminal() || !stdout().is_terminal() {
        return Ok(None);
    }
    write!(stdout(), "Your prediction, in a line: ")?;
    stdout().flush()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).context("cannot read your prediction")?;
    writeln!(stdout())?;
    Ok(Some(line.trim().to_owned()).filter(|line| !line.is_empty()))
}

/// Where somebody wants it.
fn place(arguments: &ArgMatches, otherwise: Place) -> Place {
    match arguments.get_one::<String>("on").map(String::as_str) {
        Some("lab") => Place::Lab,
        Some("device") => Place::Device,
        _ => otherwise,
    }
}
