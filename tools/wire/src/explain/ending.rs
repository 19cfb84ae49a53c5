//! How a run ended, as its run file tells by fields: which programs a signal killed, and whether the record is whole.

use super::cause::{Blame, Cause};
use super::finding::Finding;
use super::names::Names;
use super::printed::{shortened, Sides};
use super::report::{ConnectionReport, Died};
use roce::track::Side;
use run::exit::Exit;
use run::file::Line;
use serde::Serialize;

/// So many deaths are remembered.
const MOST: usize = 64;
/// A machine's last words may be long, and the run file has them all.
const MOST_CHARACTERS: usize = 400;

/// What a side does, or leaves undone, whose program is dead: its kernel or its device says goodbye for it, or nobody does.
const OF_THE_DEAD: [Cause; 8] = [
    Cause::NoAnswer,
    Cause::NeverThrough,
    Cause::Declined,
    Cause::NeverReady,
    Cause::SilentPeer,
    Cause::HungUp,
    Cause::GoodbyeUnanswered,
    Cause::Unfinished,
];

/// How the record of a run ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordEnd {
    /// The run came to its end.
    Whole,
    /// This signal ended the run, as it is in this line.
    Stopped {
        /// Its number.
        signal: i32,
        /// Counted with the frames.
        line: u64,
    },
    /// There was no more room to write it.
    Full {
        /// The line that reports it.
        line: u64,
    },
    /// Nobody has written an end.
    Open,
}

/// What is heard of that while the file is read.
#[derive(Debug, Default)]
pub(super) struct Ending {
    record: Option<RecordEnd>,
    /// In words.
    why: String,
    dead: Vec<Died>,
    /// Why the run as a whole failed or ended a program, and where the file says so. The first reason is usually the cause of the
    /// others.
    trouble: Option<String>,
    /// The nodes whose programs the run has ended.
    ended: Vec<String>,
}

impl Ending {
    pub(super) fn hear(&mut self, line: &Line) {
        if line.program != Line::LAB {
            return;
        }
        let signal = line.exit.and_then(killer);
        match (line.act.as_str(), signal) {
            (Line::TROUBLE, _) => {
                // Trouble about a node means that the run ends its program, and the line says why.
                let what = if line.node.is_empty() { "the run itself failed: " } else { "" };
                let text = || format!("{what}{} (frame {})", shortened(&line.text, MOST_CHARACTERS), line.number);
                self.trouble.get_or_insert_with(text);
                self.ended.extend((!line.node.is_empty()).then(|| line.node.clone()));
            }
            // Whoever ends a run ends its programs: that is no news of each.
            (Line::EXIT, Some(signal)) if !self.is_expected(line) && self.dead.len() < MOST => {
                let verb = if line.exit == Some(Exit::Signal(signal)) { "was" } else { "ended with" };
                let (node, how) = (line.node.clone(), format!("{verb} {}", line.text));
                self.dead.push(Died { who: format!("the program on {node}"), node, signal, how, line: line.number });
            }
            (Line::STOP, Some(signal)) => self.ends(RecordEnd::Stopped { signal, line: line.number }, line),
            (Line::FULL, _) => self.ends(RecordEnd::Full { line: line.number }, line),
            (Line::END, _) if self.record.is_none() || self.record == Some(RecordEnd::Open) => {
                self.record = Some(RecordEnd::Whole);
            }
            _ => drop(self.record.get_or_insert(RecordEnd::Open)),
        }
    }

    fn ends(&mut self, record: RecordEnd, line: &Line) {
        self.record = Some(record);
        self.why = format!("{} (frame {})", line.text, line.number);
    }

    /// Whether it was the run that ended this program.
    fn is_expected(&self, line: &Line) -> bool {
        matches!(self.record, Some(RecordEnd::Stopped { .. })) || self.ended.contains(&line.node)
    }

    /// How the record ends; None for a capture that is of no run.
    pub(super) fn record(&self) -> Option<RecordEnd> {
        self.record.clone()
    }

    /// What is to be said about the run, and about its record.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        self.trouble.clone().into_iter().chain(self.of_record())
    }

    fn of_record(&self) -> Option<String> {
        match self.record.as_ref()? {
            RecordEnd::Whole => None,
            RecordEnd::Stopped { .. } => {
                Some(format!("{}: requests that were unfinished then didn't fail in any other way", self.why))
            }
            RecordEnd::Full { .. } => Some(self.why.clone()),
            RecordEnd::Open => {
                let why =
                    "the file ends without an end: what recorded it was killed, had no room left, or is still at work";
                Some(why.to_owned())
            }
        }
    }

    /// Tells each death where it belongs, which is the last connection of that node; those that remain are returned.
    pub(super) fn tell(self, sides: &[Sides], names: &[Names], told: &mut [ConnectionReport]) -> Vec<Died> {
        let mut others = Vec::new();
        for mut died in self.dead {
            let side_of = |sides: &Sides| {
                Side::BOTH.into_iter().find(|side| sides.nodes[*side as usize].as_deref() == Some(&died.node))
            };
            let before = sides.iter().enumerate().filter(|(_, sides)| sides.first < died.line);
            match before.filter_map(|(at, sides)| Some((at, side_of(sides)?))).next_back() {
                Some((at, side)) => {
                    died.who = format!("the program of {}", &names[at][side]);
                    told[at].findings.iter_mut().for_each(|finding| blame(&died, finding));
                    told[at].died.push(died);
                }
                None => others.push(died),
            }
        }
        others
    }
}

/// The signal that killed a program, also one that a shell ran.
fn killer(exit: Exit) -> Option<i32> {
    Exit::of_shell(exit.number()).signal().filter(|signal| *signal < 32)
}

/// A death explains what looks like somebody's decision.
fn blame(died: &Died, finding: &mut Finding) {
    if OF_THE_DEAD.contains(&finding.cause) {
        finding.blame = Blame::Program;
        finding.fault = format!("{}, which {}", died.who, died.how);
    }
}
