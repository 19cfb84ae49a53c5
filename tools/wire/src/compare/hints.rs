//! What a difference means, and what to look at: for those that have a usual cause.

use super::conversation::Conversation;
use super::facts::{Descriptor, Fact, Row};
use super::report::plural;
use super::request::{Outcome, Request};
use roce::aeth::Nak;
use roce::cm::{Kind, Service};
use roce::track::Side;

/// A sentence, and the frame of yours that proves it.
#[derive(Debug, Default)]
pub(super) struct Hint {
    pub text: Option<String>,
    pub frame: Option<u64>,
}

/// About a fact of yours that the reference has otherwise.
pub(super) fn about(conversation: &Conversation, mine: &Row, reference: &Row, fact: &Fact) -> Hint {
    let text = match (fact.field, mine.request, reference.request) {
        ("answer" | "reject-reason", ..) => answer(conversation),
        ("ready-to-use", ..) if mine.frame.is_none() => {
            Some("so the server does not learn that it is connected".into())
        }
        ("disconnect", ..) if mine.frame.is_none() => {
            Some("rdma_disconnect is never called, or the capture was stopped too early".into())
        }
        ("outcome", Some((from, _, request)), _) if request.failed() => return failure(conversation, from, request),
        ("key", Some((from, _, request)), _) => return key(conversation, from, request),
        ("operation", Some((from, _, my)), Some((.., its))) => match (my.takes_receive(), its.takes_receive()) {
            (false, true) => Some(format!("so the {} never gets a completion", from.other())),
            (true, false) => Some(format!("so it takes a receive of the {}", from.other())),
            _ => None,
        },
        ("payload", Some((from, _, my)), _)
            if !my.payload.head.is_empty() && my.payload.head.iter().all(|byte| *byte == 0) =>
        {
            Some(format!("your {from} refuses: zeroes stand where address, key and length of a buffer would be"))
        }
        _ => None,
    };
    Hint { text, frame: None }
}

/// What the answer to the connection request means.
fn answer(conversation: &Conversation) -> Option<String> {
    let request = conversation.request()?;
    let Some(reject) = conversation.step(Kind::ConnectReject) else {
        let is_silent = [Kind::ConnectReply, Kind::ServiceReply].iter().all(|kind| conversation.step(*kind).is_none());
        let times = request.again + 1;
        let look = "look whether the server's machine is reachable, and whether a firewall drops UDP port 4791";
        return is_silent.then(|| format!("the request was sent {}: {look}", plural(times.into(), "time")));
    };
    let port = request.message().service().and_then(Service::port);
    match (reject.message().reason(), port, std::str::from_utf8(reject.message().given_data())) {
        (Some(8), Some(port), _) => {
            Some(format!("reason 8 (invalid service ID): nobody listens on port {port}, so start the server first"))
        }
        (Some(28), _, Ok(text)) if !text.is_empty() && !text.chars().any(char::is_control) => {
            Some(format!("reason 28 (consumer reject): the program itself said no: \"{text}\""))
        }
        (Some(28), ..) => Some("reason 28 (consumer reject): the program itself said no".into()),
        _ => None,
    }
}

/// A request that lacks.
pub(super) fn missing(conversation: &Conversation) -> Hint {
    match conversation.step(Kind::DisconnectRequest) {
        Some(goodbye) => {
            Hint { text: Some(format!("the {} hangs up without it", goodbye.from)), frame: Some(goodbye.frame) }
        }
        None => {
            let text = "nobody hangs up either, so the capture may have been stopped too early";
            Hint { text: Some(text.into()), frame: None }
        }
    }
}

/// A request of `from` that failed: what the NAK or the silence means.
pub(super) fn failure(conversation: &Conversation, from: Side, request: &Request) -> Hint {
    let to = from.other();
    let goodbye = conversation.step(Kind::DisconnectRequest).filter(|goodbye| goodbye.from == to);
    let text = match (request.outcome, goodbye) {
        (Outcome::Refused(Nak::RemoteAccess), _) => return remote_access(conversation, to, request),
        (Outcome::Refused(Nak::InvalidRequest), _) => {
            let bytes = request.length();
            format!("its queue pair does not allow this operation, or the receive is too short for its {bytes} bytes")
        }
        (Outcome::Refused(_), _) => return Hint::default(),
        _ if request.not_ready > 0 => {
            let times = plural(request.not_ready.into(), "time");
            format!("the {to} had no receive posted: it said so {times} (RNR NAK)")
        }
        _ if request.again > 0 => format!("it was sent {} times: the {to}'s queue pair is gone", request.again + 1),
        (_, Some(goodbye)) => format!("the {to} hangs up (frame {}) instead of answering", goodbye.frame),
        (_, None) => "it or the answer was lost, or the capture was stopped too early".into(),
    };
    Hint { text: Some(text), frame: None }
}

/// The most frequent failure of beginners: wrong key, too many bytes, no permission. And where that was announced.
fn remote_access(conversation: &Conversation, to: Side, request: &Request) -> Hint {
    let Some(remote) = request.remote else { return Hint::default() };
    let mut announced = conversation.announced(to).into_iter().filter(|(frame, _)| *frame < request.frame);
    let Some((frame, buffer)) = announced.rfind(|(_, buffer)| buffer.key == remote.r_key) else {
        return key(conversation, to.other(), request);
    };
    let Descriptor { address, length, .. } = buffer;
    let end = u128::from(remote.va) + u128::from(request.length());
    let room = u128::from(address) + u128::from(length);
    let text = if remote.va < address {
        format!("it begins {} bytes before the buffer announced in frame {frame}", address - remote.va)
    } else if end > room {
        format!("it ends {} bytes behind the buffer announced in frame {frame}", end - room)
    } else {
        format!(
            "key and range are as announced in frame {frame}, so the {to} has not given the permission \
             (IBV_ACCESS_REMOTE_WRITE, _READ or _ATOMIC), or has deregistered the buffer"
        )
    };
    Hint { text: Some(text), frame: Some(frame) }
}

/// The key in a request, beside the latest other one that its owner announced.
fn key(conversation: &Conversation, from: Side, request: &Request) -> Hint {
    let Some(used) = request.remote.map(|remote| remote.r_key).or(request.invalidated) else { return Hint::default() };
    let (owner, announced) = (from.other(), conversation.announced(from.other()));
    let mut before = announced.iter().filter(|(frame, buffer)| *frame < request.frame && buffer.key != used);
    match before.next_back() {
        Some((frame, Descriptor { key, .. })) => {
            let text = format!(
                "the key in its packet is {used:#x}; the {owner} announced another in frame {frame} ({key:#x})"
            );
            Hint { text: Some(text), frame: Some(*frame) }
        }
        None => Hint { text: Some(format!("the {owner} never announced the key {used:#x}")), frame: None },
    }
}
