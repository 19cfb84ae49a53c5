//! Requests that failed: what the NAK or the silence means, from what was announced before.

use super::finding::{Judge, Phase};
use super::memory::Descriptor;
use super::report::Field;
use super::request::{Outcome, Request};
use super::words::plural;
use roce::aeth::Nak;
use roce::track::Side;

/// The outcomes must be the same; one that fails only in yours is likely to be the cause of everything after it. A request
/// that the reference does not have must not fail.
pub(super) fn outcome(judge: &mut Judge, from: Side, mine: &Request, reference: Option<&Request>) {
    let (sentence, mut frames) = match reference {
        Some(reference) if mine.outcome == reference.outcome => return,
        _ if mine.failed() => explain(judge, from, mine),
        None => return,
        Some(reference) => {
            let how = match reference.outcome {
                Outcome::Refused(nak) => format!("is refused with \"{nak}\""),
                _ => "gets no answer".to_owned(),
            };
            let sentence = format!("Your {from}'s {} goes through; in {} it {how}", mine.name(), judge.model);
            (sentence, vec![mine.frame])
        }
    };
    frames.extend(mine.answer);
    let place = reference.map(Request::place);
    let found = judge.add(Phase::Failure, Field::Outcome, sentence, frames, place);
    found.order = mine.frame;
    found.difference.reference.extend(reference.and_then(|reference| reference.answer));
}

/// The sentence, and the frames that prove it, without the answer's.
fn explain(judge: &Judge, from: Side, mine: &Request) -> (String, Vec<u64>) {
    let (to, name) = (from.other(), mine.name());
    let sentence = match mine.outcome {
        Outcome::Refused(nak) => {
            let (why, announced) = match nak {
                Nak::RemoteAccess => remote_access(judge, to, mine),
                Nak::InvalidRequest => {
                    let why = ": its queue pair does not allow this operation, or the receive is too short for its";
                    (format!("{why} {} bytes", mine.length()), None)
                }
                _ => (String::new(), None),
            };
            let sentence = format!("Your {to} refused your {from}'s {name} with \"{nak}\"{why}");
            return (sentence, announced.into_iter().chain([mine.frame]).collect());
        }
        _ if mine.not_ready > 0 => {
            let times = plural(mine.not_ready.into(), "time");
            format!("Your {to} had no receive posted for your {from}'s {name}: it said so {times} (RNR NAK)")
        }
        _ => silence(judge, from, mine),
    };
    (sentence, vec![mine.frame])
}

fn silence(judge: &Judge, from: Side, mine: &Request) -> String {
    let (to, name) = (from.other(), mine.name());
    match (mine.again, judge.mine.goodbye().filter(|goodbye| goodbye.from == to)) {
        (0, Some(goodbye)) => {
            format!("Your {to} hangs up (frame {}) instead of answering your {from}'s {name}", goodbye.frame)
        }
        (0, None) => {
            format!(
                "Your {from}'s {name} gets no answer: one of the two was lost, or the capture was stopped too early"
            )
        }
        (again, _) => {
            let times = again + 1;
            format!(
                "Your {from}'s {name} gets no answer, though it was sent {times} times: the {to}'s queue pair is gone"
            )
        }
    }
}

/// The most frequent failure of beginners: wrong key, too many bytes, no permission. And where that was announced.
fn remote_access(judge: &Judge, to: Side, mine: &Request) -> (String, Option<u64>) {
    let Some(remote) = mine.remote else { return (String::new(), None) };
    let announced = judge.mine.announced(to, mine.frame);
    let same_key = announced.iter().rev().find(|(_, buffer)| buffer.key == remote.r_key);
    let Some(&(frame, Descriptor { address, key, length })) = same_key.or(announced.last()) else {
        return (format!(": the {to} never announced the key {:#x}", remote.r_key), None);
    };
    let end = u128::from(remote.va) + u128::from(mine.length());
    let room = u128::from(address) + u128::from(length);
    let why = if same_key.is_none() {
        format!(
            ": the key in its packet ({:#x}) is not the one that the {to} announced in frame {frame} ({key:#x})",
            remote.r_key
        )
    } else if remote.va < address {
        format!(": it begins {} bytes before the buffer announced in frame {frame}", address - remote.va)
    } else if end > room {
        format!(": it ends {} bytes behind the buffer announced in frame {frame}", end - room)
    } else {
        format!(
            ": key and range are as announced in frame {frame}, so the {to} has not given the permission \
             (IBV_ACCESS_REMOTE_WRITE, _READ or _ATOMIC), or has deregistered the buffer"
        )
    };
    (why, Some(frame))
}
