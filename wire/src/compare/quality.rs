//! Is the recording good enough to judge a program by? What is wrong with it is told first, and nothing else then.

use super::capture::Capture;
use super::conversation::{Conversations, Role};
use super::plural;
use crate::cm::Kind;
use std::collections::BTreeSet;

/// What is wrong with a recording, each in a sentence or two.
pub(super) fn problems(capture: &Capture, conversations: &Conversations) -> Vec<String> {
    if let Some(problem) = nothing_to_see(capture) {
        return vec![problem];
    }
    let checks = [cut(capture), damaged(capture), one_direction(capture, conversations), late(conversations)];
    let found: Vec<String> = checks.into_iter().flatten().collect();
    // A recording that lacks one direction or its beginning has gaps, of course.
    if found.is_empty() {
        return lost(conversations).into_iter().collect();
    }
    found
}

fn nothing_to_see(capture: &Capture) -> Option<String> {
    if capture.packets().next().is_some() {
        return None;
    }
    let where_to =
        "Record on the interface that the RDMA device sits on, on one of two machines (a device that talks to \
                    itself sends nothing), before the programs start: tcpdump -i INTERFACE -s 0 udp port 4791";
    if capture.frames == 0 {
        return Some(format!("The capture is empty. {where_to}"));
    }
    let others: Vec<String> = capture.others.iter().map(|(name, count)| format!("{count} {name}")).collect();
    let others = others.join(", ");
    if capture.others.contains_key("cut frame") {
        return Some(format!("The frames are cut too short to be read ({others}). Record whole frames: tcpdump -s 0"));
    }
    if capture.others.contains_key("RoCEv1") {
        return Some(format!(
            "The capture has RoCE of version 1 ({others}). Choose a GID of version 2 for the connection"
        ));
    }
    Some(format!("None of the {} frames is RoCEv2 ({others}). {where_to}", capture.frames))
}

fn cut(capture: &Capture) -> Option<String> {
    let first = capture.cut.first()?;
    let packets = plural(capture.cut.len(), "packet");
    Some(format!("A snap length cut the end off {packets}, first off frame {first}. Record whole frames: tcpdump -s 0"))
}

fn damaged(capture: &Capture) -> Option<String> {
    let first = capture.bad.first()?;
    let packets = plural(capture.bad.len(), "packet");
    Some(format!(
        "A wrong ICRC in {packets}, first in frame {first}: damaged on the way, or changed after it was sent; its \
         receiver drops it. Look at it with `wire show FILE --packet {first}`"
    ))
}

fn one_direction(capture: &Capture, conversations: &Conversations) -> Option<String> {
    let senders: BTreeSet<_> = capture.packets().map(|recorded| recorded.packet.datagram.src).collect();
    let answered = |kind| conversations.all.iter().any(|conversation| conversation.step(kind).is_some());
    let went_on = answered(Kind::ReadyToUse) || answered(Kind::ConnectReply) || !conversations.strays.is_empty();
    let sender = senders.iter().next().filter(|_| senders.len() == 1 && went_on)?;
    Some(format!("All packets come from {sender}: the capture has one direction only. Record both"))
}

fn late(conversations: &Conversations) -> Option<String> {
    let first = conversations.strays.first().filter(|_| conversations.all.is_empty())?;
    Some(format!(
        "The capture begins in the middle: frame {first} belongs to a connection whose request (REQ) is not there. \
         Start to record before the client starts"
    ))
}

fn lost(conversations: &Conversations) -> Option<String> {
    for conversation in &conversations.all {
        if let (Some(rtu), None) = (conversation.step(Kind::ReadyToUse), conversation.step(Kind::ConnectReply)) {
            return Some(lost_before(rtu.frame, rtu.from));
        }
        for role in Role::BOTH {
            if let Some(frame) = conversation.stream(role).gaps().next() {
                return Some(lost_before(frame, role));
            }
        }
    }
    None
}

fn lost_before(frame: u64, requester: Role) -> String {
    format!(
        "The recording has lost packets: frame {frame} does not follow from the {requester}'s packets before it, and \
         nobody on the wire missed one. Record again, with a larger buffer (tcpdump -B 65536) or on a quieter machine"
    )
}
