//! Keeps code, docs and captures in step. The Makefile calls it; nothing here is part of the lessons.

mod docs;
mod record;
mod screenshots;
mod site;

use anyhow::{ensure, Context, Result};
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const USAGE: &str = "\
Usage: xtask COMMAND
  record [NN]   run every lesson, or this one, in the lab and renew the bundled captures
  docs          write the generated parts of the documentation
  docs --check  change nothing; say what is not true
  site          build the book of the documentation into target/site
  screenshots   take the documentation's pictures of Wireshark anew";

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = |work: &dyn Fn(&Path) -> Result<()>| work(&root()?);
    let result = match words.as_slice() {
        ["record"] => done(&|root| record::record(root, None)),
        ["record", lesson] => done(&|root| record::record(root, Some(lesson))),
        ["docs"] => done(&docs::write),
        ["docs", "--check"] => done(&docs::check),
        ["site"] => done(&|root| site::build(root, &target(root), env::var("REPOSITORY").ok().as_deref())),
        ["screenshots"] => done(&screenshots::take),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(1)
        }
    }
}

/// The repository's folder.
fn root() -> Result<PathBuf> {
    Ok(run::repository::root()?)
}

/// Where cargo, and all that is built here, puts its results.
fn target(root: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// What a program prints.
fn output(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot run {program}; it has to be installed"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program} failed: {}", errors.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
