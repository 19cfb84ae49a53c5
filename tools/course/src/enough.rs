//! A run whose outcome is known is ended: nobody waits for a program that would go on for ever.
//!
//! The run file grows while the programs run, so it tells how far they have come.

use anyhow::Result;
use judge::expected::{Expected, What};
use judge::{judge, seen, Finding};
use rustix::process::{kill_process, Pid, Signal};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

/// How often we look.
const LOOK: Duration = Duration::from_millis(100);

/// How long nothing may happen when all has been seen: what is under way comes to its end.
const MOMENT: Duration = Duration::from_secs(1);

/// Runs the lab or the device until it ends, or until its file shows all that is expected of this many nodes, if that can be known
/// before the end. Also whether it was ended.
pub(crate) fn run(mut command: Command, file: &Path, expected: &[Expected], nodes: usize) -> Result<(Output, bool)> {
    let (begun, can_tell) = (SystemTime::now(), can_be_known(expected, nodes));
    let mut child = command.spawn()?;
    let (mut was_enough, mut seen) = (false, (0, Instant::now(), false));
    // It prints one line, so the pipe holds it.
    while can_tell && !was_enough && child.try_wait()?.is_none() {
        sleep(LOOK);
        // What is there from a run before is not looked at.
        let data = fs::metadata(file).ok().filter(|data| data.modified().is_ok_and(|at| at >= begun));
        match data.map(|data| data.len()).filter(|length| *length != seen.0) {
            Some(length) => seen = (length, Instant::now(), shows_all(file, expected)),
            None => was_enough = seen.2 && seen.1.elapsed() >= MOMENT,
        }
    }
    if was_enough {
        kill_process(Pid::from_child(&child), Signal::TERM)?;
    }
    Ok((child.wait_with_output()?, was_enough))
}

/// Whether the outcome can be known before the end: nobody asks how one of the nodes ends, and all that is asked is to be there. How
/// often something comes, and that something never does, is known at the end alone.
fn can_be_known(expected: &[Expected], nodes: usize) -> bool {
    let is_certain = |expected: &Expected| expected.times.is_none() && !expected.or;
    let ends = expected.iter().filter(|expected| matches!(expected.what, What::Exit(_))).count();
    expected.len() > ends && ends < nodes && expected.iter().all(is_certain)
}

fn shows_all(file: &Path, expected: &[Expected]) -> bool {
    // It is being written: what is not whole yet will be at the next look.
    let findings = fs::read(file).ok().and_then(|run| judge(&seen::read(&run).ok()?, expected).ok());
    findings.is_some_and(|findings| findings.iter().all(Finding::is_met))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_must_not_come_and_what_is_counted_is_known_at_the_end() {
        let expected =
            |lines: &[&str]| lines.iter().map(|line| line.to_string().try_into().unwrap()).collect::<Vec<_>>();
        let waits = expected(&["client sends: REQ", "client exits: 1"]);
        assert!(can_be_known(&waits, 2) && !can_be_known(&waits, 1));
        for lines in
            [&[][..], &["client exits: 1"], &["client sends: REQ", "server never says: x"], &["client says 2 times: x"]]
        {
            assert!(!can_be_known(&expected(lines), 2), "{lines:?}");
        }
    }
}
