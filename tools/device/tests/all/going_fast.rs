//! Lesson 10 with every operation and technique, and the ping-pong of the benchmarks. What is counted is what was asked for; what is measured is not looked at.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

static RUNS: AtomicUsize = AtomicUsize::new(0);

/// What lesson 10 tells of a run.
fn report(options: &str) -> String {
    program("lesson-10", "", options)
}

fn program(name: &str, server: &str, client: &str) -> String {
    let device = Path::new(env!("CARGO_BIN_EXE_device"));
    let program = device.with_file_name(name);
    assert!(program.exists(), "build it: cargo build --workspace");
    let name = format!("test-going-fast-{}", RUNS.fetch_add(1, Ordering::Relaxed));
    let said = Path::new(env!("CARGO_TARGET_TMPDIR")).join(&name);
    let (program, file) = (program.display(), said.display());
    let options = client;
    let client = format!("sh -c 'RUST_LOG=off {program} client -a $SERVER {options} >{file}'");
    let server = format!("env RUST_LOG=off {program} server {server}");
    let run = ["exec", "--quiet", "--name", &name, "--server", &server, "--client", &client];
    let output = Command::new(device).args(run).output().unwrap();
    let text = fs::read_to_string(&said).unwrap() + &String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{options}: {text}");
    text
}

fn number(line: &str, name: &str) -> u64 {
    let word = line.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    word.unwrap_or_else(|| panic!("no {name}: {line}")).parse().unwrap()
}

#[test]
fn every_operation_in_every_way_to_wait() {
    for op in ["write", "send", "read", "fetch-add"] {
        for wait in ["poll", "sleep", "hybrid"] {
            let line = report(&format!("--op {op} --wait {wait} --count 50 --depth 4"));
            assert_eq!((number(&line, "posts"), number(&line, "completions")), (50, 50), "{line}");
        }
    }
}

#[test]
fn fewer_posts_and_completions_for_as_many_requests() {
    let line = report("--count 100 --depth 16 --batch 8 --signal-every 5");
    // Batches of 8, and what is left; one completion for five.
    assert_eq!((number(&line, "posts"), number(&line, "completions")), (13, 20), "{line}");
    let line = report("--count 101 --depth 16 --signal-every 16 --inline");
    assert_eq!((number(&line, "posts"), number(&line, "completions")), (101, 7), "{line}");
    report("--count 100 --depth 4 --mrs each");
}

#[test]
fn there_and_back_as_the_benchmarks_have_it() {
    for options in ["--op write", "--op send --wait sleep", "--op send --signal-every 8"] {
        let line = program("pingpong", &format!("--turns 50 {options}"), &format!("--turns 50 {options}"));
        assert_eq!(number(&line, "count"), 50, "{line}");
    }
}

#[test]
fn with_credits_no_message_finds_no_receive() {
    for receives in [1, 3, 8] {
        let line = report(&format!("--op send --count 60 --depth 16 --receives {receives} --credits"));
        // The words of the server are completions, too.
        assert!(number(&line, "completions") > 60, "{line}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let lesson = Path::new(env!("CARGO_BIN_EXE_device")).with_file_name("lesson-10");
    for (options, wanted) in [
        ("--depth 4 --signal-every 5", "at most --depth"),
        ("--op read --inline", "goes out"),
        ("--count 0", "at least 1"),
        ("--credits", "for send"),
        ("--size 4000000 --depth 64", "too much"),
    ] {
        let output = Command::new(&lesson).args(["client", "-a", "::1"]).args(options.split(' ')).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && text.contains(wanted), "{options}: {text}");
    }
}
