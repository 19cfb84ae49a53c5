//! Fresh runs of the lessons tell the same story as the bundled captures, and runs that went otherwise say why.

#![allow(clippy::unwrap_used)] // A test may end with a panic.

use lab::{Lab, Run};
use std::fs::File;
use std::path::{Path, PathBuf};
use wire::capture::Reader;
use wire::compare::{compare, Capture, Report, Verdict};
use wire::story::{self, Story};

fn capture(file: &Path) -> Capture {
    let open = File::open(file).unwrap_or_else(|error| panic!("{}: {error}; `make record` writes it", file.display()));
    Capture::read(&mut Reader::new(open).unwrap()).unwrap()
}

fn bundled(story: &Story) -> PathBuf {
    let name = format!("../captures/{}.pcapng", story.file_name());
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Runs and compares with the capture of a story.
fn judged(run: Run, story: &Story) -> Report {
    let mine = Lab::open().unwrap().run(&run).unwrap_or_else(|error| panic!("{error:#}"));
    compare(&capture(&mine.file()), &capture(&bundled(story)))
}

fn lesson_run(story: &Story) -> Run {
    Run::lesson(story.number()).unwrap().server_args(&story.server).client_args(&story.client).clients(story.clients)
}

fn all_runs_are_the_same(times: usize) {
    for story in story::bundled().unwrap() {
        for time in 1..=times {
            let report = judged(lesson_run(&story), &story);
            assert_eq!(report.verdict(), Verdict::Same, "{}, run {time}: {report}", story.file_name());
            println!("{}, run {time}: {report}", story.file_name());
        }
    }
}

#[test]
fn two_fresh_runs_of_every_lesson_tell_the_bundled_story() {
    all_runs_are_the_same(2);
}

/// What the wire does to a program on purpose is no defect of its recording, and no fault of the program.
#[test]
fn a_packet_that_a_rule_damaged_is_just_sent_again() {
    let story = story::named("04_rdma_write").unwrap();
    for act in ["corrupt", "drop", "duplicate"] {
        let report = judged(lesson_run(&story).wire(&format!("{act} 1st \"RC RDMA Write Only\"")), &story);
        assert_eq!(report.verdict(), Verdict::Same, "{act}: {report}");
        // A slow machine may send others again, too.
        let text = report.to_string();
        assert!(text.contains("your client sent ") && text.contains(" again"), "{act}: {report}");
    }
}

#[test]
#[ignore = "takes several minutes: cargo test -p lab --test compare -- --ignored --nocapture"]
fn ten_fresh_runs_of_every_lesson_tell_the_bundled_story() {
    all_runs_are_the_same(10);
}

/// The sentence for a run that goes otherwise than the story.
fn sentence(run: Run, story: &str) -> String {
    let report = judged(run, &story::named(story).unwrap());
    assert_eq!(report.verdict(), Verdict::Different, "{report}");
    report.to_string()
}

#[test]
fn another_amount_of_data_is_one_difference() {
    let run = Run::lesson("04").unwrap().client_args("--len 2500");
    let text = sentence(run, "04");
    assert!(text.contains("Your program moves 2500 bytes and the lesson moves "), "{text}");
    assert!(text.contains("another text after -s, or another --len"), "{text}");
    assert!(!text.contains("Also"), "{text}");
}

#[test]
fn a_client_without_a_server_is_told_to_start_it() {
    let text = sentence(Run::programs().client("lesson-02 client -a server; true"), "02");
    assert!(
        text.contains("reason 8 (invalid service ID): nobody listens on port 7471, so start the server first"),
        "{text}"
    );
    assert!(text.contains("the step      Step 2: "), "{text}");
}

#[test]
fn a_peer_in_the_other_mode_is_rejected_by_the_program() {
    // The client is as in the story, so all that is wrong is the server's answer.
    let run = Run::lesson("07").unwrap().server_args("-m read");
    let text = sentence(run, "07");
    let no = "reason 28 (consumer reject): the program itself said no: \"client and server differ in -m or --closer";
    assert!(text.contains(no), "{text}");
}

#[test]
fn lesson_05_without_its_read_is_lesson_04() {
    let text = sentence(lesson_run(&story::named("04").unwrap()), "05");
    assert!(text.contains("Your client never posts the READ that is the lesson's 3rd request of the client"), "{text}");
}
