//! Every lesson and variant runs on the device: right exit statuses, the log lines and packets that its story promises, and
//! the same story as the capture that was recorded from the kernel's rdma_rxe.

use super::said::is_understood;
use super::support::{lesson, Run, CLIENT};
use run::file::{Event, Line};
use run::story::{self, proof};
use std::fs;
use wire::compare::Verdict;

/// What the recorded story says, so often.
fn all_tell_their_stories(times: usize) {
    for story in story::bundled().unwrap() {
        for time in 1..=times {
            let run = || {
                let run = Run::lesson(story.number(), &story.server, &story.client).clients(story.clients);
                if story.wire.is_empty() {
                    run
                } else {
                    run.wire(&story.wire)
                }
            };
            let name = format!("{}, run {time}", story.file_name());
            let (mut check, mut tries) = (run().check(), 1);
            // Which of several clients a busy machine serves first is another thing than what a lesson does.
            while story.clients > 1 && tries < 5 && check.compared(&story).verdict() != Verdict::Same {
                (check, tries) = (run().check(), tries + 1);
            }
            let report = check.compared(&story);
            assert_eq!(report.verdict(), Verdict::Same, "{name}: {report}");
            let problems = proof::problems(&story, &fs::read(&check.file).unwrap());
            assert!(problems.is_empty(), "{name}: {problems:#?}");
            is_understood(&check, &name);
        }
    }
}

#[test]
fn every_lesson_tells_the_story_that_was_recorded_from_the_kernel() {
    all_tell_their_stories(1);
}

#[test]
#[ignore = "takes long: make test-long"]
fn a_hundred_times() {
    all_tell_their_stories(100);
}

/// Setting up is calls into the kernel; a WRITE is one with SoftRoCE's provider, and waiting for its completion none.
#[test]
fn system_calls_are_told_and_counted() {
    let told = Run::lesson("04", "", "").log().check();
    let count = "system calls before its first RDMA WRITE, 1 from there to the ACK";
    let line = told.outcome.lines().find(|line| line.contains(count)).expect(&told.outcome);
    let before: usize = line.split_whitespace().nth(2).unwrap().parse().unwrap();
    let is_call = |event: &Event<'_>, which: fn(&str) -> bool| matches!(event, Event::Line(line) if line.node == CLIENT && line.field("call").is_some_and(which));
    let (mut calls, mut doorbells, mut last) = (0, 0, String::new());
    told.each_event(|event| match event {
        Event::Packet(_) => last.push('p'),
        event if is_call(event, |call| call == "POST_SEND") => {
            doorbells += 1;
            calls += 1;
            last = "d".into();
        }
        event if is_call(event, |_| true) => calls += 1,
        _ => {}
    });
    // A SEND and a WRITE.
    assert!(doorbells == 2 && before > 20 && calls > before, "{}", told.outcome);
    assert!(last.starts_with("dp"), "{last}: no packet follows the doorbell");
}

/// What this device decides is told only if somebody asks, as lines of its own in the run file and in the lanes.
#[test]
fn decisions_are_told_if_asked_for() {
    let told = Run::lesson("04", "", "").log().check();
    assert!(told.outcome.contains("NIC   requester: PSN"), "{}", told.outcome);
    let mut lines = 0;
    told.each_event(|event| {
        lines += usize::from(matches!(event, Event::Line(line) if line.program == Line::DEVICE && line.node == CLIENT));
    });
    assert!(lines > 0);
    assert!(!lesson("04", "", "").outcome.contains("NIC   "));
}
