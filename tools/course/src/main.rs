//! `course break`: changes a lesson on purpose, and shows what comes of it. `course try`: judges how somebody mends one.
//! `course nic`: the device's core, hole by hole. `course begin`, `step`, `hint`, `solution`: a program of one's own, step by step. `course next`: says where one is. `course prove`: says whether all that still holds.
//!
//! Exit status: 0 all came as told, or the exercise is solved, 1 something came otherwise, 2 wrong usage, 3 nothing could be
//! tried.

mod breaks;
mod certificate;
mod exercises;
mod grade;
mod holes;
mod next;
mod prove;
mod steps;
mod watch;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use course::mine::Language;
use course::project::Project;
use course::run::Place;
use std::io::{self, stdout, BufRead, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Change the lessons on purpose, and see what comes of it.
#[derive(Parser)]
#[command(name = "course")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make one change, and run it.
    Break {
        /// The lesson's number, for example 03.
        #[arg(value_name = "NN")]
        lesson: String,
        /// The change's name; without it, all are listed.
        change: Option<String>,
        /// Ask nothing.
        #[arg(long)]
        quiet: bool,
        /// Where: in the lab, on the kernel's driver, or on the device in user space.
        #[arg(long, value_name = "PLACE", default_value = "lab")]
        on: Place,
    },
    /// Lay an exercise out, or judge what somebody has made of it.
    Try {
        /// The exercise, for example 04-rights; those of a lesson, or all, are listed.
        #[arg(value_name = "NN[-NAME]")]
        exercise: Option<String>,
        /// Judge again whenever a file is saved, until Ctrl-C.
        #[arg(long)]
        watch: bool,
        /// Where: in the lab, on the kernel's driver, or on the device in user space.
        #[arg(long, value_name = "PLACE", default_value = "device")]
        on: Place,
    },
    /// Throw away what was made of an exercise.
    Reset {
        /// The exercise, for example 04-rights.
        #[arg(value_name = "NN-NAME")]
        exercise: String,
    },
    /// Lay out a program of one's own: mine/.
    Begin {
        #[arg(long, value_name = "LANGUAGE", default_value = "rust")]
        language: Language,
    },
    /// Judge the next step of one's own program.
    Step {
        /// Another step than the next one: its lesson and number.
        #[arg(value_name = "NN-N")]
        step: Option<String>,
        /// Judge nothing: tell the task once more.
        #[arg(long, conflicts_with = "watch")]
        task: bool,
        /// Judge again whenever a file is saved, until Ctrl-C.
        #[arg(long)]
        watch: bool,
        /// Where: in the lab, on the kernel's driver, or on the device in user space.
        #[arg(long, value_name = "PLACE", default_value = "device")]
        on: Place,
    },
    /// Judge the device's core that one writes oneself, hole by hole: mine-nic/.
    Nic {
        /// Lay it out first.
        #[arg(long)]
        begin: bool,
        /// Judge nothing: build the device around it, on which lessons run.
        #[arg(long, conflicts_with_all = ["begin", "watch", "hint"])]
        device: bool,
        /// Judge again whenever a file is saved, until Ctrl-C.
        #[arg(long)]
        watch: bool,
        /// Tell one hint more.
        #[arg(long)]
        hint: bool,
    },
    /// Tell one hint more.
    Hint {
        /// Another step than the next one.
        #[arg(value_name = "NN-N")]
        step: Option<String>,
        /// Those that were told before as well.
        #[arg(long)]
        all: bool,
    },
    /// Show how the lesson does the step, or the reference in the language of one's own program.
    Solution {
        /// Another step than the next one.
        #[arg(value_name = "NN-N")]
        step: Option<String>,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
    /// Judge all steps of programs that were handed in.
    Grade {
        /// Only the steps of this lesson.
        #[arg(long, value_name = "NN")]
        lesson: Option<String>,
        /// How long a student's builds and trials may take, in seconds, even if all of them pass.
        #[arg(long, value_name = "SECONDS", default_value_t = 1800)]
        limit: u64,
        /// Folders like mine/, or repositories with one.
        #[arg(value_name = "FOLDER", required = true)]
        students: Vec<PathBuf>,
    },
    /// Say where one is in the course, and what comes.
    Next,
    /// Say of changes whether they still come out as told.
    Prove {
        /// Only those of this lesson, or only this one; all unless some are named.
        #[arg(value_name = "NN[-CHANGE]")]
        names: Vec<String>,
        /// Write the part of each run that matters to captures/changes/, for the pages.
        #[arg(long)]
        keep: bool,
        /// Only what is tried there: lab or device.
        #[arg(long, value_name = "PLACE")]
        on: Option<Place>,
    },
}

fn main() -> ExitCode {
    let command = Arguments::parse().command;
    let result = Project::find().and_then(|project| match command {
        Command::Break { lesson, change, quiet, on } => match change {
            Some(change) => breaks::make(&project, &lesson, &change, quiet, on),
            None => breaks::list(&project, &lesson),
        },
        Command::Try { exercise, watch, on } => exercises::next(&project, exercise.as_deref(), on, watch),
        Command::Reset { exercise } => exercises::reset(&project, &exercise),
        Command::Begin { language } => steps::begin(&project, language),
        Command::Step { step, task, watch, on } => steps::step(&project, step.as_deref(), on, watch, task),
        Command::Nic { begin: true, .. } => holes::begin(&project),
        Command::Nic { device: true, .. } => holes::device(&project),
        Command::Nic { watch, hint, .. } => holes::next(&project, watch, hint),
        Command::Hint { step, all } => steps::hint(&project, step.as_deref(), all),
        Command::Solution { step, yes } => steps::solution(&project, step.as_deref(), yes),
        Command::Grade { lesson, limit, students } => {
            grade::grade(&project, lesson.as_deref(), Duration::from_secs(limit), &students)
        }
        Command::Next => next::next(&project),
        Command::Prove { names, keep, on } => prove::prove(&project, &names, on, keep),
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

/// What somebody types behind a prompt.
fn typed(prompt: &str) -> Result<String> {
    write!(stdout(), "{prompt}")?;
    stdout().flush()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).context("cannot read what you type")?;
    Ok(line.trim().to_owned())
}
