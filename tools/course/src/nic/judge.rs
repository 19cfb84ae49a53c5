//! The first rung of the judge: recorded packets, in process. It is built with the learner's NIC, by cargo alone, and runs for a
//! moment.

use crate::nic::hole::Hole;
use crate::project::Project;
use anyhow::{bail, Context, Result};
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

/// The judge ends itself before that, and says where it was.
const DEADLINE: Duration = Duration::from_secs(8);
const LOOK: Duration = Duration::from_millis(5);
/// The exit status of a program in Rust that has panicked.
const PANICKED: i32 = 101;

/// The verdicts on these holes, in their order; as many are judged at a time as this machine has processors.
pub fn all<'a>(
    project: &'a Project,
    program: &'a Path,
    holes: &'a [Hole],
) -> impl Iterator<Item = Result<Verdict>> + 'a {
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
pub struct Verdict {
    pub is_right: bool,
    pub seen: String,
}

/// Judges a hole.
pub fn judge(project: &Project, program: &Path, hole: &Hole) -> Result<Verdict> {
    let mut command = Command::new(program);
    command.arg(project.root.join("captures")).arg(hole.name.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
    let (said, complaint) = (reader(child.stdout.take()), reader(child.stderr.take()));
    let status = ended(&mut child)?;
    let (said, complaint) = (said.join().unwrap_or_default(), complaint.join().unwrap_or_default());
    let seen = match status {
        Some(0) => return Ok(Verdict { is_right: true, seen: said.trim_end().to_owned() }),
        Some(1) => said.trim_end().to_owned(),
        Some(PANICKED) => format!("It panics:\n{}", complaint.trim_end()),
        Some(_) => bail!("{}", complaint.trim_end()),
        None => format!("It did not end within {} seconds: something goes in circles.", DEADLINE.as_secs()),
    };
    Ok(Verdict { is_right: false, seen })
}

/// Its exit status; None if it had to be ended.
fn ended(child: &mut Child) -> Result<Option<i32>> {
    let end = Instant::now() + DEADLINE;
    while Instant::now() < end {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status.code().unwrap_or(PANICKED)));
        }
        sleep(LOOK);
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

/// Reads while the program runs: it must not wait for us.
fn reader(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut pipe) = pipe {
            // What was read before an error is told.
            let _ = pipe.read_to_end(&mut text);
        }
        String::from_utf8_lossy(&text).into_owned()
    })
}
