//! Asks lessons whether they understand their command lines, before we start a machine for them.

use crate::interrupt::{Interrupt, Stopped};
use crate::run::Run;
use anyhow::{bail, ensure, Context, Result};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The exit status of a program that does not understand its command line.
const USAGE: i32 = 2;
/// How long a lesson may take to answer, because one that a learner has changed may never end.
const LIMIT: Duration = Duration::from_secs(20);
/// How often we check whether it has ended.
const MOMENT: Duration = Duration::from_millis(2);

/// Fails if a lesson isn't built, or doesn't know one of its options.
pub fn check_lessons(run: &Run, binaries: &Path, interrupt: &Interrupt) -> Result<()> {
    let commands = run.nodes.iter().filter_map(|node| node.command.as_ref());
    for command in commands.filter(|command| command.starts_with("lesson-")) {
        let name = command.split(' ').next().unwrap_or_default();
        let program = binaries.join(name);
        ensure!(program.exists(), "there is no {}. Build it with `cargo build -p {name}`", program.display());
        // We leave it to the machine's shell if only a shell understands it.
        if command.contains(['$', '`', ';', '|', '&', '<', '>']) {
            continue;
        }
        let words = shlex::split(command).with_context(|| format!("a quote isn't closed in `{command}`"))?;
        // We add `--help`, because a lesson then complains about what it doesn't understand, and does nothing else.
        // A program that cannot be run here may still run in the machine, which has all that it needs.
        let mut asked = Command::new(program);
        asked.args(&words[1..]).arg("--help").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let Ok(mut asked) = asked.spawn() else { continue };
        let status = end(&mut asked, interrupt, LIMIT);
        // Fails only if it has ended already.
        let _ = asked.kill();
        let said = asked.wait_with_output().map(|output| String::from_utf8_lossy(&output.stderr).into_owned());
        if status.with_context(|| format!("cannot ask `{command}`"))?.code() == Some(USAGE) {
            bail!(Stopped::Usage(said?));
        }
    }
    Ok(())
}

/// Waits for its end. A complaint fits into the pipe; one that says more is held up by it until the limit.
fn end(program: &mut Child, interrupt: &Interrupt, limit: Duration) -> Result<ExitStatus> {
    let limit = Instant::now() + limit;
    loop {
        if let Some(status) = program.try_wait().context("cannot wait for it")? {
            return Ok(status);
        }
        ensure!(
            Instant::now() < limit,
            "with `--help` it has not ended in time, so it does something before it reads its command line. Run it alone to see what"
        );
        interrupt.pause(MOMENT)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lesson_that_does_not_end_is_named() {
        for script in ["exec sleep 60", "while :; do echo and so on >&2; done"] {
            let mut shell = Command::new("sh").args(["-c", script]).stderr(Stdio::piped()).spawn().unwrap();
            let error = end(&mut shell, &Interrupt::default(), Duration::from_millis(500)).unwrap_err();
            shell.kill().unwrap();
            shell.wait().unwrap();
            assert!(error.to_string().contains("has not ended in time"), "{script}: {error}");
        }
    }
}
