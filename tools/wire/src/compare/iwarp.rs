//! The same for the second wire: do two iWARP captures tell the same story?
//!
//! How TCP cuts bytes into segments, when it acknowledges and what it repeats is not the programs' doing, so only RDMAP's messages
//! count, each side's in their order. Tags and offsets are new in every run; what must be the same is where one is used again.

use super::report::{plural, Difference, Phase, Report};
use roce::iwarp::{Brought, Crc, Doubt, Kind, Unit};
use std::collections::BTreeMap;

/// A message, or a start-up frame of MPA.
#[derive(Debug)]
struct Message {
    frame: u64,
    kind: Kind,
    length: u64,
    /// The peer's memory that it names.
    tag: Option<u32>,
    /// READs at a time, in a start-up frame.
    reads: Option<[u16; 2]>,
    /// Which error a Terminate names.
    error: Option<[u8; 3]>,
    is_rejected: bool,
}

/// What iWARP there is in a capture: the client's messages, and the server's.
#[derive(Debug, Default)]
pub(super) struct Messages {
    sides: [Vec<Message>; 2],
    /// The first frame of which nobody can tell what it holds, and why.
    doubt: Option<(u64, Doubt)>,
    /// The first unit whose CRC does not fit.
    bad: Option<u64>,
    /// The message that goes on, of each side.
    open: [bool; 2],
}

impl Messages {
    pub fn is_empty(&self) -> bool {
        self.sides.iter().all(Vec::is_empty)
    }

    pub fn see(&mut self, frame: u64, brought: &Brought) {
        let side = usize::from(!brought.from_client);
        if let Some(doubt) = brought.doubt {
            self.doubt.get_or_insert((frame, doubt));
        }
        for unit in &brought.units {
            if unit.crc == Crc::Bad {
                self.bad.get_or_insert(frame);
            }
            self.unit(side, frame, unit);
        }
    }

    /// The segments of a message follow one another.
    fn unit(&mut self, side: usize, frame: u64, unit: &Unit) {
        let length = unit.payload().len() as u64;
        let goes_on = matches!(unit.kind, Kind::Rdmap(_)) && !unit.is_last();
        let was_open = std::mem::replace(&mut self.open[side], goes_on);
        if let Some(last) = self.sides[side].last_mut().filter(|last| was_open && last.kind == unit.kind) {
            last.length += length;
            return;
        }
        let wanted = unit.wanted();
        self.sides[side].push(Message {
            frame,
            kind: unit.kind,
            length: wanted.map_or(length, |(bytes, ..)| bytes.into()),
            tag: wanted.map(|(_, (tag, _), _)| tag).or(unit.place().map(|(tag, _)| tag)),
            reads: unit.reads(),
            error: unit.error(),
            is_rejected: unit.is_rejected(),
        });
    }

    fn problem(&self) -> Option<String> {
        let doubt =
            self.doubt.map(|(frame, doubt)| format!("Nobody can tell what frame {frame} holds: {}", doubt.words()));
        doubt.or(self.bad.map(|frame| format!("A wrong CRC in frame {frame}: its receiver ends the connection")))
    }
}

/// Compares the messages of two captures of which at least one has some.
pub(super) fn compare(mine: &Messages, reference: &Messages) -> Report {
    let mut report = Report::default();
    for (messages, whose, other) in
        [(mine, "Your capture", "the reference"), (reference, "The reference", "your capture")]
    {
        if messages.is_empty() {
            report.problems.push(format!("{whose} has no iWARP, and {other} is iWARP: compare runs of one wire"));
        }
        report.problems.extend(messages.problem());
    }
    if report.problems.is_empty() {
        let mut found: Vec<Difference> = (0..2).filter_map(|side| differs(side, mine, reference)).collect();
        found.sort_by_key(|difference| difference.rank);
        let mut found = found.into_iter();
        report.cause = found.next();
        report.also.extend(found);
        let [starts, messages] = count(reference);
        report.summary =
            format!("iWARP, {} of MPA, {} of RDMAP", plural(starts, "start-up frame"), plural(messages, "message"));
    }
    report
}

fn count(messages: &Messages) -> [u64; 2] {
    let all = || messages.sides.iter().flatten();
    let starts = all().filter(|message| !matches!(message.kind, Kind::Rdmap(_))).count();
    [starts as u64, (all().count() - starts) as u64]
}

/// The first difference of a side: the rest may follow from it.
fn differs(side: usize, mine: &Messages, reference: &Messages) -> Option<Difference> {
    let who = ["client", "server"][side];
    let (my, its) = (&mine.sides[side], &reference.sides[side]);
    // Which tag of one stands for which of the other.
    let (mut mine_of, mut its_of) = (BTreeMap::new(), BTreeMap::new());
    for (place, (mine, its)) in (1..).zip(my.iter().zip(its)) {
        let is_same_memory = *mine_of.entry(its.tag).or_insert(mine.tag) == mine.tag
            && *its_of.entry(mine.tag).or_insert(its.tag) == its.tag;
        if let Some((field, words)) = differ(mine, its, is_same_memory) {
            let sentence = format!("The {who}'s message {place}, {}, {words}", its.kind.name());
            return Some(told(field, sentence, place, [Some(mine.frame), Some(its.frame)]));
        }
    }
    let place = my.len().min(its.len());
    let (extra, lacking) = (my.get(place), its.get(place));
    let found = extra.or(lacking)?;
    let (field, words) = if extra.is_some() { ("extra", "isn't in the reference") } else { ("missing", "is missing") };
    let sentence = format!("The {who}'s message {}, {}, {words}", place + 1, found.kind.name());
    Some(told(field, sentence, place as u64 + 1, [extra.map(|one| one.frame), lacking.map(|one| one.frame)]))
}

/// What differs in two messages that have the same place, if their tags stand for the same memory as before or don't.
fn differ(mine: &Message, its: &Message, is_same_memory: bool) -> Option<(&'static str, String)> {
    if mine.kind != its.kind {
        return Some(("operation", format!("is {} in yours", mine.kind.name())));
    }
    if mine.is_rejected != its.is_rejected {
        return Some(("answer", if mine.is_rejected { "says no in yours" } else { "says yes in yours" }.to_owned()));
    }
    if mine.reads != its.reads {
        return Some(("read-depth", "offers a different number of READs at a time in yours".to_owned()));
    }
    if mine.length != its.length {
        return Some(("length", format!("has {} bytes in yours, and {} in the reference", mine.length, its.length)));
    }
    if mine.error != its.error {
        return Some(("outcome", "names another error in yours".to_owned()));
    }
    (!is_same_memory).then(|| ("key", "names different memory than before in yours".to_owned()))
}

fn told(field: &'static str, sentence: String, place: u64, [mine, reference]: [Option<u64>; 2]) -> Difference {
    let (mine, reference) = (mine.into_iter().collect(), reference.into_iter().collect());
    Difference { field, sentence, mine, reference, rank: (Phase::Data, place), ..Difference::default() }
}
