//! What may differ from run to run and still be worth a word.

use super::finding::Judge;
use super::parameters::choices;
use super::request::{Outcome, Request};
use super::words::plural;
use crate::cm::Kind;
use crate::track::Side;

/// What concerns the connection as a whole.
pub(super) fn about(judge: &mut Judge) {
    let (mine, reference, notes) = (judge.mine, judge.reference, &mut judge.notes);
    let [my, its] = [mine, reference].map(|c| c.request().and_then(|step| step.message().service()?.port()));
    if let (Some(my), Some(its)) = (my, its) {
        if my != its {
            notes.push(format!("your port is {my} instead of {its}"));
        }
    }
    if let (Some(my), Some(its)) = (mine.mtu, reference.mtu) {
        if my != its {
            let sentence = "so messages are cut into other packets";
            notes.push(format!("your path MTU is {my} bytes instead of {its}, {sentence}"));
        }
    }
    for (name, my, its) in choices(mine, reference) {
        notes.push(format!("your {name} is {my} instead of {its}"));
    }
    let kinds = [mine, reference].map(|c| c.step(Kind::LoadAlternatePath).is_some());
    if kinds[0] != kinds[1] {
        let who = if kinds[0] { "your capture" } else { judge.model };
        notes.push(format!("only {who} has another path for the connection (LAP)"));
    }
    for side in Side::BOTH {
        for step in mine.dialogue.iter().filter(|step| step.from == side && step.again > 0) {
            notes.push(format!("your {side} sent its {} {} times", step.kind.short(), step.again + 1));
        }
        repetitions(notes, side, &mine.stream(side).requests);
    }
    let bytes = judge.bytes.iter();
    notes
        .extend(bytes.map(|(name, frame)| format!("your {name} (frame {frame}) moves other bytes of the same length")));
}

/// Requests that needed more than one attempt.
fn repetitions(notes: &mut Vec<String>, from: Side, requests: &[Request]) {
    let to = from.other();
    for request in requests.iter().filter(|request| request.not_ready > 0 && request.outcome == Outcome::Done) {
        let sentence = format!(
            "the {to} was not ready for the {from}'s {} (frame {}) {}, then it worked: post the receive before \
             connecting",
            request.name(),
            request.frame,
            plural(request.not_ready.into(), "time")
        );
        notes.push(sentence);
    }
    let lost = requests.iter().filter(|request| request.not_ready == 0);
    let (count, first) = lost.fold((0, None), |(count, first), request| {
        (count + request.again, first.or((request.again > 0).then_some(request.frame)))
    });
    if let Some(first) = first {
        let sentence = format!(
            "your {from} sent {} again, the first for the request in frame {first}: a packet or its answer was \
             lost on the way",
            plural(count.into(), "packet")
        );
        notes.push(sentence);
    }
}
