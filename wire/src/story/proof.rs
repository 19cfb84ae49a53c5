//! Whether a recorded run tells the story: the check of the bundled captures, and of a new one before it is kept.

use super::timeline::{squeeze, Timeline};
use super::{Side, Step, Story};
use crate::capture::Reader;
use crate::icrc::Icrc;
use crate::link::Other;
use crate::packet::Frame;
use std::collections::HashMap;

/// One RoCE packet of the capture.
struct Seen {
    frame: u64,
    side: Option<Side>,
    /// The step's index in the story.
    step: Option<usize>,
    /// What the packet does, as the timeline says it.
    summary: String,
}

/// What is wrong with a recording of a story; nothing if all of this holds:
///
/// - every RoCE packet belongs to exactly one step, every step has a packet, and every ICRC is right;
/// - there is no traffic beside it but ARP and RARP;
/// - the timeline has the same packets as the capture, in the same order;
/// - the log line of each step stands in the timeline before the step's first packet;
/// - both programs ended with the story's exit status.
pub fn problems(story: &Story, capture: &[u8], timeline: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let packets = match follow(story, capture, &mut problems) {
        Ok(packets) => packets,
        Err(error) => return vec![error],
    };
    for (index, step) in story.steps.iter().enumerate() {
        if !packets.iter().any(|seen| seen.step == Some(index)) {
            problems.push(format!("no packet belongs to step {}: {}", step.number, step.title));
        }
    }
    match Timeline::parse(timeline) {
        Some(timeline) => compare(story, &packets, &timeline, &mut problems),
        None => problems.push("the timeline has no heading with three lanes".into()),
    }
    problems
}

fn follow(story: &Story, capture: &[u8], problems: &mut Vec<String>) -> Result<Vec<Seen>, String> {
    let mut follow = story.follow();
    let mut packets = Vec::new();
    let mut reader = Reader::new(capture).map_err(|error| error.to_string())?;
    while let Some(record) = reader.next().map_err(|error| error.to_string())? {
        let frame = record.number;
        let packet = match Frame::decode(record.link, record.data) {
            Frame::Roce(packet) => packet,
            Frame::Other(Other::Arp | Other::Rarp) => continue,
            Frame::Other(other) => {
                problems.push(format!("frame {frame} is foreign traffic: {}", other.name()));
                continue;
            }
        };
        if packet.icrc() != Icrc::Ok {
            problems.push(format!("frame {frame} has a wrong ICRC, or was not recorded whole"));
        }
        let step = match follow.packet(frame, &packet) {
            Ok(step) => Some(step.number - 1),
            Err(unexpected) => {
                problems.push(unexpected.to_string());
                None
            }
        };
        packets.push(Seen { frame, side: follow.side(&packet), step, summary: squeeze(&packet.summary()) });
    }
    Ok(packets)
}

fn compare(story: &Story, packets: &[Seen], timeline: &Timeline, problems: &mut Vec<String>) {
    let drawn = timeline.packets();
    if drawn.len() != packets.len() {
        problems.push(format!("the timeline has {} packets, the capture {}", drawn.len(), packets.len()));
        return;
    }
    for (seen, (_, side, text)) in packets.iter().zip(&drawn) {
        if seen.side != Some(*side) || seen.summary != *text {
            let there = format!("{} from the {}", text, side.name());
            problems.push(format!("frame {} is {}; the timeline has {there}", seen.frame, seen.summary));
        }
    }
    let first_packet = |index: usize| {
        let place = packets.iter().position(|seen| seen.step == Some(index))?;
        Some(drawn[place].0)
    };
    let mut alike: HashMap<(Side, &str, &str), usize> = HashMap::new();
    for (index, step) in story.steps.iter().enumerate().filter(|(_, step)| !step.device) {
        let nth = alike.entry((step.side, &step.act.stage, &step.act.log)).or_default();
        let line = timeline.log_line(&step.act, *nth);
        *nth += 1;
        problems.extend(order(step, line, first_packet(index)));
    }
    for side in [Side::Server, Side::Client] {
        let end = format!("exit status {}", story.exit);
        if !timeline.says(side, &end) {
            problems.push(format!("the {} did not end with {end}", side.name()));
        }
    }
}

/// The log line stands before the packet that it announces.
fn order(step: &Step, line: Option<usize>, packet: Option<usize>) -> Option<String> {
    let Step { number, act, .. } = step;
    match (line, packet) {
        (None, _) => {
            Some(format!("step {number}: the {}'s log has no `{}` in {}", act.side.name(), act.log, act.stage))
        }
        (Some(line), Some(packet)) if packet < line => {
            Some(format!("step {number}: the log line `{}` stands after the packet that it causes", act.log))
        }
        _ => None,
    }
}
