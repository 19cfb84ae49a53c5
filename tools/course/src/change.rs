//! Reading `lessons/NN_topic/changes/NAME.toml`: one change to a lesson, and what must come of it.
//!
//! ```toml
//! title = "Post the receive too late"
//! ask = "Which of the two programs notices?"
//! why = "The explanation, in Markdown: it stands on the lesson's page, too."
//! # server, client = "options"   wire = "rules", as those of `make lesson-NN`
//! # compile = "error[E0505]"     it does not build: the compiler says this, and there is no outcome
//! # faults = ["FAULT", …]        what happens to the machines, as `lab exec --fault`; a packet or a log line sets it off:
//! #                              "kill server when SLOW  rdma_accept", "power-off client when client sends RC Send Only",
//! #                              "on server rdma link delete rxe0 when …", "on client ip link set eth0 down when …"
//! # kernel = true                only the kernel's own driver or machine does this, so the device never runs it (nor faults)
//! # deadline = 10                seconds that the programs may run; 45 in the lab and 20 on the device unless this is said
//! # capture = true               the recorded run is kept as captures/changes/NN-NAME.pcapng
//!
//! # [nodes]                      commands in place of the two sides of the lesson, and of more clients. In them `lesson` is
//! # client = "rping -c -a $SERVER -C 1"                    the changed lesson's program, and `examples/NAME` an example of
//! # client-2 = "lesson client -a $SERVER"                  `common`: "examples/odd_peer client $SERVER send=ff"
//!
//! [[edits]]
//! file = "src/server.rs"         # below the lesson's folder
//! from = "…"                     # stands there exactly once
//! to = "…"
//!
//! [[outcome]]                    # in the words of `wire show`
//! node = "server"                # or "any"
//! packet = "RNR NAK"             # a packet that the node sends: its name, and what else is said of it
//! times = 2                      # exactly so many; at least one unless this is said
//! # hint = "…"                   # an exercise: what it means if this is not so; said behind it
//!
//! [[outcome]]
//! node = "client"
//! line = "status=IBV_WC_SUCCESS" # the node's program, its kernel, or the lab about it, says this
//! then = true                    # it stands behind the first of the one before
//!
//! [[outcome]]
//! node = "client"
//! exit = 0                       # the program's exit status
//! ```
//!
//! An exercise is a change, too. Its edits make the hole that the reader mends, and what must come of it is what a right
//! solution does; the lesson as it is must be one. In place of a question it has a task and hints:
//!
//! ```toml
//! task = "What is wrong, and where to look."
//! hints = ["After the first failure.", "After the second."]
//! says = "RNR NAK"               # a part of what the judge says about the hole
//!
//! [[right]]                      # an edit to the hole that is another right solution; the tests try it
//! file, from, to = "…"
//! # also = [{ file = "…", from = "…", to = "…" }]          # more edits of the same solution
//!
//! [[wrong]]                      # one that is none
//! file, from, to = "…"
//! says = "RNR NAK"               # a part of what the judge says about it
//!
//! [[accepted_today]]             # one that is none, and that the judge takes all the same: a judge that refuses it makes it
//! file, from, to = "…"           # one of the wrong ones
//! says = "Why it is none."
//! ```
//!
//! An exercise with questions is one in reading: see [`crate::reading`].

pub use crate::edit::{Edit, Solution};
use crate::reading::Question;
use anyhow::{bail, Result};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// One change.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The file's name without its ending.
    #[serde(skip)]
    pub name: String,
    /// The lesson's folder.
    #[serde(skip)]
    pub lesson: PathBuf,
    /// What is done, in a few words.
    pub title: String,
    /// What the reader is asked to predict.
    #[serde(default)]
    pub ask: String,
    /// What the reader has to mend, if this is an exercise.
    pub task: Option<String>,
    /// What helps with that, one more after each failure.
    #[serde(default)]
    pub hints: Vec<String>,
    /// A part of what the judge says about the hole.
    #[serde(default)]
    pub says: String,
    /// Edits to the hole that mend it in other ways than the lesson does.
    #[serde(default)]
    pub right: Vec<Solution>,
    /// Edits to the hole that do not mend it.
    #[serde(default)]
    pub wrong: Vec<Solution>,
    /// Edits to the hole that do not mend it, and that the judge does not see through.
    #[serde(default)]
    pub accepted_today: Vec<Solution>,
    /// The capture that a reading task is about, below the repository's folder.
    #[serde(default)]
    pub read: String,
    /// What a reading task asks.
    #[serde(default)]
    pub questions: Vec<Question>,
    /// What comes of it, and why.
    pub why: String,
    /// Options for the server.
    #[serde(default)]
    pub server: String,
    /// Options for the client.
    #[serde(default)]
    pub client: String,
    /// What happens to packets on the wire.
    #[serde(default)]
    pub wire: String,
    /// Commands of nodes that do not do as the lesson does: other programs, more clients.
    #[serde(default)]
    pub nodes: BTreeMap<String, String>,
    /// What is done to the machines, and when: as `lab exec --fault`.
    #[serde(default)]
    pub faults: Vec<String>,
    /// Whether the device in user space cannot show it.
    #[serde(default)]
    pub kernel: bool,
    /// Seconds that the programs may run.
    pub deadline: Option<u32>,
    /// Whether the recorded run is kept for a page.
    #[serde(default)]
    pub capture: bool,
    /// What the compiler says, if the change does not build.
    pub compile: Option<String>,
    /// What is edited.
    #[serde(default)]
    pub edits: Vec<Edit>,
    /// What must be in the run file.
    #[serde(default)]
    pub outcome: Vec<Expected>,
}

/// Something that a run file must show. One of packet, line and exit is given.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// Who sends or says it.
    pub node: String,
    /// A packet's name as `wire show` prints it; behind it, after two spaces, what else is said about it.
    pub packet: Option<String>,
    /// A part of a line.
    pub line: Option<String>,
    /// The exit status.
    pub exit: Option<i32>,
    /// How often, if that matters.
    pub times: Option<usize>,
    /// Whether only what stands behind the first of the expectation before counts.
    #[serde(default)]
    pub then: bool,
    /// What it means if it is not so.
    #[serde(default)]
    pub hint: String,
}

impl Change {
    /// How people call it: `03-late-receive`.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}-{}", self.number(), self.name)
    }

    /// Its lesson's number: `03`.
    #[must_use]
    pub fn number(&self) -> String {
        number(&self.lesson)
    }

    /// Whether the device in user space cannot show it.
    #[must_use]
    pub fn needs_kernel(&self) -> bool {
        self.kernel || !self.faults.is_empty()
    }

    /// Whether something is to be read, and nothing to be run.
    #[must_use]
    pub fn is_reading(&self) -> bool {
        !self.questions.is_empty()
    }

    /// Whether a line of code that this takes out of the lesson is taken out by another change, too.
    #[must_use]
    pub fn is_told_by(&self, other: &Self) -> bool {
        self.edits.iter().any(|ours| other.edits.iter().any(|theirs| ours.is_told_by(theirs)))
    }

    /// The files in which the reader of an exercise has to look: those with a word about it, if any has one.
    #[must_use]
    pub fn holes(&self) -> Vec<&str> {
        let marked: Vec<&Edit> = self.edits.iter().filter(|edit| edit.to.contains("// Exercise:")).collect();
        let edits = if marked.is_empty() { self.edits.iter().collect() } else { marked };
        let mut files: Vec<&str> = edits.iter().map(|edit| edit.file.as_str()).collect();
        files.dedup();
        files
    }

    /// A file of the lesson with the change in it.
    ///
    /// # Errors
    /// What is to be edited is not there, or more than once.
    pub fn apply(&self, file: &str, text: &str) -> Result<String> {
        let mut text = text.to_owned();
        for edit in self.edits.iter().filter(|edit| edit.file == file) {
            match text.matches(&edit.from).count() {
                1 => text = text.replacen(&edit.from, &edit.to, 1),
                count => bail!(
                    "{}, change {}: this stands {count} times in {file}, and must stand there once:\n{}",
                    self.lesson.display(),
                    self.name,
                    edit.from
                ),
            }
        }
        Ok(text)
    }
}

/// A lesson's number, by its folder.
pub(crate) fn number(lesson: &Path) -> String {
    let folder = lesson.file_name().unwrap_or_default().to_string_lossy();
    folder.split('_').next().unwrap_or_default().to_owned()
}
