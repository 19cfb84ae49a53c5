//! The changes of the lessons are what they say: each applies to the source of today, and what comes of it is as told.

#![allow(clippy::unwrap_used)] // A test may end with a panic.

use practice::change::Change;
use practice::copy::Copy;
use practice::project::Project;
use practice::run::{run, Outcome};
use practice::show;

/// Tried whenever the tests are run: one that does not compile, one of options, and edits that end well and badly.
const SAMPLE: [&str; 4] = ["01-event-after-ack", "03-late-receive", "04-wrong-key", "07-two-closers"];

#[test]
fn every_change_applies_and_a_sample_comes_out_as_told() {
    let project = Project::find().unwrap();
    let changes = Change::all(&project).unwrap();
    let named = |name: &str| changes.iter().position(|change| format!("{}-{}", change.number(), change.name) == name);
    let copies: Vec<Copy> = changes.iter().map(|change| Copy::lay_out(&project, change).unwrap()).collect();
    for name in SAMPLE {
        let at = named(name).unwrap_or_else(|| panic!("there is no change {name}"));
        let outcome = run(&project, &changes[at], &copies[at]).unwrap();
        assert!(outcome.is_as_told(&changes[at]), "{name}: {}", told(&outcome));
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
    let outcome = run(&project, &change, &Copy::lay_out(&project, &change).unwrap()).unwrap();
    let Outcome::Ran { findings, .. } = &outcome else { panic!("{}", told(&outcome)) };
    let met: Vec<bool> = findings.iter().map(practice::judge::Finding::is_met).collect();
    assert_eq!(met, [true, false, false, false, true, false], "{}", told(&outcome));
}
