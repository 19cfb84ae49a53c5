//! Whether a recorded run tells the story: the check of the bundled captures, and of a new one before it is kept.

use super::{Act, Side, Story};
use crate::capture::{Error, Reader};
use crate::exit::Exit;
use crate::file::{Event, Line};
use crate::said::is_act;
use roce::icrc::Icrc;
use roce::packet::Frame;
use roce::Other;
use std::collections::HashMap;

/// What is wrong with a recording of a story; nothing if all of this holds:
///
/// - every RoCE packet belongs to exactly one step, every step has a packet, and every ICRC is right;
/// - each is recorded as sent by the node whose step it is;
/// - there is no traffic beside it but ARP, RARP, IGMP and pause frames, and TCP where there is no connection management;
/// - the log line of each step comes before the step's first packet;
/// - all programs ended with the story's exit status.
pub fn problems(story: &Story, run: &[u8]) -> Vec<String> {
    let mut problems = Vec::new();
    match follow(story, run, &mut problems) {
        Ok((packets, lines)) => compare(story, &packets, &lines, &mut problems),
        Err(error) => problems.push(error.to_string()),
    }
    problems
}

/// For each step of the story the number of its first packet; and the log lines.
fn follow(story: &Story, run: &[u8], problems: &mut Vec<String>) -> Result<(Vec<Option<u64>>, Vec<Line>), Error> {
    let mut follow = story.follow();
    let (mut packets, mut lines) = (vec![None; story.steps.len()], Vec::new());
    let mut reader = Reader::new(run)?;
    while let Some(event) = reader.event()? {
        let sighting = match event {
            Event::Packet(sighting) => sighting,
            Event::Line(line) => {
                lines.push(line);
                continue;
            }
        };
        let frame = sighting.number;
        let packet = match &sighting.frame {
            Frame::Roce(packet) => packet,
            Frame::Other(Other::Arp | Other::Rarp | Other::IGMP | Other::Pause) => continue,
            Frame::Other(Other::TCP) if story.has_no_cm() => continue,
            Frame::Other(other) => {
                problems.push(format!("frame {frame} is foreign traffic: {}", other));
                continue;
            }
        };
        if packet.icrc() != Icrc::Ok {
            problems.push(format!("frame {frame} has a wrong ICRC, or was not recorded whole"));
        }
        match follow.packet(&sighting, packet) {
            Ok(step) => {
                packets[step.number - 1].get_or_insert(frame);
                let sender = sighting.node.unwrap_or("nobody");
                if !story.is_at(step.side, sender) {
                    problems.push(format!("frame {frame} is from the {}, and recorded as from {sender}", step.side));
                }
            }
            Err(unexpected) => problems.push(unexpected.to_string()),
        }
    }
    Ok((packets, lines))
}

fn compare(story: &Story, packets: &[Option<u64>], lines: &[Line], problems: &mut Vec<String>) {
    let mut alike: HashMap<(Side, &str, &str), usize> = HashMap::new();
    for (step, packet) in story.steps.iter().zip(packets) {
        let number = step.number;
        if packet.is_none() {
            problems.push(format!("no packet belongs to step {number}: {}", step.title));
        }
        if step.device {
            continue;
        }
        let Act { side, stage, log, .. } = &step.act;
        let nth = alike.entry((*side, stage, log)).or_default();
        match (said(story, lines, &step.act, *nth), packet) {
            (None, _) => problems.push(format!("step {number}: the {side}'s log has no `{log}` in {stage}")),
            (Some(line), Some(packet)) if *packet < line => {
                problems.push(format!("step {number}: the log line `{log}` stands after the packet that it causes"));
            }
            _ => {}
        }
        *nth += 1;
    }
    let end = Exit::Status(story.exit.into());
    for side in Side::BOTH {
        let ended = |line: &&Line| side.is_at(&line.node) && line.ends_program() == Some(end);
        let wanted = if side == Side::Client { story.clients } else { 1 };
        if lines.iter().filter(ended).count() != wanted {
            problems.push(format!("the {side} did not end with {end}"));
        }
    }
}

/// The number of the log line of an act; `nth` counts lines that look the same, from 0.
fn said(story: &Story, lines: &[Line], act: &Act, nth: usize) -> Option<u64> {
    let is_it = |line: &&Line| {
        story.is_at(act.side, &line.node) && line.stage() == Some(&act.stage) && is_act(line.words(), &act.log)
    };
    lines.iter().filter(is_it).nth(nth).map(|line| line.number)
}
