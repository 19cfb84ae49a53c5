//! Keeps code, docs and captures in step. The Makefile calls it; nothing here is part of the lessons.

mod block;
mod docs;
mod record;
mod screenshots;
mod versions;

use anyhow::Result;
use clap::{Arg, ArgAction, Command};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn command() -> Command {
    let record = Command::new("record").about("Run every lesson in the lab and renew the bundled captures");
    let check = Arg::new("check").long("check").action(ArgAction::SetTrue).help("Change nothing; say what is not true");
    let docs = Command::new("docs").about("Write the generated parts of the documentation").arg(check);
    let pictures = Command::new("screenshots").about("Take the documentation's pictures of Wireshark anew");
    Command::new("xtask")
        .about("Work on this repository")
        .subcommand_required(true)
        .subcommands([record, docs, pictures])
}

fn main() -> ExitCode {
    let matches = command().get_matches();
    let result = match matches.subcommand() {
        Some(("record", _)) => record::record(),
        Some(("docs", options)) if options.get_flag("check") => docs::check(&root()),
        Some(("screenshots", _)) => screenshots::take(&root()),
        Some(("docs", _)) => docs::write(&root()),
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
