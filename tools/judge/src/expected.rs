//! What a run file must show, in one line each:
//!
//! ```text
//! server sends: NAK  remote access error           # a packet's name as `wire show` has it; what else is said of it
//! then client says: status=IBV_WC_REM_ACCESS_ERR   # behind the first of the line above: a part of a line that the node's
//! client sends 2 times: RNR NAK                    # program says, or its kernel, or the lab about it; a status, the library
//! any never sends: REJ                             # whichever node
//! client sends at most 3 times: packet              # whichever packet
//! or server sends: RDMA Write Only                 # one of this and the line above is enough
//! client sends: Send Only  carries {text}          # its bytes have these in them; `carries 0x44470a`: these three
//! client sends: REQ  private data of …             # what is said of it begins so
//! client exits: 1                                  # the program's exit status, 0 where nothing is said; or `anyhow`
//! server prints: {text}                            # a part of a line of its own. {text}, {other}, {long} (more than 2048 bytes), {full}
//!                                                  # (148 bytes), {len} (100 to 499), {short} (one less), {port} (five digits) and
//!                                                  # {wrong} (another port) are other ones in each run; {long} may be cut into lines
//! server prints: {flushed} receives                # as many as its device says that it has flushed
//! server never prints: {unflushed} receives        # another number
//! server calls: REG_MR access=REMOTE_WRITE         # a system call that succeeds: its name and, in any order, what it asks for,
//!                                                  # here this right and perhaps others; `len=16..`: 16 or more
//! client calls at most 1 times: REG_MR access=REMOTE_READ
//! server gets: REJECTED status=28                  # an event of the connection manager that its program takes
//! server notes: posted  len=16                     # a fact of its device (tools/nic/src/fact.rs): its name, and fields
//! server leaves: nothing                           # what its program made is destroyed when it ends
//!     Below a line, indented: the hint of an exercise if it is not so.
//! compiler says: error[E0505]                      # it does not build, and nothing else is expected
//! ```
//!
//! What is called, taken, noted and left the device in user space tells. In the lab nobody does: there these lines are left out.

use crate::seen::{is_name, ANY, BETWEEN};
use anyhow::{bail, ensure, Context, Result};
use nic::fact;
use serde::Deserialize;
use std::collections::BTreeSet;

/// Something that a run file must show.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub struct Expected {
    /// Who sends or says it, or "any".
    pub node: String,
    pub what: What,
    /// How often, if that matters; at least once otherwise.
    pub times: Option<usize>,
    /// Whether it may also be less often.
    pub at_most: bool,
    /// Whether only what comes after the first of the expectation before counts.
    pub then: bool,
    /// Whether this is enough in place of the expectation before, and the other way round.
    pub or: bool,
    /// What it means if it is not so.
    pub hint: String,
}

/// A thing to be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A packet's name as `wire show` prints it; behind it, after two spaces, what else is said about it.
    Packet(String),
    /// A part of a line.
    Line(String),
    /// A part of a line that the program itself has printed.
    Printed(String),
    /// A system call: its name, and what it asks for.
    Call(String),
    /// An event that the program takes, and what goes with it.
    Event(String),
    /// A fact of the device, and fields of it.
    Note(String),
    Exit(i32),
}

impl What {
    /// Whether only the device in user space tells it.
    pub fn is_of_device(&self) -> bool {
        match self {
            Self::Call(_) | Self::Event(_) | Self::Note(_) => true,
            Self::Printed(text) => text.contains(FLUSHED) || text.contains(UNFLUSHED),
            _ => false,
        }
    }
}

/// Stands for the number of receives that a node's device has flushed.
pub(crate) const FLUSHED: &str = "{flushed}";
/// Stands for another number.
pub(crate) const UNFLUSHED: &str = "{unflushed}";

/// What must come of a change.
#[derive(Debug, Clone)]
pub enum Expectation {
    /// It does not build: the compiler says this.
    Refused(String),
    /// It runs, and the run file shows this.
    Runs(Vec<Expected>),
}

impl Expectation {
    /// Reads an outcome of these nodes.
    pub fn parse(text: &str, nodes: BTreeSet<String>) -> Result<Self> {
        let (mut told, mut silent) = (Vec::<Expected>::new(), nodes);
        for line in text.lines() {
            if let Some(said) = line.strip_prefix("compiler says: ") {
                ensure!(text.trim() == line, "a change that doesn't build can have no other outcome");
                return Ok(Self::Refused(said.to_owned()));
            }
            if let Some(node) = line.strip_suffix(" exits: anyhow") {
                ensure!(silent.remove(node), "there is no node {node}, or its end is given twice");
                continue;
            }
            if let Some(hint) = line.strip_prefix("    ") {
                let hints = &mut told.last_mut().context("a hint must be below the line that it's about")?.hint;
                *hints = format!("{hints} {}", hint.trim()).trim().to_owned();
                continue;
            }
            let expected: Expected =
                Expected::try_from(line.to_owned()).with_context(|| format!("the outcome `{line}`"))?;
            let is_after = told.last().is_some_and(|before| before.times != Some(0));
            ensure!(!expected.or || !told.is_empty(), "`or` is about the line above, so there must be one");
            ensure!(
                !expected.then || is_after,
                "`then` is about what happens after the line above, so there must be one"
            );
            if matches!(expected.what, What::Exit(_)) && expected.times.is_none() {
                ensure!(silent.remove(&expected.node), "there is no node {}, or its end is given twice", expected.node);
            }
            told.push(expected);
        }
        ensure!(!told.is_empty() || !text.trim().is_empty(), "there is no outcome");
        told.extend(silent.into_iter().rev().map(|node| Expected::new(&node, What::Exit(0))));
        Ok(Self::Runs(told))
    }
}

impl Expected {
    /// Anything that a node sends or says.
    pub fn new(node: &str, what: What) -> Self {
        let (times, at_most, then, or) = Default::default();
        Self { node: node.to_owned(), what, times, at_most, then, or, hint: String::new() }
    }
}

impl TryFrom<String> for Expected {
    type Error = anyhow::Error;

    fn try_from(line: String) -> Result<Self> {
        let form = "must look like `server sends: RNR NAK`, `then client says 2 times: done` or `client exits: 1`";
        let (head, value) = line.split_once(": ").context(form)?;
        let (or, head) = head.strip_prefix("or ").map_or((false, head), |head| (true, head));
        let (then, head) = head.strip_prefix("then ").map_or((false, head), |head| (true, head));
        let (node, verb, times) = match head.split(' ').collect::<Vec<_>>()[..] {
            [node, verb] => (node, verb, None),
            [node, "never", verb] => (node, verb, Some(0)),
            [node, verb, times, "times"] | [node, verb, "at", "most", times, "times"] => {
                (node, verb, Some(times.parse().context(form)?))
            }
            _ => bail!(form),
        };
        let what = match verb {
            "sends" => What::Packet(value.to_owned()),
            "says" => What::Line(value.to_owned()),
            "prints" => What::Printed(value.to_owned()),
            "calls" => What::Call(value.to_owned()),
            "gets" => What::Event(value.to_owned()),
            "notes" => What::Note(value.to_owned()),
            "leaves" if value == "nothing" && times.is_none() => {
                return Ok(Self { times: Some(0), ..Self::new(node, What::Note("left".to_owned())) })
            }
            "exits" => What::Exit(value.parse().context("an exit status must be a number")?),
            _ => bail!(form),
        };
        if let What::Packet(packet) = &what {
            ensure!(is_name(packet), "`wire show` has no packet called `{packet}`");
        }
        if let What::Note(note) = &what {
            let mut words = note.split(BETWEEN);
            let name = words.next().filter(|name| *name != ANY);
            let keys: Vec<&str> = words.map(|word| word.split('=').next().unwrap_or(word)).collect();
            ensure!(fact::has(name, &keys), "the device logs nothing like `{note}`");
        }
        let at_most = head.contains(" at most ");
        Ok(Self { times, at_most, then, or, ..Self::new(node, what) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Result<Vec<Expected>> {
        match Expectation::parse(text, BTreeSet::from(["server".to_owned(), "client".to_owned()]))? {
            Expectation::Runs(told) => Ok(told),
            Expectation::Refused(said) => bail!("refused: {said}"),
        }
    }

    #[test]
    fn a_hint_goes_on_and_an_exit_is_0_where_nothing_is_said() {
        let told = told("client sends: RNR NAK\nany says: a: b\n    Hint\n    of it.\nclient exits: 1\n").unwrap();
        assert_eq!((&*told[1].hint, &told[1].what), ("Hint of it.", &What::Line("a: b".into())));
        let exits: Vec<_> = told[2..].iter().map(|e| (&*e.node, &e.what)).collect();
        assert_eq!(exits, [("client", &What::Exit(1)), ("server", &What::Exit(0))]);
    }

    #[test]
    fn mistakes_are_named() {
        let wrong = [
            ("client sends: the memory holds", "no packet called `the memory holds`"),
            ("client sendet: NAK", "must look like"),
            ("NAK", "must look like"),
            ("client exits: one", "must be a number"),
            ("clint exits: 1", "no node clint"),
            ("then client says: x", "there must be one"),
            ("client never says: y\nthen client says: x", "there must be one"),
            ("    hint", "below the line that it's about"),
            ("compiler says: E0505\nclient exits: 0", "no other outcome"),
            ("", "no outcome"),
        ];
        for (text, said) in wrong {
            let error = format!("{:#}", told(text).unwrap_err());
            assert!(error.contains(said), "{error}");
        }
        assert_eq!(told("compiler says: E0505").unwrap_err().to_string(), "refused: E0505");
    }
}
