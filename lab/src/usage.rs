//! Asking lessons whether they understand their command lines, before a machine is started for them.

use crate::interrupt::Stopped;
use crate::run::Run;
use anyhow::{bail, ensure, Context, Result};
use std::path::Path;
use std::process::{Command, Stdio};

/// The exit status of a program that does not understand its command line.
const USAGE: i32 = 2;

/// Names a lesson that was not built, and an option that it does not know.
pub fn check_lessons(run: &Run, binaries: &Path) -> Result<()> {
    let commands = run.nodes.iter().filter_map(|node| node.command.as_ref());
    for command in commands.filter(|command| command.starts_with("lesson-")) {
        let name = command.split(' ').next().unwrap_or_default();
        let program = binaries.join(name);
        ensure!(program.exists(), "{} does not exist; build it with `cargo build -p {name}`", program.display());
        // What only a shell understands is left to the machine's.
        if command.contains(['$', '`', ';', '|', '&', '<', '>']) {
            continue;
        }
        let words = shlex::split(command).with_context(|| format!("a quote is not closed in `{command}`"))?;
        // With `--help` behind them: before it helps it complains about what it does not understand, and does nothing else.
        // A program that cannot be run here may still run in the machine, which has all that it needs.
        let asked = Command::new(program).args(&words[1..]).arg("--help").stdin(Stdio::null()).output();
        if let Some(output) = asked.ok().filter(|output| output.status.code() == Some(USAGE)) {
            bail!(Stopped::Usage(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
    }
    Ok(())
}
