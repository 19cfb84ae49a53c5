//! A run of a changed lesson in the lab.

use crate::change::Change;
use crate::copy::Copy;
use crate::judge::{judge, Finding};
use crate::project::Project;
use anyhow::{ensure, Context, Result};
use serde::Deserialize;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Where the lab's server is.
const SERVER: &str = "10.47.91.1";
/// Seconds that a run may take: a learner's program may run in circles.
const DEADLINE: &str = "45";
/// Exit status of the lab: a program failed. That may be what the change is about.
const PROGRAM_FAILED: i32 = 1;

/// What came of a change.
pub enum Outcome {
    /// It does not build, and the compiler says why.
    Refused(String),
    /// It ran.
    Ran {
        /// The run file.
        file: PathBuf,
        /// What is in it.
        run: Vec<u8>,
        /// What there is of what was expected.
        findings: Vec<Finding>,
    },
}

impl Outcome {
    /// Whether all is as the change says.
    #[must_use]
    pub fn is_as_told(&self, change: &Change) -> bool {
        match (self, &change.compile) {
            (Self::Refused(said), Some(expected)) => said.contains(expected),
            (Self::Ran { findings, .. }, None) => findings.iter().all(Finding::is_met),
            _ => false,
        }
    }
}

/// Builds a copy, runs it if it can be built, and judges the run.
///
/// # Errors
/// Cargo or the lab cannot do their work; that says nothing about the change.
pub fn run(project: &Project, change: &Change, copy: &Copy, color: bool) -> Result<Outcome> {
    if let Err(said) = copy.build(project, color)? {
        return Ok(Outcome::Refused(said));
    }
    let file = run_in_lab(project, change, &copy.package)?;
    let run = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let findings = judge(&run, &change.outcome)?;
    Ok(Outcome::Ran { file, run, findings })
}

/// What `lab exec --json` prints, as far as it matters here.
#[derive(Deserialize)]
struct Report {
    file: PathBuf,
}

fn run_in_lab(project: &Project, change: &Change, program: &str) -> Result<PathBuf> {
    let lab = project.target.join("debug/lab");
    ensure!(lab.exists(), "{} does not exist; build it with `cargo build -p lab`", lab.display());
    let server = format!("{program} server {}", change.server);
    let client = format!("{program} client -a {SERVER} {}", change.client);
    let mut command = Command::new(lab);
    command.args([
        "exec",
        "--json",
        "--name",
        &change.full_name(),
        "--server",
        server.trim(),
        "--client",
        client.trim(),
    ]);
    command
        .args(["--wire", &change.wire, "--deadline", DEADLINE])
        .current_dir(&project.root)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    let output = command.output().context("cannot start the lab")?;
    let is_over = output.status.success() || output.status.code() == Some(PROGRAM_FAILED);
    ensure!(is_over, "the lab could not run it ({})", output.status);
    let report: Report = serde_json::from_slice(&output.stdout).context("the lab's report is not what it should be")?;
    Ok(report.file)
}
