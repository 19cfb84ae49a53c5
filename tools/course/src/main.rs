//! `course break` changes a lesson on purpose, and shows what happens. `course try` judges how you repair one.
//! `course nic` judges your own NIC, hole by hole. `course begin`, `step`, `hint` and `solution` are for a program of your own, step by step.
//! `course next` says where you are. `course prove` says whether everything still comes out as the pages say.
//!
//! Exit status: 0 everything came out as its page says, or the exercise is solved, 1 something didn't, 2 wrong usage, 3 nothing could be
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

/// Change the lessons on purpose, and see what happens
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
        /// The change's name; without it, list them all
        change: Option<String>,
        /// Don't ask for a prediction
        #[arg(long)]
        quiet: bool,
        /// Where: in the lab, on the kernel's driver, or on the device in user space.
        #[arg(long, value_name = "PLACE", default_value = "lab")]
        on: Place,
    },
    /// Lay out an exercise, or judge your answer
    Try {
        /// The exercise, for example 04-rights; with a lesson's number, or without one, list them
        #[arg(value_name = "NN[-NAME]")]
        exercise: Option<String>,
        /// Judge again whenever a file is saved, until Ctrl-C.
        #[arg(long)]
        watch: bool,
        /// Where: in the lab, on the kernel's driver, or on the device in user space.
        #[arg(long, value_name = "PLACE", default_value = "device")]
        on: Place,
    },
    /// Throw away your answer to an exercise
    Reset {
        /// The exercise, for example 04-rights.
        #[arg(value_name = "NN-NAME")]
        exercise: String,
    },
    /// Lay out a program of your own in mine/
    Begin {
        #[arg(long, value_name = "LANGUAGE", default_value = "rust")]
        language: Language,
    },
    /// Judge the next step of your own program
    Step {
        /// A step other than the next one, by its lesson and number
        #[arg(value_name = "NN-N")]
        step: Option<String>,
        /// Judge nothing, but show the task again
        #[arg(long, conflicts_with = "watch")]
        task: bool,
        /// Judge again whenever a file is saved, until Ctrl-C.
        #[arg(long)]
        watch: bool,
        /// Where: in the lab, on the kernel's driver, or on the device in user space.
        #[arg(long, value_name = "PLACE", default_value = "device")]
        on: Place,
    },
    /// Judge the NIC that you write in mine-nic/, hole by hole
    Nic {
        /// Lay it out first
        #[arg(long)]
        begin: bool,
        /// Judge nothing, but build the device around it, on which lessons run
        #[arg(long, conflicts_with_all = ["begin", "watch", "hint"])]
        device: bool,
        /// Judge again whenever a file is saved, until Ctrl-C.
        #[arg(long)]
        watch: bool,
        /// Show one more hint
        #[arg(long)]
        hint: bool,
    },
    /// Show one more hint
    Hint {
        /// A step other than the next one
        #[arg(value_name = "NN-N")]
        step: Option<String>,
        /// Also show the earlier hints
        #[arg(long)]
        all: bool,
    },
    /// Show how the lesson does the step, or the reference in your program's language
    Solution {
        /// A step other than the next one
        #[arg(value_name = "NN-N")]
        step: Option<String>,
        /// Don't ask whether you're sure
        #[arg(long)]
        yes: bool,
    },
    /// Judge all steps of programs that were handed in
    Grade {
        /// Only the steps of this lesson.
        #[arg(long, value_name = "NN")]
        lesson: Option<String>,
        /// How long a student's builds and trials may take, in seconds, even if all of them pass.
        #[arg(long, value_name = "SECONDS", default_value_t = 1800)]
        limit: u64,
        /// Where the results go. Whoever grades twice at the same time names two folders
        #[arg(long, value_name = "FOLDER")]
        to: Option<PathBuf>,
        /// Folders like mine/, or repositories that contain one
        #[arg(value_name = "FOLDER", required = true)]
        students: Vec<PathBuf>,
    },
    /// Show where you are in the course, and what comes next
    Next,
    /// Check that changes still come out as their pages say
    Prove {
        /// Only the changes of this lesson, or only this one; without a name, all of them
        #[arg(value_name = "NN[-CHANGE]")]
        names: Vec<String>,
        /// Write the part of each run that matters to captures/changes/, for the pages.
        #[arg(long)]
        keep: bool,
        /// Only what is tried in this place: lab or device
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
        Command::Grade { lesson, limit, to, students } => {
            grade::grade(&project, lesson.as_deref(), Duration::from_secs(limit), to.as_deref(), &students)
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

/// What somebody types after a prompt.
fn typed(prompt: &str) -> Result<String> {
    write!(stdout(), "{prompt}")?;
    stdout().flush()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).context("cannot read what you type")?;
    Ok(line.trim().to_owned())
}
