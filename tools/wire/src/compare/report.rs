//! What a comparison found, as text for people and as JSON for tools.

use serde::{Serialize, Serializer};
use serde_json::{json, Value};
use std::fmt;

/// The one-word result. Its number is the exit status of `wire compare --exit-code`.
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

/// What explains what: the smaller is the cause of the larger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Getting connected.
    #[default]
    Connect,
    /// A request that failed: nothing can follow it.
    Failure,
    /// What the requests are.
    Data,
    /// Hanging up.
    Disconnect,
}

/// One difference, told as a teacher would.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What differs: `connections`; of getting connected `service`, `queue-pair`, `read-depth`, `private-data`, `answer`,
    /// `reject-reason`, `ready-to-use`; of a request `missing`, `extra`, `operation`, `outcome`, `length`, `immediate`,
    /// `operands`, `solicited`, `key`, `address`, `payload`; and `disconnect`.
    pub field: &'static str,
    /// One sentence.
    pub sentence: String,
    /// What that means, or what to look at.
    pub hint: Option<String>,
    /// The lesson's step, from the comment in the reference.
    pub step: Option<String>,
    /// The frames of yours that show it.
    #[serde(serialize_with = "with_filter")]
    pub mine: Vec<u64>,
    /// The frames of the reference that show it.
    #[serde(serialize_with = "with_filter")]
    pub reference: Vec<u64>,
    /// What explains the rest comes first: its phase, and the place in that; of equal ones the first that was found.
    #[serde(skip)]
    pub(super) rank: (Phase, u64),
    /// Yours and the reference's, if it is a number that differs.
    #[serde(skip)]
    pub(super) numbers: (u64, u64),
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

/// The most that anybody reads at a time.
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
            write!(f, "{word}: {}.\n{}", difference.sentence, place(difference).concat())?;
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

/// What a difference means, and where to look: lines.
fn place(difference: &Difference) -> Vec<String> {
    let told = [("hint", &difference.hint), ("the step", &difference.step)];
    let told = told.into_iter().filter_map(|(what, text)| Some(format!("  {what:<13} {}\n", text.as_ref()?)));
    let frames = [("yours", &difference.mine), ("the reference", &difference.reference)];
    let frames = frames.into_iter().filter(|(_, frames)| !frames.is_empty()).map(|(whose, frames)| {
        let numbers: Vec<String> = frames.iter().map(u64::to_string).collect();
        let noun = if frames.len() == 1 { "frame" } else { "frames" };
        let numbers = format!("{noun} {}", numbers.join(", "));
        format!("  {whose:<13} {numbers:<18} in Wireshark: {}\n", filter(frames))
    });
    told.chain(frames).collect()
}

/// `1 packet`, `2 packets`.
pub(super) fn plural(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// The first bytes, as a person would quote them.
pub(super) fn hex(bytes: &[u8]) -> String {
    const MOST: usize = 16;
    let text: Vec<String> = bytes.iter().take(MOST).map(|byte| format!("{byte:02x}")).collect();
    format!("{}{}", text.join(" "), if bytes.len() > MOST { " …" } else { "" })
}
