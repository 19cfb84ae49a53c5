//! Comparing one connection with another: everything that differs is found, then put in the order in which it explains
//! the rest.

use super::align::{align, Pair};
use super::conversation::Conversation;
use super::finding::{Finding, Judge, Matched, Phase};
use super::report::{Difference, Field};
use super::request::{Outcome, Request};
use super::stream::KEPT;
use super::words::ordinal;
use super::{explain, handshake, notes, pair};
use crate::opcode::Service;
use crate::track::Side;

/// Compares and returns what was found, the cause first, and what is worth a note.
pub(super) fn compare(
    mine: &Conversation,
    reference: &Conversation,
    model: &'static str,
) -> (Vec<Finding>, Vec<String>) {
    let mut judge = Judge::new(mine, reference, model);
    handshake::connect(&mut judge);
    judge.requests();
    handshake::disconnect(&mut judge);
    notes::about(&mut judge);
    judge.found.sort_by_key(|finding| (finding.phase, finding.order));
    (judge.found, judge.notes)
}

impl Judge<'_> {
    /// All requests in the order of the reference, so that a key is announced before it is used.
    fn requests(&mut self) {
        let mut matched = Vec::new();
        for from in Side::BOTH {
            let (mine, reference) = (&self.mine.stream(from).requests, &self.reference.stream(from).requests);
            let (my, its) = (traits(self.mine, from), traits(self.reference, from));
            let mut before = 0;
            for pair in align(mine.len(), reference.len(), |i, j| unlike(&my[i], &its[j])) {
                match pair {
                    Pair::Both(i, j) => {
                        before = reference[j].frame;
                        matched.push(Matched { from, mine: &mine[i], reference: &reference[j] });
                    }
                    Pair::Extra(i, _) => self.extra(from, i, before),
                    Pair::Missing(_, j) => self.missing(from, j),
                }
            }
            self.rest(from);
        }
        matched.sort_by_key(|matched| matched.reference.frame);
        for matched in matched {
            explain::outcome(self, matched);
            pair::compare(self, matched);
        }
    }

    fn missing(&mut self, from: Side, at: usize) {
        let reference = &self.reference.stream(from).requests[at];
        let (name, model, number) = (reference.name(), self.model, ordinal(at + 1));
        let mut sentence =
            format!("Your {from} never posts the {name} that is {model}'s {number} request of the {from}");
        let mut frames = Vec::new();
        match handshake::goodbye(self.mine) {
            Some(goodbye) => {
                sentence += &format!("; the {} hangs up without it", goodbye.from);
                frames.push(goodbye.frame);
            }
            None => sentence += "; nobody hangs up either, so the capture may have been stopped too early",
        }
        let (step, its) = (reference.step.clone(), vec![reference.frame]);
        let difference = Difference { field: Field::Missing, sentence, step, mine: frames, reference: its };
        self.add(Phase::Data, (reference.frame, 0), difference);
    }

    /// The requests after those that are compared one by one.
    fn rest(&mut self, from: Side) {
        let (mine, reference, model) = (&self.mine.stream(from).rest, &self.reference.stream(from).rest, self.model);
        if mine.is_like(reference) {
            return;
        }
        let sentence = match mine.count == reference.count {
            true => format!("Not all of your {from}'s requests after the first {KEPT} are like {model}'s"),
            false => format!(
                "Your {from} posts {} requests after the first {KEPT}; {model}'s posts {}",
                mine.count, reference.count
            ),
        };
        let [my, its] = [mine, reference].map(|rest| (rest.count > 0).then_some(rest.frame).into_iter().collect());
        let difference = Difference { field: Field::Operation, sentence, step: None, mine: my, reference: its };
        self.add(Phase::Data, (u64::MAX, 0), difference);
    }

    fn extra(&mut self, from: Side, at: usize, before: u64) {
        let mine = &self.mine.stream(from).requests[at];
        if mine.outcome != Outcome::Done && explain::failed(mine) {
            explain::extra_failure(self, from, mine);
        }
        let (name, model, number) = (mine.name(), self.model, ordinal(at + 1));
        let sentence = format!("Your {from}'s {number} request, a {name}, is one that {model} does not have");
        let (mine, reference) = (vec![mine.frame], Vec::new());
        let difference = Difference { field: Field::Extra, sentence, step: None, mine, reference };
        self.add(Phase::Data, (before, at + 1), difference);
    }
}

/// What identifies a request within its own capture, without the numbers that are new in every run.
#[derive(Debug, PartialEq)]
struct Traits<'c> {
    kind: (&'static str, Service),
    length: u64,
    values: (Option<u32>, Option<(u64, u64)>, bool),
    /// Which of the announced buffers, and where in it.
    place: Option<(usize, u64)>,
    /// What a SEND says, unless it announces a buffer.
    says: Option<(&'c [u8], u32)>,
}

fn traits<'c>(conversation: &'c Conversation, from: Side) -> Vec<Traits<'c>> {
    let buffers = conversation.announced(from.other(), u64::MAX);
    let of = |request: &'c Request| {
        let place = request.remote.and_then(|remote| {
            let index = buffers.iter().position(|(_, buffer)| buffer.key == remote.r_key)?;
            Some((index, remote.va.wrapping_sub(buffers[index].1.address)))
        });
        Traits {
            kind: (request.name(), request.service),
            length: request.length(),
            values: (request.immediate, request.operands, request.solicited),
            place,
            says: request.says(),
        }
    };
    conversation.stream(from).requests.iter().map(of).collect()
}

/// How little two requests have in common, for pairing them.
fn unlike(mine: &Traits, reference: &Traits) -> u32 {
    if mine.kind != reference.kind {
        return 4;
    }
    let differs = [
        mine.length != reference.length,
        mine.values != reference.values,
        mine.place != reference.place || mine.says != reference.says,
    ];
    differs.into_iter().map(u32::from).sum()
}
