//! Runs that differ from the bundled capture say why. That runs of the lessons as they are tell the recorded story is
//! in lessons.rs, here and in the lab.

use super::support::{lesson, Run};
use run::story;
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

#[test]
fn another_amount_of_data_is_one_difference() {
    let report = lesson("04", "", "--len 2500").compared(&story::named("04").unwrap());
    assert_eq!(report.verdict(), Verdict::Different, "{report}");
    let text = report.to_string();
    assert!(text.contains("Your program moves 2500 bytes and the lesson moves "), "{text}");
    assert!(text.contains("another text after -s, or another --len") && !text.contains("Also"), "{text}");
}
