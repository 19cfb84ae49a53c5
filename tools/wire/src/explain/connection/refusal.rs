//! A connection that is refused: who says so, why, and what to look at. Each reason has its own meaning.

use crate::explain::cause::{Blame, Cause};
use crate::explain::finding::Findings;
use roce::cm::{reject_reason, sidr_status, Kind, Message};
use roce::track::Side;

/// The reason of a ConnectReject that a program sends.
const CONSUMER: u16 = 28;
/// The reason of one that gave up waiting.
const TIMEOUT: u16 = 4;

const NOBODY_LISTENS: &str =
    "is the server's program started, with this port and port space? rdma resource show cm_id lists who listens";
const RESOURCES: &str = "the limits of its device and kernel: rdma resource show, ibv_devinfo -v, ulimit -l";
const PATH: &str =
    "do the request's address, GID index, RoCE version, VLAN and traffic class fit the other side's port? rdma link, show_gids";

/// A ConnectReject, or a ServiceIDResolutionResponse that isn't a yes.
#[derive(Clone, Debug)]
pub(in crate::explain) struct Refusal {
    pub from: Side,
    pub frame: u64,
    /// The reason's number and words, and what the program said, if that is text.
    pub why: String,
    /// It isn't a no: the sender waited for an answer and gave up.
    pub is_timeout: bool,
    cause: Cause,
    blame: Blame,
    look: &'static str,
}

impl Refusal {
    pub(in crate::explain) fn of(message: &Message, from: Side, frame: u64) -> Option<Refusal> {
        let is_service = message.kind == Kind::ServiceReply;
        let (why, (cause, blame, look)) = if is_service {
            let status = message.sidr_status().filter(|status| *status != 0)?;
            (format!("status {status}, {}", sidr_status(status)), of_status(status))
        } else {
            let reason = message.reason()?;
            (format!("reason {reason}, {}{}", reject_reason(reason), said(message.given_data())), of_reason(reason))
        };
        let is_timeout = !is_service && message.reason() == Some(TIMEOUT);
        Some(Refusal { from, frame, why, is_timeout, cause, blame, look })
    }

    /// What it means, as a finding.
    pub(in crate::explain) fn tell(&self, text: String, frames: &[u64], findings: &mut Findings) {
        findings.add(self.cause, self.from.other(), text, frames).blame(self.blame).look(self.look);
    }
}

/// What the program said in its private data, if that is text.
fn said(data: &[u8]) -> String {
    let text = std::str::from_utf8(data).ok().filter(|text| !text.is_empty() && !text.chars().any(char::is_control));
    text.map_or(String::new(), |text| format!(", and said \"{text}\""))
}

type Meaning = (Cause, Blame, &'static str);

fn of_reason(reason: u16) -> Meaning {
    let (blame, look) = match reason {
        CONSUMER => return (Cause::Declined, Cause::Declined.blame(), Cause::Declined.look()),
        1..=3 => (Blame::Peer, RESOURCES),
        TIMEOUT => (Blame::Unknown, "what it waited for was lost, or came too late"),
        6 | 7 => {
            (Blame::Unknown, "the side that rejects knows no such connection: did its program end, or give up before?")
        }
        8 => (Blame::Peer, NOBODY_LISTENS),
        5 | 9 => (Blame::Program, "do both sides use the same port space and kind of queue pair?"),
        10 => (
            Blame::Peer,
            "it considers this queue pair still connected, from before a crash or a lost goodbye: connect again",
        ),
        12..=23 | 32 | 33 => (Blame::Unknown, PATH),
        24 | 25 => {
            (Blame::Unknown, "it asks to connect elsewhere: the additional information of the ConnectReject says where")
        }
        26 => (
            Blame::Unknown,
            "the path MTU of the request is more than the other side's port has: compare both interfaces' MTU",
        ),
        27 => (Blame::Program, "initiator_depth of the request against the other side's responder_resources"),
        29 => (Blame::Program, "rnr_retry_count of the request"),
        30 => (Blame::Unknown, "the two connection managers mix up two connections: connect again"),
        31 => (Blame::Unknown, "the two connection managers speak different versions"),
        35 => (Blame::Peer, "the side that rejects wants something that its vendor defines: look at its log"),
        _ => (
            Blame::Unknown,
            "this number isn't one of the specification's reasons: look at the log of the side that rejects",
        ),
    };
    (Cause::Rejected, blame, look)
}

fn of_status(status: u8) -> Meaning {
    match status {
        1 => (Cause::Rejected, Blame::Peer, NOBODY_LISTENS),
        2 => (Cause::Declined, Cause::Declined.blame(), Cause::Declined.look()),
        3 => (Cause::Rejected, Blame::Peer, RESOURCES),
        4 => (Cause::Rejected, Blame::Unknown, "it asks to look for the service elsewhere"),
        5 => (Cause::Rejected, Blame::Unknown, "the two connection managers speak different versions"),
        _ => {
            (Cause::Rejected, Blame::Unknown, "this number isn't one of the specification's: look at the server's log")
        }
    }
}
