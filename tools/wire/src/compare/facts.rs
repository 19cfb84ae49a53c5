//! What a connection does, in rows that are the same in every run: each fact in words, keys and addresses renamed.
//!
//! Keys are new in every run. A key that its owner announces is its 1st, 2nd…; an address is this many bytes behind the start
//! of what the key was announced for, or else was used for first.

use super::conversation::{CmStep, Conversation};
use super::descriptor::Descriptor;
use super::report::{hex, plural, Phase};
use super::request::{Outcome, Request};
use super::stream::{Rest, KEPT};
use roce::cm::{reject_reason, rep, req, sidr_status, Kind, Service};
use roce::field::Field;
use roce::opcode::{Operation, Service as Transport};
use roce::track::Side;
use run::words::ordinal;
use std::collections::HashMap;
use std::rc::Rc;

/// Something that must be the same.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Fact {
    /// What it is about, as `Difference::field` has it.
    pub field: &'static str,
    pub words: String,
    /// What the words leave out: a sum of all bytes, or the number itself.
    pub exact: u64,
}

fn fact(field: &'static str, words: impl Into<String>) -> Fact {
    exactly(field, words, 0u32)
}

fn exactly(field: &'static str, words: impl Into<String>, exact: impl Into<u64>) -> Fact {
    Fact { field, words: words.into(), exact: exact.into() }
}

/// What one side does: a message of the connection manager, or a request.
#[derive(Debug)]
pub(super) struct Action<'c> {
    pub phase: Phase,
    /// `client`, or `connection`.
    pub who: &'static str,
    pub frame: Option<u64>,
    /// The step of the lesson.
    pub step: Option<&'c str>,
    /// The first one is what it is.
    pub facts: Vec<Fact>,
    /// What became of a request.
    pub outcome: String,
    /// Whose request it is, and which one of that side, from 1.
    pub request: Option<(Side, usize, &'c Request)>,
}

impl<'c> Action<'c> {
    fn new(phase: Phase, who: &'static str, step: Option<&'c CmStep>, facts: Vec<Fact>) -> Action<'c> {
        let (frame, step) = (step.map(|step| step.frame), step.and_then(|step| step.step.as_deref()));
        Action { phase, who, frame, step, facts, outcome: String::new(), request: None }
    }

    /// Who does this: `client`, `client's WRITE`, `client's 1st request`.
    pub(super) fn subject(&self, field: &str) -> String {
        match (self.request, field) {
            (None, _) => self.who.into(),
            (Some((_, nth, _)), "operation") => format!("{}'s {} request", self.who, ordinal(nth)),
            (Some((.., request)), _) => format!("{}'s {}", self.who, request.name()),
        }
    }
}

/// A connection in rows: those that every connection has, in their order, and the client's and the server's requests.
pub(super) fn rows(conversation: &Conversation) -> (Vec<Action<'_>>, [impl Iterator<Item = Action<'_>>; 2]) {
    let keys = Rc::new(Side::BOTH.map(|owner| Keys::of(conversation, owner)));
    let rests = Side::BOTH.map(|from| rest(&conversation.streams[from as usize].rest, from));
    let end = rests.into_iter().chain([end(conversation)]);
    let requests = Side::BOTH.map(|from| requests(conversation.requests(from), from, keys.clone()));
    (end.chain(connect(conversation, &keys)).collect(), requests)
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
        let announced = keys.len();
        for request in conversation.requests(owner.other()) {
            let remote = request.remote.map(|remote| (remote.r_key, remote.va));
            let Some((key, va)) = remote.or(request.invalidated.map(|key| (key, 0))) else { continue };
            let nth = ordinal(keys.len() + 1 - announced);
            keys.entry(key).or_insert((format!("the {nth} key that the {owner} never announced"), va));
        }
        Keys(keys)
    }

    /// A key's name, and how many bytes behind its start an address is.
    fn place(&self, key: u32, address: u64) -> (&str, i64) {
        self.0.get(&key).map_or(("", 0), |(name, start)| (name, address.wrapping_sub(*start) as i64))
    }

    /// What a descriptor says.
    fn announcement(&self, descriptor: &Descriptor) -> [Fact; 3] {
        let (name, away) = self.place(descriptor.key, descriptor.address);
        let bytes = format!("announces a buffer of {} bytes", descriptor.length);
        [
            fact("key", format!("announces {name}")),
            fact("address", format!("announces byte {away} of what that key opens")),
            exactly("length", bytes, descriptor.length),
        ]
    }
}

/// REQ, then REP and RTU, or REJ; for datagrams SIDR_REQ and SIDR_REP. Nothing if the capture begins later.
fn connect<'c>(conversation: &'c Conversation, keys: &[Keys; 2]) -> Vec<Action<'c>> {
    const ANSWERS: [Kind; 3] = [Kind::ConnectReject, Kind::ConnectReply, Kind::ServiceReply];
    let Some(request) = conversation.request() else { return Vec::new() };
    let answer = ANSWERS.iter().find_map(|kind| conversation.step(*kind));
    let ready = conversation.step(Kind::ReadyToUse);
    let says = if ready.is_some() { "sends the ReadyToUse (RTU)" } else { "never sends the ReadyToUse (RTU)" };
    let no_answer = || vec![fact("answer", "gives no answer to the connection request")];
    let row = |who, step, facts| Action::new(Phase::Connect, who, step, facts);
    vec![
        row("client", Some(request), terms(request, keys)),
        row("server", answer.or(Some(request)), answer.map_or_else(no_answer, |answer| terms(answer, keys))),
        row("client", ready, vec![fact("ready-to-use", says)]),
    ]
}

/// What a message of the connection manager asks for or offers, and what it carries for the programs.
fn terms(step: &CmStep, keys: &[Keys; 2]) -> Vec<Fact> {
    let (message, kind) = (step.message(), step.kind.short());
    let number = |field: Field| field.read(message.body).unwrap_or(0);
    // With a depth of 0 on either side, READs are impossible.
    let can = |what, parameter, field| match number(field) {
        0 => fact("read-depth", format!("cannot {what} READs (its {parameter} is 0)")),
        _ => fact("read-depth", format!("can {what} READs")),
    };
    let reads =
        |depth, resources| [can("send", "initiator_depth", depth), can("answer", "responder_resources", resources)];
    let service = message.service().unwrap_or(Service(0));
    let mut facts = match step.kind {
        Kind::ConnectRequest | Kind::ServiceRequest => vec![
            fact("service", format!("begins with a {kind}")),
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
        Kind::ConnectRequest => {
            let transport = (req::TRANSPORT.meaning)(number(req::TRANSPORT));
            facts.push(fact("service", format!("asks for a connection of type {transport}")));
            let queue_pair = match number(req::LOCAL_QPN) {
                0 => "asks for a connection without a queue pair",
                _ => "creates a queue pair before rdma_connect",
            };
            facts.push(fact("queue-pair", queue_pair));
            facts.extend(reads(req::INITIATOR_DEPTH, req::RESPONDER_RESOURCES));
        }
        Kind::ConnectReply => facts.extend(reads(rep::INITIATOR_DEPTH, rep::RESPONDER_RESOURCES)),
        _ => {}
    }
    let (memory, rest) = Descriptor::of_private_data(message.private_data());
    let buffers = format!("address, key and length of {}", plural(memory.len() as u64, "buffer"));
    let what = match (memory.len(), rest) {
        (0, []) => "no private data".to_owned(),
        (0, data) => format!("the private data {}", hex(data)),
        (_, []) => buffers,
        (_, data) => format!("{buffers}, and {}", hex(data)),
    };
    facts.push(exactly("private-data", format!("carries {what} in its {kind}"), crc32fast::hash(rest)));
    facts.extend(memory.iter().flat_map(|descriptor| keys[step.from as usize].announcement(descriptor)));
    facts
}

/// DREQ and DREP.
fn end(conversation: &Conversation) -> Action<'_> {
    let goodbye = conversation.step(Kind::DisconnectRequest);
    let words = match (goodbye, conversation.step(Kind::DisconnectReply)) {
        (None, _) => "has no end: nobody hangs up".into(),
        (Some(step), Some(_)) => format!("ends when the {} hangs up (DREQ), and is answered", step.from),
        (Some(step), None) => format!("ends when the {} hangs up (DREQ), and is not answered (DREP)", step.from),
    };
    Action::new(Phase::Disconnect, "connection", goodbye, vec![fact("disconnect", words)])
}

/// The requests after those that are compared one by one.
fn rest(rest: &Rest, from: Side) -> Action<'static> {
    let words = format!("posts {} requests after the first {KEPT}", rest.count);
    let row = Action::new(Phase::Data, from.name(), None, vec![exactly("operation", words, rest.sum)]);
    Action { frame: (rest.count > 0).then_some(rest.frame), ..row }
}

/// The requests of one side.
fn requests(requests: &[Request], from: Side, keys: Rc<[Keys; 2]>) -> impl Iterator<Item = Action<'_>> {
    let mut written = HashMap::new();
    requests.iter().zip(1..).map(move |(request, nth)| {
        let (own, peers) = (&keys[from as usize], &keys[from.other() as usize]);
        let mut facts = what_it_does(request);
        if let Some(remote) = request.remote {
            let (name, away) = peers.place(remote.r_key, remote.va);
            facts.push(fact("key", format!("uses {name}")));
            facts.push(fact("address", format!("goes to byte {away} of what that key opens")));
        }
        facts.extend(request.invalidated.map(|key| fact("key", format!("invalidates {}", peers.place(key, 0).0))));
        let place = (request.remote.map(|remote| (remote.va, remote.r_key)), request.length());
        match request.operation {
            Operation::Send => facts.extend(said(request, own)),
            Operation::Write => drop(written.insert(place, &request.payload)),
            // A READ may bring any bytes, but not others than those that a WRITE put there.
            Operation::ReadRequest => facts.extend(written.get(&place).map(|payload| {
                let same = **payload == request.payload;
                let back = if same { "back what its WRITE" } else { "other bytes than its WRITE" };
                fact("payload", format!("brings {back} put there"))
            })),
            _ => {}
        }
        let outcome = match request.outcome {
            Outcome::Done => "goes through".into(),
            Outcome::Unanswered => "gets no answer".into(),
            Outcome::Refused(nak) => format!("is refused with \"{nak}\""),
        };
        let (frame, step) = (Some(request.frame), request.step.as_deref());
        Action {
            phase: Phase::Data,
            who: from.name(),
            frame,
            step,
            facts,
            outcome,
            request: Some((from, nth, request)),
        }
    })
}

fn what_it_does(request: &Request) -> Vec<Fact> {
    let service = match request.service {
        Transport::Rc => String::new(),
        other => format!(" over {other:?}"),
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
        exactly("length", bytes, length),
        fact("immediate", format!("carries the immediate data {:#x}", request.immediate.unwrap_or(0))),
        fact("operands", format!("works with {one:#x} and {other:#x}")),
        fact("solicited", solicited),
    ]
}

/// What a SEND says. It is part of the protocol, unlike the bytes of a WRITE.
fn said(request: &Request, keys: &Keys) -> Vec<Fact> {
    let Some(descriptor) = Descriptor::of_message(&request.payload.head) else {
        let (head, sum) = request.payload.said();
        return vec![exactly("payload", format!("says {}", hex(head)), sum)];
    };
    let mut facts = vec![fact("payload", "says address, key and length of a buffer")];
    facts.extend(keys.announcement(&descriptor));
    facts
}
