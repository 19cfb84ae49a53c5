//! What is left to say after a run.

use crate::outcome::{Ended, Outcome};
use serde_json::{json, Map, Value};
use std::env;

/// The last lesson of the course.
const LAST_LESSON: u8 = 10;

/// Exit codes, packets by kind, files, and what to do next.
pub fn text(outcome: &Outcome, timing: bool) -> String {
    let exit = |node: &Ended| node.exit.map_or("did not end by itself".to_owned(), |status| status.to_string());
    let ran = || outcome.nodes.iter().filter(|node| node.ran);
    let exits: Vec<String> = ran().map(|node| format!("{} {}", node.name, exit(node))).collect();
    let mut lines = vec![format!("\nexit:     {}", exits.join(", "))];
    lines.extend(outcome.trouble.as_ref().map(|trouble| format!("trouble:  {trouble}")));
    lines.push(format!("packets:  {}", outcome.counts));
    lines.extend(timing.then(|| format!("timing:   {}", outcome.phases)));
    // As short as it can be told.
    let (file, current) = (outcome.file(), env::current_dir().unwrap_or_default());
    let capture = file.strip_prefix(current).unwrap_or(&file).display();
    let logs: Vec<String> = ran().map(|node| format!("{}.log", node.name)).collect();
    lines.push(format!("files:    {capture}, {}", logs.join(", ")));
    lines.push(format!("next:     wireshark {capture}"));
    let name = outcome.folder.file_name().unwrap_or_default().to_string_lossy();
    let lesson = name.parse::<u8>().ok().filter(|number| *number < LAST_LESSON);
    lines.extend(lesson.map(|number| format!("          make lesson-{:02}", number + 1)));
    lines.join("\n") + "\n"
}

/// The same for a program to read.
pub fn json(outcome: &Outcome) -> Value {
    let nodes = outcome.nodes.iter().filter(|node| node.ran);
    let inspected = outcome.nodes.iter().map(|node| (node.name.clone(), json!([node.before, node.after])));
    let packets = outcome.counts.packets.iter().map(|(name, count)| ((*name).to_owned(), json!(count)));
    json!({
        "succeeded": outcome.succeeded(),
        "exit": nodes.map(|node| (node.name.clone(), json!(node.exit))).collect::<Map<_, _>>(),
        "trouble": outcome.trouble,
        "packets": packets.collect::<Map<_, _>>(),
        "other_frames": outcome.counts.others,
        "inspected": inspected.collect::<Map<_, _>>(),
        "folder": outcome.folder,
        "file": outcome.file(),
    })
}
