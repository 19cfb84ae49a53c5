//! Where the programs of strangers run: bubblewrap (bwrap(1)), which shows them the machine's files to read, gives them processes,
//! a network and a /tmp of their own, and ends all of that with them; with limits of time, memory, processes and files.
//!
//! What they can do is to waste their own time. A program's RDMA goes through the device's supervisor, which is outside.

use crate::project::Project;
use anyhow::{ensure, Context, Result};
use std::path::Path;
use std::process::{Command, Stdio};

/// What a program may use: seconds of processor time, bytes of memory for a process, processes, bytes of a file.
const RUN: [&str; 4] = ["--cpu=20", "--as=2147483648", "--nproc=64", "--fsize=67108864"];
/// The same for a compiler.
const BUILD: [&str; 4] = ["--cpu=300", "--as=8589934592", "--nproc=512", "--fsize=1073741824"];
/// Seconds that a build may take.
const BUILD_TIME: &str = "300";
/// Bytes of /tmp.
const TMP: &str = "67108864";

/// The words before a command that put it into the sandbox. It may write to these folders alone.
fn words(project: &Project, limits: [&str; 4], writable: &[&Path]) -> Vec<String> {
    let mut words: Vec<String> =
        ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--ro-bind", "/", "/"]
            .into_iter()
            .chain(["--dev", "/dev", "--proc", "/proc", "--size", TMP, "--tmpfs", "/tmp"])
            .map(str::to_owned)
            .collect();
    // They may lie below /tmp.
    let read = [&project.root, &project.target].into_iter().map(|folder| ("--ro-bind", folder.as_path()));
    for (how, folder) in read.chain(writable.iter().map(|folder| ("--bind", *folder))) {
        let folder = folder.display().to_string();
        words.extend([how.to_owned(), folder.clone(), folder]);
    }
    words.extend(["--", "prlimit"].into_iter().chain(limits).map(str::to_owned));
    words
}

/// A command of a program as it is run in the sandbox.
pub fn wrapped(project: &Project, command: &str) -> String {
    format!("{} {command}", program(project).join(" "))
}

/// The words before a program. The kernel limits nothing of root's: there it runs as nobody.
fn program(project: &Project) -> Vec<String> {
    const NOBODY: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let nobody = if rustix::process::getuid().is_root() { &NOBODY[..] } else { &[] };
    nobody.iter().map(|word| (*word).to_owned()).chain(words(project, RUN, &[])).collect()
}

/// A compiler in the sandbox, which may write to these folders.
pub fn compiler(project: &Project, program: &str, writable: &[&Path]) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", BUILD_TIME]).args(words(project, BUILD, writable)).arg(program);
    command
}

/// Whether programs can be shut in here.
///
/// # Errors
/// What is missing, and what to do.
pub fn check(project: &Project) -> Result<()> {
    let words = program(project);
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).arg("true").stdin(Stdio::null());
    let output = command.output().context("there is no bwrap: install bubblewrap")?;
    let said = String::from_utf8_lossy(&output.stderr);
    let hint = "it needs user namespaces (user_namespaces(7)): a container may forbid them";
    ensure!(output.status.success(), "bubblewrap cannot shut a program in here: {}; {hint}", said.trim());
    Ok(())
}
