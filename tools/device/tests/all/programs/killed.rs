//! What a run leaves behind, however it ends: nothing. And programs that may have few descriptors.

use super::support::{programs, DEVICE};
use rustix::process::{kill_process, Pid, Signal};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Processes whose command line holds this.
fn with(mark: &str) -> usize {
    let lines = fs::read_dir("/proc").unwrap().flatten().map(|entry| fs::read(entry.path().join("cmdline")));
    lines.flatten().filter(|line| String::from_utf8_lossy(line).contains(mark)).count()
}

fn waits_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn its_programs_die_with_a_runner_that_is_killed() {
    // A count that no other rping has.
    let count = format!("-C {}", 1_000_000 + std::process::id());
    let mark = count.replace(' ', "\0");
    let mut runner = Command::new(DEVICE)
        .args(["exec", "--quiet", "--name=test-killed", "--server", &format!("rping -s {count}")])
        .args(["--client", &format!("rping -c -a $SERVER {count}")])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    waits_until("both run", || with(&mark) == 2);
    runner.kill().unwrap();
    runner.wait().unwrap();
    waits_until("both are gone", || with(&mark) == 0);
    let name = format!("@rdma-device-{}", runner.id());
    let sockets = fs::read_to_string("/proc/net/unix").unwrap();
    assert!(!sockets.lines().any(|line| line.ends_with(&name)), "{name} is left");
}

/// Enough on a machine under load.
const DEADLINE: u32 = 60;

/// A run that ends at its deadline, and whose program leaves others behind, each of which would sleep for so many seconds. A
/// script's background job ignores SIGINT, and hands that on: `env` undoes it.
fn leaves_behind(name: &str, deadline: u32, seconds: u32, programs: &str) -> Command {
    let mut runner = Command::new("env");
    let line = programs.replace("SLEEP", &format!("sleep {seconds}"));
    runner.args(["--default-signal=INT", DEVICE, "exec", "--quiet"]);
    runner.args([format!("--deadline={deadline}"), format!("--name=test-{name}")]);
    runner.arg(format!("--server=sh -c {}", shlex::try_quote(&line).unwrap())).stdout(Stdio::null());
    runner
}

#[test]
fn nothing_outlives_a_run() {
    let first = 1_100_000 + 10 * std::process::id();
    let cases = [
        ("background", "SLEEP & exit 0", DEADLINE, 0),
        ("daemon", "setsid -f SLEEP", DEADLINE, 0),
        ("daemons", "setsid -f sh -c '(SLEEP; true) & SLEEP; true'; (SLEEP &); exit 0", DEADLINE, 0),
        ("deadline", "trap '' TERM; SLEEP & SLEEP; SLEEP", 1, 1),
    ];
    for (seconds, (name, programs, deadline, status)) in (first..).zip(cases) {
        let ran = leaves_behind(name, deadline, seconds, programs).status().unwrap();
        assert_eq!((with(&format!("sleep\0{seconds}")), ran.code()), (0, Some(status)), "{name}");
    }
}

#[test]
fn nothing_outlives_a_runner_that_is_ended() {
    let first = 1_100_005 + 10 * std::process::id();
    for (seconds, signal) in (first..).zip([Signal::INT, Signal::TERM, Signal::KILL]) {
        let mut runner = leaves_behind("ended", DEADLINE, seconds, "(setsid -f SLEEP); SLEEP & SLEEP").spawn().unwrap();
        let mark = format!("sleep\0{seconds}");
        waits_until("all run", || with(&mark) == 3);
        kill_process(Pid::from_child(&runner), signal).unwrap();
        assert_eq!(runner.wait().unwrap().signal(), Some(signal.as_raw()));
        waits_until("all are gone", || with(&mark) == 0);
    }
}

/// Who is left by its parent becomes the runner's child.
#[test]
fn orphans_that_have_ended_are_buried() {
    let zombies = "cat /proc/[0-9]*/stat 2>/dev/null | grep \") Z $PPID \"";
    let programs = format!("for n in 1 2 3; do (sleep 0.01 &); done; sleep 0.5; ! {zombies}");
    let ran = Command::new(DEVICE).args(["run", "--name=test-orphans", "--", "sh", "-c", &programs]).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
}

#[test]
fn programs_with_few_descriptors_have_a_device() {
    let limited = |command: &str| format!("ulimit -n 256; exec {command}");
    programs(&limited("rping -s -C 3"), &limited("rping -c -a $SERVER -C 3")).exits(0, 0);
}
