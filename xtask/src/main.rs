//! Keeps code, docs and captures in step. The Makefile calls it; nothing here is part of the lessons.

mod block;
mod record;
mod versions;

use anyhow::Result;
use clap::Command;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn command() -> Command {
    let record = Command::new("record").about("Run every lesson in the lab and renew the bundled captures");
    Command::new("xtask").about("Work on this repository").subcommand_required(true).subcommand(record)
}

fn main() -> ExitCode {
    let matches = command().get_matches();
    let result = match matches.subcommand_name() {
        Some("record") => record::record(),
        _ => Ok(()),
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
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// A program that cargo has built next to this one.
fn sibling(name: &str) -> Result<PathBuf> {
    let program = std::env::current_exe()?.with_file_name(name);
    anyhow::ensure!(program.exists(), "{} does not exist; build it with `cargo build --workspace`", program.display());
    Ok(program)
}
