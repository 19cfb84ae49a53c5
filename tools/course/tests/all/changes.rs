//! The changes of the lessons are what they say: each applies to the source of today, and what comes of a sample of them is as
//! told. `make field-guide` tries all.

use course::change::Change;
use course::copy::Copy;
use course::differences;
use course::project::Project;
use course::proof::Proof;
use course::reading;
use course::run::{run, Outcome, Place};
use course::show;
use run::lanes::Style;
use testkit::each;

/// Tried whenever the tests are run: in the lab one that does not compile, and one with faults of the wire; on the device all
/// of an exercise.
const IN_LAB: [&str; 2] = ["01-event-after-ack", "03-late-receive"];
const ON_DEVICE: [&str; 2] = ["04-whose", "03-order"];

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

#[test]
fn a_sample_comes_out_as_told() {
    let project = Project::find().unwrap();
    let changes = Change::all(&project).unwrap();
    let sample = IN_LAB.map(|name| (name, Place::Lab)).into_iter().chain(ON_DEVICE.map(|name| (name, Place::Device)));
    let sample: Vec<(&str, Place)> = sample.collect();
    each::each(sample.len(), &sample, |&(name, place)| {
        let change = changes.iter().find(|change| change.full_name() == name);
        let proofs = change.unwrap_or_else(|| panic!("there is no change {name}")).proofs();
        for proof in proofs.iter().filter(|proof| proof.place == place) {
            let outcome = outcome(&project, proof);
            let name = proof.change.full_name();
            assert!(proof.is_met_by(&outcome).unwrap(), "{name} has to say {}: {}", proof.says, told(&outcome));
        }
    });
}

/// The judge is no yes-man: the lesson as it is does not do what its change does.
#[test]
fn a_lesson_without_its_change_is_found_out() {
    let project = Project::find().unwrap();
    let mut change = Change::load(&project.lesson("04").unwrap(), "wrong-key").unwrap();
    (change.name, change.edits) = ("unchanged".into(), Vec::new());
    let outcome = outcome(&project, &Proof { change, place: Place::Device, is_right: false, says: String::new() });
    let Outcome::Ran { findings, .. } = &outcome else { panic!("{}", told(&outcome)) };
    let met: Vec<bool> = findings.iter().map(course::judge::Finding::is_met).collect();
    assert_eq!(met, [true, false, false, false, true, false], "{}", told(&outcome));
}

fn outcome(project: &Project, proof: &Proof) -> Outcome {
    let copy = Copy::lay_out(project, &proof.change).unwrap();
    run(project, &proof.change, &copy, proof.place, false).unwrap()
}

fn told(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Refused(said) => said.clone(),
        Outcome::Ran { findings, .. } => show::findings(findings, Style::FILE) + &outcome.complaint().unwrap(),
    }
}
