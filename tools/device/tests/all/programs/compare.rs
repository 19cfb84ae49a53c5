//! Runs that went otherwise than the bundled capture say why. That runs of the lessons as they are tell the recorded story is
//! in lessons.rs, here and in the lab.

use super::support;

use run::story;
use support::{lesson, Check, Run};
use wire::compare::Verdict;

/// What the wire does to a program on purpose is no defect of its recording, and no fault of the program.
#[test]
fn a_packet_that_a_rule_damaged_is_just_sent_again() {
    let story = story::named("04_rdma_write").unwrap();
    for act in ["corrupt", "drop", "duplicate"] {
        let run = Run::lesson("04", &story.server, &story.client);
        let report = run.wire(&format!("{act} 1st \"RC RDMA Write Only\"")).check().compared(&story);
        assert_eq!(report.verdict(), Verdict::Same, "{act}: {report}");
        // A slow machine may send others again, too.
        let text = report.to_string();
        assert!(text.contains("your client sent ") && text.contains(" again"), "{act}: {report}");
    }
}

/// The sentence for a run that goes otherwise than the story.
fn sentence(run: &Check, story: &str) -> String {
    let report = run.compared(&story::named(story).unwrap());
    assert_eq!(report.verdict(), Verdict::Different, "{report}");
    report.to_string()
}

#[test]
fn another_amount_of_data_is_one_difference() {
    let text = sentence(&lesson("04", "", "--len 2500"), "04");
    assert!(text.contains("Your program moves 2500 bytes and the lesson moves "), "{text}");
    assert!(text.contains("another text after -s, or another --len"), "{text}");
    assert!(!text.contains("Also"), "{text}");
}

#[test]
fn a_peer_in_the_other_mode_is_rejected_by_the_program() {
    // The client is as in the story, so all that is wrong is the server's answer.
    let text = sentence(&lesson("07", "-m read", ""), "07");
    let no = "reason 28 (consumer reject): the program itself said no: \"client and server differ in -m or --closer";
    assert!(text.contains(no), "{text}");
}

#[test]
fn lesson_05_without_its_read_is_lesson_04() {
    let text = sentence(&lesson("04", "", ""), "05");
    assert!(text.contains("Your client never posts the READ that is the lesson's 3rd request of the client"), "{text}");
}
