//! Every lesson and variant runs on the device: right exit statuses, the log lines and packets that its story promises, and
//! the same story as the capture that was recorded from the kernel's rdma_rxe. Build the lessons first: `cargo build --workspace`.

#![allow(clippy::unwrap_used)] // A test may end with a panic.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use wire::capture::Reader;
use wire::compare::{compare, Capture, Verdict};
use wire::story::{self, proof, Story};

/// Runs a lesson on the device; its run file has the run's name.
fn told(story: &Story, name: &str) -> (Output, PathBuf) {
    let program = Path::new(env!("CARGO_BIN_EXE_device"));
    let output = Command::new(program)
        .args(["run", &format!("lesson-{}", story.number()), "--quiet"])
        .arg(format!("--server-args={}", story.server))
        .arg(format!("--client-args={}", story.client))
        .arg(format!("--clients={}", story.clients))
        .arg(format!("--name={name}"))
        .output()
        .unwrap();
    (output, program.ancestors().nth(2).unwrap().join("device/runs").join(name).join("wire.pcapng"))
}

fn capture(file: &Path) -> Capture {
    Capture::read(&mut Reader::new(File::open(file).unwrap()).unwrap()).unwrap()
}

fn bundled(story: &Story) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../captures/{}.pcapng", story.file_name()))
}

/// What the recorded story says, so often.
fn all_tell_their_stories(times: usize) {
    for story in story::bundled().unwrap() {
        for time in 1..=times {
            let name = format!("test-{}", story.file_name());
            let (output, file) = told(&story, &name);
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert_eq!(output.status.code(), Some(i32::from(story.exit != 0)), "{name}, run {time}: {text}");
            let report = compare(&capture(&file), &capture(&bundled(&story)));
            assert_eq!(report.verdict(), Verdict::Same, "{name}, run {time}: {report}");
            let problems = proof::problems(&story, &fs::read(&file).unwrap());
            assert!(problems.is_empty(), "{name}, run {time}: {problems:#?}");
        }
    }
}

#[test]
fn every_lesson_tells_the_story_that_was_recorded_from_the_kernel() {
    all_tell_their_stories(2);
}

#[test]
#[ignore = "takes some minutes: cargo test -p device --test lessons -- --ignored"]
fn a_hundred_times() {
    all_tell_their_stories(100);
}

/// What this device decides is told only if somebody asks, as lines of its own in the run file.
#[test]
fn decisions_are_told_if_asked_for() {
    let program = Path::new(env!("CARGO_BIN_EXE_device"));
    let output = Command::new(program).args(["run", "lesson-04", "--log", "--name=test-log"]).output().unwrap();
    let lanes = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(lanes.contains("NIC   requester: PSN"), "{lanes}");
    let quiet = Command::new(program).args(["run", "lesson-04", "--name=test-no-log"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&quiet.stdout).contains("NIC   "));
}
