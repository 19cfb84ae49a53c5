//! What a run file shows of what was expected.

use crate::change::Expected;
use crate::seen::{fits, is_end, is_node, Seen, ANY};
use anyhow::{Context, Result};
use run::capture::Reader;
use run::row::{clients, Rows};
use std::fmt;

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

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Expected { node, packet, line, exit, times, then, .. } = &self.expected;
        if *then {
            f.write_str("then ")?;
        }
        match node.as_str() {
            ANY => f.write_str("one side")?,
            node => write!(f, "the {node}")?,
        }
        if *times == Some(0) {
            f.write_str(" never")?;
        }
        match (packet, line, exit) {
            (Some(packet), ..) => write!(f, " sends: {packet}")?,
            // It is a part of a line: the quotation may go on.
            (None, Some(line), _) if line.matches('"').count() % 2 == 1 => write!(f, " says: {line} …\"")?,
            (None, Some(line), _) => write!(f, " says: {line}")?,
            (.., exit) => write!(f, " ends with status {}", exit.unwrap_or_default())?,
        }
        if let Some(times @ 1..) = times {
            write!(f, ", {times} times")?;
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
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../captures/04_rdma_write.pcapng");
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
    fn what_must_not_be_is_said_plainly() {
        let never = recorded(Expected {
            node: "server".into(),
            packet: Some("NAK".into()),
            times: Some(0),
            ..Expected::default()
        });
        assert_eq!(never.to_string(), "the server never sends: NAK");
        let begun = recorded(Expected {
            node: "server".into(),
            line: Some("holds 60 bytes: \"One".into()),
            ..Expected::default()
        });
        assert!(begun.to_string().starts_with("the server says: holds 60 bytes: \"One …\" (at "), "{begun}");
    }

    #[test]
    fn what_stands_behind_something_is_looked_for_there() {
        let line =
            |text: &str, then| Expected { node: "client".into(), line: Some(text.into()), then, ..Expected::default() };
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../captures/04_rdma_write.pcapng");
        let run = std::fs::read(file).unwrap();
        let met =
            |first: &str, second: &str| judge(&run, &[line(first, false), line(second, true)]).unwrap()[1].is_met();
        assert!(met("rdma_connect", "rdma_disconnect") && !met("rdma_disconnect", "rdma_connect"));
        assert!(!met("client clean-up", "client clean-up"), "one line is not behind itself");
    }

    #[test]
    fn what_is_no_run_file_is_said() {
        assert_eq!(judge(b"no", &[]).unwrap_err().to_string(), "this is no run file");
    }
}
