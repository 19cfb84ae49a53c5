//! What is written for the player, as JSON.

use super::code::CodeLine;
use super::fields::{Layout, Shown};
use super::memory::Change;
use super::queue_pairs::State;
use serde::Serialize;

/// A run, as the player wants it.
#[derive(Debug, Serialize)]
pub struct Run {
    pub(super) title: String,
    pub(super) about: String,
    /// So many events have happened where it is opened: what the lesson adds begins there.
    pub(super) opens: usize,
    /// From left to right.
    pub(super) nodes: Vec<String>,
    /// Name and text of the sources that [`Event::code`] points to.
    pub(super) files: Vec<(String, String)>,
    pub(super) events: Vec<Event>,
    pub(super) layouts: Vec<Layout>,
    pub(super) texts: Vec<String>,
    /// What the file has beside that, in a sentence; empty if that is all.
    pub(super) left_out: String,
}

/// A log line or a packet. Nodes, files and regions are named by their places in the lists of them. What is empty is not
/// written.
#[derive(Debug, Default, Serialize)]
pub(super) struct Event {
    pub(super) n: u64,
    pub(super) ms: Option<f64>,
    pub(super) node: usize,
    /// Where a packet goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) to: Option<usize>,
    /// SLOW, FAST, DATA, INFO, ERR, or NIC for a device; the name of a packet.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) tag: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) stage: String,
    pub(super) text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) notes: Vec<String>,
    /// The number of the text that says what it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) why: Option<usize>,
    /// A step of the lesson begins here.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) begins: bool,
    /// The class for its color.
    pub(super) sort: &'static str,
    /// File, line from 1, and whether just this line acts; otherwise it is the function's first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) code: Option<CodeLine>,
    /// No program has a part in it: a device answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) device: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) qp: Vec<State>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) memory: Vec<Change>,
    /// The frame in hexadecimal, and how long it was.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) bytes: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) length: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) parts: Vec<Shown>,
}

impl Run {
    /// The events' numbers in the file, in their order.
    pub fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        self.events.iter().map(|event| event.n)
    }

    /// For a script element as well: no character in it can end one.
    #[must_use]
    pub fn json(&self) -> String {
        let json = serde_json::to_string(self).unwrap_or_default();
        json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
    }
}
