//! The changes of the lessons fit the source of today, and each can be proven. `make field-guide` does it.

use course::change::Change;
use course::copy::Copy;
use course::differences;
use course::judge::Finding;
use course::project::Project;
use course::reading;
use course::run::{run_built, Outcome, Place};
use course::show;
use run::lanes::Style;

#[test]
fn every_change_applies_and_can_be_proven() {
    let project = Project::find().unwrap();
    let changes = Change::all(&project).unwrap();
    assert!(differences::named(&project, &changes).unwrap().len() > 5);
    assert!(differences::named(&project, &[]).unwrap_err().to_string().contains("none that runs on the device"));
    for change in changes {
        if change.is_reading() {
            reading::prove(&project, &change).unwrap();
            continue;
        }
        for proof in change.proofs() {
            Copy::lay_out(&project, &proof.change).unwrap();
        }
        let is_enough = change.task.is_none() || (!change.right.is_empty() && change.wrong.len() >= 2);
        assert!(is_enough, "{}: another right solution, and two wrong ones", change.full_name());
        let is_told = change.task.is_none() || !change.says.is_empty();
        let mut wrong = change.wrong.iter().chain(&change.accepted_today);
        let is_told = is_told && wrong.all(|wrong| !wrong.says.is_empty());
        assert!(is_told, "{}: what the judge says about the hole, and about each wrong solution", change.full_name());
    }
}

/// The judge is no yes-man: the lesson as it is does not do what its change does.
#[test]
fn a_lesson_without_its_change_is_found_out() {
    let project = Project::find().unwrap();
    let mut change = Change::load(&project.lesson("04").unwrap(), "wrong-key").unwrap();
    (change.name, change.edits) = ("unchanged".into(), Vec::new());
    let copy = Copy::lay_out(&project, &change).unwrap();
    let outcome = run_built(&project, &change, &copy, Place::Device).unwrap();
    let Outcome::Ran { findings, .. } = outcome else { panic!("nothing is built") };
    let met: Vec<bool> = findings.iter().map(Finding::is_met).collect();
    assert_eq!(met, [true, false, false, false, true, false], "{}", show::findings(&findings, Style::FILE));
}
