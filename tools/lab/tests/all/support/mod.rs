//! What the lab tests share: running. What to ask about a run is in tools/testkit/src/ran.rs.

pub mod invented;
pub mod served;

use lab::{Ended, Lab, Outcome, Run};
use rustix::process::{kill_process_group, Pid, Signal};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
pub use testkit::ran::example;

/// So many runs of a test go side by side, each with 200 MB for its machines: they wait most of their time.
const SIDE_BY_SIDE: usize = 2;

/// A run that has ended.
pub type Check = testkit::ran::Check<Outcome>;

/// Runs it to its end.
pub fn check(run: Run) -> Check {
    let outcome = Lab::open().unwrap().run(&run).unwrap_or_else(|error| panic!("{error:#}"));
    Check::read(&outcome.file(), outcome)
}

/// Runs both sides of a lesson.
pub fn lesson(number: &str, server: &str, client: &str) -> Check {
    check(run_of(number, server, client))
}

/// Both sides of a lesson, to be run.
pub fn run_of(number: &str, server: &str, client: &str) -> Run {
    Run::lesson(number).unwrap().server_args(server).client_args(client)
}

/// Both programs of a run ended with 0; or it was rping, whose main thread destroys the event channel while another one waits
/// on it: that one says so then, and ends with 255.
pub fn ended_well(outcome: &Outcome) -> bool {
    let last = |ended: &Ended| ended.log.last().map(String::as_str) == Some("rdma_get_cm_event: Bad file descriptor");
    outcome.nodes.iter().all(|ended| ended.exit == Some(0) || (ended.exit == Some(255) && last(ended)))
}

/// Looks at all cases, some of them at a time.
pub fn each<C: Sync>(cases: &[C], look: impl Fn(&C) + Sync) {
    testkit::each::each(SIDE_BY_SIDE, cases, look);
}

/// `rdma resource show` said the same before and after; and it said something, for it was asked on a machine with rxe0.
pub fn assert_nothing_left_open(ended: &Ended, what: &str) {
    assert!(ended.before.join("").contains("rxe0"), "`rdma resource show` says {:?}: {what}", ended.before);
    assert_eq!(ended.before, ended.after, "something is left open: {what}");
}

/// A script that can be run at once. `install` writes it, and not this process: a program that another test starts at
/// the same moment would hold the open file until its exec, and the kernel runs no file that is open for writing.
pub fn write_script(path: &Path, text: &str) {
    let mut install = Command::new("install");
    let mut child = install.args(["-m", "755", "/dev/stdin"]).arg(path).stdin(Stdio::piped()).spawn().unwrap();
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

/// A file of this folder.
pub fn read_lab(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
