//! Reading what a switch is like. Whoever mistypes a word is shown where, and what is known.

use super::{Ecn, Paths, Pfc, Settings};
use crate::statement::Statement;
use anyhow::{bail, Result};
use std::str::FromStr;
use std::time::Duration;

/// What the statements about a switch begin with.
const WORDS: [&str; 8] = ["link", "queue", "ecn", "pfc", "lose", "paths", "ring", "dcqcn"];
/// Marks just before all are marked.
const MARKED: f64 = 0.1;
/// How much later each further way is.
const APART: Duration = Duration::from_micros(20);
const ROOM: u64 = 1 << 20;
const RATES: [(&str, u64); 3] = [("Gbit/s", 1_000_000_000), ("Mbit/s", 1_000_000), ("kbit/s", 1000)];
const TIMES: [(&str, u64); 5] = [("ns", 1), ("us", 1000), ("µs", 1000), ("ms", 1_000_000), ("s", 1_000_000_000)];
const SIZES: [(&str, u64); 3] = [("MB", 1 << 20), ("KB", 1 << 10), ("B", 1)];

/// Parts the statements about a switch from the rules; each part is a text of its own.
pub fn split(text: &str) -> (String, String) {
    let all = Statement::all(text).map(|statement| (statement.text, statement.peek().unwrap_or_default()));
    let (switch, rules): (Vec<_>, Vec<_>) = all.partition(|(_, first)| WORDS.contains(first));
    let joined = |part: Vec<(&str, &str)>| part.iter().map(|(text, _)| *text).collect::<Vec<_>>().join("; ");
    (joined(switch), joined(rules))
}

/// What a switch is like; None if there is nothing to read.
///
/// # Errors
/// The message about a word that is not understood points at it.
pub fn settings(text: &str) -> Result<Option<Settings>> {
    let all: Vec<_> = Statement::all(text).collect();
    let Some(first) = all.first() else { return Ok(None) };
    if !all.iter().any(|statement| statement.peek() == Some("link")) {
        bail!(first.mark(0, 1, "a switch needs a link, for example: link 1 Gbit/s 5 us"));
    }
    let mut settings = Settings { room: ROOM, ..Settings::default() };
    for mut statement in all {
        statement.settle(&mut settings)?;
    }
    Ok(Some(settings))
}

impl Statement<'_> {
    fn settle(&mut self, settings: &mut Settings) -> Result<()> {
        match self.take().unwrap_or_default() {
            "link" => {
                settings.rate = self.amount("a rate is, for example, 1 Gbit/s", &RATES)?;
                settings.delay = Duration::from_nanos(self.amount("a cable's delay is, for example, 5 us", &TIMES)?);
            }
            "queue" => settings.room = self.amount("a queue has, for example, 64 KB", &SIZES)?,
            "ecn" => {
                let (none, all) = self.range("marks begin and end, for example, at 8..32 KB")?;
                let Some(none) = none else { bail!(self.wrong("where do marks begin? For example: ecn 8..32 KB")) };
                let most = if self.take_if("at") { self.percent()? } else { MARKED };
                settings.ecn = Some(Ecn { none, all, most });
            }
            "pfc" => {
                let (on, off) = self.range("a pause begins, for example, at 48 KB")?;
                settings.pfc = Some(Pfc { off, on: on.unwrap_or(off - off / 4) });
            }
            "lose" => {
                if !(self.take_if("1") && self.take_if("in")) {
                    self.next += 1;
                    bail!(self.wrong("how many are lost? For example: lose 1 in 1000"));
                }
                settings.lose = self.number("1 in how many? For example: lose 1 in 1000", 1..=1_000_000_000)?;
            }
            "paths" => {
                let count = self.number("how many ways? For example: paths 2", 1..=64)?;
                let by =
                    if self.take_if("by") { Duration::from_nanos(self.amount("by 20 us", &TIMES)?) } else { APART };
                settings.paths = Some(Paths { count, by });
            }
            "ring" => settings.ring = self.number("how many switches? For example: ring 3", 2..=64)?,
            "dcqcn" => {
                settings.dcqcn = Some(self.words[1..].join(" "));
                self.next = self.words.len();
            }
            _ => bail!(self.wrong(&format!("what a switch has is: {}", WORDS.join(", ")))),
        }
        match self.take() {
            Some(_) => bail!(self.wrong("here it ends, or a semicolon comes, and another statement")),
            None => Ok(()),
        }
    }

    fn number<T: FromStr + PartialOrd>(&mut self, hint: &str, allowed: std::ops::RangeInclusive<T>) -> Result<T> {
        let number = self.take().and_then(|word| word.parse().ok());
        number.filter(|number| allowed.contains(number)).ok_or_else(|| self.wrong(hint))
    }

    /// `5 us`, `5us`: more than nothing, in the smallest unit.
    fn amount(&mut self, hint: &str, units: &[(&str, u64)]) -> Result<u64> {
        let first = self.take().unwrap_or_default();
        let digits = first.trim_end_matches(|c: char| !c.is_ascii_digit());
        let unit = if digits == first { self.take().unwrap_or_default() } else { &first[digits.len()..] };
        let factor = units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
        let amount =
            digits.parse::<u32>().ok().zip(factor).and_then(|(number, factor)| u64::from(number).checked_mul(factor));
        let names: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
        amount
            .filter(|amount| *amount > 0)
            .ok_or_else(|| self.wrong(&format!("{hint}; the units are: {}", names.join(", "))))
    }

    /// `8..32 KB`, or one size alone, which is the end.
    fn range(&mut self, hint: &str) -> Result<(Option<u64>, u64)> {
        let place = self.next;
        let Some((begin, end)) = self.peek().and_then(|word| word.split_once("..")) else {
            return Ok((None, self.amount(hint, &SIZES)?));
        };
        let end_digits = end.trim_end_matches(|c: char| !c.is_ascii_digit());
        let mut rest = self.clone();
        rest.words[place] = end;
        let all = rest.amount(hint, &SIZES)?;
        self.next = rest.next;
        // Both are in the unit that comes after.
        let unit = end_digits.parse().map_or(0, |end: u64| all / end.max(1));
        match begin.parse::<u32>().map(|begin| u64::from(begin) * unit) {
            Ok(begin) if begin <= all => Ok((Some(begin), all)),
            _ => Err(self.mark(place, place + 1, hint)),
        }
    }

    /// `10 %` or `10%`.
    fn percent(&mut self) -> Result<f64> {
        let word = self.take().unwrap_or_default();
        let number = word.strip_suffix('%');
        let percent = number.unwrap_or(word).parse().ok().filter(|percent| (0.0..=100.0).contains(percent));
        match percent.filter(|_| number.is_some() || self.take_if("%")) {
            Some(percent) => Ok(percent / 100.0),
            None => bail!(self.wrong("how many are marked? For example: at 10 %")),
        }
    }
}
