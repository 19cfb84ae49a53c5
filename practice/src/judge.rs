//! What a run file shows of what was expected.

use crate::change::Expected;
use anyhow::{Context, Result};
use std::fmt;
use wire::capture::Reader;
use wire::run::{Event, Line};
use wire::show::row::{clients, Row, Rows};

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
        match event {
            Event::Packet(record) => {
                let Ok(row) = rows.next(&record) else { continue };
                for finding in &mut findings {
                    let Expected { node, packet: Some(packet), .. } = &finding.expected else { continue };
                    if record.node == Some(node) && fits(&row, packet) {
                        finding.found.push(record.number);
                    }
                }
            }
            Event::Line(line) => findings.iter_mut().for_each(|finding| look_at(&line, finding)),
        }
    }
    Ok(findings)
}

fn look_at(line: &Line, finding: &mut Finding) {
    let Expected { node, line: text, exit, .. } = &finding.expected;
    if line.node != *node {
        return;
    }
    let has_ended = line.program == Line::LAB && line.act == Line::EXIT;
    let is_it = match (text, exit) {
        (Some(text), _) => line.text.contains(text),
        (None, Some(exit)) => has_ended && line.text == format!("exit status {exit}"),
        (None, None) => false,
    };
    if is_it {
        finding.found.push(line.number);
    } else if exit.is_some() && has_ended {
        finding.instead = Some(line.text.clone());
    }
}

/// Whether a packet has this name, and all else that stands behind it is said about it. A message of the connection manager
/// has a short name and a long one: `REQ (ConnectRequest)`.
fn fits(row: &Row, packet: &str) -> bool {
    let mut wanted = packet.split("  ");
    let name = wanted.next().unwrap_or_default();
    let mut names = row.label.split([' ', '(', ')']);
    (row.label == name || row.label.ends_with(')') && names.any(|part| part == name))
        && wanted.all(|wanted| row.words().chain(row.lab()).any(|word| word == wanted))
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Expected { node, packet, line, exit, times } = &self.expected;
        match (packet, line, exit) {
            (Some(packet), ..) => write!(f, "the {node} sends: {packet}")?,
            (None, Some(line), _) => write!(f, "the {node} says: {line}")?,
            (.., exit) => write!(f, "the {node} ends with status {}", exit.unwrap_or_default())?,
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
            ([number], _) => write!(f, " (line {number})"),
            (numbers, _) => {
                let numbers: Vec<String> = numbers.iter().take(8).map(u64::to_string).collect();
                let more = if self.found.len() > numbers.len() { " …" } else { "" };
                write!(f, " (lines {}{more})", numbers.join(", "))
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
    fn what_is_no_run_file_is_said() {
        assert_eq!(judge(b"no", &[]).unwrap_err().to_string(), "this is no run file");
    }
}
