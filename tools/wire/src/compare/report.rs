//! What a comparison found, as text for people and as JSON for tools.

use serde::{Serialize, Serializer};
use serde_json::{json, Value};
use std::fmt;

/// The one-word result. Its number is the exit status of `wire compare`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Both captures tell the same story.
    Same = 0,
    /// They do not.
    Different = 1,
    /// A capture is too poor to be judged.
    Unreadable = 2,
}

/// Which property of the conversation differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Field {
    /// How many connections there are.
    Connections,
    /// Service ID or transport of the connection request.
    Service,
    /// Whether the client brings a queue pair.
    QueuePair,
    /// Whether READs and atomics are possible.
    ReadDepth,
    /// What a CM message carries for the program.
    PrivateData,
    /// Accepted, rejected or not answered.
    Answer,
    /// Why it was rejected.
    RejectReason,
    /// The third step of the handshake.
    ReadyToUse,
    /// Who hangs up, and whether the peer answers.
    Disconnect,
    /// A request that yours lacks.
    Missing,
    /// A request that only yours has.
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
    Solicited,
    /// The bytes of a message.
    Payload,
}

/// One difference, told as a teacher would.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What differs.
    pub field: Field,
    /// One sentence.
    pub sentence: String,
    /// The lesson's step, from the comment in the reference.
    pub step: Option<String>,
    /// The frames of yours that show it.
    #[serde(serialize_with = "with_filter")]
    pub mine: Vec<u64>,
    /// The frames of the reference that show it.
    #[serde(serialize_with = "with_filter")]
    pub reference: Vec<u64>,
}

/// What a comparison found.
#[derive(Clone, Debug, Default, Serialize)]
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
        let mut json = json!(self);
        json["verdict"] = json!(self.verdict());
        json
    }
}

fn with_filter<S: Serializer>(frames: &[u64], serializer: S) -> Result<S::Ok, S::Error> {
    json!({ "frames": frames, "filter": filter(frames) }).serialize(serializer)
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
        if self.verdict() == Verdict::Same {
            writeln!(f, "The same story: {}.", self.summary)?;
        }
        let cause = self.cause.iter().map(|cause| ("Different", cause));
        for (word, difference) in cause.chain(self.also.iter().map(|also| ("Also", also))) {
            writeln!(f, "{word}: {}.", difference.sentence)?;
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
