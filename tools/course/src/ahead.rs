//! A program that is ahead of its step waits for what the other side, which is the lesson's own, does not do yet.

use crate::change::Change;

/// What a lesson's own program does not do yet, which the next lesson's does.
const NOT_YET: [(&str, &str); 6] = [
    ("01", "it doesn't connect a queue pair"),
    ("02", "it sends no message and posts no receive"),
    ("03", "it doesn't write into the other side's memory"),
    ("04", "it doesn't read anything back"),
    ("05", "it doesn't say when it's done"),
    ("06", "it doesn't wait for flushed receives"),
];

/// Whose the other side is, in a sentence, if it is a lesson's own.
pub fn other_side(change: &Change) -> Option<String> {
    change.options.nodes.iter().find_map(|(node, command)| {
        let number = command.split_whitespace().find_map(|word| word.strip_prefix("lesson-"))?;
        let (_, not_yet) = NOT_YET.iter().find(|(lesson, _)| *lesson == number)?;
        Some(format!(
            "The {node} is lesson {number}'s own: {not_yet}. If your program is ahead of this step, it may be waiting for that."
        ))
    })
}
