//! Reading rules. Whoever mistypes a word is shown where, and what is known.

use super::{without_service, Act, Rule, ANY};
use crate::lanes::wrap;
use anyhow::{anyhow, bail, Error, Result};
use roce::cm::Kind;
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
    let written = text.split(';').map(str::trim).filter(|rule| !rule.is_empty());
    let is_between = |c: char| c.is_whitespace() || c == '"' || c == '\'';
    let words = written.map(|rule| (rule, rule.split(is_between).filter(|word| !word.is_empty()).collect()));
    words.map(|(rule, words)| Words { rule, words, next: 0 }.rule(nodes)).collect()
}

/// The words of one rule, each with where it begins.
struct Words<'a> {
    rule: &'a str,
    words: Vec<&'a str>,
    next: usize,
}

impl<'a> Words<'a> {
    fn rule(mut self, nodes: &[&str]) -> Result<Rule> {
        let mut act = self.act()?;
        let (nth, again_sent) = self.which()?;
        let name = self.name()?;
        let (mut from, mut to) = (None, None);
        while let Some(word) = self.take() {
            match (word, &mut act) {
                ("from", _) => from = Some(self.node(nodes)?),
                ("to", _) => to = Some(self.node(nodes)?),
                ("by", Act::Delay(time)) => *time = self.time()?,
                ("by", _) => bail!(self.wrong(&format!("`{}` takes no time", self.words[0]))),
                _ => bail!(self.wrong("what may come here is: from NODE, to NODE, by TIME; or a semicolon and a rule")),
            }
        }
        if act == Act::Delay(Duration::ZERO) {
            bail!(self.wrong("how long is the delay? For example: by 200 ms, by 2 s"));
        }
        Ok(Rule { text: self.rule.to_owned(), act, nth, again_sent, name, from, to, met: 0 })
    }

    fn act(&mut self) -> Result<Act> {
        let word = self.take().unwrap_or_default();
        let known = ACTS.map(|(name, _)| name).join(", ");
        let found = ACTS.into_iter().find(|(name, _)| *name == word);
        found.map(|(_, act)| act).ok_or_else(|| self.wrong(&format!("the acts are: {known}")))
    }

    fn which(&mut self) -> Result<(Option<u64>, bool)> {
        let word = self.take().unwrap_or_default();
        let number = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let nth = match number.parse() {
            Ok(nth @ 1..) if ["st", "nd", "rd", "th"].contains(&&word[number.len()..]) => Some(nth),
            _ if ["every", "only"].contains(&word) => None,
            _ => bail!(self.wrong(&format!("which packets? {COUNTS}"))),
        };
        let again_sent = self.peek() == Some("again-sent");
        self.next += usize::from(again_sent || word == "only");
        if word == "only" && !again_sent {
            bail!(self.wrong(&format!("which packets? {COUNTS}")));
        }
        Ok((nth, again_sent))
    }

    /// As many words as make a name.
    fn name(&mut self) -> Result<String> {
        let rest = self.words.get(self.next..).unwrap_or_default();
        for count in (1..=rest.len()).rev() {
            let name = rest[..count].join(" ");
            if known_names().any(|known| known.eq_ignore_ascii_case(&name)) {
                self.next += count;
                return Ok(name);
            }
        }
        let count = rest.iter().position(|word| ["from", "to", "by"].contains(word)).unwrap_or(rest.len());
        let hint = format!("the packets, as `wire show` names them, are:\n  {}", groups().join("\n  "));
        Err(self.mark(self.next, self.next + count.max(1), &hint))
    }

    fn node(&mut self, nodes: &[&str]) -> Result<usize> {
        let word = self.take().unwrap_or_default();
        let place = nodes.iter().position(|node| *node == word);
        place.ok_or_else(|| self.wrong(&format!("the nodes are: {}", nodes.join(", "))))
    }

    /// `200 ms`, `200ms`, `2 s`.
    fn time(&mut self) -> Result<Duration> {
        let first = self.take().unwrap_or_default();
        let number = first.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = if number == first { self.take().unwrap_or_default() } else { &first[number.len()..] };
        match (number.parse::<u32>(), unit) {
            (Ok(number @ 1..), "ms") => Ok(Duration::from_millis(number.into())),
            (Ok(number @ 1..), "s") => Ok(Duration::from_secs(number.into())),
            _ => bail!(self.wrong("a time is a whole number of ms or s, for example: by 200 ms")),
        }
    }

    fn peek(&self) -> Option<&'a str> {
        self.words.get(self.next).copied()
    }

    /// The next word; it is also the one that a complaint is about.
    fn take(&mut self) -> Option<&'a str> {
        let word = self.peek();
        self.next += 1;
        word
    }

    /// Complains about the word that was taken last.
    fn wrong(&self, hint: &str) -> Error {
        self.mark(self.next - 1, self.next, hint)
    }

    /// Complains about words, or about the end of the rule where there are none.
    fn mark(&self, first: usize, end: usize, hint: &str) -> Error {
        let place = |word: &str| word.as_ptr() as usize - self.rule.as_ptr() as usize;
        let end_of_rule = self.rule.len() + 1;
        let start = self.words.get(first).map_or(end_of_rule, |word| place(word));
        let end = self.words.get(end - 1).map_or(start + 1, |word| place(word) + word.len());
        let column = self.rule.get(..start).map_or(start, |before| before.chars().count());
        let width = self.rule.get(start..end).map_or(1, |words| words.chars().count());
        anyhow!("a wire rule is not understood:\n  {}\n  {:column$}{}\n{hint}", self.rule, "", "^".repeat(width))
    }
}

/// Every name that a packet can have.
pub fn known_names() -> impl Iterator<Item = &'static str> {
    let opcodes = TABLE.iter().flat_map(|row| [row.name, without_service(row.name)]);
    opcodes.chain(messages().flat_map(|kind| [kind.name(), kind.short()])).chain(["NAK", "RNR NAK", ANY])
}

/// The same for people, in lines.
fn groups() -> Vec<String> {
    let messages: Vec<String> = messages().map(|kind| format!("{} or {}", kind.name(), kind.short())).collect();
    // The other services have some of the same, and no more.
    let opcodes: Vec<&str> = TABLE.iter().filter_map(|row| row.name.strip_prefix("RC ")).collect();
    let opcodes = format!("RC, UC, UD, XRC and then: {}", opcodes.join(", "));
    let groups = [format!("{ANY} for any; NAK, RNR NAK; CNP"), messages.join(", "), opcodes];
    groups.iter().flat_map(|group| wrap(group, WIDTH)).collect()
}

fn messages() -> impl Iterator<Item = Kind> {
    (0x10..=0x1a).map(Kind::from)
}
