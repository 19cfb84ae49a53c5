//! What a run file shows of what was expected.

use crate::expected::{Expected, What, FLUSHED, UNFLUSHED};
use crate::seen::{self, calls, fits, flushed, gets, is_end, is_node, is_own, notes, Seen, ANY};
use anyhow::Result;
use run::capture::Events;
use run::exit::Exit;
use run::file::Line;
use std::fmt;

/// How a part of a line begins that the library logs, and no program by itself.
const OF_LIBRARY: [&str; 4] = ["status=IBV_", "CM event: ", "ibv_", "rdma_"];
/// A text that is longer is not told as a whole.
const LONG: usize = 100;
/// So many places of one thing are named.
pub const MOST_SHOWN: usize = 8;

/// An expectation, and what there was of it.
#[derive(Debug, Clone)]
pub struct Finding {
    pub expected: Expected,
    /// The numbers of the packets and lines that are it.
    pub found: Vec<u64>,
    /// What there was in its place: another exit status.
    pub instead: Option<String>,
    /// What of a text that is too long for a line has been printed last, in lines of their own.
    printed: String,
    /// What it is an alternative to is there.
    pub is_excused: bool,
}

impl Finding {
    /// Whether it is as it must be.
    pub fn is_met(&self) -> bool {
        let (count, at_most) = (self.found.len(), self.expected.at_most);
        let is_often = |times| count == times || at_most && count < times;
        self.is_excused || self.expected.times.map_or(count > 0, is_often)
    }

    /// Whether it is something that must not be, and is not: of that there is nothing to tell.
    pub fn is_absent(&self) -> bool {
        (self.expected.times == Some(0) || self.expected.at_most) && self.is_met() && !self.is_about_left()
    }

    /// Whether it is about what a program left.
    fn is_about_left(&self) -> bool {
        matches!(&self.expected.what, What::Note(note) if note == "left")
    }
}

/// Looks for all that is expected of a run.
pub fn judge(run: &Events, outcome: &[Expected]) -> Result<Vec<Finding>> {
    let finding = |expected: &Expected| Finding {
        expected: expected.clone(),
        found: Vec::new(),
        instead: None,
        printed: String::new(),
        is_excused: false,
    };
    let mut findings: Vec<Finding> = outcome.iter().map(finding).collect();
    for line in run.lines() {
        let Some(count) = flushed(line) else { continue };
        for expected in findings.iter_mut().map(|finding| &mut finding.expected) {
            if let (What::Printed(text), true) = (&mut expected.what, is_node(&line.node, &expected.node)) {
                let other = count.parse::<u32>().map_or(String::new(), |count| (count + 1).to_string());
                *text = text.replace(FLUSHED, count).replace(UNFLUSHED, &other);
            }
        }
    }
    seen::each(run, |seen| {
        // Of those that come after another, the last comes first: one event is not found for both.
        for at in (0..findings.len()).rev() {
            let is_early = findings[at].expected.then && at > 0 && findings[at - 1].found.is_empty();
            if !is_early {
                findings[at].look_at(&seen);
            }
        }
    })?;
    let mut begin = 0;
    while begin < findings.len() {
        let others = findings[begin + 1..].iter().take_while(|finding| finding.expected.or).count();
        let group = &mut findings[begin..=begin + others];
        let is_any = group.iter().any(Finding::is_met);
        group.iter_mut().for_each(|finding| finding.is_excused = is_any && others > 0);
        begin += others + 1;
    }
    Ok(findings)
}

impl Finding {
    fn look_at(&mut self, seen: &Seen) {
        let wanted = &self.expected.node.clone();
        match (seen, &self.expected.what) {
            (Seen::Packet { node, row, bytes }, What::Packet(packet)) if is_node(node, wanted) => {
                self.found.extend(fits(row, bytes, packet).then_some(row.frame));
            }
            (Seen::Line(line), What::Printed(_) | What::Call(_) | What::Event(_) | What::Note(_)) => {
                let is_it = is_node(&line.node, wanted) && (is_it(line, &self.expected.what) || self.ends_with(line));
                let is_forbidden = self.expected.times == Some(0);
                let is_other =
                    matches!(self.expected.what, What::Printed(_)) && is_node(&line.node, wanted) && is_plain(line);
                if is_it && is_forbidden || !is_it && !is_forbidden && is_other {
                    self.instead = Some(line.text.clone());
                }
                self.found.extend(is_it.then_some(line.number));
            }
            (Seen::Line(line), What::Line(text)) if is_node(&line.node, wanted) && line.text.contains(text) => {
                // What the library logs on standard error a program does not say itself.
                let is_forged = !line.error && OF_LIBRARY.iter().any(|begin| text.starts_with(begin));
                self.found.extend((!is_forged).then_some(line.number));
            }
            (Seen::Line(line), What::Exit(exit)) if is_node(&line.node, wanted) && is_end(line) => {
                match line.ends_program().map(Exit::number) == Some(*exit) {
                    true => self.found.push(line.number),
                    false => self.instead = Some(line.text.clone()),
                }
            }
            _ => {}
        }
    }
}

impl Finding {
    /// Whether a long text that a program has cut into lines ends with this line. (Some terminals, and some people, do not like long
    /// lines.)
    fn ends_with(&mut self, line: &Line) -> bool {
        let What::Printed(text) = &self.expected.what else { return false };
        if text.len() <= LONG || !is_own(line) {
            return false;
        }
        self.printed += &line.text;
        let is_whole = self.printed.contains(text);
        let rest = self.printed.len().saturating_sub(2 * text.len());
        let rest = (rest..).find(|at| self.printed.is_char_boundary(*at)).unwrap_or(0);
        self.printed = if is_whole { String::new() } else { self.printed.split_off(rest) };
        is_whole
    }
}

/// Whether a program has printed a line by itself that is about no error.
fn is_plain(line: &Line) -> bool {
    is_own(line) && !line.error && line.tag().is_none() && !line.text.is_empty()
}

/// Whether a line is the program's own with this in it, or its device's with what is looked for.
fn is_it(line: &Line, what: &What) -> bool {
    match what {
        What::Printed(text) => is_own(line) && line.text.contains(text),
        What::Call(call) => calls(line, call),
        What::Event(event) => gets(line, event),
        What::Note(note) => notes(line, note),
        _ => false,
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Expected { node, what, times, then, or, .. } = &self.expected;
        // What must not be, and is.
        let is_left = self.is_about_left();
        let is_wrong = *times == Some(0) && !self.is_met() && !is_left;
        if *or && !self.is_excused {
            f.write_str("or ")?;
        }
        if *then {
            f.write_str("then ")?;
        }
        match node.as_str() {
            ANY => f.write_str("one side")?,
            node => write!(f, "the {node}")?,
        }
        match what {
            _ if is_left => f.write_str(" leaves nothing")?,
            What::Note(_) => f.write_str("'s device")?,
            _ => {}
        }
        if *times == Some(0) && !is_wrong && !is_left {
            f.write_str(" never")?;
        }
        match what {
            What::Packet(packet) => write!(f, " sends: {packet}")?,
            // It is a part of a line: the quotation may go on.
            What::Line(line) if line.matches('"').count() % 2 == 1 => write!(f, " says: {line} …\"")?,
            What::Line(line) => write!(f, " says: {line}")?,
            What::Printed(text) if text.len() > LONG => {
                write!(f, " prints: {} … ({} bytes)", text.chars().take(LONG).collect::<String>(), text.len())?;
            }
            What::Printed(text) => write!(f, " prints: {text}")?,
            What::Call(call) => write!(f, " calls: {call}")?,
            What::Event(event) => write!(f, " gets the event {event}")?,
            What::Note(_) if is_left => {}
            What::Note(note) => write!(f, " notes: {note}")?,
            What::Exit(status) => write!(f, " ends with status {status}")?,
        }
        if let Some(times @ 1..) = times {
            let at_most = if self.expected.at_most { " at most" } else { "" };
            write!(f, ",{at_most} {times} times")?;
        }
        match (self.found.as_slice(), &self.instead) {
            ([], _) if self.is_met() => Ok(()),
            ([], Some(instead)) if instead.len() > LONG => {
                write!(f, " (there is: {} …)", instead.chars().take(LONG).collect::<String>())
            }
            ([], Some(instead)) => write!(f, " (there is: {instead})"),
            ([], None) => f.write_str(" (it didn't)"),
            (_, Some(instead)) if is_wrong => write!(f, ", and must not (there is: {instead})"),
            (_, Some(instead)) if *times == Some(0) => write!(f, " (there is: {instead})"),
            // Where a program ended is never shown beside it; and where only packets are, no other line is.
            (_, _) if matches!(what, What::Exit(_)) || f.alternate() && !matches!(what, What::Packet(_)) => {
                f.write_str(if is_wrong { ", and must not" } else { "" })
            }
            (numbers, _) => {
                let shown: Vec<String> = numbers.iter().take(MOST_SHOWN).map(u64::to_string).collect();
                let more = if numbers.len() > shown.len() { " …" } else { "" };
                f.write_str(if is_wrong { ", and must not" } else { "" })?;
                write!(f, " (frame {}{more})", shown.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found in a recorded run.
    fn recorded(outcome: &str) -> Vec<Finding> {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../captures/04_rdma_write.pcapng");
        let outcome: Vec<Expected> = outcome.lines().map(|line| line.to_owned().try_into().unwrap()).collect();
        judge(&seen::read(&std::fs::read(file).unwrap()).unwrap(), &outcome).unwrap()
    }

    #[test]
    fn packets_lines_and_ends_are_found_where_they_are() {
        for (outcome, is_met) in [
            ("client sends 1 times: RDMA Write Only", true),
            ("client sends: RDMA Write Only  len 60", true),
            ("client sends: RDMA Write Only  len 61", false),
            ("client sends: REQ  qp …", true),
            ("client sends: REQ  private data of …", false),
            ("server never sends: RDMA Write Only", true),
            ("client sends 1 times: REQ", true),
            ("client sends 1 times: ConnectRequest", true),
            ("server sends 3 times: Acknowledge", false),
            ("client says: the memory holds", false),
            ("any says: the memory holds 60 bytes", true),
            ("client exits: 0", true),
            ("client sends at most 1 times: REQ", true),
            ("server sends at most 1 times: Acknowledge", false),
            ("client says: rdma_connect\nthen client says: rdma_disconnect", true),
            ("client says: rdma_disconnect\nthen client says: rdma_connect", false),
            // One line is not behind itself.
            ("client says: client clean-up\nthen client says: client clean-up", false),
        ] {
            assert_eq!(recorded(outcome).last().unwrap().is_met(), is_met, "{outcome}");
        }
    }

    #[test]
    fn a_judged_run_is_decoded_once() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../captures/04_rdma_write.pcapng");
        let file = std::fs::read(file).unwrap();
        let before = roce::packet::DECODED.get();
        let run = seen::read(&file).unwrap();
        judge(&run, &["client sends: RDMA Write Only".to_owned().try_into().unwrap()]).unwrap();
        assert_eq!(roce::packet::DECODED.get() - before, run.packets().count() as u64);
    }

    #[test]
    fn what_is_found_is_told_in_words() {
        let told = |outcome: &str| recorded(outcome)[0].to_string();
        assert_eq!(told("client says: the memory holds"), "the client says: the memory holds (it didn't)");
        assert_eq!(told("client exits: 1"), "the client ends with status 1 (there is: exit status 0)");
        assert_eq!(told("client exits: 0"), "the client ends with status 0");
        assert_eq!(told("server never sends: NAK"), "the server never sends: NAK");
        assert!(told("server says: holds 60 bytes: \"One")
            .starts_with("the server says: holds 60 bytes: \"One …\" (frame "));
        let beside_packets = |outcome: &str| format!("{:#}", recorded(outcome)[0]);
        assert_eq!(beside_packets("client says: rdma_connect"), "the client says: rdma_connect");
        assert!(beside_packets("client sends: REQ").starts_with("the client sends: REQ (frame "));
        assert_eq!(seen::read(b"no").unwrap_err().to_string(), "this isn't a run file");
    }
}
