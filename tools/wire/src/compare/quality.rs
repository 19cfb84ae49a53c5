//! Is the recording good enough to judge a program by? What is wrong with it is told first, and nothing else then.

use super::capture::Capture;
use super::conversation::Conversation;
use super::report::plural;
use crate::reading;
use roce::cm::Kind;
use roce::track::Side;

/// What is wrong with a recording, each in a sentence or two.
pub(super) fn problems(capture: &Capture) -> Vec<String> {
    if let Some(problem) = nothing_to_see(capture) {
        return vec![problem];
    }
    let mut found = Vec::new();
    if let Some((packets, first)) = some(&capture.cut) {
        let remedy = "Record whole frames: tcpdump -s 0";
        found.push(format!("A snap length cut the end off {packets}, first off frame {first}. {remedy}"));
    }
    if let Some((packets, first)) = some(&capture.bad) {
        let look = format!("look at it with `wire show FILE --packet {first}`");
        found.push(format!("A wrong ICRC in {packets}, first in frame {first}: its receiver drops it; {look}"));
    }
    // What is not understood may be anything, so nothing is said about it.
    if let (Some((packets, first)), Some(what)) = (some(&capture.unknown.0), &capture.unknown.1) {
        found.push(format!("This tool does not decode {packets}, the first is frame {first} with {what}"));
    }
    let answered = |kind| capture.conversations.iter().any(|conversation| conversation.step(kind).is_some());
    let went_on = answered(Kind::ReadyToUse) || answered(Kind::ConnectReply) || !capture.strays.is_empty();
    if let Some(sender) = capture.senders.first().filter(|_| capture.senders.len() == 1 && went_on) {
        found.push(format!("All packets come from {sender}: the capture has one direction only. Record both"));
    }
    if let Some(first) = capture.strays.first().filter(|_| capture.conversations.is_empty()) {
        let remedy = "Start to record before the client starts";
        found.push(format!("The capture begins in the middle: frame {first} has no request (REQ) before it. {remedy}"));
    }
    // A recording that lacks one direction or its beginning has gaps, of course.
    if found.is_empty() {
        found.extend(capture.conversations.iter().find_map(lost));
    }
    found
}

/// `3 packets`, and the frame of the first; None if there are none.
pub(super) fn some(frames: &[u64]) -> Option<(String, u64)> {
    Some((plural(frames.len() as u64, "packet"), *frames.first()?))
}

fn nothing_to_see(capture: &Capture) -> Option<String> {
    if capture.packets > 0 {
        return None;
    }
    let where_to =
        "Record on the interface that the RDMA device sits on, on one of two machines (a device that talks to \
                    itself sends nothing), before the programs start: tcpdump -i INTERFACE -s 0 udp port 4791";
    let others = &capture.others;
    Some(if capture.frames == 0 {
        format!("The capture is empty. {where_to}")
    } else if let [first, rest @ ..] = &reading::advice(others)[..] {
        let rest: String = rest.iter().map(|more| format!(". {more}")).collect();
        format!("None of the {} frames can be compared: {first}{rest}", capture.frames)
    } else {
        format!("None of the {} frames is RoCEv2 ({others}). {where_to}", capture.frames)
    })
}

/// Packets that are not there, though nobody on the wire missed them.
fn lost(conversation: &Conversation) -> Option<String> {
    let reply_lost = conversation.step(Kind::ReadyToUse).filter(|_| conversation.step(Kind::ConnectReply).is_none());
    let gap = |side| conversation.streams[side as usize].gap().map(|frame| (frame, side));
    let (frame, sender) =
        reply_lost.map(|rtu| (rtu.frame, rtu.from)).or_else(|| Side::BOTH.into_iter().find_map(gap))?;
    Some(format!(
        "The recording has lost packets: frame {frame} does not follow from the {sender}'s packets before it, and nobody \
         on the wire missed one. Record again, with a larger buffer (tcpdump -B 65536) or on a quieter machine"
    ))
}
