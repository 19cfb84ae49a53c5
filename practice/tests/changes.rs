//! The changes of the lessons are what they say: each applies to the source of today, and what comes of it is as told.

#![allow(clippy::unwrap_used)] // A test may end with a panic.

use practice::change::Change;
use practice::copy::Copy;
use practice::project::Project;
use practice::run::{run, Outcome, Place};
use practice::show;

/// Tried whenever the tests are run: one that does not compile, edits that end well and badly, an exercise, and options.
const SAMPLE: [&str; 5] = ["01-event-after-ack", "03-late-receive", "04-wrong-key", "04-whose", "07-two-closers"];

#[test]
fn every_change_applies_and_a_sample_comes_out_as_told() {
    let project = Project::find().unwrap();
    let changes = Change::all(&project).unwrap();
    let proofs: Vec<_> = changes.iter().flat_map(Change::proofs).collect();
    let copies: Vec<Copy> = proofs.iter().map(|(change, _)| Copy::lay_out(&project, change).unwrap()).collect();
    for name in SAMPLE {
        let is_it = |change: &Change| change.full_name().starts_with(name);
        let sample: Vec<_> = proofs.iter().zip(&copies).filter(|((change, _), _)| is_it(change)).collect();
        assert!(!sample.is_empty(), "there is no change {name}");
        for ((change, is_right), copy) in sample {
            let outcome = run(&project, change, copy, Place::Lab, false).unwrap();
            assert_eq!(outcome.is_as_told(change), *is_right, "{}: {}", change.full_name(), told(&outcome));
        }
    }
}

fn told(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Refused(said) => said.clone(),
        Outcome::Ran { findings, .. } => show::findings(findings, false),
    }
}

/// The judge is no yes-man: the lesson as it is does not do what its change does.
#[test]
fn a_lesson_without_its_change_is_found_out() {
    let project = Project::find().unwrap();
    let mut change = Change::load(&project.lesson("04").unwrap(), "wrong-key").unwrap();
    // The same program under another name, so that the two are not mistaken for each other.
    (change.name, change.edits) = ("unchanged".into(), Vec::new());
    let outcome = run(&project, &change, &Copy::lay_out(&project, &change).unwrap(), Place::Lab, false).unwrap();
    let Outcome::Ran { findings, .. } = &outcome else { panic!("{}", told(&outcome)) };
    let met: Vec<bool> = findings.iter().map(practice::judge::Finding::is_met).collect();
    assert_eq!(met, [true, false, false, false, true, false], "{}", told(&outcome));
}
