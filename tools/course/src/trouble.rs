//! What stands out in a run, whatever was expected of it.

use anyhow::Result;
use judge::seen::{self, is_end, is_own, names_of, Seen, BETWEEN};
use run::capture::Events;
use run::exit::Exit;
use run::file::Line;
use run::row::Row;
use run::said::Said;
use std::collections::BTreeMap;

/// What Rust's own line about a panic says, and how the line begins that follows the program's words about it.
const PANICKED: &str = "panicked at";
const AFTER_PANIC: [&str; 2] = ["note: run with", "stack backtrace:"];
/// How Python's lines about an exception begin: the first, each call, and that which says what it is.
const TRACEBACK: &str = "Traceback (most recent call last)";
const CALL: &str = "  File ";
/// How Python's lines begin when a library that it calls has crashed: what it was, and then each call, the last one first.
const FATAL: &str = "Fatal Python error: ";
/// A part of a library that was compiled.
const COMPILED: &str = ".pyx\"";

/// The signals of a crash, and what they say about the program.
const CRASHES: [(i32, &str); 5] = [
    (4, ": it tried to execute something that isn't an instruction"),
    (6, ": it aborted itself, as a failed assertion does"),
    (7, ": it touched mapped memory beyond the end of its file"),
    (8, ": it divided by zero"),
    (11, ": it touched memory that isn't its own, or no longer is"),
];
/// System calls that librdmacm and libibverbs make and then wait for events to be acknowledged: with what.
const HANGS: [(&str, &str, &str); 2] =
    [("DESTROY_ID", "rdma_destroy_id", "rdma_ack_cm_event"), ("DESTROY_CQ", "ibv_destroy_cq", "ibv_ack_cq_events")];

/// What a node's program has begun to say, and has not ended.
#[derive(Default)]
struct Saying {
    /// Where its panic is in what is found.
    panic: Option<usize>,
    /// It has panicked: what follows is the way there, if somebody has asked for it.
    is_dead: bool,
    /// Where its crash is in what is found, until its place is told.
    fatal: Option<usize>,
    /// Where its exception came from, as far as that is told.
    traceback: Option<String>,
    /// The last system call.
    call: String,
}

/// Refusals, errors, completions that failed, crashes. The first of it is closest to the cause.
pub fn trouble(run: &Events) -> Result<Vec<String>> {
    let mut trouble = Vec::<String>::new();
    let mut nodes = BTreeMap::<String, Saying>::new();
    seen::each(run, |seen| match seen {
        Seen::Packet { node, row, .. } if is_refusal(&row) => {
            let words: Vec<&str> = [row.label.as_str()].into_iter().chain(row.words()).collect();
            trouble.push(format!("frame {}: the {node} sends: {}", row.frame, words.join(BETWEEN)));
        }
        Seen::Packet { .. } => {}
        Seen::Line(line) if line.act == Line::TROUBLE => {
            let hang = nodes.iter().find_map(|(node, saying)| why(&line.text, node, &saying.call));
            trouble.push(format!("line {} of the run: {}{}", line.number, line.said(), hang.unwrap_or_default()));
        }
        Seen::Line(line) => {
            let saying = nodes.entry(line.node.clone()).or_default();
            if let Some(call) = line.field("call") {
                saying.call = call.to_owned();
            } else if is_end(&line) {
                trouble.extend(crashed(&line));
            } else {
                saying.hear(&line, &mut trouble);
            }
        }
    })?;
    Ok(trouble)
}

impl Saying {
    fn hear(&mut self, line: &Line, trouble: &mut Vec<String>) {
        if line.error && self.is_dead {
            return;
        }
        if let Some(at) = self.panic.filter(|_| line.error) {
            if AFTER_PANIC.iter().any(|after| line.text.starts_with(after)) {
                self.is_dead = true;
            } else if let Some(panic) = trouble.get_mut(at) {
                *panic += &format!(" {}", line.text);
            }
            return;
        }
        if let Some(at) = self.fatal.filter(|_| line.error) {
            if let (true, Some(fatal)) = (line.text.starts_with(CALL), trouble.get_mut(at)) {
                *fatal += &format!(" ({})", line.text.trim());
                self.is_dead = true;
            }
        } else if line.error && line.text.starts_with(FATAL) {
            self.fatal = Some(trouble.len());
            trouble.push(format!("line {} of the run: the {} says: {}", line.number, line.node, line.text));
        } else if line.error && line.text.starts_with(TRACEBACK) {
            self.traceback = Some(String::new());
        } else if let Some(place) = self.traceback.as_mut().filter(|_| line.error) {
            if line.text.starts_with(CALL) {
                // What a library calls in itself says less than the line that called it.
                if place.is_empty() || !line.text.contains(COMPILED) {
                    *place = line.text.trim().to_owned();
                }
            } else if !line.text.starts_with(' ') {
                trouble
                    .push(format!("line {} of the run: the {} says: {} ({place})", line.number, line.node, line.text));
                self.traceback = None;
            }
        } else if is_failure(line) {
            let who = if line.node.is_empty() { String::new() } else { format!("the {} says: ", line.node) };
            self.panic = line.text.contains(PANICKED).then_some(trouble.len());
            trouble.push(format!("line {} of the run: {who}{}", line.number, line.said()));
        }
    }
}

/// Why a program has not ended, if its last system call tells.
fn why(text: &str, node: &str, last: &str) -> Option<String> {
    let (_, call, ack) = HANGS.iter().find(|(name, ..)| *name == last)?;
    let is_about = text.contains(&format!("the {node} had not ended"));
    is_about.then(|| format!(". The {node} waits in {call}, because an event hasn't been acknowledged with {ack}"))
}

/// The programs of a run that have crashed: whatever else is missing may follow from that.
pub fn crashes(run: &Events) -> Vec<String> {
    run.lines().filter(|line| is_end(line)).filter_map(crashed).collect()
}

/// That a program has crashed.
fn crashed(line: &Line) -> Option<String> {
    // A program that a shell runs ends as the shell reports it.
    let signal = Exit::of_shell(line.ends_program()?.number()).signal()?;
    let (_, meaning) = CRASHES.iter().find(|(crash, _)| signal == *crash)?;
    let killed = Exit::Signal(signal);
    Some(format!("line {} of the run: the {} was {killed}{meaning}", line.number, line.node))
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
        _ => line.tag() == Some("ERR") || line.text.contains(PANICKED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_below_python_is_told_with_its_place() {
        let (mut saying, mut trouble) = (Saying::default(), Vec::new());
        for text in [
            "Fatal Python error: Segmentation fault",
            "",
            "Current thread 0x00007f (most recent call first):",
            "  File \"mine.py\", line 27 in server",
            "  File \"mine.py\", line 60 in main",
            "Extension modules: pyverbs.base",
        ] {
            let line = Line::of_program("mine", text.to_owned(), true);
            saying.hear(&line, &mut trouble);
        }
        let [told] = &trouble[..] else { panic!("{trouble:?}") };
        assert!(
            told.ends_with("says: Fatal Python error: Segmentation fault (File \"mine.py\", line 27 in server)"),
            "{told}"
        );
    }

    #[test]
    fn nothing_stands_out_where_all_went_well_and_the_cause_comes_first() {
        let trouble = |name: &str| {
            let file = format!("{}/../../captures/{name}.pcapng", env!("CARGO_MANIFEST_DIR"));
            trouble(&seen::read(&std::fs::read(file).unwrap()).unwrap()).unwrap()
        };
        assert!(trouble("04_rdma_write").is_empty());
        let puzzle = trouble("07_disconnect_flush-puzzle");
        assert!(puzzle.iter().any(|line| line.contains(": the client says: ERR")), "{puzzle:?}");
    }
}
