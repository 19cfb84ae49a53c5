//! One request of yours beside the one of the reference that it stands for.

use super::descriptor::Descriptor;
use super::finding::{Finding, Judge, Matched, Phase};
use super::report::{Difference, Field};
use super::request::Request;
use super::words::{hex, ordinal};
use crate::opcode::Operation;
use crate::track::Side;

/// Frames of yours, frames of the reference, the step.
pub(super) type Places = (Vec<u64>, Vec<u64>, Option<String>);

/// Everything but the outcome.
pub(super) fn compare(judge: &mut Judge, matched: Matched) {
    if !same_kind(judge, matched) {
        return;
    }
    let same_length = same_length(judge, matched);
    numbers(judge, matched);
    if matched.reference.remote.is_some() {
        place(judge, matched);
    }
    match matched.reference.operation {
        Operation::Send => message(judge, matched, same_length),
        Operation::Write | Operation::AtomicWrite => judge.other_bytes(matched, same_length),
        Operation::ReadRequest => read_back(judge, matched, same_length),
        _ => {}
    }
}

fn same_kind(judge: &mut Judge, matched: Matched) -> bool {
    let Matched { from, mine, reference } = matched;
    let model = judge.model;
    if mine.service != reference.service {
        let [my, its] = [mine.service, reference.service].map(|service| format!("{service:?}").to_uppercase());
        let sentence = format!("Your {from}'s {} goes over {my}; {model}'s goes over {its}", mine.name());
        differ(judge, matched, Field::Operation, sentence);
        return false;
    }
    if mine.name() == reference.name() {
        return true;
    }
    let number = judge.mine.stream(from).requests.iter().position(|request| request.frame == mine.frame).unwrap_or(0);
    let consequence = match (mine.takes_receive(), reference.takes_receive()) {
        (false, true) => format!(", so the {} never gets a completion", from.other()),
        (true, false) => format!(", so it takes a receive of the {}", from.other()),
        _ => String::new(),
    };
    let sentence = format!(
        "Your {from}'s {} request is a {}; {model}'s is a {}{consequence}",
        ordinal(number + 1),
        mine.name(),
        reference.name()
    );
    differ(judge, matched, Field::Operation, sentence);
    false
}

fn same_length(judge: &mut Judge, matched: Matched) -> bool {
    let Matched { from, mine, reference } = matched;
    let (my, its) = (mine.length(), reference.length());
    if my != its {
        let model = judge.model;
        let sentence = format!("Your {from}'s {} has {my} bytes; {model}'s has {its}", mine.name());
        lengths(judge, Phase::Data, places(matched), (my, its), sentence);
        return false;
    }
    // The RETH tells a length before the bytes come; the two must agree.
    let short = |request: &Request| request.operation == Operation::Write && request.payload.length != request.length();
    if short(mine) && !short(reference) {
        let sentence = format!(
            "Your {from}'s WRITE announces {my} bytes in its RETH, but its packets carry {}",
            mine.payload.length
        );
        differ(judge, matched, Field::Length, sentence);
        return false;
    }
    true
}

/// Values that the program chose and the peer sees.
fn numbers(judge: &mut Judge, matched: Matched) {
    let Matched { from, mine, reference } = matched;
    let (model, name) = (judge.model, mine.name());
    if let (Some(my), Some(its)) = (mine.immediate, reference.immediate) {
        if my != its {
            let sentence =
                format!("Your {from}'s {name} carries the immediate data {my:#x}; {model}'s carries {its:#x}");
            differ(judge, matched, Field::Immediate, sentence);
        }
    }
    if let (Some(my), Some(its)) = (mine.operands, reference.operands) {
        if my != its {
            let sentence = format!(
                "Your {from}'s {name} works with {:#x} and {:#x}; {model}'s with {:#x} and {:#x}",
                my.0, my.1, its.0, its.1
            );
            differ(judge, matched, Field::Operands, sentence);
        }
    }
    if mine.solicited != reference.solicited {
        let [my, its] = [mine, reference].map(|request| if request.solicited { "asks" } else { "does not ask" });
        let sentence =
            format!("Your {from}'s {name} {my} for a solicited event at the receiver; {model}'s {its} for one");
        differ(judge, matched, Field::Solicited, sentence);
    }
    if let (Some(my), Some(its)) = (mine.invalidated, reference.invalidated) {
        if !judge.symbols.same_key(from.other(), my, its) {
            let sentence =
                format!("Your {from}'s {name} invalidates the key {my:#x}, which is not the one that {model}'s does");
            differ(judge, matched, Field::Key, sentence);
        }
    }
}

/// Key and address: the same buffer, the same place in it.
fn place(judge: &mut Judge, matched: Matched) {
    let Matched { from, mine, reference } = matched;
    let (Some(my), Some(its)) = (mine.remote, reference.remote) else { return };
    let owner = from.other();
    let name = mine.name();
    if !judge.symbols.same_key(owner, my.r_key, its.r_key) {
        let meant = judge.symbols.mine(owner, its.r_key).filter(|key| *key != my.r_key);
        let known = meant.and_then(|key| judge.mine.announced(owner, mine.frame).into_iter().find(|a| a.1.key == key));
        let mut places = places(matched);
        let sentence = match (known, meant) {
            (Some((frame, descriptor)), _) => {
                places.0.insert(0, frame);
                let key = descriptor.key;
                format!(
                    "Your {from}'s {name} uses the key {:#x}, which is not the one that the {owner} announced in \
                     frame {frame} ({key:#x})",
                    my.r_key
                )
            }
            (None, Some(key)) => format!(
                "Your {from}'s {name} uses the key {:#x}; from what came before it should be {key:#x}",
                my.r_key
            ),
            (None, None) => format!(
                "Your {from}'s {name} uses the key {:#x} again; {}'s uses another one here",
                my.r_key, judge.model
            ),
        };
        add(judge, Phase::Data, Field::Key, sentence, places);
        return;
    }
    if let Err(off) = judge.symbols.same_place(owner, my.r_key, my.va, its.va) {
        let way = if off > 0 { "behind" } else { "before" };
        let sentence = format!(
            "Your {from}'s {name} goes to the address {:#x}, {} bytes {way} the place that {}'s goes to",
            my.va,
            off.unsigned_abs(),
            judge.model
        );
        differ(judge, matched, Field::Address, sentence);
    }
}

/// What a SEND says. It is part of the protocol, unlike the bytes of a WRITE.
fn message(judge: &mut Judge, matched: Matched, same_length: bool) {
    let Matched { from, mine, reference } = matched;
    let model = judge.model;
    let [my, its] = [mine, reference].map(Request::descriptor);
    match (my, its) {
        (Some(my), Some(its)) => descriptor(judge, from, my, its, Phase::Data, places(matched)),
        (None, Some(_)) if same_length && mine.payload.head.iter().all(|byte| *byte == 0) => {
            let sentence =
                format!("Your {from} refuses: its SEND holds zeroes instead of address, key and length of a buffer");
            differ(judge, matched, Field::Payload, sentence);
        }
        _ if same_length && mine.payload.said() != reference.payload.said() => {
            let (my, its) = (hex(&mine.payload.head), hex(&reference.payload.head));
            let sentence = format!("Your {from}'s SEND says {my}; {model}'s says {its}");
            differ(judge, matched, Field::Payload, sentence);
        }
        _ => {}
    }
}

/// Two announcements of memory: the keys become one symbol, the addresses one place; the lengths must be equal.
pub(super) fn descriptor(
    judge: &mut Judge,
    owner: Side,
    mine: Descriptor,
    reference: Descriptor,
    phase: Phase,
    places: Places,
) {
    let model = judge.model;
    if !judge.symbols.same_key(owner, mine.key, reference.key) {
        let sentence =
            format!("Your {owner} announces the key {:#x}, which does not stand for the one of {model}", mine.key);
        add(judge, phase, Field::Key, sentence, places.clone());
    } else if let Err(off) = judge.symbols.same_place(owner, mine.key, mine.address, reference.address) {
        let sentence = format!("Your {owner} announces another part of its buffer than {model}'s: {off} bytes away");
        add(judge, phase, Field::Address, sentence, places.clone());
    }
    if mine.length != reference.length {
        let (my, its) = (u64::from(mine.length), u64::from(reference.length));
        let sentence = format!("Your {owner} announces a buffer of {my} bytes; {model}'s has {its}");
        lengths(judge, phase, places, (my, its), sentence);
    }
}

/// A READ may bring any bytes, but not others than those that a WRITE put there if it does not in the reference.
fn read_back(judge: &mut Judge, matched: Matched, same_length: bool) {
    let Matched { from, mine, reference } = matched;
    let [my, its] = [(judge.mine, mine), (judge.reference, reference)].map(|(conversation, read)| {
        let before = conversation.stream(from).requests.iter().take_while(|request| request.frame < read.frame);
        before.filter(|write| write.operation == Operation::Write && write.remote == read.remote).last()
    });
    match (my, its) {
        (Some(my), Some(its)) if its.payload == reference.payload && my.payload != mine.payload && same_length => {
            let sentence =
                format!("Your {from}'s READ brings other bytes than its WRITE (frame {}) has put there", my.frame);
            differ(judge, matched, Field::Payload, sentence);
        }
        _ => judge.other_bytes(matched, same_length),
    }
}

fn places(matched: Matched) -> Places {
    (vec![matched.mine.frame], vec![matched.reference.frame], matched.reference.step.clone())
}

fn differ(judge: &mut Judge, matched: Matched, field: Field, sentence: String) {
    add(judge, Phase::Data, field, sentence, places(matched));
}

fn add(judge: &mut Judge, phase: Phase, field: Field, sentence: String, (mine, reference, step): Places) {
    let order = (reference.first().copied().unwrap_or(0), 0);
    judge.add(phase, order, Difference { field, sentence, step, mine, reference });
}

fn lengths(judge: &mut Judge, phase: Phase, (mine, reference, step): Places, lengths: (u64, u64), sentence: String) {
    let order = (reference.first().copied().unwrap_or(0), 0);
    let difference = Difference { field: Field::Length, sentence, step, mine, reference };
    judge.found.push(Finding { phase, order, difference, lengths: Some(lengths) });
}
