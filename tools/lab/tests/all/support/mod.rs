//! What the lab tests share: running. What to ask about a run is in tools/testkit/src/ran.rs.

pub mod invented;
pub mod served;

use run::file::Event;
use rustix::process::{kill_process_group, Pid, Signal};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
pub use testkit::ran::{example, CLIENT, SERVER};

/// So many runs of a test go side by side, each with 200 MB for its machines: they wait most of their time.
const SIDE_BY_SIDE: usize = 2;

/// A run that has ended, and what the lab tells of it.
pub type Check = testkit::ran::Check<Outcome>;

#[derive(Debug, Deserialize)]
pub struct Outcome {
    pub succeeded: bool,
    pub trouble: Option<String>,
    pub folder: PathBuf,
    file: PathBuf,
    /// What each node's machine answered to `--inspect`, before and after.
    pub inspected: BTreeMap<String, [Vec<String>; 2]>,
}

/// The lab's own program.
pub fn lab() -> Command {
    Command::new(env!("CARGO_BIN_EXE_lab"))
}

/// Cargo's folder with the lab that all tests share.
pub fn shared() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_lab")).ancestors().nth(2).unwrap().to_owned()
}

/// A file of its run of this name.
pub fn recorded(run: &str, file: &str) -> PathBuf {
    shared().join("lab/runs").join(run).join(file)
}

/// A command line of the lab.
#[derive(Clone)]
pub struct Run(Vec<String>);

impl Run {
    /// Both sides of a lesson.
    pub fn lesson(number: &str, server: &str, client: &str) -> Run {
        let run = Run(vec!["run".to_owned(), format!("lesson-{number}")]);
        run.with("server-args", server).with("client-args", client)
    }

    /// Any programs.
    pub fn programs() -> Run {
        Run(vec!["exec".to_owned()])
    }

    /// One more option.
    pub fn with(mut self, option: &str, value: &str) -> Run {
        self.0.push(format!("--{option}={value}"));
        self
    }

    pub fn server(self, command: &str) -> Run {
        self.with("server", command)
    }

    pub fn client(self, command: &str) -> Run {
        self.with("client", command)
    }

    /// Runs it to its end.
    pub fn check(self) -> Check {
        static COUNT: AtomicUsize = AtomicUsize::new(1);
        let name = format!("--name=test-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let output = lab().env("RUST_LOG", "info").args(&self.0).args(["--json", &name]).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{:?}: {error}", self.0);
        let outcome: Outcome = serde_json::from_slice(&output.stdout).unwrap();
        Check::read(&outcome.file.clone(), outcome)
    }
}

/// The number of the first event that fits.
#[track_caller]
pub fn position(check: &Check, fits: impl Fn(&Event<'_>) -> bool) -> usize {
    let (mut number, mut found) = (0, None);
    check.each_event(|event| {
        number += 1;
        found = found.or(fits(event).then_some(number));
    });
    found.unwrap_or_else(|| panic!("there is no such event: {}", check.all()))
}

/// The number of the first line that begins so.
#[track_caller]
pub fn said(check: &Check, text: &str) -> usize {
    position(check, |event| matches!(event, Event::Line(line) if line.text.starts_with(text)))
}

/// Looks at all cases, some of them at a time.
pub fn each<C: Sync>(cases: &[C], look: impl Fn(&C) + Sync) {
    testkit::each::each(SIDE_BY_SIDE, cases, look);
}

/// `rdma resource show` said the same before and after on this node's machine; and it said something, for there was rxe0.
#[track_caller]
pub fn assert_nothing_left_open(check: &Check, node: &str) {
    let [before, after] = &check.outcome.inspected[node];
    assert!(before.join("").contains("rxe0"), "`rdma resource show` says {before:?}: {}", check.all());
    assert_eq!(before, after, "something is left open on the {node}: {}", check.all());
}

/// A program of this host, which may be one that only root has in the PATH.
pub fn program(name: &str) -> String {
    let output = Command::new("sh").args(["-c", "PATH=$PATH:/usr/sbin:/sbin command -v $0", name]).output().unwrap();
    assert!(output.status.success(), "there is no {name}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A script that can be run at once, in a folder that is made if need be. `install` writes it, and not this process: a program that another test starts at
/// the same moment would hold the open file until its exec, and the kernel runs no file that is open for writing.
pub fn write_script(path: &Path, text: &str) {
    let mut install = Command::new("install");
    let mut child = install.args(["-D", "-m", "755", "/dev/stdin"]).arg(path).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(format!("#!/bin/sh\n{text}\n").as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "install {}", path.display());
}

/// Waits until a file is there.
pub fn wait_for(path: &Path) {
    let limit = Instant::now() + Duration::from_secs(60);
    while !path.exists() {
        assert!(Instant::now() < limit, "{} does not appear", path.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What Ctrl-C does: the signal goes to all of a process's group.
pub fn interrupt(leader: &Child) {
    kill_process_group(Pid::from_child(leader), Signal::INT).unwrap();
}

/// The lab's machines, the server's first.
pub fn machines(lab: &Child) -> Vec<Pid> {
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", lab.id())).unwrap();
    let command = |pid: &&str| fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let machines = children.split_whitespace().filter(|pid| command(pid).contains("qemu-system"));
    machines.map(|pid| Pid::from_raw(pid.parse().unwrap()).unwrap()).collect()
}
