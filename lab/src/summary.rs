//! What is left to say after a run.

use crate::lab::shown;
use crate::outcome::{Ended, Outcome};
use crate::run::Run;
use serde_json::{json, Map, Value};

/// Exit codes, packets by kind, files, and what to do next.
#[must_use]
pub fn summary(run: &Run, outcome: &Outcome) -> String {
    let mut lines = vec![String::new()];
    let ran = outcome.nodes.iter().filter(|node| node.ran);
    let exits: Vec<String> = ran.clone().map(|node| format!("{} {}", node.name, exit(node))).collect();
    lines.push(format!("exit:     {}", exits.join(", ")));
    if let Some(trouble) = &outcome.trouble {
        lines.push(format!("trouble:  {trouble}"));
    }
    lines.push(format!("packets:  {}", packets(outcome)));
    if run.timing {
        lines.push(format!("timing:   {}", outcome.phases));
    }
    let capture = shown(&outcome.file());
    let logs: String = ran.map(|node| format!("{}.log, ", node.name)).collect();
    lines.push(format!("files:    {capture}, {logs}timeline.txt"));
    lines.push(format!("next:     wireshark {capture}"));
    if let Some(next) = next_lesson(run) {
        lines.push(format!("          {next}"));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// The same for a program to read.
#[must_use]
pub fn json(outcome: &Outcome) -> Value {
    let nodes = outcome.nodes.iter().filter(|node| node.ran);
    let packets = outcome.packets.iter().map(|(name, count)| ((*name).to_owned(), json!(count)));
    json!({
        "succeeded": outcome.succeeded(),
        "exit": nodes.map(|node| (node.name.clone(), json!(node.exit))).collect::<Map<_, _>>(),
        "trouble": outcome.trouble,
        "packets": packets.collect::<Map<_, _>>(),
        "other_frames": outcome.other_frames,
        "folder": outcome.folder,
        "file": outcome.file(),
    })
}

fn exit(node: &Ended) -> String {
    node.exit.map_or("did not end by itself".to_owned(), |status| status.to_string())
}

fn packets(outcome: &Outcome) -> String {
    let counts: Vec<String> = outcome.packets.iter().map(|(name, count)| format!("{count} {name}")).collect();
    let roce = if counts.is_empty() { "no RoCE packets".to_owned() } else { counts.join(", ") };
    match outcome.other_frames {
        0 => roce,
        others => format!("{roce}; and {others} other frames (ARP and the like)"),
    }
}

/// The command for the lesson after this one, if this run was a lesson.
fn next_lesson(run: &Run) -> Option<String> {
    let number: u8 = run.name.parse().ok()?;
    (number < LAST_LESSON).then(|| format!("make lesson-{:02}", number + 1))
}

/// The last lesson of the course.
const LAST_LESSON: u8 = 7;
