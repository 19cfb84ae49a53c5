//! The staircase: after which lesson of part three which lessons of parts one and two run on the learner's NIC.

/// Each lesson with holes; and what also runs once they are filled, and didn't run before. A run has the name of its story, as
/// `04-multi-packet`. A test fills lesson by lesson, and tries all stories each time.
///
/// Part two needs no more than part one, but for what fails there on purpose.
pub const STAIRS: [(&str, &str); 6] = [
    ("14", ""),
    ("15", "01 02 03-private-data"),
    ("16", "03 10-credits 11 11-eight 11-multicast 11-rc"),
    ("17", "04 04-multi-packet 04-private-data 05 05-private-data 06 06-read 08 08-calls 09 10 10-depth-16 12 13"),
    ("18", "10-no-credits"),
    ("19", "07 07-closer-server 12-lock"),
];

/// The lessons that run when this one's holes are filled, and did not run before.
pub fn lessons(filled: &str) -> Vec<&'static str> {
    let new = STAIRS.iter().filter(|(lesson, _)| *lesson == filled).flat_map(|(_, runs)| runs.split_whitespace());
    new.filter(|run| !run.contains('-')).collect()
}
