//! What a connection does, in rows that are the same in every run: each fact in words, keys and addresses renamed.
//!
//! Keys are new in every run. A key that its owner announces is its 1st, 2nd…; an address is so many bytes behind the start
//! of what the key was announced for, or else was used for first.

use super::conversation::{Conversation, Step};
use super::report::{hex, ordinal, plural};
use super::request::{Outcome, Request};
use super::stream::{Rest, KEPT};
use roce::cm::{reject_reason, rep, req, sidr_status, Kind, Service};
use roce::field::Field;
use roce::opcode::{Operation, Service as Transport};
use roce::packet::Remote;
use roce::track::Side;
use std::collections::HashMap;

/// Something that has to be the same.
#[derive(Debug, PartialEq)]
pub(super) struct Fact {
    /// What it is about, as `Difference::field` has it.
    pub field: &'static str,
    pub words: String,
    /// What the words leave out: a sum of all bytes, or the number itself.
    pub exact: u64,
}

fn fact(field: &'static str, words: impl Into<String>) -> Fact {
    Fact { field, words: words.into(), exact: 0 }
}

/// What one side does: a message of the connection manager, or a request.
#[derive(Debug)]
pub(super) struct Row<'c> {
    /// `client`, or `connection`.
    pub who: &'static str,
    pub frame: Option<u64>,
    /// The step of the lesson.
    pub step: Option<&'c str>,
    pub facts: Vec<Fact>,
    /// Whose request it is, and which one of that side, from 1.
    pub request: Option<(Side, usize, &'c Request)>,
}

impl Row<'_> {
    /// Who does this: `client`, `client's WRITE`, `client's 1st request`.
    pub(super) fn subject(&self, fact: &Fact) -> String {
        match (self.request, fact.field) {
            (None, _) => self.who.into(),
            (Some((_, nth, _)), "operation") => format!("{}'s {} request", self.who, ordinal(nth)),
            (Some((.., request)), _) => format!("{}'s {}", self.who, request.name()),
        }
    }
}

/// A connection in rows.
#[derive(Debug)]
pub(super) struct Rows<'c> {
    /// Getting connected: the request, the answer, and RTU. Nothing if the capture begins later.
    pub connect: Vec<Row<'c>>,
    /// The client's and the server's.
    pub requests: [Vec<Row<'c>>; 2],
    /// The requests after those that are compared one by one.
    pub rests: [Row<'c>; 2],
    pub end: Row<'c>,
}

impl Rows<'_> {
    pub(super) fn of(conversation: &Conversation) -> Rows<'_> {
        let keys = Side::BOTH.map(|owner| Keys::of(conversation, owner));
        Rows {
            connect: connect(conversation, &keys),
            requests: Side::BOTH.map(|from| requests(conversation.requests(from), from, &keys)),
            rests: Side::BOTH.map(|from| rest(&conversation.streams[from as usize].rest, from)),
            end: end(conversation),
        }
    }
}

/// What stands for a side's keys: their names, and where the addresses begin.
struct Keys(HashMap<u32, (String, u64)>);

impl Keys {
    fn of(conversation: &Conversation, owner: Side) -> Keys {
        let mut keys = HashMap::new();
        for (_, Descriptor { key, address, .. }) in conversation.announced(owner) {
            let nth = ordinal(keys.len() + 1);
            keys.entry(key).or_insert((format!("the {owner}'s {nth} key"), address));
        }
        let (announced, requests) = (keys.len(), conversation.requests(owner.other()));
        let invalidated = requests.iter().filter_map(|request| Some(Remote { r_key: request.invalidated?, va: 0 }));
        for Remote { r_key, va } in requests.iter().filter_map(|request| request.remote).chain(invalidated) {
            let nth = ordinal(keys.len() + 1 - announced);
            keys.entry(r_key).or_insert((format!("the {nth} key that the {owner} never announced"), va));
        }
        Keys(keys)
    }

    /// A key's name, and how many bytes behind its start an address is.
    fn place(&self, key: u32, address: u64) -> (&str, i64) {
        self.0.get(&key).map_or(("", 0), |(name, start)| (name, address.wrapping_sub(*start) as i64))
    }
}

/// REQ, then REP and RTU, or REJ; for datagrams SIDR_REQ and SIDR_REP.
fn connect<'c>(conversation: &'c Conversation, keys: &[Keys; 2]) -> Vec<Row<'c>> {
    const ANSWERS: [Kind; 3] = [Kind::ConnectReject, Kind::ConnectReply, Kind::ServiceReply];
    let Some(request) = conversation.request() else { return Vec::new() };
    let answer = ANSWERS.iter().find_map(|kind| conversation.step(*kind));
    let ready = conversation.step(Kind::ReadyToUse);
    let says = if ready.is_some() { "sends the ReadyToUse (RTU)" } else { "never sends the ReadyToUse (RTU)" };
    let no_answer = || vec![fact("answer", "gives no answer to the connection request")];
    vec![
        row("client", Some(request), terms(request, keys)),
        row("server", answer.or(Some(request)), answer.map_or_else(no_answer, |answer| terms(answer, keys))),
        row("client", ready, vec![fact("ready-to-use", says)]),
    ]
}

fn row<'c>(who: &'static str, step: Option<&'c Step>, facts: Vec<Fact>) -> Row<'c> {
    let (frame, step) = (step.map(|step| step.frame), step.and_then(|step| step.step.as_deref()));
    Row { who, frame, step, facts, request: None }
}

/// What a message of the connection manager asks for or offers, and what it carries for the programs.
fn terms(step: &Step, keys: &[Keys; 2]) -> Vec<Fact> {
    let message = step.message();
    let number = |field: Field| field.read(message.body).unwrap_or(0);
    // With a depth of 0 on either side, READs are impossible.
    let can = |what, parameter, field| match number(field) {
        0 => fact("read-depth", format!("cannot {what} READs (its {parameter} is 0)")),
        _ => fact("read-depth", format!("can {what} READs")),
    };
    let service = message.service().unwrap_or(Service(0));
    let mut facts = match step.kind {
        Kind::ConnectRequest | Kind::ServiceRequest => vec![
            fact("service", format!("begins with a {}", step.kind.short())),
            fact("service", format!("asks for a service of {} ({:#x})", service.space(), service.0 >> 16)),
        ],
        Kind::ConnectReject => {
            let reason = message.reason().unwrap_or(0);
            let why = format!("gives the reason {reason} ({})", reject_reason(reason));
            return vec![fact("answer", "rejects the connection"), fact("reject-reason", why)];
        }
        Kind::ConnectReply => vec![fact("answer", "accepts the connection")],
        _ => vec![fact("answer", format!("answers \"{}\"", sidr_status(message.sidr_status().unwrap_or(0))))],
    };
    match step.kind {
        Kind::ConnectRequest => facts.extend([
            fact(
                "service",
                format!("asks for a connection of type {}", (req::TRANSPORT.meaning)(number(req::TRANSPORT))),
            ),
            fact(
                "queue-pair",
                match number(req::LOCAL_QPN) {
                    0 => "asks for a connection without a queue pair",
                    _ => "creates a queue pair before rdma_connect",
                },
            ),
            can("send", "initiator_depth", req::INITIATOR_DEPTH),
            can("answer", "responder_resources", req::RESPONDER_RESOURCES),
        ]),
        Kind::ConnectReply => facts.extend([
            can("send", "initiator_depth", rep::INITIATOR_DEPTH),
            can("answer", "responder_resources", rep::RESPONDER_RESOURCES),
        ]),
        _ => {}
    }
    private_data(step, &keys[step.from as usize], &mut facts);
    facts
}

fn private_data(step: &Step, keys: &Keys, facts: &mut Vec<Fact>) {
    let (memory, rest) = Descriptor::of_private_data(step.message().private_data());
    let what = match (memory.len(), rest) {
        (0, []) => "no private data".to_owned(),
        (0, data) => format!("the private data {}", hex(data)),
        (count, []) => format!("address, key and length of {}", plural(count as u64, "buffer")),
        (count, data) => format!("address, key and length of {}, and {}", plural(count as u64, "buffer"), hex(data)),
    };
    let words = format!("carries {what} in its {}", step.kind.short());
    facts.push(Fact { field: "private-data", words, exact: crc32fast::hash(rest).into() });
    memory.iter().for_each(|descriptor| announcement(descriptor, keys, facts));
}

/// DREQ and DREP.
fn end(conversation: &Conversation) -> Row<'_> {
    let goodbye = conversation.step(Kind::DisconnectRequest);
    let words = match (goodbye, conversation.step(Kind::DisconnectReply)) {
        (None, _) => "has no end: nobody hangs up".into(),
        (Some(step), Some(_)) => format!("ends when the {} hangs up (DREQ), and is answered", step.from),
        (Some(step), None) => format!("ends when the {} hangs up (DREQ), and is not answered (DREP)", step.from),
    };
    row("connection", goodbye, vec![fact("disconnect", words)])
}

/// The requests of one side. Of each, the first fact is what it is, and the second what became of it.
fn requests<'c>(requests: &'c [Request], from: Side, keys: &[Keys; 2]) -> Vec<Row<'c>> {
    let (own, peers) = (&keys[from as usize], &keys[from.other() as usize]);
    let mut written = HashMap::new();
    let rows = requests.iter().zip(1..).map(|(request, nth)| {
        let mut facts = what_it_does(request);
        if let Some(Remote { va, r_key }) = request.remote {
            let (name, away) = peers.place(r_key, va);
            facts.push(fact("key", format!("uses {name}")));
            facts.push(fact("address", format!("goes to byte {away} of what that key opens")));
        }
        facts.extend(request.invalidated.map(|key| fact("key", format!("invalidates {}", peers.place(key, 0).0))));
        let place = (request.remote.map(|remote| (remote.va, remote.r_key)), request.length());
        match request.operation {
            Operation::Send => said(request, own, &mut facts),
            Operation::Write => drop(written.insert(place, &request.payload)),
            // A READ may bring any bytes, but not others than those that a WRITE put there.
            Operation::ReadRequest => facts.extend(written.get(&place).map(|payload| {
                let back =
                    if **payload == request.payload { "back what its WRITE" } else { "other bytes than its WRITE" };
                fact("payload", format!("brings {back} put there"))
            })),
            _ => {}
        }
        let (frame, step) = (Some(request.frame), request.step.as_deref());
        Row { who: from.name(), frame, step, facts, request: Some((from, nth, request)) }
    });
    rows.collect()
}

fn rest(rest: &Rest, from: Side) -> Row<'static> {
    let words = format!("posts {} requests after the first {KEPT}", rest.count);
    let frame = (rest.count > 0).then_some(rest.frame);
    let facts = vec![Fact { field: "operation", words, exact: rest.sum() }];
    Row { who: from.name(), frame, step: None, facts, request: None }
}

fn what_it_does(request: &Request) -> Vec<Fact> {
    let service = match request.service {
        Transport::Rc => String::new(),
        other => format!(" over {other:?}"),
    };
    let outcome = match request.outcome {
        Outcome::Done => "goes through".into(),
        Outcome::Unanswered => "gets no answer".into(),
        Outcome::Refused(nak) => format!("is refused with \"{nak}\""),
    };
    // The RETH tells a length before the bytes come; the two must agree.
    let (length, carried) = (request.length(), request.payload.length);
    let bytes = match request.operation == Operation::Write && carried != length {
        true => format!("announces {length} bytes in its RETH, and its packets carry {carried}"),
        false => format!("has {length} bytes"),
    };
    let solicited = if request.solicited { "asks for a solicited event" } else { "asks for no solicited event" };
    let (one, other) = request.operands.unwrap_or_default();
    vec![
        fact("operation", format!("is a {}{service}", request.name())),
        fact("outcome", outcome),
        Fact { field: "length", words: bytes, exact: length },
        fact("immediate", format!("carries the immediate data {:#x}", request.immediate.unwrap_or(0))),
        fact("operands", format!("works with {one:#x} and {other:#x}")),
        fact("solicited", solicited),
    ]
}

/// What a SEND says. It is part of the protocol, unlike the bytes of a WRITE.
fn said(request: &Request, keys: &Keys, facts: &mut Vec<Fact>) {
    if let Some(descriptor) = Descriptor::of_message(&request.payload.head) {
        facts.push(fact("payload", "says address, key and length of a buffer"));
        announcement(&descriptor, keys, facts);
    } else {
        let (head, sum) = request.payload.said();
        facts.push(Fact { field: "payload", words: format!("says {}", hex(head)), exact: sum.into() });
    }
}

fn announcement(descriptor: &Descriptor, keys: &Keys, facts: &mut Vec<Fact>) {
    let (name, away) = keys.place(descriptor.key, descriptor.address);
    let bytes = format!("announces a buffer of {} bytes", descriptor.length);
    facts.extend([
        fact("key", format!("announces {name}")),
        fact("address", format!("announces byte {away} of what that key opens")),
        Fact { field: "length", words: bytes, exact: descriptor.length.into() },
    ]);
}

/// A message that tells the peer where memory is: address, key and length, 16 bytes big-endian, as rping and the lessons
/// send them; lessons 06 and 07 put a tag of four bytes in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Descriptor {
    pub address: u64,
    pub key: u32,
    /// In bytes.
    pub length: u32,
}

impl Descriptor {
    const LENGTH: usize = 16;
    const TAG: [u8; 4] = [1, 0, 0, 0];

    /// Takes a whole SEND for a descriptor, if it can be one.
    pub(super) fn of_message(payload: &[u8]) -> Option<Descriptor> {
        let tagged = payload.strip_prefix(&Self::TAG).filter(|rest| rest.len() == Self::LENGTH);
        Descriptor::read(tagged.unwrap_or(payload))
    }

    /// The descriptors that private data begin with, and what stands behind them. Private data are padded with zeroes.
    pub(super) fn of_private_data(data: &[u8]) -> (Vec<Descriptor>, &[u8]) {
        let descriptors: Vec<Descriptor> = data.chunks(Self::LENGTH).map_while(Descriptor::read).collect();
        let rest = &data[Self::LENGTH * descriptors.len()..];
        (descriptors, &rest[..rest.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)])
    }

    fn read(bytes: &[u8]) -> Option<Descriptor> {
        let all = u128::from_be_bytes(bytes.try_into().ok()?);
        let (address, key, length) = ((all >> 64) as u64, (all >> 32) as u32, all as u32);
        // Text is no address: programs have at most 57 bits of them, and nothing in the first page.
        let plausible = (0x1000..1 << 57).contains(&address) && (1..=1 << 30).contains(&length);
        plausible.then_some(Descriptor { address, key, length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_is_told_from_other_messages() {
        let bytes = [0, 0, 0x55, 0xab, 0x29, 0x39, 0, 0, 0, 0, 2, 0xc9, 0, 0, 0, 64];
        let here = Descriptor { address: 0x55ab_2939_0000, key: 0x2c9, length: 64 };
        assert_eq!(Descriptor::of_message(&bytes), Some(here));
        assert_eq!(Descriptor::of_message(&[&Descriptor::TAG[..], &bytes].concat()), Some(here));
        for other in [b"sixteen letters!", &[0; 16], &bytes[..15], &[&[2, 0, 0, 0][..], &bytes].concat()] {
            assert_eq!(Descriptor::of_message(other), None, "{other:?}");
        }
        let padded = [&bytes[..], &bytes, &[3, 0]].concat();
        assert_eq!(Descriptor::of_private_data(&padded), (vec![here; 2], &[3][..]));
        let text = b"sixteen letters, or more";
        assert_eq!(Descriptor::of_private_data(text), (vec![], &text[..]));
    }
}
