//! One request of yours beside the one of the reference that it stands for.

use super::finding::{Finding, Judge, Matched, Phase};
use super::memory::Descriptor;
use super::report::Field;
use super::request::Request;
use super::words::{hex, ordinal, Place};
use roce::opcode::Operation;
use roce::track::Side;

/// What is said of a request that must be the same in the other.
pub(super) fn terms(request: &Request) -> [(Field, String); 4] {
    let (length, carried) = (request.length(), request.payload.length);
    // The RETH tells a length before the bytes come; the two must agree.
    let length = match request.operation == Operation::Write && carried != length {
        true => format!("announces {length} bytes in its RETH, and its packets carry {carried}"),
        false => format!("has {length} bytes"),
    };
    let immediate = request.immediate.map(|data| format!("carries the immediate data {data:#x}"));
    let operands = request.operands.map(|(one, other)| format!("works with {one:#x} and {other:#x}"));
    let solicited = if request.solicited { "asks for a solicited event" } else { "asks for no solicited event" };
    [
        (Field::Length, length),
        (Field::Immediate, immediate.unwrap_or_default()),
        (Field::Operands, operands.unwrap_or_default()),
        (Field::Solicited, solicited.into()),
    ]
}

/// Everything but the outcome.
pub(super) fn compare(judge: &mut Judge, matched: Matched) {
    let Matched { from, mine, reference } = matched;
    if !same_kind(judge, matched) {
        return;
    }
    let mut same_length = true;
    for ((field, my), (_, its)) in terms(mine).into_iter().zip(terms(reference)).filter(|(my, its)| my != its) {
        let sentence = format!("Your {from}'s {} {my}; {}'s {its}", mine.name(), judge.model);
        let found = differ(judge, matched, field, sentence);
        if field == Field::Length {
            found.lengths = Some((mine.length(), reference.length()));
            same_length = false;
        }
    }
    keys(judge, matched);
    match reference.operation {
        Operation::Send => message(judge, matched, same_length),
        Operation::Write | Operation::AtomicWrite => judge.other_bytes(matched, same_length),
        Operation::ReadRequest => read_back(judge, matched, same_length),
        _ => {}
    }
}

fn same_kind(judge: &mut Judge, matched: Matched) -> bool {
    let Matched { from, mine, reference } = matched;
    if (mine.name(), mine.service) == (reference.name(), reference.service) {
        return true;
    }
    let consequence = match (mine.takes_receive(), reference.takes_receive()) {
        (false, true) => format!(", so the {} never gets a completion", from.other()),
        (true, false) => format!(", so it takes a receive of the {}", from.other()),
        _ => String::new(),
    };
    let [my, its] = [mine, reference].map(|request| match mine.service == reference.service {
        true => request.name().to_owned(),
        false => format!("{} over {:?}", request.name(), request.service),
    });
    let before = judge.mine.stream(from).requests.iter().take_while(|request| request.frame != mine.frame);
    let (number, model) = (ordinal(before.count() + 1), judge.model);
    let sentence = format!("Your {from}'s {number} request is a {my}; {model}'s is a {its}{consequence}");
    differ(judge, matched, Field::Operation, sentence);
    false
}

/// Keys and address: the same buffer, the same place in it.
fn keys(judge: &mut Judge, matched: Matched) {
    let Matched { from, mine, reference } = matched;
    let (owner, name, model) = (from.other(), mine.name(), judge.model);
    if let (Some(my), Some(its)) = (mine.invalidated, reference.invalidated) {
        if !judge.symbols.same_key(owner, my, its) {
            let sentence = format!("Your {from}'s {name} invalidates the key {my:#x}, not the one that {model}'s does");
            differ(judge, matched, Field::Key, sentence);
        }
    }
    let (Some(my), Some(its)) = (mine.remote, reference.remote) else { return };
    if !judge.symbols.same_key(owner, my.r_key, its.r_key) {
        let meant = judge.symbols.mine(owner, its.r_key).filter(|key| *key != my.r_key);
        let announced = judge.mine.announced(owner, mine.frame).into_iter().find(|(_, one)| Some(one.key) == meant);
        let which = match (announced, meant) {
            (Some((frame, Descriptor { key, .. })), _) => {
                format!("which is not the one that the {owner} announced in frame {frame} ({key:#x})")
            }
            (None, Some(key)) => format!("and from what came before it should be {key:#x}"),
            (None, None) => format!("as a request before it, but {model}'s uses another one here"),
        };
        let sentence = format!("Your {from}'s {name} uses the key {:#x}, {which}", my.r_key);
        let found = differ(judge, matched, Field::Key, sentence);
        found.difference.mine.splice(0..0, announced.map(|(frame, _)| frame));
        return;
    }
    let off = judge.symbols.off(owner, my.r_key, my.va, its.va);
    if off != 0 {
        let (way, bytes) = (if off > 0 { "behind" } else { "before" }, off.unsigned_abs());
        let to = format!("{:#x}, {bytes} bytes {way} the place that {model}'s goes to", my.va);
        differ(judge, matched, Field::Address, format!("Your {from}'s {name} goes to the address {to}"));
    }
}

/// What a SEND says. It is part of the protocol, unlike the bytes of a WRITE.
fn message(judge: &mut Judge, matched: Matched, same_length: bool) {
    let Matched { from, mine, reference } = matched;
    let sentence = match (mine.descriptor(), reference.descriptor()) {
        (Some(my), Some(its)) => {
            return descriptor(judge, Phase::Data, from, (my, its), (mine.frame, reference.place()))
        }
        _ if !same_length => return,
        (None, Some(_)) if mine.payload.head.iter().all(|byte| *byte == 0) => {
            format!("Your {from} refuses: its SEND holds zeroes instead of address, key and length of a buffer")
        }
        _ if mine.payload.said() != reference.payload.said() => {
            let [my, its] = [mine, reference].map(|request| hex(&request.payload.head));
            format!("Your {from}'s SEND says {my}; {}'s says {its}", judge.model)
        }
        _ => return,
    };
    differ(judge, matched, Field::Payload, sentence);
}

/// Two announcements of memory: the keys become one symbol, the addresses one place; the lengths must be equal.
pub(super) fn descriptor(
    judge: &mut Judge,
    phase: Phase,
    owner: Side,
    (mine, reference): (Descriptor, Descriptor),
    (frame, place): (u64, Place),
) {
    let model = judge.model;
    let off = match judge.symbols.same_key(owner, mine.key, reference.key) {
        true => judge.symbols.off(owner, mine.key, mine.address, reference.address),
        false => {
            let which = format!("the key {:#x}, which does not stand for the one of {model}", mine.key);
            judge.add(phase, Field::Key, format!("Your {owner} announces {which}"), vec![frame], Some(place));
            0
        }
    };
    if off != 0 {
        let sentence = format!("Your {owner} announces another part of its buffer than {model}'s: {off} bytes away");
        judge.add(phase, Field::Address, sentence, vec![frame], Some(place));
    }
    let (my, its) = (u64::from(mine.length), u64::from(reference.length));
    if my != its {
        let sentence = format!("Your {owner} announces a buffer of {my} bytes; {model}'s has {its}");
        judge.add(phase, Field::Length, sentence, vec![frame], Some(place)).lengths = Some((my, its));
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
                format!("Your {from}'s READ brings other bytes than its WRITE (frame {}) put there", my.frame);
            differ(judge, matched, Field::Payload, sentence);
        }
        _ => judge.other_bytes(matched, same_length),
    }
}

fn differ<'j>(judge: &'j mut Judge, matched: Matched, field: Field, sentence: String) -> &'j mut Finding {
    judge.add(Phase::Data, field, sentence, vec![matched.mine.frame], Some(matched.reference.place()))
}
