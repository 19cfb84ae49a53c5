//! One change to a lesson: what is edited, how it's run, and how it must end; and the page that asks a reader about it.

use crate::edit::Edit;
use crate::kind::BREAK;
use crate::page::{Name, Page, Part, AGAIN, OUTCOME, PASS, RUN_BY};
use anyhow::{Context, Result};
use judge::expected::Expectation;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// How a change is run.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// Options for the server, as `make lesson-NN server=…` has them.
    pub server: String,
    pub client: String,
    /// What happens to packets on the wire.
    pub wire: String,
    /// What happens to the machines, as `lab exec --fault` has it. A packet or a log line sets it off: "kill server when SLOW
    /// rdma_accept", "power-off client when client sends RC Send Only", "on server rdma link delete rxe0 when …".
    pub faults: Vec<String>,
    /// Whether only the kernel's own driver or machine does this, so that the device never runs it (nor faults).
    pub kernel: bool,
    /// Whether only the device shows what it is judged by, so that it never runs in the lab.
    pub device: bool,
    /// Whether the device arms a completion queue late: a completion comes first, if one is near. The lab cannot.
    pub late_arm: bool,
    /// Whether the device reads a request some time after its doorbell: whose memory isn't what it was by then has been changed, or
    /// given back, too early. The lab cannot.
    pub late_read: bool,
    /// Seconds that the programs may run, if it is not as long as usual.
    pub deadline: Option<u32>,
    /// Seconds that the others may go on when a program has failed, if it is not as long as usual.
    pub grace: Option<u32>,
    /// Seconds in which nothing may happen before a step's or an exercise's run is ended, if it is not as usual.
    pub idle: Option<u32>,
    /// Commands in place of the two sides of the lesson, and of more clients. In them `lesson` is the changed lesson's program,
    /// and `examples/NAME` an example of `common`: "examples/odd_peer client $SERVER send=ff".
    pub nodes: BTreeMap<String, String>,
}

impl Options {
    /// How the judge runs a step or an exercise for the first time; as usual, if its page doesn't say.
    pub(crate) fn of_page(page: &Page) -> Result<Self> {
        let text = page.parts(RUN_BY).next().map_or(String::new(), |part| part.code("toml"));
        Ok(basic_toml::from_str(&text)?)
    }

    /// Who takes part: the two sides of the lesson, unless several clients have names of their own.
    pub fn sides(&self) -> BTreeSet<String> {
        let own = self.nodes.keys().cloned();
        let client = self.nodes.keys().all(|name| name == "server").then(|| "client".to_owned());
        own.chain(["server".to_owned()]).chain(client).collect()
    }
}

/// What can be run.
#[derive(Debug, Clone)]
pub struct Change {
    pub name: Name,
    pub edits: Vec<Edit>,
    pub options: Options,
    pub told: Expectation,
    /// How it's run once more, each time it has come as told: what works by chance, or knows the answer, fails then.
    pub again: Vec<Again>,
    /// Whether somebody is to mend it: whose client is dead has failed, and nobody waits until its server has noticed.
    pub is_exercise: bool,
}

/// Another run of the same.
#[derive(Debug, Clone)]
pub struct Again {
    pub options: Options,
    pub told: Expectation,
}

impl Again {
    /// The parts of a page that tell them. What must come of each is the same, unless it says what.
    pub(crate) fn of_page(page: &Page, told: &Expectation) -> Result<Vec<Self>> {
        let of_part = |part: &Part| {
            let options: Options = basic_toml::from_str(&part.code("toml"))?;
            let text = part.code("text");
            let told = if text.is_empty() { told.clone() } else { Expectation::parse(&text, options.sides())? };
            Ok(Self { options, told })
        };
        page.parts(AGAIN).map(of_part).collect()
    }
}

impl Change {
    /// What a page says about a run that is judged: how it's run, how it must end, and how it's run again.
    pub(crate) fn judged(name: Name, edits: Vec<Edit>, page: &Page) -> Result<Self> {
        let options = Options::of_page(page)?;
        let told = Expectation::parse(&page.part(PASS)?.code("text"), options.sides())?;
        let again = Again::of_page(page, &told)?;
        Ok(Self { name, edits, options, told, again, is_exercise: true })
    }

    /// Whether the device in user space cannot show it.
    pub fn needs_kernel(&self) -> bool {
        self.options.kernel || !self.options.faults.is_empty()
    }

    /// The files in which the reader of an exercise must look: those with a word about it, if any has one.
    pub fn holes(&self) -> Vec<&str> {
        let marked: Vec<&Edit> = self.edits.iter().filter(|edit| edit.to.contains("// Exercise:")).collect();
        Edit::files(if marked.is_empty() { self.edits.iter().collect() } else { marked })
    }

    /// A file of the lesson with the change in it.
    pub fn apply(&self, file: &str, text: &str) -> Result<String> {
        Edit::apply(&self.edits, file, text).with_context(|| format!("the change {}", self.name))
    }
}

/// A change that the reader makes to see what happens.
#[derive(Debug, Clone)]
pub struct Break {
    /// What is done, in a few words.
    pub title: String,
    /// What the reader is asked to predict.
    pub ask: String,
    /// What happens, and why.
    pub why: String,
    pub change: Change,
}

impl Break {
    pub fn of_page(name: Name, page: &Page) -> Result<Self> {
        BREAK.check(&name, page)?;
        let (first, outcome) = (&page.parts[0], page.part(OUTCOME)?);
        let (ask, why, edits) = (first.prose(), outcome.prose(), Edit::of_diff(&first.code("diff"))?);
        let options: Options = basic_toml::from_str(&first.code("toml"))?;
        let told = Expectation::parse(&outcome.code("text"), options.sides())?;
        let change = Change { name, edits, options, told, again: Vec::new(), is_exercise: false };
        Ok(Self { title: page.title.clone(), ask, why, change })
    }
}
