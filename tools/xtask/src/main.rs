//! Keeps code, docs and captures in step. The Makefile calls it; nothing here is part of the lessons.

mod docs;
mod record;
mod screenshots;
mod site;

use anyhow::Result;
use clap::{Parser, Subcommand};
use std::env;
use std::path::Path;
use std::process::ExitCode;

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
    // All paths are those of the repository.
    env::set_current_dir(run::files::root()?)?;
    match work {
        Work::Record { lesson } => record::record(lesson.as_deref()),
        Work::Docs { check: true } => docs::check(),
        Work::Docs { check: false } => docs::write(),
        Work::Site => {
            let target = env::var_os("CARGO_TARGET_DIR").unwrap_or("target".into());
            site::build(Path::new(&target), env::var("REPOSITORY").ok().as_deref())
        }
    }
}
