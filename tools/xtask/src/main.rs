//! Keeps code, docs and captures in step. The Makefile calls it; nothing here is part of the lessons.

mod docs;
mod record;
mod screenshots;
mod site;

use anyhow::{ensure, Context, Result};
use clap::{Parser, Subcommand};
use std::env;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// Keeps code, docs and captures in step.
#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    work: Work,
}

#[derive(Subcommand)]
enum Work {
    /// Run every lesson in the lab, and renew the bundled captures
    Record {
        /// Only this lesson
        #[arg(value_name = "NN")]
        lesson: Option<String>,
    },
    /// Write the generated parts of the documentation
    Docs {
        /// Change nothing; say what is not true
        #[arg(long)]
        check: bool,
    },
    /// Build the book of the documentation into target/site
    Site,
}

fn main() -> ExitCode {
    match work(Options::parse().work) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn work(work: Work) -> Result<()> {
    let root = run::repository::root()?;
    match work {
        Work::Record { lesson } => record::record(&root, lesson.as_deref()),
        Work::Docs { check: true } => docs::check(&root),
        Work::Docs { check: false } => docs::write(&root),
        Work::Site => {
            let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
            site::build(&root, &target, env::var("REPOSITORY").ok().as_deref())
        }
    }
}

/// What a program prints.
fn output(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot run {program}; it has to be installed"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program} failed: {}", errors.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
