//! What is left to say after a run.

use crate::outcome::Outcome;
use serde_json::{json, Map, Value};

/// Exit codes, packets by kind, files, and what to do next.
pub fn text(outcome: &Outcome, timing: bool) -> String {
    let timing = timing.then(|| outcome.timing.to_string());
    let logs: Vec<String> = outcome.ran().map(|node| format!("{}.log", node.name)).collect();
    outcome.told().text(timing, &logs)
}

/// The same for a program to read.
pub fn json(outcome: &Outcome) -> Value {
    let inspected = outcome.nodes.iter().map(|node| (node.name.clone(), json!([node.before, node.after])));
    let inspected = inspected.collect::<Map<_, _>>();
    let own = [("inspected", json!(inspected)), ("folder", json!(outcome.folder))];
    let mut told = outcome.told().json();
    told.extend(own.map(|(name, value)| (name.to_owned(), value)));
    Value::Object(told)
}
