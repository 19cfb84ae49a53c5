//! Comparing two connections: all that differs is found, then put in the order in which it explains the rest.

use super::align::{align, Pair};
use super::conversation::Conversation;
use super::finding::{Finding, Judge, Matched, Phase};
use super::memory::Symbols;
use super::report::Field;
use super::stream::KEPT;
use super::words::ordinal;
use super::{explain, handshake, notes, pair};
use roce::opcode::Service;
use roce::track::Side;

/// Compares and returns what was found, the cause first, and what is worth a note.
pub(super) fn compare(
    mine: &Conversation,
    reference: &Conversation,
    model: &'static str,
) -> (Vec<Finding>, Vec<String>) {
    let (found, notes) = (Vec::new(), Vec::new());
    let mut judge = Judge { mine, reference, model, symbols: Symbols::default(), found, notes };
    handshake::connect(&mut judge);
    requests(&mut judge);
    handshake::disconnect(&mut judge);
    notes::about(&mut judge);
    judge.found.sort_by_key(|finding| (finding.phase, finding.order));
    (judge.found, judge.notes)
}

/// All requests in the order of the reference, so that a key is announced before it is used.
fn requests(judge: &mut Judge) {
    let (mut matched, mut alone) = (Vec::new(), Vec::new());
    for from in Side::BOTH {
        let (mine, reference) = (&judge.mine.stream(from).requests, &judge.reference.stream(from).requests);
        let (my, its) = (traits(judge.mine, from), traits(judge.reference, from));
        let mut before = 0;
        for pair in align(mine.len(), reference.len(), |i, j| unlike(&my[i], &its[j])) {
            match pair {
                Pair::Both(i, j) => {
                    before = reference[j].frame;
                    matched.push(Matched { from, mine: &mine[i], reference: &reference[j] });
                }
                pair => alone.push((from, pair, before)),
            }
        }
    }
    matched.sort_by_key(|matched| matched.reference.frame);
    for matched in matched {
        explain::outcome(judge, matched.from, matched.mine, Some(matched.reference));
        pair::compare(judge, matched);
    }
    for (from, pair, before) in alone {
        match pair {
            Pair::Extra(i, _) => extra(judge, from, i, before),
            Pair::Missing(_, j) => missing(judge, from, j),
            Pair::Both(..) => {}
        }
    }
    Side::BOTH.into_iter().for_each(|from| rest(judge, from));
}

fn missing(judge: &mut Judge, from: Side, at: usize) {
    let reference = &judge.reference.stream(from).requests[at];
    let goodbye = judge.mine.goodbye();
    let end = match goodbye {
        Some(goodbye) => format!("the {} hangs up without it", goodbye.from),
        None => "nobody hangs up either, so the capture may have been stopped too early".to_owned(),
    };
    let (name, model, nth) = (reference.name(), judge.model, ordinal(at + 1));
    let sentence = format!("Your {from} never posts the {name} that is {model}'s {nth} request of the {from}; {end}");
    let frames = goodbye.iter().map(|goodbye| goodbye.frame).collect();
    judge.add(Phase::Data, Field::Missing, sentence, frames, Some(reference.place()));
}

fn extra(judge: &mut Judge, from: Side, at: usize, before: u64) {
    let mine = &judge.mine.stream(from).requests[at];
    explain::outcome(judge, from, mine, None);
    let (name, model, number) = (mine.name(), judge.model, ordinal(at + 1));
    let sentence = format!("Your {from}'s {number} request, a {name}, is one that {model} does not have");
    judge.add(Phase::Data, Field::Extra, sentence, vec![mine.frame], None).order = before;
}

/// The requests after those that are compared one by one.
fn rest(judge: &mut Judge, from: Side) {
    let [mine, reference] = [judge.mine, judge.reference].map(|conversation| &conversation.stream(from).rest);
    if mine.is_like(reference) {
        return;
    }
    let (my, its, model) = (mine.count, reference.count, judge.model);
    let sentence = match my == its {
        true => format!("Not all of your {from}'s requests after the first {KEPT} are like {model}'s"),
        false => format!("Your {from} posts {my} requests after the first {KEPT}; {model}'s posts {its}"),
    };
    let frames = (my > 0).then_some(mine.frame).into_iter().collect();
    let place = (its > 0).then_some((reference.frame, None));
    judge.add(Phase::Data, Field::Operation, sentence, frames, place).order = u64::MAX;
}

/// What identifies a request within its own capture, without the numbers that are new in every run.
#[derive(Debug, PartialEq)]
struct Traits<'c> {
    kind: (&'static str, Service),
    terms: [(Field, String); 4],
    /// Which of the announced buffers, and where in it.
    place: Option<(usize, u64)>,
    /// What a SEND says, unless it announces a buffer.
    says: Option<(&'c [u8], u32)>,
}

fn traits(conversation: &Conversation, from: Side) -> Vec<Traits<'_>> {
    let buffers = conversation.announced(from.other(), u64::MAX);
    let requests = conversation.stream(from).requests.iter().map(|request| {
        let place = request.remote.and_then(|remote| {
            let index = buffers.iter().position(|(_, buffer)| buffer.key == remote.r_key)?;
            Some((index, remote.va.wrapping_sub(buffers[index].1.address)))
        });
        Traits { kind: (request.name(), request.service), terms: pair::terms(request), place, says: request.says() }
    });
    requests.collect()
}

/// How little two requests have in common, for pairing them.
fn unlike(mine: &Traits, reference: &Traits) -> u32 {
    if mine.kind != reference.kind {
        return 4;
    }
    let differs = [
        mine.terms[0] != reference.terms[0],
        mine.terms[1..] != reference.terms[1..],
        mine.place != reference.place || mine.says != reference.says,
    ];
    differs.into_iter().map(u32::from).sum()
}
