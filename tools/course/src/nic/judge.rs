//! Runs the judge that was built with the learner's NIC, by cargo alone, and hears what it says. Her code runs in the judge's own
//! process, and can end it, block it or fill the memory. So only a complete report counts, and each must begin with a line that the
//! judge was given this time (`tools/nic/examples/judge/report.rs`).

use crate::nic::hole::Hole;
use crate::project::Project;
use anyhow::{bail, Context, Result};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

/// The judge ends itself when nothing goes on for five seconds, and says where it was. This is for one that can't.
const DEADLINE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(5);
/// A process that the hole has started may keep the judge's output open. Nobody waits longer for it.
const PATIENCE: Duration = Duration::from_secs(1);
/// Starts the judge with a limit for its memory, 2 GiB, where the system knows one.
const LIMITED: &str = "ulimit -v 2097152 2>/dev/null; exec \"$@\"";
/// Of what it prints as much is kept from the beginning and from the end.
const KEPT: usize = 1 << 16;
/// The exit status of a judge that can't do its work.
const UNABLE: i32 = 2;
/// And how it says so.
const COMPLAINT: &str = "judge: ";
/// The exit status of a program in Rust that has panicked.
const PANICKED: i32 = 101;

/// The verdicts on these holes, in their order; as many are judged at a time as this machine has processors.
pub fn all<'a>(
    project: &'a Project,
    program: &'a Path,
    holes: &'a [Hole],
) -> impl Iterator<Item = Result<HoleVerdict>> + 'a {
    let at_a_time = thread::available_parallelism().map_or(1, usize::from);
    holes.chunks(at_a_time).flat_map(move |holes| {
        thread::scope(|scope| {
            let judges: Vec<_> = holes.iter().map(|hole| scope.spawn(|| judge(project, program, hole))).collect();
            let ended =
                judges.into_iter().map(|judge| judge.join().unwrap_or_else(|_| bail!("the judge has panicked")));
            ended.collect::<Vec<_>>()
        })
    })
}

/// What was seen of a hole, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoleVerdict {
    pub is_right: bool,
    pub seen: String,
}

/// Judges a hole.
pub fn judge(project: &Project, program: &Path, hole: &Hole) -> Result<HoleVerdict> {
    let line = unguessable();
    let mut command = Command::new("sh");
    command.args(["-c", LIMITED, "sh"]).arg(program).arg(project.root.join("captures")).arg(hole.name.to_string());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
    let (said, complaint) = (Output::of(child.stdout.take()), Output::of(child.stderr.take()));
    // A judge that has ended already won't report, and that is told.
    child.stdin.take().map(|mut stdin| writeln!(stdin, "{line}"));
    let status = ended(&mut child)?;
    let (said, complaint) = (said.text(), complaint.text());
    if let Some(verdict) = reported(&said, &line) {
        return Ok(verdict);
    }
    if status.is_some_and(|status| status.code() == Some(UNABLE)) && complaint.starts_with(COMPLAINT) {
        bail!("{}", complaint.trim_end());
    }
    Ok(HoleVerdict { is_right: false, seen: format!("{said}{}\n{complaint}", how(status)).trim_end().to_owned() })
}

/// A line that no code can know before it's told.
fn unguessable() -> String {
    let number = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", number(), number())
}

/// The report: behind its line stand the word and what was seen. What was printed before is the hole's own.
fn reported(said: &str, line: &str) -> Option<HoleVerdict> {
    let (own, report) = said.split_once(line)?;
    let (word, seen) = report.split_once('\n')?;
    let is_right = match word.trim() {
        "right" => true,
        "wrong" => false,
        _ => return None,
    };
    Some(HoleVerdict { is_right, seen: format!("{own}{}", seen.trim_end()) })
}

/// How a judge has ended that didn't report.
fn how(status: Option<ExitStatus>) -> String {
    let Some(status) = status else {
        return format!("It did not end within {} seconds: something goes in circles.", DEADLINE.as_secs());
    };
    match (status.code(), status.signal()) {
        (Some(PANICKED), _) => "It panics:".to_owned(),
        (_, Some(signal)) => format!("It crashes: the judge was ended by signal {signal}."),
        (code, _) => format!(
            "It ends the judge's process, with exit status {}, before everything was looked at. Return a result instead.",
            code.unwrap_or_default()
        ),
    }
}

/// Its exit status; None if it had to be ended.
fn ended(child: &mut Child) -> Result<Option<ExitStatus>> {
    let end = Instant::now() + DEADLINE;
    while Instant::now() < end {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        sleep(LOOK);
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

/// What a program prints, read while it runs: it must not wait for us.
struct Output {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: thread::JoinHandle<()>,
}

impl Output {
    fn of(pipe: Option<impl Read + Send + 'static>) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let kept = bytes.clone();
        let reader = thread::spawn(move || {
            let (mut pipe, mut buffer) = (pipe, vec![0; KEPT]);
            // What was read before an error is told.
            while let Some(count) =
                pipe.as_mut().and_then(|pipe| pipe.read(&mut buffer).ok()).filter(|count| *count > 0)
            {
                let Ok(mut kept) = kept.lock() else { return };
                kept.extend_from_slice(&buffer[..count]);
                if kept.len() > 3 * KEPT {
                    let end = kept.len() - KEPT;
                    kept.drain(KEPT..end);
                }
            }
        });
        Self { bytes, reader }
    }

    /// All of it, once the program has ended.
    fn text(&self) -> String {
        let end = Instant::now() + PATIENCE;
        while !self.reader.is_finished() && Instant::now() < end {
            sleep(LOOK);
        }
        self.bytes.lock().map_or_else(|_| String::new(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
    }
}
