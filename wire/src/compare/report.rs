//! What a comparison found, as text for people and as JSON for tools.

use serde::Serialize;
use serde_json::{json, Value};
use std::fmt;

/// The one-word result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Both captures tell the same story.
    Same,
    /// They do not.
    Different,
    /// A capture is too poor to be judged.
    Unreadable,
}

impl Verdict {
    /// `same`, `different` or `unreadable`.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Same => "same",
            Verdict::Different => "different",
            Verdict::Unreadable => "unreadable",
        }
    }

    /// The exit status of `wire compare`.
    pub fn exit_status(self) -> u8 {
        match self {
            Verdict::Same => 0,
            Verdict::Different => 1,
            Verdict::Unreadable => 2,
        }
    }
}

/// Which property of the conversation differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Field {
    /// How many connections there are.
    Connections,
    /// Service ID or transport of the connection request.
    Service,
    /// Whether the client brings a queue pair.
    #[serde(rename = "queue pair")]
    QueuePair,
    /// Whether READs and atomics are possible.
    #[serde(rename = "read depth")]
    ReadDepth,
    /// What a CM message carries for the program.
    #[serde(rename = "private data")]
    PrivateData,
    /// Accepted, rejected or not answered.
    Answer,
    /// Why it was rejected.
    #[serde(rename = "reject reason")]
    RejectReason,
    /// The third step of the handshake.
    #[serde(rename = "ready to use")]
    ReadyToUse,
    /// Who hangs up, and whether the peer answers.
    Disconnect,
    /// A request that yours lacks.
    #[serde(rename = "missing request")]
    Missing,
    /// A request that only yours has.
    #[serde(rename = "extra request")]
    Extra,
    /// What kind of request it is.
    Operation,
    /// How it ended.
    Outcome,
    /// Bytes moved or announced.
    Length,
    /// Immediate data.
    Immediate,
    /// An rkey.
    Key,
    /// A virtual address.
    Address,
    /// The numbers of an atomic operation.
    Operands,
    /// The solicited event bit.
    #[serde(rename = "solicited event")]
    Solicited,
    /// The bytes of a message.
    Payload,
}

/// One difference, told as a teacher would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What differs.
    pub field: Field,
    /// One sentence.
    pub sentence: String,
    /// The lesson's step, from the comment in the reference.
    pub step: Option<String>,
    /// The frames of yours that show it.
    pub mine: Vec<u64>,
    /// The frames of the reference that show it.
    pub reference: Vec<u64>,
}

/// What a comparison found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Why a capture cannot be judged. If there are any, there is no judgment.
    pub problems: Vec<String>,
    /// The difference that explains the others, if there is any.
    pub cause: Option<Difference>,
    /// Differences that do not follow from it.
    pub also: Vec<Difference>,
    /// What differs without changing the story.
    pub notes: Vec<String>,
    /// What was compared.
    pub summary: String,
}

impl Report {
    /// The result in one word.
    pub fn verdict(&self) -> Verdict {
        match (self.problems.is_empty(), &self.cause) {
            (false, _) => Verdict::Unreadable,
            (true, Some(_)) => Verdict::Different,
            (true, None) => Verdict::Same,
        }
    }

    /// For tools: `verdict`, `problems`, `cause`, `also`, `notes`, `summary`.
    pub fn to_json(&self) -> Value {
        json!({
            "verdict": self.verdict().name(),
            "problems": self.problems,
            "cause": self.cause.as_ref().map(Difference::to_json),
            "also": self.also.iter().map(Difference::to_json).collect::<Vec<_>>(),
            "notes": self.notes,
            "summary": self.summary,
        })
    }
}

impl Difference {
    fn to_json(&self) -> Value {
        json!({
            "field": self.field,
            "sentence": self.sentence,
            "step": self.step,
            "mine": { "frames": self.mine, "filter": filter(&self.mine) },
            "reference": { "frames": self.reference, "filter": filter(&self.reference) },
        })
    }
}

/// A display filter for Wireshark that shows these frames; the same in all its versions.
fn filter(frames: &[u64]) -> String {
    let terms: Vec<String> = frames.iter().map(|frame| format!("frame.number == {frame}")).collect();
    terms.join(" || ")
}

/// Nobody reads more than so many at a time.
const MOST_NOTES: usize = 8;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.problems {
            writeln!(f, "Cannot be judged: {problem}.")?;
        }
        match (&self.cause, self.verdict()) {
            (Some(cause), Verdict::Different) => {
                writeln!(f, "Different: {}.", cause.sentence)?;
                place(f, cause)?;
            }
            (_, Verdict::Same) => writeln!(f, "The same story: {}.", self.summary)?,
            _ => {}
        }
        for difference in &self.also {
            writeln!(f, "Also: {}.", difference.sentence)?;
            place(f, difference)?;
        }
        for note in self.notes.iter().take(MOST_NOTES) {
            writeln!(f, "Note: {note}.")?;
        }
        match self.notes.len().saturating_sub(MOST_NOTES) {
            0 => Ok(()),
            more => writeln!(f, "Note: {more} more notes (--json has them all)."),
        }
    }
}

/// Where to look for a difference.
fn place(f: &mut fmt::Formatter<'_>, difference: &Difference) -> fmt::Result {
    if let Some(step) = &difference.step {
        writeln!(f, "  the step      {step}")?;
    }
    for (whose, frames) in [("yours", &difference.mine), ("the reference", &difference.reference)] {
        if !frames.is_empty() {
            let numbers: Vec<String> = frames.iter().map(u64::to_string).collect();
            let noun = if frames.len() == 1 { "frame" } else { "frames" };
            let numbers = format!("{noun} {}", numbers.join(", "));
            writeln!(f, "  {whose:<13} {numbers:<18} in Wireshark: {}", filter(frames))?;
        }
    }
    Ok(())
}
