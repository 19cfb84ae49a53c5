//! Challenges: what somebody is to make happen on the workbench. Each is a section of a page in `challenges/`, with a script to begin
//! with, what a run must show, and what there is to understand. Beside each page is another one, `NAME.proof.md`, with right scripts and
//! wrong ones; they're for the tests, and don't go into the program.

use judge::expected::{Expectation, Expected};
use judge::judge;
use run::capture::Events;
use serde_json::{json, Value};
use std::collections::BTreeSet;

/// The pages, in the order of the course.
const PAGES: [&str; 11] = [
    include_str!("../challenges/what_is_rdma.md"),
    include_str!("../challenges/03_metadata_exchange.md"),
    include_str!("../challenges/04_rdma_write.md"),
    include_str!("../challenges/05_rdma_read.md"),
    include_str!("../challenges/06_send_recv_state_machine.md"),
    include_str!("../challenges/07_disconnect_flush.md"),
    include_str!("../challenges/10_going_fast.md"),
    include_str!("../challenges/11_datagrams.md"),
    include_str!("../challenges/17_one_sided.md"),
    include_str!("../challenges/18_reliable.md"),
    include_str!("../challenges/20_congestion.md"),
];

/// A challenge, as it's written.
#[allow(missing_docs)] // The names say it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Challenge {
    pub name: &'static str,
    /// The page of the course that it belongs to.
    pub page: &'static str,
    pub title: &'static str,
    /// What to make happen.
    pub task: String,
    /// What there is to discover.
    pub idea: String,
    pub hints: Vec<String>,
    /// The script to begin with.
    pub begin: &'static str,
    /// What the run must show, as [`judge::expected`] reads it.
    pub passes_when: &'static str,
    /// What's said when it's done.
    pub afterwards: String,
}

/// What a judge says of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether everything is as it must be.
    pub passed: bool,
    /// What's lacking, in sentences.
    pub says: String,
}

/// All challenges.
pub fn all() -> Vec<Challenge> {
    PAGES.iter().flat_map(|page| challenges(page)).collect()
}

fn challenges(text: &'static str) -> Vec<Challenge> {
    let mut sections = text.split("\n## ");
    let page = sections.next().unwrap_or_default().trim_start_matches('#').trim();
    sections.map(|section| Challenge::read(page, section)).collect()
}

impl Challenge {
    fn read(page: &'static str, section: &'static str) -> Challenge {
        let mut parts = section.split("\n### ");
        let first = parts.next().unwrap_or_default();
        let (heading, task) = first.split_once('\n').unwrap_or((first, ""));
        let (name, title) = heading.split_once(": ").unwrap_or((heading, heading));
        let mut challenge = Challenge { name, page, title, task: prose(task), ..Challenge::default() };
        for part in parts {
            let (heading, text) = part.split_once('\n').unwrap_or((part, ""));
            match heading {
                "Idea" => challenge.idea = prose(text),
                "Hint" => challenge.hints.push(prose(text)),
                "Begin" => challenge.begin = fenced(text, "text").unwrap_or_default(),
                "Pass when" => challenge.passes_when = fenced(text, "text").unwrap_or_default(),
                _ => challenge.afterwards = prose(text),
            }
        }
        challenge
    }

    /// What the run must show.
    ///
    /// # Errors
    /// A line isn't understood.
    pub fn expected(&self) -> anyhow::Result<Vec<Expected>> {
        match Expectation::parse(self.passes_when, BTreeSet::new())? {
            Expectation::Runs(expected) => Ok(expected),
            Expectation::Refused(_) => anyhow::bail!("a challenge is passed by a run, and none is refused before it"),
        }
    }

    /// What the judge says of a run.
    ///
    /// # Errors
    /// What's expected isn't understood.
    pub fn judge(&self, run: &Events) -> anyhow::Result<Verdict> {
        let findings = judge(run, &self.expected()?)?;
        let lacking: Vec<String> = findings
            .iter()
            .filter(|finding| !finding.is_met())
            .map(|finding| match finding.expected.hint.as_str() {
                "" => format!("It should be so that {finding}."),
                hint => hint.to_owned(),
            })
            .collect();
        Ok(Verdict { passed: lacking.is_empty(), says: lacking.join(" ") })
    }

    /// For a page: all but the solutions.
    pub fn shown(&self) -> Value {
        let Challenge { name, page, title, task, idea, hints, begin, .. } = self;
        json!({ "name": name, "page": page, "title": title, "task": task, "idea": idea, "hints": hints, "script": begin })
    }
}

/// A text without the line breaks of its source; paragraphs stay.
pub(crate) fn prose(text: &str) -> String {
    let paragraph = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.trim().split("\n\n").map(paragraph).collect::<Vec<_>>().join("\n\n")
}

/// What's between fences of this kind, if there are any.
pub(crate) fn fenced<'a>(text: &'a str, kind: &str) -> Option<&'a str> {
    let (_, inside) = text.split_once(&format!("```{kind}\n"))?;
    Some(inside.split_once("```").map_or(inside, |(inside, _)| inside))
}
