//! The explanation, for people and for tools.

use super::capture;
use super::ending::RecordEnd;
use super::finding::Finding;
use crate::reading::Inside;
use run::lanes::wrap;
use run::look::{printable, Style};
use serde::Serialize;
use serde_json::{json, Value};
use std::fmt;

/// A connection: who and what, and what went wrong on it, the gravest first.
#[derive(Clone, Debug, Serialize)]
pub struct ConnectionReport {
    /// Who, and what they did.
    pub heading: String,
    /// What went wrong.
    pub findings: Vec<Finding>,
    /// Programs of it that a signal killed.
    pub died: Vec<Died>,
    /// What its programs complained of.
    pub printed: Vec<Printed>,
    /// So many of its answers were cut before the byte that tells an ACK from a NAK.
    pub cut_answers: u64,
    /// Some of its packets came as IP fragments, which aren't read.
    pub is_fragmented: bool,
}

/// A program that a signal killed, in a run file.
#[derive(Clone, Debug, Serialize)]
pub struct Died {
    /// The program of a side of the connection, or of a node.
    pub who: String,
    /// The node that it ran on.
    pub node: String,
    /// The signal's number.
    pub signal: i32,
    /// The same in words: `was killed by signal 11 (SIGSEGV)`.
    pub how: String,
    /// The number of the line that reports it, counted with the frames.
    pub line: u64,
}

/// A program's own words about what went wrong, in a run file.
#[derive(Clone, Debug, Serialize)]
pub struct Printed {
    /// The side of the connection, or the node.
    pub who: String,
    /// What it printed.
    pub text: String,
    /// Its number in the file, counted with the frames.
    pub line: u64,
}

/// What a capture says.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Explanation {
    /// The number of the last frame, counted as Wireshark does.
    pub frames: u64,
    /// RoCEv2 packets.
    pub packets: u64,
    /// Of these the ones of which it can be said whether they went wrong.
    pub judged: u64,
    /// Those of them that were inside a tunnel, by what that was.
    pub inside: Inside,
    /// In the order in which they began.
    pub connections: Vec<ConnectionReport>,
    /// How the record ends, if it is a run's.
    pub record: Option<RecordEnd>,
    /// Programs without a connection that a signal killed.
    pub died: Vec<Died>,
    /// What programs complained of, where it cannot be told on which connection.
    pub printed: Vec<Printed>,
    /// About the capture itself.
    pub notes: Vec<String>,
}

/// So many connections are told whole; `--json` has all.
const MOST: usize = 32;

impl Explanation {
    /// Whether something went wrong, as packets or programs tell. That a capture ends too early is nothing that went wrong.
    pub fn is_wrong(&self) -> bool {
        let is_said = !self.printed.is_empty() || self.connections.iter().any(|told| !told.printed.is_empty());
        let has_died = !self.died.is_empty() || self.connections.iter().any(|told| !told.died.is_empty());
        is_said || has_died || self.findings().any(|finding| !finding.cause.is_doubt())
    }

    /// The exit status: 1 if something went wrong; else 2 if nothing could be judged, so that silence isn't taken for a yes.
    pub fn status(&self) -> u8 {
        match (self.is_wrong(), self.judged) {
            (true, _) => 1,
            (false, 0) => 2,
            (false, _) => 0,
        }
    }

    /// All that went wrong on any connection.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.connections.iter().flat_map(|connection| &connection.findings)
    }

    /// For tools.
    pub fn to_json(&self) -> Value {
        json!(self)
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(Style::FILE.width))
    }
}

impl Explanation {
    /// For people, in lines of this many columns. Where something went wrong is first.
    pub fn text(&self, width: usize) -> String {
        let mut lines = Vec::new();
        if self.packets == 0 {
            lines.push(format!(
                "There is no RoCEv2 packet (UDP port 4791) in the {} frames of the capture.",
                self.frames
            ));
        }
        for (told, number) in self.first() {
            lines.push(format!("Connection {number}: {}.", told.heading));
            lines.extend(told.died.iter().map(|died| format!("  {}.", died.sentence())));
            if told.findings.is_empty() && told.died.is_empty() {
                lines.push(format!("  {}", told.nothing()));
            }
            lines.extend(told.findings.iter().flat_map(of_finding));
            lines.extend(told.printed.iter().map(|printed| format!("  {}", printed.sentence())));
        }
        lines.extend(self.died.iter().map(|died| died.sentence() + "."));
        lines.extend(self.printed.iter().map(Printed::sentence));
        if self.connections.len() > MOST {
            lines.push(format!("{} more connections (--json has them all).", self.connections.len() - MOST));
        }
        lines.extend(self.notes.iter().map(|note| format!("Note: {note}.")));
        let wrapped = lines.iter().flat_map(|line| wrap(&printable(line), width));
        wrapped.map(|line| line + "\n").collect()
    }
}

impl Explanation {
    /// The connections that are told whole, with their numbers: those on which something went wrong are first.
    fn first(&self) -> impl Iterator<Item = (&ConnectionReport, usize)> {
        let (wrong, right): (Vec<_>, Vec<_>) =
            self.connections.iter().zip(1..).partition(|(told, _): &(&ConnectionReport, usize)| told.is_wrong());
        wrong.into_iter().chain(right).take(MOST)
    }

    /// All of it in a sentence, which agrees with the exit status.
    fn verdict(&self) -> &'static str {
        match (self.status(), self.packets, self.findings().next()) {
            (1, ..) => "Something went wrong.",
            (_, 0, _) => "There is nothing to explain.",
            (2, ..) => "Whether anything went wrong can't be told.",
            (.., Some(_)) => "Nothing that it shows went wrong for certain; what it leaves open is below.",
            (.., None) => "Nothing that it shows went wrong.",
        }
    }

    /// For a page: what [`Self::text`] says, in parts.
    pub fn shown(&self) -> Value {
        let finding = |finding: &Finding| {
            json!({
                "sentence": printable(&finding.sentence()), "frames": finding.frames, "often": finding.often(),
                "fault": finding.whose(), "look": finding.look, "page": finding.page, "is_doubt": finding.cause.is_doubt(),
            })
        };
        let connection = |(told, number): (&ConnectionReport, usize)| {
            let findings: Vec<Value> = told.findings.iter().map(finding).collect();
            let nothing = (findings.is_empty() && told.died.is_empty()).then(|| told.nothing());
            json!({
                "number": number, "heading": printable(&told.heading), "findings": findings,
                "nothing": nothing, "printed": sentences(&told.died, &told.printed),
            })
        };
        json!({
            "frames": self.frames, "packets": self.packets, "verdict": self.verdict(),
            "connections": self.first().map(connection).collect::<Vec<_>>(),
            "printed": sentences(&self.died, &self.printed),
            "more": self.connections.len().saturating_sub(MOST),
            "notes": self.notes.iter().map(|note| printable(note)).collect::<Vec<_>>(),
        })
    }
}

impl ConnectionReport {
    pub(super) fn new(heading: String, findings: Vec<Finding>) -> ConnectionReport {
        ConnectionReport {
            heading,
            findings,
            died: Vec::new(),
            printed: Vec::new(),
            cut_answers: 0,
            is_fragmented: false,
        }
    }

    /// Packets of it are in the capture, but couldn't be read. So what rests on a packet that isn't there is no finding.
    pub(super) fn lacks_packets(&mut self) {
        self.is_fragmented = true;
        self.findings.retain(|finding| !finding.cause.rests_on_a_missing_packet());
    }

    /// Refusals of requests that the capture lacks.
    pub(super) fn stray(stray: capture::OrphanAnswers) -> ConnectionReport {
        let (from, to) = stray.way;
        let to = stray.qp.map_or(to.to_string(), |qp| format!("qp {qp:#x} of {to}"));
        ConnectionReport::new(format!("from {from} to {to}; what it answers isn't in the capture"), stray.findings)
    }

    /// Whether packets show, or programs say, that something is wrong with it.
    fn is_wrong(&self) -> bool {
        !self.findings.is_empty() || !self.died.is_empty() || !self.printed.is_empty()
    }

    /// What is said of one without findings.
    fn nothing(&self) -> &'static str {
        match self.printed.is_empty() {
            true if self.is_fragmented => {
                "Whether anything went wrong can't be told: packets came as IP fragments, and aren't read."
            }
            true if self.cut_answers > 0 => {
                "Whether anything went wrong can't be told: answers are cut before the byte that tells an ACK from a NAK."
            }
            true => "Nothing that this capture shows went wrong.",
            false => "No packet shows that anything went wrong; a program says so:",
        }
    }
}

impl Printed {
    fn sentence(&self) -> String {
        format!("{} printed (frame {}): {}", capital(&self.who), self.line, self.text)
    }
}

impl Died {
    fn sentence(&self) -> String {
        format!("{} {} (frame {})", capital(&self.who), self.how, self.line)
    }
}

/// What lines of the file tell, each with its number, by which a page shows it.
fn sentences(died: &[Died], printed: &[Printed]) -> Vec<Value> {
    let died = died.iter().map(|died| (died.sentence() + ".", died.line));
    let printed = printed.iter().map(|printed| (printed.sentence(), printed.line));
    died.chain(printed).map(|(sentence, line)| json!({ "sentence": printable(&sentence), "frame": line })).collect()
}

/// A sentence begins with a capital letter.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    first + letters.as_str()
}

impl Finding {
    /// What it is, without the full stop.
    fn sentence(&self) -> String {
        capital(&self.text)
    }

    /// How often, if more than once.
    fn often(&self) -> String {
        if self.count > 1 {
            format!("; {} times in all", self.count)
        } else {
            String::new()
        }
    }

    /// Whose fault it looks like, and whether that matters.
    fn whose(&self) -> String {
        let mended = if self.is_mended { "; the protocol mends it by itself" } else { "" };
        format!("{}{mended}", self.fault)
    }
}

fn of_finding(finding: &Finding) -> [String; 4] {
    let Finding { frames, look, page, .. } = finding;
    let numbers: Vec<String> = frames.iter().map(u64::to_string).collect();
    let noun = if frames.len() == 1 { "frame" } else { "frames" };
    [
        format!("  {} ({noun} {}{}).", finding.sentence(), numbers.join(", "), finding.often()),
        format!("    fault:   {}", finding.whose()),
        format!("    look at: {look}"),
        format!("    page:    {page}"),
    ]
}
