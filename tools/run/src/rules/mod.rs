//! Faults on the wire, named in the words that `wire show` prints.
//!
//! A rule is one act on one packet, or on every packet of a kind:
#![doc = concat!("```text\n", include_str!("grammar.txt"), "```")]
//! Quotes around a name may be left out. Each rule counts the packets that fit its name, its nodes and its "again-sent",
//! whatever other rules do to them; where several choose the same packet, the first of them acts. [`parse`] reads rules,
//! [`faults`] does as they say.

mod faults;
mod parse;
#[cfg(test)]
mod tests;

pub use faults::{Passage, Released};
pub use parse::known_names;

use crate::sighting::Sighting;
use anyhow::Result;
use roce::iwarp::Brought;
use roce::Packet;
use std::collections::BTreeMap;
use std::time::Duration;

/// How rules are written, for people.
pub const GRAMMAR: &str = include_str!("grammar.txt");

/// What happens to a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Drop,
    Duplicate,
    Delay(Duration),
    /// It arrives after the next packet of its direction.
    Swap,
    /// It arrives with an ICRC that does not fit, and so its receiver takes it for damaged.
    Corrupt,
    /// It gets lost, and so does all that its sender sends from now on, and all that others send to this node: somebody has
    /// pulled the cable.
    Cut,
}

/// One act, and the packets that it is for.
#[derive(Debug)]
struct Rule {
    text: String,
    act: Act,
    /// The n-th, counted from 1; None for every.
    nth: Option<u64>,
    again_sent: bool,
    name: String,
    from: Option<usize>,
    to: Option<usize>,
    /// Packets that fit so far.
    met: u64,
}

/// Rules, what they have seen, and what they hold back.
#[derive(Debug, Default)]
pub struct Rules {
    rules: Vec<Rule>,
    /// Frames in the order of their time. The number tells those of the same time apart.
    held: BTreeMap<(Duration, u64), faults::Held>,
    count: u64,
}

impl Rules {
    /// Reads rules for a network of these nodes. The message about a word that is not understood points at it, and lists what
    /// would be.
    pub fn parse(text: &str, nodes: &[&str]) -> Result<Self> {
        Ok(Self { rules: parse::rules(text, nodes)?, ..Self::default() })
    }

    /// What is to be done with a frame, the rule that says so, and the packet's name; None if it just passes. To be
    /// called once for each frame, in their order. Nodes are told by their places in the list that [`Rules::parse`] got; a
    /// frame for all is to nobody.
    fn judge(&mut self, sighting: &Sighting, from: usize, to: Option<usize>) -> Option<(Act, usize, &'static str)> {
        let told = sighting.told()?;
        let again =
            sighting.seen.is_some_and(|seen| seen.again) || sighting.iwarp().is_some_and(|brought| brought.again);
        let names = match (sighting.packet(), sighting.iwarp()) {
            (Some(packet), _) => names(packet).collect(),
            (None, brought) => brought.map(names_of_segment).unwrap_or_default(),
        };
        let mut verdict = None;
        for (index, rule) in self.rules.iter_mut().enumerate() {
            let chosen = rule.chooses(&names, again, from, to);
            if chosen && verdict.is_none() {
                verdict = Some((rule.act, index, told));
            }
        }
        verdict
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// What is wrong at the end of a run: a rule whose packet did not come has tested nothing.
    pub fn trouble(&self) -> Option<String> {
        let unmet = self.rules.iter().filter(|rule| rule.met < rule.nth.unwrap_or(1));
        let unmet: Vec<String> = unmet.map(|rule| format!("`{}`", rule.text)).collect();
        match unmet.as_slice() {
            [] => None,
            [rule] => Some(format!("the rule {rule} never met its packet")),
            rules => Some(format!("the rules {} never met their packets", rules.join(" and "))),
        }
    }
}

impl Rule {
    /// Counts a packet, if it fits, and says whether it is the one.
    fn chooses(&mut self, names: &[&str], again: bool, from: usize, to: Option<usize>) -> bool {
        let fits = (again || !self.again_sent)
            && (self.from.is_none() || self.from == Some(from))
            && (self.to.is_none() || self.to == to)
            && names.iter().any(|name| name.eq_ignore_ascii_case(&self.name));
        self.met += u64::from(fits);
        fits && self.nth.map_or(true, |nth| nth == self.met)
    }
}

/// The name that fits every packet.
pub const ANY: &str = "packet";

/// The name by which people choose a packet: the shortest that says what it is.
pub fn usual_name(packet: &Packet) -> &'static str {
    packet.refusal().unwrap_or_else(|| without_service(packet.name()))
}

/// All names that a packet goes by.
pub fn names(packet: &Packet) -> impl Iterator<Item = &'static str> {
    let short = packet.cm().map(|message| message.kind.short());
    [packet.name(), without_service(packet.name()), ANY].into_iter().chain(short).chain(packet.refusal())
}

/// All names that a TCP segment of an iWARP connection goes by: those of the units that end in it.
fn names_of_segment(brought: &Brought) -> Vec<&'static str> {
    brought.units.iter().map(|unit| unit.kind.name()).chain([ANY]).collect()
}

/// As the ladder shows it: RC is the usual one.
fn without_service(name: &'static str) -> &'static str {
    name.trim_start_matches("RC ")
}
