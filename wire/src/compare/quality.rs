//! Is the recording good enough to judge a program by? What is wrong with it is told first, and nothing else then.

use super::capture::{Capture, Tally};
use super::words::plural;
use crate::cm::Kind;
use crate::track::Side;

/// What is wrong with a recording, each in a sentence or two.
pub(super) fn problems(capture: &Capture) -> Vec<String> {
    if let Some(problem) = nothing_to_see(capture) {
        return vec![problem];
    }
    let checks = [cut(capture), damaged(capture), undecoded(capture), one_direction(capture), late(capture)];
    let found: Vec<String> = checks.into_iter().flatten().collect();
    // A recording that lacks one direction or its beginning has gaps, of course.
    if found.is_empty() {
        return lost(capture).into_iter().collect();
    }
    found
}

fn nothing_to_see(capture: &Capture) -> Option<String> {
    if capture.packets > 0 {
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
    let Tally { count, first } = capture.cut.some()?;
    let packets = plural(count, "packet");
    Some(format!("A snap length cut the end off {packets}, first off frame {first}. Record whole frames: tcpdump -s 0"))
}

fn damaged(capture: &Capture) -> Option<String> {
    let Tally { count, first } = capture.bad.some()?;
    let packets = plural(count, "packet");
    Some(format!(
        "A wrong ICRC in {packets}, first in frame {first}: damaged on the way, or changed after it was sent; its \
         receiver drops it. Look at it with `wire show FILE --packet {first}`"
    ))
}

/// What is not understood may be anything, so nothing is said about it.
fn undecoded(capture: &Capture) -> Option<String> {
    let Tally { count, first } = capture.unknown.0.some()?;
    let (packets, what) = (plural(count, "packet"), &capture.unknown.1);
    Some(format!("This tool does not decode {packets}, the first is frame {first} with {what}"))
}

fn one_direction(capture: &Capture) -> Option<String> {
    let answered = |kind| capture.conversations.iter().any(|conversation| conversation.step(kind).is_some());
    let went_on = answered(Kind::ReadyToUse) || answered(Kind::ConnectReply) || capture.strays.some().is_some();
    let sender = capture.senders.first().filter(|_| capture.senders.len() == 1 && went_on)?;
    Some(format!("All packets come from {sender}: the capture has one direction only. Record both"))
}

fn late(capture: &Capture) -> Option<String> {
    let Tally { first, .. } = capture.strays.some().filter(|_| capture.conversations.is_empty())?;
    Some(format!(
        "The capture begins in the middle: frame {first} belongs to a connection whose request (REQ) is not there. \
         Start to record before the client starts"
    ))
}

fn lost(capture: &Capture) -> Option<String> {
    for conversation in &capture.conversations {
        if let (Some(rtu), None) = (conversation.step(Kind::ReadyToUse), conversation.step(Kind::ConnectReply)) {
            return Some(lost_before(rtu.frame, rtu.from));
        }
        for role in Side::BOTH {
            if let Some(frame) = conversation.stream(role).gap() {
                return Some(lost_before(frame, role));
            }
        }
    }
    None
}

fn lost_before(frame: u64, requester: Side) -> String {
    format!(
        "The recording has lost packets: frame {frame} does not follow from the {requester}'s packets before it, and \
         nobody on the wire missed one. Record again, with a larger buffer (tcpdump -B 65536) or on a quieter machine"
    )
}
