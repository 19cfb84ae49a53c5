//! What a run leaves behind, however it ends: nothing. And programs that may have few descriptors.

use super::support::{each, programs, target, CLIENT, DEVICE, SERVER};
use rustix::process::{kill_process, prlimit, Pid, Resource, Rlimit, Signal};
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use testkit::falls::{each_falls, explained, processes, waits_until};

/// How many processes have a command line that holds this.
fn with(mark: &str) -> usize {
    processes("cmdline", |line| line.contains(mark)).len()
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

/// A run that ends at its deadline, and whose program leaves others behind, each of which would sleep for this many seconds. A
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
        let ended = runner.wait().unwrap();
        let by_itself = (signal != Signal::KILL).then_some(128 + signal.as_raw());
        assert_eq!(ended.code(), by_itself, "{ended}: it ends in order, and says why");
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

#[test]
fn a_signal_that_kills_a_program_is_named_in_the_run_and_explained() {
    let check = programs("sleep 1", "kill -SEGV $$").exits(0, 139);
    assert!(check.outcome.contains("killed by signal 11 (SIGSEGV)"), "{}", check.outcome);
    let told = explained(&check.file);
    assert!(told.contains("The program on client was killed by signal 11 (SIGSEGV)"), "{told}");
}

/// Who is ended, and by what; and what `wire explain` says about it. The runner crashes with SIGABRT, because Rust's own handler
/// returns from a SIGSEGV that somebody has sent. Without its guardian a run goes on, here until its deadline.
const FALLS: [(&str, Signal, &str); 13] = [
    ("runner", Signal::TERM, "SIGTERM ended the run while the server and the client were running"),
    ("runner", Signal::INT, "SIGINT ended the run"),
    ("runner", Signal::ABORT, "the file ends without an end"),
    ("runner", Signal::KILL, "the file ends without an end"),
    (SERVER, Signal::SEGV, "server was killed by signal 11 (SIGSEGV)"),
    (SERVER, Signal::TERM, "server was killed by signal 15 (SIGTERM)"),
    (SERVER, Signal::KILL, "server was killed by signal 9 (SIGKILL)"),
    (CLIENT, Signal::SEGV, "client was killed by signal 11 (SIGSEGV)"),
    (CLIENT, Signal::TERM, "client was killed by signal 15 (SIGTERM)"),
    (CLIENT, Signal::KILL, "client was killed by signal 9 (SIGKILL)"),
    ("guardian", Signal::ABORT, "the server had not ended after 3 s, and is ended"),
    ("guardian", Signal::TERM, "the server had not ended after 3 s, and is ended"),
    ("guardian", Signal::KILL, "the server had not ended after 3 s, and is ended"),
];

fn recorded(name: &str) -> PathBuf {
    target().join("device/runs").join(name).join("wire.pcapng")
}

/// The processes whose command lines have all of these words.
fn having(words: &[&str]) -> Vec<i32> {
    processes("cmdline", |line| words.iter().all(|word| line.split('\0').any(|known| known == *word)))
}

/// The server's program and the client's of a run that would go on for a long time; nobody else's have this count.
fn both(count: &str) -> [Option<i32>; 2] {
    ["-s", "-c"].map(|side| having(&["rping", side, count]).first().copied())
}

/// Such a run, as soon as both programs do. A crash leaves no core dump.
fn runs(name: &str, count: &str, prepare: &str) -> Child {
    let mut runner = Command::new("sh");
    runner.args(["-c", &format!("{prepare}; ulimit -c 0; exec env --default-signal=INT \"$0\" \"$@\""), DEVICE]);
    runner.args(["exec", "--quiet", "--grace=0", "--deadline=3", "--name", name]);
    runner.arg(format!("--server=rping -s -C {count}")).arg(format!("--client=rping -c -a $SERVER -C {count}"));
    let runner = runner.stdout(Stdio::piped()).spawn().unwrap();
    waits_until("both run", || both(count).iter().all(Option::is_some));
    runner
}

/// One of a run's programs falls after this many milliseconds.
fn falls(number: usize, (victim, signal, told): (&str, Signal, &str), moment: u64) {
    let (name, count) = (format!("test-falls-{number}"), (2_000_000 + number).to_string());
    let mut runner = runs(&name, &count, "true");
    std::thread::sleep(Duration::from_millis(moment));
    let [server, client] = both(&count);
    let guardians = || -> Vec<i32> {
        let parent = |process: &i32| fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        let ours = runner.id().to_string();
        let is_ours = |process: &i32| {
            parent(process).rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)) == Some(ours.as_str())
        };
        having(&["guard"]).into_iter().filter(is_ours).collect()
    };
    let pid = match victim {
        "runner" => Some(runner.id() as i32),
        "guardian" => guardians().first().copied(),
        SERVER => server,
        _ => client,
    };
    kill_process(Pid::from_raw(pid.unwrap()).unwrap(), signal).unwrap();
    runner.wait().unwrap();
    waits_until("nothing is left", || both(&count) == [None; 2]);
    let said = explained(&recorded(&name));
    assert!(said.contains(told), "{victim}, {signal:?} after {moment} ms, not {told:?}: {said}");
}

#[test]
fn whoever_falls_the_record_is_whole_and_says_so() {
    each_falls(&FALLS, 1, 400, |number, fall, moment| falls(number, *fall, moment));
}

#[test]
#[ignore = "takes long: make test-long"]
fn whoever_falls_at_twenty_moments_the_record_is_whole() {
    each_falls(&FALLS, 20, 400, |number, fall, moment| falls(1000 + number, *fall, moment));
}

/// A limit for the length of files is a full disk for whoever ignores SIGXFSZ. It comes when packets flow: what the devices share is
/// made of files, too. How much room is left for the last words is another amount each time.
#[test]
fn a_run_whose_disk_is_full_says_so_and_its_file_has_all_that_found_room() {
    each(&[0, 1, 2, 3, 4, 5], |number| {
        let (name, count) =
            (format!("test-full-disk-{number}"), (1_900_000 + number + 10 * std::process::id()).to_string());
        let file = recorded(&name);
        let _ = fs::remove_file(&file);
        let length = || fs::metadata(&file).map_or(0, |file| file.len());
        let runner = runs(&name, &count, "trap '' XFSZ");
        waits_until("packets flow", || length() > 50_000);
        let most = length() + 100_000;
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        prlimit(Some(Pid::from_child(&runner)), Resource::Fsize, limit).unwrap();
        let output = runner.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(output.status.code(), Some(3), "{text}");
        let said = explained(&file);
        assert!(said.contains("Connection 1: ") && !said.contains("without an end"), "{said}");
        for told in [&text, &said] {
            assert!(told.contains("wire.pcapng: File too large (os error 27). What happened before is in"), "{told}");
            assert!(told.contains("make room on that disk and run it again to have the rest"), "{told}");
        }
        assert!((most - 2000..=most).contains(&length()), "{} of {most} bytes are used", length());
    });
}
