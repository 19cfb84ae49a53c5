//! The changes of the lessons are what they say: each applies to the source of today, and what comes of it is as told.

#![allow(clippy::unwrap_used)] // A test may end with a panic.

use practice::change::Change;
use practice::copy::Copy;
use practice::project::Project;
use practice::run::{run, Outcome};

/// Tried whenever the tests are run: one that does not compile, one of options, and edits that end well and badly.
const SAMPLE: [(&str, &str); 4] =
    [("01", "event-after-ack"), ("03", "late-receive"), ("04", "wrong-key"), ("07", "two-closers")];

#[test]
fn every_change_applies() {
    let project = Project::find().unwrap();
    let changes = Change::all(&project).unwrap();
    assert!(changes.len() >= 27, "{} changes", changes.len());
    for change in changes {
        Copy::lay_out(&project, &change).unwrap();
    }
}

#[test]
fn a_sample_comes_out_as_told() {
    let project = Project::find().unwrap();
    for (lesson, name) in SAMPLE {
        let change = Change::load(&project.lesson(lesson).unwrap(), name).unwrap();
        let outcome = run(&project, &change, &Copy::lay_out(&project, &change).unwrap()).unwrap();
        assert!(outcome.is_as_told(&change), "{lesson} {name}: {outcome:?}");
    }
}

/// The judge is no yes-man: the lesson as it is does not do what its change does.
#[test]
fn a_lesson_without_its_change_is_found_out() {
    let project = Project::find().unwrap();
    let mut change = Change::load(&project.lesson("04").unwrap(), "wrong-key").unwrap();
    // The same program under another name, so that the two are not mistaken for each other.
    (change.name, change.edits) = ("unchanged".into(), Vec::new());
    let outcome = run(&project, &change, &Copy::lay_out(&project, &change).unwrap()).unwrap();
    let Outcome::Ran { findings, .. } = outcome else { panic!("it builds") };
    let met: Vec<bool> = findings.iter().map(|finding| finding.is_met()).collect();
    assert_eq!(met, [true, false, false, false, true, false], "{findings:?}");
}
