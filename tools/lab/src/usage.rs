//! Asking lessons whether they understand their command lines, before a machine is started for them.

use crate::interrupt::{Interrupt, Stopped};
use crate::run::Run;
use anyhow::{bail, ensure, Context, Result};
use std::io::Read;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

/// The exit status of a program that does not understand its command line.
const USAGE: i32 = 2;
/// How long a lesson may take to say so: one that was changed may run in circles.
const LIMIT: Duration = Duration::from_secs(20);
/// So many bytes of what it says are kept, or a few more.
const MOST: usize = 64 << 10;
/// So often it is asked whether it has ended.
const MOMENT: Duration = Duration::from_millis(2);

/// Names a lesson that was not built, and an option that it does not know.
pub fn check_lessons(run: &Run, binaries: &Path, interrupt: &Interrupt) -> Result<()> {
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
        let mut asked = Command::new(program);
        asked.args(&words[1..]).arg("--help").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let Ok(mut asked) = asked.spawn() else { continue };
        let complaint = complaint(&mut asked, interrupt, Instant::now() + LIMIT);
        // Fails only if it has ended already.
        let _ = asked.kill();
        let _ = asked.wait();
        if let Some(complaint) = complaint.with_context(|| format!("cannot ask `{command}`"))? {
            bail!(Stopped::Usage(complaint));
        }
    }
    Ok(())
}

/// What a program says about its command line if it does not understand it.
fn complaint(program: &mut Child, interrupt: &Interrupt, limit: Instant) -> Result<Option<String>> {
    let mut said = Vec::new();
    if let Some(mut stderr) = program.stderr.take() {
        while hear(&mut stderr, &mut said, interrupt, limit)? {}
    }
    loop {
        // Asked first: who still spoke at the limit ends with the next word, for nobody listens any more.
        ensure!(
            Instant::now() < limit,
            "with `--help` it has not ended in time, so it does something before it reads its command line: run it by itself"
        );
        if let Some(status) = program.try_wait().context("cannot wait for it")? {
            return Ok((status.code() == Some(USAGE)).then(|| String::from_utf8_lossy(&said).into_owned()));
        }
        interrupt.pause(MOMENT)?;
    }
}

/// Adds what comes next; false at the end, and at the limit.
fn hear(stderr: &mut ChildStderr, said: &mut Vec<u8>, interrupt: &Interrupt, limit: Instant) -> Result<bool> {
    interrupt.wait(&[(stderr.as_fd(), false)], limit)?;
    if Instant::now() >= limit {
        return Ok(false);
    }
    let mut bytes = [0; 4096];
    let count = stderr.read(&mut bytes).context("cannot hear what it says")?;
    if said.len() < MOST {
        said.extend_from_slice(&bytes[..count]);
    }
    Ok(count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shell that does this, whatever is asked of it.
    fn asked(script: &str) -> Result<Option<String>> {
        let mut shell = Command::new("sh");
        let mut shell = shell.args(["-c", script]).stderr(Stdio::piped()).spawn().unwrap();
        let answer = complaint(&mut shell, &Interrupt::default(), Instant::now() + Duration::from_secs(1));
        shell.kill().unwrap();
        shell.wait().unwrap();
        answer
    }

    #[test]
    fn a_lesson_has_so_much_time_to_complain() {
        assert_eq!(asked("echo what >&2; exit 2").unwrap().as_deref(), Some("what\n"));
        assert_eq!(asked("echo what >&2; exit 1").unwrap(), None);
        for endless in ["exec sleep 60", "exec 2>&-; exec sleep 60", "while :; do echo and so on >&2; done"] {
            assert!(asked(endless).unwrap_err().to_string().contains("has not ended in time"), "{endless}");
        }
    }
}
