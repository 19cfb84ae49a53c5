//! What may differ from run to run and still be worth a word.

use super::conversation::Conversation;
use super::finding::Judge;
use super::request::{Outcome, Request};
use super::words::plural;
use roce::cm::{rep, req, Kind};
use roce::field::Field as WireField;
use roce::track::Side;

/// What concerns the connection as a whole.
pub(super) fn about(judge: &mut Judge) {
    let (mine, reference, notes) = (judge.mine, judge.reference, &mut judge.notes);
    // Zero is not told, or another matter.
    let chosen = choices(mine).into_iter().zip(choices(reference));
    for ((name, my), (_, its)) in chosen.filter(|((_, my), (_, its))| my != its && *my > 0 && *its > 0) {
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
}

/// Requests that needed more than one attempt.
fn repetitions(notes: &mut Vec<String>, from: Side, requests: &[Request]) {
    let to = from.other();
    for request in requests.iter().filter(|request| request.not_ready > 0 && request.outcome == Outcome::Done) {
        let (what, times) = (request.name(), plural(request.not_ready.into(), "time"));
        let what = format!("{what} (frame {})", request.frame);
        notes.push(format!(
            "the {to} was not ready for the {from}'s {what} {times}, then it worked: post receives earlier"
        ));
    }
    let lost = requests.iter().filter(|request| request.not_ready == 0 && request.again > 0);
    let packets = plural(lost.clone().map(|request| u64::from(request.again)).sum(), "packet");
    if let Some(frame) = lost.map(|request| request.frame).min() {
        notes.push(format!("your {from} sent {packets} again, first for frame {frame}: they or the answers were lost"));
    }
}

/// What a program may choose freely.
fn choices(conversation: &Conversation) -> [(&'static str, u64); 9] {
    let port = conversation.request().and_then(|step| step.message().service()?.port());
    let read = |kind, field: WireField| field.read(conversation.step(kind)?.message().body);
    let request = |field| read(Kind::ConnectRequest, field).unwrap_or(0);
    let reply = |field| read(Kind::ConnectReply, field).unwrap_or(0);
    [
        ("port", port.map_or(0, u64::from)),
        ("path MTU in bytes", conversation.mtu.map_or(0, u64::from)),
        ("client's retry_count", request(req::RETRY_COUNT)),
        ("client's rnr_retry_count", request(req::RNR_RETRY)),
        ("client's initiator_depth", request(req::INITIATOR_DEPTH)),
        ("client's responder_resources", request(req::RESPONDER_RESOURCES)),
        ("server's rnr_retry_count", reply(rep::RNR_RETRY)),
        ("server's initiator_depth", reply(rep::INITIATOR_DEPTH)),
        ("server's responder_resources", reply(rep::RESPONDER_RESOURCES)),
    ]
}
