//! The bench: its scripts, what comes of them, and what a page gets.

#![allow(clippy::unwrap_used)] // A test may end with a panic.

mod challenges;
mod changes;
mod page;
mod random;
mod runs;
mod scripts;
mod stories;

use run::capture::Reader;
use wire::explain::{explain, Explanation};
use workbench::bench::Run;
use workbench::shown;

/// Runs a script that's understood.
fn run(script: &str) -> Run {
    shown::run(script).unwrap_or_else(|error| panic!("line {}: {}\n{script}", error.line, error.says)).1
}

fn explained(run: &Run) -> Explanation {
    explain(&mut Reader::new(run.record.file.as_slice()).unwrap()).unwrap()
}
