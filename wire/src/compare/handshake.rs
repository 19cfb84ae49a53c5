//! The connection manager's part: how the two got connected and how they parted.

use super::conversation::{Conversation, Step};
use super::descriptor::Descriptor;
use super::finding::{between, toward, Judge, Phase};
use super::report::Field;
use super::words::{given, hex, quote};
use super::{pair, parameters};
use crate::cm::{reject_reason, rep, sidr_status, Kind, Service};

/// REQ, then REP and RTU, or REJ; for datagrams SIDR_REQ and SIDR_REP.
pub(super) fn connect(judge: &mut Judge) {
    let (Some(mine), Some(reference)) = (judge.mine.request(), judge.reference.request()) else { return };
    if mine.kind != reference.kind {
        let [my, its] = [mine, reference].map(|step| step.kind.short());
        let sentence = format!("Your client begins with a {my}; {}'s begins with a {its}", judge.model);
        judge.add(Phase::Connect, (0, 0), between(Field::Service, sentence, mine, reference));
        return;
    }
    parameters::request(judge, mine, reference);
    private_data(judge, mine, reference);
    if mine.kind == Kind::ServiceRequest {
        return service(judge, mine);
    }
    answer(judge, mine);
    let (mine, reference) = (judge.mine.step(Kind::ConnectReply), judge.reference.step(Kind::ConnectReply));
    if let (Some(mine), Some(reference)) = (mine, reference) {
        parameters::depths(judge, mine, reference, (rep::INITIATOR_DEPTH, rep::RESPONDER_RESOURCES));
        private_data(judge, mine, reference);
        ready(judge, mine);
    }
}

/// What a SIDR_REP says, if it comes.
fn service(judge: &mut Judge, my_request: &Step) {
    let status = |step: Option<&Step>| step.and_then(|step| step.message().sidr_status());
    let words = |status: Option<u8>| status.map_or("nothing", sidr_status);
    let (mine, reference) = (judge.mine.step(Kind::ServiceReply), judge.reference.step(Kind::ServiceReply));
    let [my, its] = [mine, reference].map(status);
    if my != its {
        let sentence = match my {
            Some(_) => format!("Your server answers \"{}\"; {}'s answers \"{}\"", words(my), judge.model, words(its)),
            None => unanswered(my_request),
        };
        let difference = toward(Field::Answer, sentence, mine.or(Some(my_request)), reference);
        judge.add(Phase::Connect, (u64::MAX, 0), difference);
    } else if let (Some(mine), Some(reference)) = (mine, reference) {
        private_data(judge, mine, reference);
    }
}

/// Accepted, rejected, or neither.
fn answer(judge: &mut Judge, my_request: &Step) {
    let (mine, reference) = (judge.mine, judge.reference);
    let model = judge.model;
    let rejected = (mine.step(Kind::ConnectReject), reference.step(Kind::ConnectReject));
    let accepted = (mine.step(Kind::ConnectReply), reference.step(Kind::ConnectReply));
    let found = match (rejected, accepted) {
        ((Some(mine), None), _) => {
            let its = accepted.1;
            let sentence = format!("The {} rejected your {}: {}", mine.from, mine.from.other(), why(mine, my_request));
            Some(toward(Field::Answer, sentence, Some(mine), its))
        }
        ((None, Some(its)), _) => {
            let sentence = match accepted.0 {
                Some(_) => format!("Your server accepts the connection; {model}'s rejects it"),
                None => unanswered(my_request),
            };
            Some(toward(Field::Answer, sentence, accepted.0.or(Some(my_request)), Some(its)))
        }
        ((Some(mine), Some(its)), _) if mine.message().reason() != its.message().reason() => {
            let sentence = format!(
                "The {} rejected your {}: {}; {model}'s reason is {}",
                mine.from,
                mine.from.other(),
                why(mine, my_request),
                reason(its)
            );
            Some(toward(Field::RejectReason, sentence, Some(mine), Some(its)))
        }
        (_, (None, Some(its))) => Some(toward(Field::Answer, unanswered(my_request), Some(my_request), Some(its))),
        _ => None,
    };
    if let (Some(mine), Some(its)) = rejected {
        let [my_text, its_text] = [mine, its].map(|step| step.message().private_data());
        if my_text != its_text {
            judge.notes.push(format!("the {} rejects in other words{}", mine.from, quote(my_text)));
        }
    }
    if let Some(difference) = found {
        judge.add(Phase::Connect, (u64::MAX - 1, 0), difference);
    }
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
    let difference = toward(Field::ReadyToUse, sentence, mine.or(Some(my_reply)), reference);
    judge.add(Phase::Connect, (u64::MAX, 0), difference);
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

fn reason(reject: &Step) -> String {
    let code = reject.message().reason().unwrap_or(0);
    format!("reason {code} ({})", reject_reason(code))
}

/// What a reject means for the learner.
fn why(reject: &Step, request: &Step) -> String {
    let port = request.message().service().and_then(Service::port);
    match (reject.message().reason().unwrap_or(0), port) {
        (8, Some(port)) => {
            format!("reason 8 (invalid service ID): nobody listens on port {port}, so start the server first")
        }
        (28, _) => {
            format!("reason 28 (consumer reject): the program itself said no{}", quote(reject.message().private_data()))
        }
        _ => reason(reject),
    }
}

/// What REQ and REP carry for the programs.
fn private_data(judge: &mut Judge, mine: &Step, reference: &Step) {
    let [my_data, its_data] = [mine, reference].map(|step| step.message().private_data());
    let from = mine.from;
    let name = mine.kind.short();
    let descriptors = (Descriptor::of_private_data(my_data), Descriptor::of_private_data(its_data));
    if let (Some(my), Some(its)) = descriptors {
        let places = (vec![mine.frame], vec![reference.frame], reference.step.clone());
        pair::descriptor(judge, from, my, its, Phase::Connect, places);
        return;
    }
    let [my, its] = [my_data, its_data].map(given);
    if my == its {
        return;
    }
    let model = judge.model;
    let sentence = match (my.len(), its.len(), descriptors) {
        (0, _, (_, Some(_))) => {
            format!(
                "Your {from}'s {name} carries no private data; {model}'s tells address, key and length of its memory \
                 there"
            )
        }
        (0, ..) => format!("Your {from}'s {name} carries no private data; {model}'s carries {}", hex(its)),
        (_, 0, (Some(_), _)) => {
            format!("Your {from}'s {name} tells address, key and length in its private data; {model}'s does not")
        }
        (_, 0, _) => format!("Your {from}'s {name} carries private data ({}); {model}'s does not", hex(my)),
        _ => format!("Your {from}'s {name} carries the private data {}; {model}'s carries {}", hex(my), hex(its)),
    };
    judge.add(Phase::Connect, (reference.frame, 1), between(Field::PrivateData, sentence, mine, reference));
}

/// Who hung up.
pub(super) fn goodbye(conversation: &Conversation) -> Option<&Step> {
    conversation.step(Kind::DisconnectRequest)
}

/// DREQ and DREP.
pub(super) fn disconnect(judge: &mut Judge) {
    let (mine, reference) = (goodbye(judge.mine), goodbye(judge.reference));
    let answered = [judge.mine, judge.reference].map(|c| c.step(Kind::DisconnectReply));
    let model = judge.model;
    let sentence = match (mine, reference) {
        (None, Some(its)) => format!(
            "Nobody hangs up in your capture; in {model} the {} sends a DisconnectRequest (DREQ): either \
             rdma_disconnect is never called, or the capture was stopped too early",
            its.from
        ),
        (Some(mine), None) => format!("Your {} hangs up; nobody does in {model}", mine.from),
        (Some(mine), Some(its)) if mine.from != its.from => {
            format!("Your {} hangs up first; in {model} the {} does", mine.from, its.from)
        }
        (Some(mine), Some(_)) => match answered {
            [None, Some(_)] => {
                format!("Your {} never answers the DisconnectRequest (DREQ) with a reply (DREP)", mine.from.other())
            }
            [Some(_), None] => {
                format!("Your {} answers the DisconnectRequest; in {model} nobody does", mine.from.other())
            }
            _ => return,
        },
        (None, None) => return,
    };
    let difference = toward(Field::Disconnect, sentence, mine, reference);
    judge.add(Phase::Disconnect, (0, 0), difference);
}
