//! What a run file shows of what was expected.

use crate::change::Expected;
use anyhow::{Context, Result};
use std::fmt;
use wire::capture::Reader;
use wire::cm::Kind;
use wire::opcode::TABLE;
use wire::run::{Event, Line};
use wire::show::row::{clients, Row, Rows};

/// What stands between the things that are said of a packet.
const BETWEEN: &str = "  ";
/// A node's name in a change that stands for any of them.
const ANY: &str = "any";
/// What the lab calls it when it has to end a run, or a kernel breaks.
const TROUBLE: &str = "trouble";
/// So many places of one thing are named.
const MOST_SHOWN: usize = 8;

/// An expectation, and what there was of it.
#[derive(Debug, Clone)]
pub struct Finding {
    /// What must be there.
    pub expected: Expected,
    /// The numbers of the packets and lines that are it.
    pub found: Vec<u64>,
    /// What there was in its place: another exit status.
    pub instead: Option<String>,
}

impl Finding {
    /// Whether it is as it must be.
    #[must_use]
    pub fn is_met(&self) -> bool {
        self.expected.times.map_or(!self.found.is_empty(), |times| self.found.len() == times)
    }
}

/// Looks for all that is expected of a run.
///
/// # Errors
/// The run file is damaged.
pub fn judge(run: &[u8], outcome: &[Expected]) -> Result<Vec<Finding>> {
    let begin = || Reader::new(run).context("this is no run file");
    let finding = |expected: &Expected| Finding { expected: expected.clone(), found: Vec::new(), instead: None };
    let mut findings: Vec<Finding> = outcome.iter().map(finding).collect();
    let mut rows = Rows::new(clients(&mut begin()?));
    let mut reader = begin()?;
    while let Some(event) = reader.event().context("the run file is damaged")? {
        let seen = Seen::of(&event, &mut rows);
        // Of those that stand behind another, the last comes first: one event is not found for both.
        for at in (0..findings.len()).rev() {
            let is_early = findings[at].expected.then && at > 0 && findings[at - 1].found.is_empty();
            if !is_early {
                findings[at].look_at(&seen);
            }
        }
    }
    Ok(findings)
}

/// What else stands out in a run: refusals, errors, completions that failed. The first of it is closest to the cause.
///
/// # Errors
/// The run file is damaged.
pub fn trouble(run: &[u8]) -> Result<Vec<String>> {
    let begin = || Reader::new(run).context("this is no run file");
    let mut rows = Rows::new(clients(&mut begin()?));
    let (mut reader, mut trouble) = (begin()?, Vec::new());
    while let Some(event) = reader.event().context("the run file is damaged")? {
        match Seen::of(&event, &mut rows) {
            Seen::Packet { node, row } if is_refusal(&row) => {
                let words: Vec<&str> = row.words().collect();
                trouble.push(format!("{}: the {node} sends: {}{BETWEEN}{}", row.frame, row.label, words.join(BETWEEN)));
            }
            Seen::Line(line) if is_failure(&line) => {
                let node = if line.node.is_empty() { Line::LAB } else { &line.node };
                trouble.push(format!("{}: the {node} says: {}", line.number, line.said()));
            }
            _ => {}
        }
    }
    Ok(trouble)
}

fn is_refusal(row: &Row) -> bool {
    names_of(&row.label).any(|name| ["NAK", "RNR NAK", "REJ"].contains(&name))
}

fn is_failure(line: &Line) -> bool {
    let has_failed = line.text.contains("status=IBV_WC_") && !line.text.contains("status=IBV_WC_SUCCESS");
    has_failed
        || line.act == TROUBLE
        || line.text.contains("panicked at")
        || line.tag() == Some("ERR") && !line.text.contains("the stages so far")
}

/// An event, as far as it can be expected.
enum Seen {
    Packet { node: String, row: Row },
    Line(Line),
    Other,
}

impl Seen {
    fn of(event: &Event, rows: &mut Rows) -> Self {
        match event {
            Event::Line(line) => Self::Line(line.clone()),
            Event::Packet(record) => rows
                .next(record)
                .map_or(Self::Other, |row| Self::Packet { node: record.node.unwrap_or_default().to_owned(), row }),
        }
    }
}

impl Finding {
    fn look_at(&mut self, seen: &Seen) {
        let Expected { node: wanted, packet, line: text, exit, .. } = &self.expected;
        match (seen, packet, text, exit) {
            (Seen::Packet { node, row }, Some(packet), ..) if is_node(node, wanted) && fits(row, packet) => {
                self.found.push(row.frame);
            }
            (Seen::Line(line), _, Some(text), _) if is_node(&line.node, wanted) && line.text.contains(text) => {
                self.found.push(line.number);
            }
            (Seen::Line(line), .., Some(exit)) if is_node(&line.node, wanted) && is_end(line) => {
                match line.text == format!("exit status {exit}") {
                    true => self.found.push(line.number),
                    false => self.instead = Some(line.text.clone()),
                }
            }
            _ => {}
        }
    }
}

fn is_node(name: &str, wanted: &str) -> bool {
    wanted == ANY || wanted == name
}

fn is_end(line: &Line) -> bool {
    line.program == Line::LAB && line.act == Line::EXIT
}

/// Whether a packet has this name, and all that stands behind it is said about it.
fn fits(row: &Row, packet: &str) -> bool {
    let said = row.words().chain(row.lab()).collect::<Vec<_>>().join(BETWEEN);
    let mut wanted = packet.split(BETWEEN);
    let is_it = wanted.next().is_some_and(|name| names_of(&row.label).any(|known| known == name));
    is_it && wanted.all(|wanted| said.split(BETWEEN).any(|word| word == wanted))
}

/// A packet's names: a message of the connection manager has a short one and a long one, as `REQ (ConnectRequest)`.
fn names_of(label: &str) -> impl Iterator<Item = &str> {
    let short = label.strip_suffix(')').and_then(|label| label.split_once(" ("));
    short.map_or([label, label], |(short, long)| [short, long]).into_iter()
}

/// Whether there is a packet that `wire show` calls so.
pub(crate) fn is_name(packet: &str) -> bool {
    let name = packet.split(BETWEEN).next().unwrap_or_default();
    let messages = (0x10..=0x1a).map(Kind::from);
    TABLE.iter().any(|row| row.name.trim_start_matches("RC ") == name)
        || messages.flat_map(|kind| [kind.name(), kind.short()]).any(|known| known == name)
        || ["NAK", "RNR NAK"].contains(&name)
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Expected { node, packet, line, exit, times, then } = &self.expected;
        if *then {
            f.write_str("then ")?;
        }
        match node.as_str() {
            ANY => f.write_str("one side")?,
            node => write!(f, "the {node}")?,
        }
        match (packet, line, exit) {
            (Some(packet), ..) => write!(f, " sends: {packet}")?,
            (None, Some(line), _) => write!(f, " says: {line}")?,
            (.., exit) => write!(f, " ends with status {}", exit.unwrap_or_default())?,
        }
        match times {
            Some(0) => f.write_str(", never")?,
            Some(times) => write!(f, ", {times} times")?,
            None => {}
        }
        match (self.found.as_slice(), &self.instead) {
            ([], Some(instead)) => write!(f, " (there is: {instead})"),
            ([], None) if self.is_met() => Ok(()),
            ([], None) => f.write_str(" (there is none)"),
            (numbers, _) => {
                let shown: Vec<String> = numbers.iter().take(MOST_SHOWN).map(u64::to_string).collect();
                let more = if numbers.len() > shown.len() { " …" } else { "" };
                write!(f, " (at {}{more})", shown.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(expected: Expected) -> Finding {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../captures/04_rdma_write.pcapng");
        judge(&std::fs::read(file).unwrap(), &[expected]).unwrap().remove(0)
    }

    fn packet(node: &str, packet: &str, times: Option<usize>) -> bool {
        recorded(Expected { node: node.into(), packet: Some(packet.into()), times, ..Expected::default() }).is_met()
    }

    #[test]
    fn packets_are_known_by_their_names_and_by_what_is_said_of_them() {
        assert!(packet("client", "RDMA Write Only", Some(1)) && packet("client", "RDMA Write Only  len 60", None));
        assert!(!packet("server", "RDMA Write Only", None) && packet("server", "RDMA Write Only", Some(0)));
        assert!(!packet("client", "RDMA Write Only  len 61", None) && !packet("client", "Write", None));
        assert!(packet("client", "REQ", Some(1)) && packet("client", "ConnectRequest", Some(1)));
        assert!(packet("server", "Acknowledge", Some(2)) && !packet("server", "Acknowledge", Some(3)));
    }

    #[test]
    fn lines_and_exit_statuses_are_those_of_their_node() {
        let line = |node: &str, text: &str| {
            recorded(Expected { node: node.into(), line: Some(text.into()), ..Expected::default() })
        };
        assert!(line("server", "the memory holds 60 bytes").is_met());
        assert_eq!(line("client", "the memory holds").to_string(), "the client says: the memory holds (there is none)");
        let exit = |exit| recorded(Expected { node: "client".into(), exit: Some(exit), ..Expected::default() });
        assert!(exit(0).is_met());
        let other = exit(1);
        assert_eq!(
            (other.is_met(), other.to_string()),
            (false, "the client ends with status 1 (there is: exit status 0)".into())
        );
    }

    #[test]
    fn what_stands_behind_something_is_looked_for_there() {
        let line =
            |text: &str, then| Expected { node: "client".into(), line: Some(text.into()), then, ..Expected::default() };
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../captures/04_rdma_write.pcapng");
        let run = std::fs::read(file).unwrap();
        let met =
            |first: &str, second: &str| judge(&run, &[line(first, false), line(second, true)]).unwrap()[1].is_met();
        assert!(met("rdma_connect", "rdma_disconnect") && !met("rdma_disconnect", "rdma_connect"));
        assert!(!met("client clean-up", "client clean-up"), "one line is not behind itself");
    }

    #[test]
    fn nothing_stands_out_where_all_went_well_and_the_cause_comes_first() {
        let run = |name: &str| std::fs::read(format!("{}/../captures/{name}.pcapng", env!("CARGO_MANIFEST_DIR")));
        assert!(trouble(&run("04_rdma_write").unwrap()).unwrap().is_empty());
        let puzzle = trouble(&run("07_disconnect_flush-puzzle").unwrap()).unwrap();
        assert!(puzzle.iter().any(|line| line.contains(": the client says: ERR")), "{puzzle:?}");
    }

    #[test]
    fn what_is_no_run_file_is_said() {
        assert_eq!(judge(b"no", &[]).unwrap_err().to_string(), "this is no run file");
    }
}
