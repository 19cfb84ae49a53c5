//! The connection manager's part: how the two got connected and how they parted. What must be the same is said of either
//! side in words; where the words differ, they are the sentence.

use super::conversation::{Conversation, Step};
use super::finding::{Judge, Phase};
use super::memory::Descriptor;
use super::pair;
use super::report::Field;
use super::words::{given, hex, quote};
use crate::cm::{reject_reason, rep, req, sidr_status, Kind, Service};
use crate::field::Field as WireField;

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
    let service = step.message().service().unwrap_or(Service(0));
    let service = (Field::Service, format!("asks for a service of {} ({:#x})", service.space(), service.0 >> 16));
    match step.kind {
        Kind::ConnectRequest => vec![
            service,
            (
                Field::Service,
                format!("asks for a connection of type {}", (req::TRANSPORT.meaning)(number(req::TRANSPORT))),
            ),
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
    let [my, its] = [mine, reference].map(|step| given(step.message().private_data()));
    let told = [mine, reference].map(|step| Descriptor::of_private_data(step.message().private_data()));
    let [(my_memory, my_rest), (its_memory, its_rest)] = &told;
    if my_memory.len() == its_memory.len() && !my_memory.is_empty() && my_rest == its_rest {
        for (my, its) in my_memory.iter().zip(its_memory) {
            pair::descriptor(judge, Phase::Connect, mine.from, (*my, *its), (mine.frame, reference.place()));
        }
    } else if my != its {
        let words = |data: &[u8], (memory, rest): &(Vec<Descriptor>, &[u8])| match (data, memory.len(), rest.len()) {
            ([], ..) => "no private data".to_owned(),
            (_, 1, 0) => "the private data address, key and length of its memory".to_owned(),
            (data, ..) => format!("the private data {}", hex(data)),
        };
        let (my, its) = (words(my, &told[0]), words(its, &told[1]));
        let sentence =
            format!("Your {}'s {} carries {my}; {}'s carries {its}", mine.from, mine.kind.short(), judge.model);
        judge.add(Phase::Connect, Field::PrivateData, sentence, vec![mine.frame], Some(reference.place()));
    }
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
            let [my, its] = [mine, reference].map(|step| step.message().private_data());
            if my != its {
                judge.notes.push(format!("the {} rejects in other words{}", mine.from, quote(my)));
            }
        }
        (Some(mine), Some(reference)) => {
            terms(judge, mine, reference);
            ready(judge, mine);
        }
        _ => {}
    }
}

fn verdict(answer: &Step, request: &Step) -> String {
    let port = request.message().service().and_then(Service::port);
    match (answer.message().reason(), answer.message().sidr_status(), port) {
        (Some(8), _, Some(port)) => format!(
            "rejects the connection: reason 8 (invalid service ID): nobody listens on port {port}, so start the server \
             first"
        ),
        (Some(28), ..) => format!(
            "rejects the connection: reason 28 (consumer reject): the program itself said no{}",
            quote(answer.message().private_data())
        ),
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
    format!(
        "Nobody answered your client's connection request{times}: look whether the server's machine is reachable, and \
         whether a firewall drops UDP port 4791"
    )
}

/// The third message of the handshake.
fn ready(judge: &mut Judge, my_reply: &Step) {
    let (mine, reference) = (judge.mine.step(Kind::ReadyToUse), judge.reference.step(Kind::ReadyToUse));
    let sentence = match (mine, reference) {
        (None, Some(_)) => {
            "Your client never sends the ReadyToUse (RTU) after the server's reply, so the server does not learn that \
             the connection is established"
                .to_owned()
        }
        (Some(_), None) => format!("Your client sends a ReadyToUse (RTU); {}'s never does", judge.model),
        _ => return,
    };
    let frame = mine.unwrap_or(my_reply).frame;
    judge.add(Phase::Connect, Field::ReadyToUse, sentence, vec![frame], reference.map(Step::place));
}

/// DREQ and DREP.
pub(super) fn disconnect(judge: &mut Judge) {
    let words = |conversation: &Conversation| {
        let answered = conversation.step(Kind::DisconnectReply).is_some();
        conversation.goodbye().map_or("nobody hangs up".to_owned(), |step| match answered {
            true => format!("the {} hangs up (DREQ), and is answered", step.from),
            false => format!("the {} hangs up (DREQ), and is not answered (DREP)", step.from),
        })
    };
    let (my, its) = (words(judge.mine), words(judge.reference));
    if my == its {
        return;
    }
    let (mine, reference) = (judge.mine.goodbye(), judge.reference.goodbye());
    let hint = match mine {
        None => ": either rdma_disconnect is never called, or the capture was stopped too early",
        Some(_) => "",
    };
    let sentence = format!("In your capture {my}; in {} {its}{hint}", judge.model);
    let frames = mine.iter().map(|step| step.frame).collect();
    judge.add(Phase::Disconnect, Field::Disconnect, sentence, frames, reference.map(Step::place));
}
