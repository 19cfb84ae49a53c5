//! Asking a lesson whether it understands its command line.

use anyhow::{Context, Result};
use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};

/// The exit status of a program that does not understand its command line.
const USAGE: i32 = 2;

/// A command line that is not understood, by a program or by the lab, and what is said about it.
#[derive(Debug)]
pub struct Usage(String);

impl Usage {
    pub(crate) fn new(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.trim())
    }
}

impl std::error::Error for Usage {}

/// Runs `program` here with the arguments of `command`, and `--help` behind them: before it helps it complains about what it
/// does not understand, and it does nothing else.
///
/// # Errors
/// [`Usage`], or a quote is not closed.
pub fn check(program: &Path, command: &str) -> Result<()> {
    // What only a shell understands is left to the machine's.
    if command.contains(['$', '`', ';', '|', '&', '<', '>']) {
        return Ok(());
    }
    let words = shlex::split(command).with_context(|| format!("a quote is not closed in `{command}`"))?;
    let mut asked = Command::new(program);
    asked.args(&words[1..]).arg("--help").stdin(Stdio::null());
    // A program that cannot be run here may still run in the machine, which has all that it needs.
    let Ok(output) = asked.output() else { return Ok(()) };
    if output.status.code() == Some(USAGE) {
        return Err(Usage(String::from_utf8_lossy(&output.stderr).into_owned()).into());
    }
    Ok(())
}
