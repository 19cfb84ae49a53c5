//! What REQ and REP say about the connection: its kind, its queue pairs, and the parameters of rdma_connect and
//! rdma_accept.

use super::conversation::{Conversation, Step};
use super::finding::{between, Judge, Phase};
use super::report::Field;
use crate::cm::{rep, req, Kind, Service};
use crate::field::Field as WireField;

/// What the REQ asks for.
pub(super) fn request(judge: &mut Judge, mine: &Step, reference: &Step) {
    let both = |field: WireField| values(field, mine, reference);
    let model = judge.model;
    let services = [mine, reference].map(|step| step.message().service().unwrap_or(Service(0)));
    let [my_service, its_service] = services;
    if my_service.0 >> 16 != its_service.0 >> 16 {
        let sentence = format!("Your client asks for {my_service}; {model}'s asks for {its_service}");
        differ(judge, Field::Service, sentence, mine, reference);
    }
    if mine.kind != Kind::ConnectRequest {
        return;
    }
    let [my_transport, its_transport] = both(req::TRANSPORT);
    if my_transport != its_transport {
        let [my, its] = [my_transport, its_transport].map(req::TRANSPORT.meaning);
        let sentence = format!("Your client asks for a connection of type {my}; {model}'s is {its}");
        differ(judge, Field::Service, sentence, mine, reference);
    }
    let queue_pairs = both(req::LOCAL_QPN).map(|qp| qp != 0);
    if queue_pairs[0] != queue_pairs[1] {
        let sentence = match queue_pairs[0] {
            true => format!("Your client's request names a queue pair; {model}'s client has none"),
            false => format!(
                "Your client asks for a connection without a queue pair; {model}'s creates one before rdma_connect"
            ),
        };
        differ(judge, Field::QueuePair, sentence, mine, reference);
    }
    depths(judge, mine, reference, (req::INITIATOR_DEPTH, req::RESPONDER_RESOURCES));
}

/// With a depth of 0 on either side, READs are impossible.
pub(super) fn depths(judge: &mut Judge, mine: &Step, reference: &Step, (asks, answers): (WireField, WireField)) {
    let model = judge.model;
    for (field, parameter, what) in [(asks, "initiator_depth", "send"), (answers, "responder_resources", "answer")] {
        let from = mine.from;
        let sentence = match values(field, mine, reference) {
            [0, its] if its > 0 => {
                format!("Your {from}'s {parameter} is 0, so it cannot {what} READs; {model}'s is {its}")
            }
            [my, 0] if my > 0 => {
                format!("Your {from}'s {parameter} is {my}; {model}'s is 0, so it cannot {what} READs")
            }
            _ => continue,
        };
        differ(judge, Field::ReadDepth, sentence, mine, reference);
    }
}

fn values(field: WireField, mine: &Step, reference: &Step) -> [u64; 2] {
    [mine, reference].map(|step| field.read(step.message().body).unwrap_or(0))
}

fn differ(judge: &mut Judge, field: Field, sentence: String, mine: &Step, reference: &Step) {
    judge.add(Phase::Connect, (reference.frame, 0), between(field, sentence, mine, reference));
}

/// What a program may choose freely, where it differs: the parameter, your value, the reference's. Zero is another
/// matter.
pub(super) fn choices(mine: &Conversation, reference: &Conversation) -> Vec<(&'static str, u64, u64)> {
    let fields: [(Kind, &str, WireField); 7] = [
        (Kind::ConnectRequest, "client's retry_count", req::RETRY_COUNT),
        (Kind::ConnectRequest, "client's rnr_retry_count", req::RNR_RETRY),
        (Kind::ConnectRequest, "client's initiator_depth", req::INITIATOR_DEPTH),
        (Kind::ConnectRequest, "client's responder_resources", req::RESPONDER_RESOURCES),
        (Kind::ConnectReply, "server's rnr_retry_count", rep::RNR_RETRY),
        (Kind::ConnectReply, "server's initiator_depth", rep::INITIATOR_DEPTH),
        (Kind::ConnectReply, "server's responder_resources", rep::RESPONDER_RESOURCES),
    ];
    let value =
        |conversation: &Conversation, kind, field: WireField| field.read(conversation.step(kind)?.message().body);
    let pairs = fields.into_iter().filter_map(|(kind, name, field)| {
        let (mine, reference) = (value(mine, kind, field)?, value(reference, kind, field)?);
        (mine != reference && mine > 0 && reference > 0).then_some((name, mine, reference))
    });
    pairs.collect()
}
