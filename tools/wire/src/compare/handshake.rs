//! The connection manager's part: how the two got connected and how they parted. What must be the same is said of either
//! side in words; where the words differ, they are the sentence.

use super::conversation::{Conversation, Step};
use super::finding::{Judge, Phase};
use super::pair;
use super::report::Field;
use super::words::{hex, quote};
use roce::cm::{reject_reason, rep, req, sidr_status, Kind, Service};
use roce::field::Field as WireField;

/// REQ, then REP and RTU, or REJ; for datagrams SIDR_REQ and SIDR_REP.
pub(super) fn connect(judge: &mut Judge) {
    let (Some(mine), Some(reference)) = (judge.mine.request(), judge.reference.request()) else { return };
    if mine.kind != reference.kind {
        let [my, its] = [mine, reference].map(|step| step.kind.short());
        let sentence = format!("Your client begins with a {my}; {}'s begins with a {its}", judge.model);
        judge.add(Phase::Connect, Field::Service, sentence, vec![mine.frame], Some(reference.place()));
        return;
    }
    terms(judge, mine, reference);
    answer(judge, mine);
}

/// What two messages of a kind have to say alike.
fn terms(judge: &mut Judge, mine: &Step, reference: &Step) {
    for ((field, my), (_, its)) in asked(mine).into_iter().zip(asked(reference)).filter(|(my, its)| my != its) {
        let sentence = format!("Your {} {my}; {}'s {its}", mine.from, judge.model);
        judge.add(Phase::Connect, field, sentence, vec![mine.frame], Some(reference.place()));
    }
    private_data(judge, mine, reference);
}

/// What a message asks for or offers.
fn asked(step: &Step) -> Vec<(Field, String)> {
    let number = |field: WireField| field.read(step.message().body).unwrap_or(0);
    // With a depth of 0 on either side, READs are impossible.
    let can = |what, parameter, field| match number(field) {
        0 => (Field::ReadDepth, format!("cannot {what} READs (its {parameter} is 0)")),
        _ => (Field::ReadDepth, format!("can {what} READs")),
    };
    let transport = (req::TRANSPORT.meaning)(number(req::TRANSPORT));
    let service = step.message().service().unwrap_or(Service(0));
    let service = (Field::Service, format!("asks for a service of {} ({:#x})", service.space(), service.0 >> 16));
    match step.kind {
        Kind::ConnectRequest => vec![
            service,
            (Field::Service, format!("asks for a connection of type {transport}")),
            match number(req::LOCAL_QPN) {
                0 => (Field::QueuePair, "asks for a connection without a queue pair".into()),
                _ => (Field::QueuePair, "creates a queue pair before rdma_connect".into()),
            },
            can("send", "initiator_depth", req::INITIATOR_DEPTH),
            can("answer", "responder_resources", req::RESPONDER_RESOURCES),
        ],
        Kind::ConnectReply => vec![
            can("send", "initiator_depth", rep::INITIATOR_DEPTH),
            can("answer", "responder_resources", rep::RESPONDER_RESOURCES),
        ],
        Kind::ServiceRequest => vec![service],
        _ => Vec::new(),
    }
}

/// What a message carries for the programs.
fn private_data(judge: &mut Judge, mine: &Step, reference: &Step) {
    let [(my, my_rest), (its, its_rest)] = [mine, reference].map(Step::memory);
    if my.len() == its.len() && my_rest == its_rest {
        for (my, its) in my.into_iter().zip(its) {
            pair::descriptor(judge, Phase::Connect, mine.from, (my, its), (mine.frame, reference.place()));
        }
        return;
    }
    let words = |step: &Step| match (step.message().given_data(), step.memory()) {
        ([], _) => "no private data".to_owned(),
        (_, (memory, [])) if memory.len() == 1 => "the private data address, key and length of its memory".to_owned(),
        (data, _) => format!("the private data {}", hex(data)),
    };
    let (my, its, name) = (words(mine), words(reference), mine.kind.short());
    let sentence = format!("Your {}'s {name} carries {my}; {}'s carries {its}", mine.from, judge.model);
    judge.add(Phase::Connect, Field::PrivateData, sentence, vec![mine.frame], Some(reference.place()));
}

/// Accepted, rejected, or neither.
fn answer(judge: &mut Judge, my_request: &Step) {
    const ANSWERS: [Kind; 3] = [Kind::ConnectReject, Kind::ConnectReply, Kind::ServiceReply];
    let [mine, reference] = [judge.mine, judge.reference].map(|c| ANSWERS.iter().find_map(|kind| c.step(*kind)));
    let decided = |step: &Step| (step.kind, step.message().reason(), step.message().sidr_status());
    if mine.map(decided) != reference.map(decided) {
        let rejected = |step: Option<&Step>| step.is_some_and(|step| step.kind == Kind::ConnectReject);
        let field = if rejected(mine) && rejected(reference) { Field::RejectReason } else { Field::Answer };
        let words = |step: Option<&Step>| step.map_or("gives no answer".into(), |step| verdict(step, my_request));
        let sentence = match mine {
            Some(step) => format!("Your {} {}; {}'s {}", step.from, words(mine), judge.model, words(reference)),
            None => unanswered(my_request),
        };
        let frame = mine.unwrap_or(my_request).frame;
        judge.add(Phase::Connect, field, sentence, vec![frame], reference.map(Step::place));
        return;
    }
    match (mine, reference) {
        (Some(mine), Some(reference)) if mine.kind == Kind::ConnectReject => {
            let [my, its] = [mine, reference].map(|step| step.message().given_data());
            if my != its {
                judge.notes.push(format!("the {} rejects in other words{}", mine.from, quote(my)));
            }
        }
        (Some(mine), Some(reference)) => {
            terms(judge, mine, reference);
            told(judge, Phase::Connect, Field::ReadyToUse, Kind::ReadyToUse, ready);
        }
        _ => {}
    }
}

fn verdict(answer: &Step, request: &Step) -> String {
    let port = request.message().service().and_then(Service::port);
    match (answer.message().reason(), answer.message().sidr_status(), port) {
        (Some(8), _, Some(port)) => {
            let why = format!("nobody listens on port {port}, so start the server first");
            format!("rejects the connection: reason 8 (invalid service ID): {why}")
        }
        (Some(28), ..) => {
            let why = quote(answer.message().given_data());
            format!("rejects the connection: reason 28 (consumer reject): the program itself said no{why}")
        }
        (Some(code), ..) => format!("rejects the connection: reason {code} ({})", reject_reason(code)),
        (_, Some(status), _) => format!("answers \"{}\"", sidr_status(status)),
        _ => "accepts the connection".into(),
    }
}

fn unanswered(request: &Step) -> String {
    let times = match request.again {
        0 => String::new(),
        again => format!(", though it was sent {} times", again + 1),
    };
    let look = "look whether its machine is reachable, and whether a firewall drops UDP port 4791";
    format!("Nobody answered your client's connection request{times}: {look}")
}

fn ready(conversation: &Conversation) -> String {
    match conversation.step(Kind::ReadyToUse) {
        Some(_) => "the client sends the ReadyToUse (RTU)".into(),
        None => "the client never sends the ReadyToUse (RTU), so the server does not learn that it is connected".into(),
    }
}

/// DREQ and DREP.
pub(super) fn disconnect(judge: &mut Judge) {
    told(judge, Phase::Disconnect, Field::Disconnect, Kind::DisconnectRequest, parting);
}

fn parting(conversation: &Conversation) -> String {
    match (conversation.goodbye().map(|step| step.from), conversation.step(Kind::DisconnectReply)) {
        (None, _) => "nobody hangs up (rdma_disconnect is never called, or the capture was stopped too early)".into(),
        (Some(from), Some(_)) => format!("the {from} hangs up (DREQ), and is answered"),
        (Some(from), None) => format!("the {from} hangs up (DREQ), and is not answered (DREP)"),
    }
}

/// Whether the messages of a kind are there, or the like, told of either capture.
fn told(judge: &mut Judge, phase: Phase, field: Field, kind: Kind, words: fn(&Conversation) -> String) {
    let (my, its) = (words(judge.mine), words(judge.reference));
    if my != its {
        let sentence = format!("In your capture {my}; in {} {its}", judge.model);
        let frames = judge.mine.step(kind).iter().map(|step| step.frame).collect();
        judge.add(phase, field, sentence, frames, judge.reference.step(kind).map(Step::place));
    }
}
