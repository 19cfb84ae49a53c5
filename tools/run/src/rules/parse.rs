//! Reading rules. Whoever mistypes a word is shown where, and what is known.

use super::{without_service, Act, Rule, ANY};
use crate::lanes::wrap;
use crate::statement::Statement;
use anyhow::{bail, Result};
use roce::cm::Kind;
use roce::iwarp;
use roce::opcode::TABLE;
use std::time::Duration;

/// What the acts are called; `delay` gets its time later.
const ACTS: [(&str, Act); 6] = [
    ("drop", Act::Drop),
    ("duplicate", Act::Duplicate),
    ("delay", Act::Delay(Duration::ZERO)),
    ("swap", Act::Swap),
    ("corrupt", Act::Corrupt),
    ("cut", Act::Cut),
];
/// Columns of a list.
const WIDTH: usize = 96;
const COUNTS: &str = "1st, 2nd, 3rd … or every, each with or without again-sent; or: only again-sent";

pub(super) fn rules(text: &str, nodes: &[&str]) -> Result<Vec<Rule>> {
    Statement::all(text).map(|statement| Words(statement).rule(nodes)).collect()
}

/// What reads one rule.
struct Words<'a>(Statement<'a>);

impl<'a> Words<'a> {
    fn rule(mut self, nodes: &[&str]) -> Result<Rule> {
        let mut act = self.act()?;
        let (nth, again_sent) = self.which()?;
        let name = self.name()?;
        let (mut from, mut to) = (None, None);
        while let Some(word) = self.0.take() {
            match (word, &mut act) {
                ("from", _) => from = Some(self.node(nodes)?),
                ("to", _) => to = Some(self.node(nodes)?),
                ("by", Act::Delay(time)) => *time = self.time()?,
                ("by", _) => bail!(self.0.wrong(&format!("`{}` takes no time", self.0.words[0]))),
                _ => {
                    bail!(self.0.wrong("what may come here is: from NODE, to NODE, by TIME; or a semicolon and a rule"))
                }
            }
        }
        if act == Act::Delay(Duration::ZERO) {
            bail!(self.0.wrong("how long is the delay? For example: by 200 ms, by 2 s"));
        }
        Ok(Rule { text: self.0.text.to_owned(), act, nth, again_sent, name, from, to, met: 0 })
    }

    fn act(&mut self) -> Result<Act> {
        let word = self.0.take().unwrap_or_default();
        let known = ACTS.map(|(name, _)| name).join(", ");
        let found = ACTS.into_iter().find(|(name, _)| *name == word);
        found.map(|(_, act)| act).ok_or_else(|| self.0.wrong(&format!("the acts are: {known}")))
    }

    fn which(&mut self) -> Result<(Option<u64>, bool)> {
        let word = self.0.take().unwrap_or_default();
        let number = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let nth = match number.parse() {
            Ok(nth @ 1..) if ["st", "nd", "rd", "th"].contains(&&word[number.len()..]) => Some(nth),
            _ if ["every", "only"].contains(&word) => None,
            _ => bail!(self.0.wrong(&format!("which packets? {COUNTS}"))),
        };
        let again_sent = self.0.peek() == Some("again-sent");
        self.0.next += usize::from(again_sent || word == "only");
        if word == "only" && !again_sent {
            bail!(self.0.wrong(&format!("which packets? {COUNTS}")));
        }
        Ok((nth, again_sent))
    }

    /// As many words as make a name.
    fn name(&mut self) -> Result<String> {
        let rest = self.0.words.get(self.0.next..).unwrap_or_default();
        for count in (1..=rest.len()).rev() {
            let name = rest[..count].join(" ");
            if known_names().any(|known| known.eq_ignore_ascii_case(&name)) {
                self.0.next += count;
                return Ok(name);
            }
        }
        let count = rest.iter().position(|word| ["from", "to", "by"].contains(word)).unwrap_or(rest.len());
        let hint = format!("the packets, as `wire show` names them, are:\n  {}", groups().join("\n  "));
        Err(self.0.mark(self.0.next, self.0.next + count.max(1), &hint))
    }

    fn node(&mut self, nodes: &[&str]) -> Result<usize> {
        let word = self.0.take().unwrap_or_default();
        let place = nodes.iter().position(|node| *node == word);
        place.ok_or_else(|| self.0.wrong(&format!("the nodes are: {}", nodes.join(", "))))
    }

    /// `200 ms`, `200ms`, `2 s`, `500 us`.
    fn time(&mut self) -> Result<Duration> {
        let first = self.0.take().unwrap_or_default();
        let number = first.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = if number == first { self.0.take().unwrap_or_default() } else { &first[number.len()..] };
        match (number.parse::<u32>(), unit) {
            (Ok(number @ 1..), "us") => Ok(Duration::from_micros(number.into())),
            (Ok(number @ 1..), "ms") => Ok(Duration::from_millis(number.into())),
            (Ok(number @ 1..), "s") => Ok(Duration::from_secs(number.into())),
            _ => bail!(self.0.wrong("a time is a whole number of us, ms or s, for example: by 200 ms")),
        }
    }
}

/// Every name that a packet can have.
pub fn known_names() -> impl Iterator<Item = &'static str> {
    let opcodes = TABLE.iter().flat_map(|row| [row.name, without_service(row.name)]);
    opcodes
        .chain(messages().flat_map(|kind| [kind.name(), kind.short()]))
        .chain(["NAK", "RNR NAK", ANY])
        .chain(iwarp::names())
}

/// The same for people, in lines.
fn groups() -> Vec<String> {
    let messages: Vec<String> = messages().map(|kind| format!("{} or {}", kind.name(), kind.short())).collect();
    // The other services have some of the same, and no more.
    let opcodes: Vec<&str> = TABLE.iter().filter_map(|row| row.name.strip_prefix("RC ")).collect();
    let opcodes = format!("RC, UC, UD, XRC and then: {}", opcodes.join(", "));
    let iwarp: Vec<&str> = iwarp::names().collect();
    let groups = [format!("{ANY} for any; NAK, RNR NAK; CNP"), messages.join(", "), opcodes, iwarp.join(", ")];
    groups.iter().flat_map(|group| wrap(group, WIDTH)).collect()
}

fn messages() -> impl Iterator<Item = Kind> {
    (0x10..=0x1a).map(Kind::from)
}
