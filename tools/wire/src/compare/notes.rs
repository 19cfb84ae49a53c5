//! What may differ from run to run and still be worth a word.

use super::conversation::Conversation;
use super::report::plural;
use super::request::{Outcome, Request};
use roce::cm::{rep, req, Kind};
use roce::field::Field;
use roce::opcode::Operation;
use roce::track::Side;

/// What is worth a word about two connections; the requests are those that stand for each other.
pub(super) fn about(mine: &Conversation, reference: &Conversation) -> Vec<String> {
    // Zero is not told, or another matter.
    let chosen = choices(mine).into_iter().zip(choices(reference));
    let chosen = chosen.filter(|((_, my), (_, its))| my != its && *my > 0 && *its > 0);
    let mut notes: Vec<String> =
        chosen.map(|((name, my), (_, its))| format!("your {name} is {my} instead of {its}")).collect();
    let reject = [mine, reference].map(|conversation| conversation.step(Kind::ConnectReject));
    if let [Some(my), Some(its)] = reject.map(|step| step.map(|step| step.message().given_data())) {
        notes
            .extend((my != its).then(|| format!("the server rejects in other words: {}", String::from_utf8_lossy(my))));
    }
    for side in Side::BOTH {
        for step in mine.dialogue.iter().filter(|step| step.from == side && step.again > 0) {
            notes.push(format!("your {side} sent its {} {} times", step.kind.short(), step.again + 1));
        }
        let requests = mine.requests(side);
        repetitions(&mut notes, side, requests);
        // The bytes that are moved are the user's business: worth a note, once for each kind of request.
        for (my, its) in requests.iter().zip(reference.requests(side)) {
            let note = format!("your {} moves other bytes of the same length", my.name());
            let is_alike = (my.name(), my.payload.length) == (its.name(), its.payload.length);
            if is_alike && my.operation != Operation::Send && my.payload != its.payload && !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    notes
}

/// Requests that needed more than one attempt.
fn repetitions(notes: &mut Vec<String>, from: Side, requests: &[Request]) {
    for request in requests.iter().filter(|request| request.not_ready > 0 && request.outcome == Outcome::Done) {
        let (to, what, frame) = (from.other(), request.name(), request.frame);
        let times = plural(request.not_ready.into(), "time");
        notes.push(format!(
            "the {to} was not ready for the {from}'s {what} (frame {frame}) {times}, then it worked: post receives earlier"
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
    let read = |kind, field: Field| field.read(conversation.step(kind)?.message().body);
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
