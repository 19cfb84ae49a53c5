//! The changes of the lessons fit the source of today, and each can be proven. `make field-guide` does it.

use course::changes::Changes;
use course::copy::Copy;
use course::differences;
use course::exercise::{Assignment, Exercise};
use course::project::Project;
use course::proof::Proof;
use judge::seen;
use std::process::Command;

/// All trials of all changes.
fn proofs(Changes { breaks, exercises }: &Changes) -> Vec<Proof> {
    let repairs = exercises.iter().filter_map(Exercise::repair);
    breaks.iter().flat_map(|it| it.proofs(&[])).chain(repairs.flat_map(|repair| repair.proofs.clone())).collect()
}

#[test]
fn every_change_applies_and_every_answer_is_in_its_capture() {
    let project = Project::find().unwrap();
    let changes = Changes::all(&project).unwrap();
    assert!(differences::named(&project, &changes.breaks).unwrap().len() > 5);
    assert!(differences::named(&project, &[])
        .unwrap_err()
        .to_string()
        .contains("no change of that name runs on the device"));
    for proof in proofs(&changes) {
        Copy::lay_out(&project, &proof.change).unwrap();
    }
    for exercise in &changes.exercises {
        let Assignment::Reading(reading) = &exercise.kind else { continue };
        reading.prove(&project).unwrap();
        // The reader's copy has the same frames, and not the name of the change.
        let (bare, whole) = (reading.nameless(&project).unwrap(), reading.capture(&project).unwrap());
        let name = reading.read.rsplit('/').next().unwrap().trim_end_matches(".pcapng");
        let has = |run: &[u8], text: &str| run.windows(text.len()).any(|window| window == text.as_bytes());
        // Other captures have no change that their names could give away.
        if reading.read.starts_with("captures/changes/") {
            assert!(has(&whole, name) && !has(&bare, name) && !has(&bare, " --"), "{}", reading.read);
        }
        let [bare, whole] = [bare, whole].map(|run| seen::read(&run).unwrap());
        for question in &reading.questions {
            assert_eq!(question.right(&bare).unwrap(), question.right(&whole).unwrap(), "{}", question.name);
        }
    }
}

#[test]
fn an_unknown_name_is_named() {
    let prove = |names: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_course")).arg("prove").args(names).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(said).unwrap())
    };
    let (status, said) = prove(&["04-whose", "04-whoso"]);
    assert!(status == Some(3) && said.starts_with("course: there is no change 04-whoso; "), "{said}");
}
