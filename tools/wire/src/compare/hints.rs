//! What a difference means, and what to look at: for those that have a usual cause.

use super::conversation::Conversation;
use super::descriptor::Descriptor;
use super::facts::Action;
use super::report::plural;
use super::request::{Outcome, Request};
use roce::aeth::Nak;
use roce::cm::{Kind, Service};
use roce::track::Side;

/// A sentence, and the frame of yours that proves it, if one does.
pub(super) type Hint = Option<(String, Option<u64>)>;

/// About a fact of yours that the reference has otherwise.
pub(super) fn about(conversation: &Conversation, mine: &Action, reference: &Action, field: &str) -> Hint {
    let text = match (field, mine.request, reference.request) {
        ("answer" | "reject-reason", ..) => answer(conversation)?,
        ("ready-to-use", ..) if mine.frame.is_none() => "so the server does not learn that it is connected".into(),
        ("disconnect", ..) if mine.frame.is_none() => {
            "rdma_disconnect is never called, or the capture was stopped too early".into()
        }
        ("key", Some((from, _, request)), _) => return key(conversation, from, request),
        ("operation", Some((from, _, my)), Some((.., its))) => match (my.takes_receive(), its.takes_receive()) {
            (false, true) => format!("so the {} never gets a completion", from.other()),
            (true, false) => format!("so it uses up a receive of the {}", from.other()),
            _ => return None,
        },
        ("payload", Some((from, _, my)), _)
            if !my.payload.head.is_empty() && my.payload.head.iter().all(|byte| *byte == 0) =>
        {
            format!("your {from} refuses: it sends zeroes where the address, key and length of a buffer would be")
        }
        _ => return None,
    };
    Some((text, None))
}

/// What the answer to the connection request means.
fn answer(conversation: &Conversation) -> Option<String> {
    let request = conversation.request()?;
    let Some(reject) = conversation.step(Kind::ConnectReject) else {
        let is_silent = [Kind::ConnectReply, Kind::ServiceReply].iter().all(|kind| conversation.step(*kind).is_none());
        let times = plural(u64::from(request.again) + 1, "time");
        let look = "check that the server's machine is reachable, and that no firewall drops UDP port 4791";
        return is_silent.then(|| format!("the request was sent {times}: {look}"));
    };
    let port = request.message().service().and_then(Service::port);
    match (reject.message().reason()?, port, std::str::from_utf8(reject.message().given_data())) {
        (8, Some(port), _) => {
            Some(format!("reason 8 (invalid service ID): nobody listens on port {port}, so start the server first"))
        }
        (28, _, Ok(text)) if !text.is_empty() && !text.chars().any(char::is_control) => {
            Some(format!("reason 28 (consumer reject): the program itself said no: \"{text}\""))
        }
        (28, ..) => Some("reason 28 (consumer reject): the program itself said no".into()),
        _ => None,
    }
}

/// A request that lacks.
pub(super) fn missing(conversation: &Conversation) -> Hint {
    let nobody = "nobody hangs up either, so the capture may have been stopped too early";
    let goodbye = conversation.step(Kind::DisconnectRequest);
    let text = goodbye.map_or(nobody.into(), |goodbye| format!("the {} hangs up without it", goodbye.from));
    Some((text, goodbye.map(|goodbye| goodbye.frame)))
}

/// A request that failed: what the NAK or the silence means.
pub(super) fn failure(conversation: &Conversation, row: &Action) -> Hint {
    let (from, _, request) = row.request.filter(|(.., request)| request.failed())?;
    let to = from.other();
    let goodbye = conversation.step(Kind::DisconnectRequest).filter(|goodbye| goodbye.from == to);
    let text = match (request.outcome, goodbye) {
        (Outcome::Refused(Nak::RemoteAccess), _) => return remote_access(conversation, to, request),
        (Outcome::Refused(Nak::InvalidRequest), _) => {
            let bytes = request.length();
            format!("its queue pair does not allow this operation, or the receive is too short for its {bytes} bytes")
        }
        (Outcome::Refused(_), _) => return None,
        _ if request.not_ready > 0 => {
            let times = plural(request.not_ready.into(), "time");
            format!("the {to} had no receive posted: it said so {times} (RNR NAK)")
        }
        _ if request.again > 0 => format!("it was sent {} times: the {to}'s queue pair is gone", request.again + 1),
        (_, Some(goodbye)) => format!("the {to} hangs up (frame {}) instead of answering", goodbye.frame),
        (_, None) => "it or the answer was lost, or the capture was stopped too early".into(),
    };
    Some((text, None))
}

/// The most frequent failure of beginners: wrong key, too many bytes, no permission. And where that was announced.
fn remote_access(conversation: &Conversation, to: Side, request: &Request) -> Hint {
    let remote = request.remote?;
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
        format!("it ends {} bytes after the end of the buffer announced in frame {frame}", end - room)
    } else {
        format!(
            "key and range are as announced in frame {frame}, so the {to} has not given the permission \
             (IBV_ACCESS_REMOTE_WRITE, _READ or _ATOMIC), or has deregistered the buffer"
        )
    };
    Some((text, Some(frame)))
}

/// The key in a request, beside the latest other one that its owner announced.
fn key(conversation: &Conversation, from: Side, request: &Request) -> Hint {
    let used = request.remote.map(|remote| remote.r_key).or(request.invalidated)?;
    let (owner, announced) = (from.other(), conversation.announced(from.other()));
    let mut before = announced.iter().filter(|(frame, buffer)| *frame < request.frame && buffer.key != used);
    let Some((frame, Descriptor { key, .. })) = before.next_back() else {
        return Some((format!("the {owner} never announced the key {used:#x}"), None));
    };
    let other = format!("the {owner} announced another one in frame {frame} ({key:#x})");
    Some((format!("the key in its packet is {used:#x}; {other}"), Some(*frame)))
}
