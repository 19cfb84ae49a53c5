//! Requests that failed: what the NAK or the silence means, from what was announced before.

use super::finding::{Judge, Matched, Phase};
use super::report::{Difference, Field};
use super::request::{Outcome, Request};
use super::words::plural;
use crate::aeth::Nak;
use crate::cm::Kind;
use crate::track::Side;

/// The outcomes must be the same; one that fails only in yours is likely to be the cause of everything after it.
pub(super) fn outcome(judge: &mut Judge, matched: Matched) {
    let Matched { from, mine, reference } = matched;
    if mine.outcome == reference.outcome {
        return;
    }
    let model = judge.model;
    let (sentence, mut frames) = if failed(mine) {
        explain(judge, from, mine, Some(reference))
    } else {
        let how = match reference.outcome {
            Outcome::Refused(nak) => format!("is refused with \"{nak}\""),
            _ => "gets no answer".to_owned(),
        };
        (format!("Your {from}'s {} goes through; in {model} it {how}", mine.name()), vec![mine.frame])
    };
    frames.extend(mine.answer);
    let mut theirs = vec![reference.frame];
    theirs.extend(reference.answer);
    let difference =
        Difference { field: Field::Outcome, sentence, step: reference.step.clone(), mine: frames, reference: theirs };
    judge.add(Phase::Failure, (mine.frame, 0), difference);
}

/// A request that the reference does not have, and that failed.
pub(super) fn extra_failure(judge: &mut Judge, from: Side, mine: &Request) {
    let (sentence, mut frames) = explain(judge, from, mine, None);
    frames.extend(mine.answer);
    let difference = Difference { field: Field::Outcome, sentence, step: None, mine: frames, reference: Vec::new() };
    judge.add(Phase::Failure, (mine.frame, 0), difference);
}

/// True if an answer was due and it was not a good one. Datagrams and unreliable connections get no answers.
pub(super) fn failed(request: &Request) -> bool {
    request.service.is_reliable() && request.outcome != Outcome::Done
}

/// The sentence, and the frames that prove it, without the answer's.
fn explain(judge: &Judge, from: Side, mine: &Request, reference: Option<&Request>) -> (String, Vec<u64>) {
    let (to, name) = (from.other(), mine.name());
    match mine.outcome {
        Outcome::Refused(Nak::RemoteAccess) => remote_access(judge, from, mine),
        Outcome::Refused(nak) => {
            let longer = reference.filter(|reference| reference.length() < mine.length());
            let why = match (nak, longer) {
                (Nak::InvalidRequest, Some(reference)) => format!(
                    ": it has {} bytes and {}'s has {}, so the receive may be too short for it",
                    mine.length(),
                    judge.model,
                    reference.length()
                ),
                (Nak::InvalidRequest, None) => {
                    ": its queue pair does not allow this operation, or the receive is too short".to_owned()
                }
                _ => String::new(),
            };
            (format!("Your {to} refused your {from}'s {name} with \"{nak}\"{why}"), vec![mine.frame])
        }
        _ if mine.not_ready > 0 => {
            let sentence = format!(
                "Your {to} had no receive posted for your {from}'s {name}: it said so {} (RNR NAK), and the {from} \
                 gave up; post the receive before connecting",
                plural(mine.not_ready.into(), "time")
            );
            (sentence, vec![mine.frame])
        }
        _ => (silence(judge, from, mine), vec![mine.frame]),
    }
}

fn silence(judge: &Judge, from: Side, mine: &Request) -> String {
    let (to, name) = (from.other(), mine.name());
    let goodbye = judge.mine.step_of(Kind::DisconnectRequest, to).filter(|_| mine.again == 0);
    if let Some(goodbye) = goodbye {
        return format!("Your {to} hangs up (frame {}) instead of answering your {from}'s {name}", goodbye.frame);
    }
    match mine.again {
        0 => format!(
            "Your {from}'s {name} gets no answer: its packet or the answer was lost, or the capture was stopped too \
             early"
        ),
        again => format!(
            "Your {from}'s {name} gets no answer, though it was sent {} times: the {to}'s queue pair is gone or not \
             ready",
            again + 1
        ),
    }
}

/// The most frequent failure of beginners: the wrong key, too many bytes, or no permission.
fn remote_access(judge: &Judge, from: Side, mine: &Request) -> (String, Vec<u64>) {
    let to = from.other();
    let start = format!("Your {to} refused your {from}'s {} with \"remote access error\"", mine.name());
    let alone = vec![mine.frame];
    let Some(remote) = mine.remote else { return (start, alone) };
    let announced = judge.mine.announced(to, mine.frame);
    let Some((frame, newest)) = announced.last() else {
        return (format!("{start}: the {to} never announced the key {:#x}", remote.r_key), alone);
    };
    let frames = vec![*frame, mine.frame];
    let Some((frame, buffer)) = announced.iter().rev().find(|(_, buffer)| buffer.key == remote.r_key) else {
        let sentence = format!(
            "{start}: the key in its packet ({:#x}) is not the one that the {to} announced in frame {frame} ({:#x})",
            remote.r_key, newest.key
        );
        return (sentence, frames);
    };
    let frames = vec![*frame, mine.frame];
    let end = u128::from(remote.va) + u128::from(mine.length());
    let room = u128::from(buffer.address) + u128::from(buffer.length);
    let sentence = if remote.va < buffer.address {
        format!("{start}: it begins {} bytes before the buffer announced in frame {frame}", buffer.address - remote.va)
    } else if end > room {
        format!("{start}: it ends {} bytes behind the buffer announced in frame {frame}", end - room)
    } else {
        format!(
            "{start}: key and range are as announced in frame {frame}, so the {to} has not given the permission \
             (IBV_ACCESS_REMOTE_WRITE, _READ or _ATOMIC), or has deregistered the buffer"
        )
    };
    (sentence, frames)
}
