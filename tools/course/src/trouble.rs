//! What stands out in a run, whatever was expected of it.

use crate::seen::{self, is_own, names_of, Seen, BETWEEN};
use anyhow::Result;
use run::file::Line;
use run::row::Row;
use run::said::Said;

/// What the lab and the device call it when they have to end a run, or a kernel breaks.
const TROUBLE: &str = "trouble";
/// What Rust's own line about a panic says, and how the line begins that stands behind the program's words about it.
const PANICKED: &str = "panicked at";
const AFTER_PANIC: [&str; 2] = ["note: run with", "stack backtrace:"];
/// How Python's lines about an exception begin: the first, each call, and that which says what it is.
const TRACEBACK: &str = "Traceback (most recent call last)";
const CALL: &str = "  File ";

/// Refusals, errors, completions that failed. The first of it is closest to the cause.
pub fn trouble(run: &[u8]) -> Result<Vec<String>> {
    let mut trouble = Vec::<String>::new();
    // Whose panic the last of them was.
    let mut panicked = None;
    let mut dead = None;
    // Whose exception is being told, and where it came from.
    let mut traced = None::<(String, String)>;
    seen::each(run, |seen| match seen {
        Seen::Packet { node, row, .. } if is_refusal(&row) => {
            let words: Vec<&str> = [row.label.as_str()].into_iter().chain(row.words()).collect();
            trouble.push(format!("frame {}: the {node} sends: {}", row.frame, words.join(BETWEEN)));
        }
        Seen::Line(line) if panicked == Some((line.node.clone(), trouble.len())) && line.error => {
            match trouble.last_mut() {
                Some(last) if !AFTER_PANIC.iter().any(|after| line.text.starts_with(after)) => {
                    *last += &format!(" {}", line.text);
                }
                // What follows is the way there, if somebody has asked for it.
                _ => dead = panicked.take().map(|(node, _)| node),
            }
        }
        Seen::Line(line) if line.error && dead.as_ref() == Some(&line.node) => {}
        Seen::Line(line) if line.error && line.text.starts_with(TRACEBACK) => traced = Some((line.node, String::new())),
        Seen::Line(line) if traced.as_ref().is_some_and(|(node, _)| line.error && *node == line.node) => {
            let told = traced.take().map(|(_, place)| place).unwrap_or_default();
            if line.text.starts_with(CALL) {
                traced = Some((line.node, line.text.trim().to_owned()));
            } else if line.text.starts_with(' ') {
                traced = Some((line.node, told));
            } else {
                trouble.push(format!("line {}: the {} says: {} ({told})", line.number, line.node, line.text));
            }
        }
        Seen::Line(line) if is_failure(&line) => {
            let who = if line.node.is_empty() { String::new() } else { format!("the {} says: ", line.node) };
            trouble.push(format!("line {}: {who}{}", line.number, line.said()));
            panicked = line.text.contains(PANICKED).then(|| (line.node.clone(), trouble.len()));
        }
        _ => {}
    })?;
    Ok(trouble)
}

fn is_refusal(row: &Row) -> bool {
    names_of(&row.label).any(|name| ["NAK", "RNR NAK", "REJ"].contains(&name))
}

fn is_failure(line: &Line) -> bool {
    match Said::of(line) {
        Said::Wc { status, .. } => status != "IBV_WC_SUCCESS",
        Said::StagesSoFar => false,
        // What a program complains about, it prints so.
        _ if line.error && line.text.is_empty() => false,
        _ if line.error && is_own(line) => !AFTER_PANIC.iter().any(|after| line.text.starts_with(after)),
        _ => line.tag() == Some("ERR") || line.act == TROUBLE || line.text.contains(PANICKED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_stands_out_where_all_went_well_and_the_cause_comes_first() {
        let run = |name: &str| std::fs::read(format!("{}/../../captures/{name}.pcapng", env!("CARGO_MANIFEST_DIR")));
        assert!(trouble(&run("04_rdma_write").unwrap()).unwrap().is_empty());
        let puzzle = trouble(&run("07_disconnect_flush-puzzle").unwrap()).unwrap();
        assert!(puzzle.iter().any(|line| line.contains(": the client says: ERR")), "{puzzle:?}");
    }
}
