//! One connection: the connection manager's messages, and the requests of both sides.

use super::memory::Descriptor;
use super::request::Recorded;
use super::stream::Stream;
use super::words::Place;
use roce::cm::{self, req, Kind, Message};
use roce::track::{Seen, Side};

/// One CM message of a connection.
#[derive(Debug)]
pub(super) struct Step {
    pub from: Side,
    pub kind: Kind,
    pub frame: u64,
    /// The step of the lesson.
    pub step: Option<String>,
    /// How often it was repeated.
    pub again: u32,
    transaction_id: u64,
    body: Vec<u8>,
}

impl Step {
    pub(super) fn place(&self) -> Place<'_> {
        (self.frame, self.step.as_deref())
    }

    /// The memory that its private data announces, and what stands behind that.
    pub(super) fn memory(&self) -> (Vec<Descriptor>, &[u8]) {
        Descriptor::of_private_data(self.message().private_data())
    }

    pub(super) fn message(&self) -> Message<'_> {
        Message { kind: self.kind, transaction_id: self.transaction_id, body: &self.body }
    }
}

/// One connection, from the request for it to its end.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    /// The CM's messages, each kind once.
    pub dialogue: Vec<Step>,
    /// The requests that the client sends, and those that the server sends.
    pub streams: [Stream; 2],
    /// The path MTU in bytes: from the REQ, else from the packets of a message of several, if there are any.
    pub mtu: Option<u32>,
}

impl Conversation {
    /// What `side` sends.
    pub(super) fn stream(&self, side: Side) -> &Stream {
        &self.streams[side as usize]
    }

    /// The first message of a kind.
    pub(super) fn step(&self, kind: Kind) -> Option<&Step> {
        self.dialogue.iter().find(|step| step.kind == kind)
    }

    /// Who hung up.
    pub(super) fn goodbye(&self) -> Option<&Step> {
        self.step(Kind::DisconnectRequest)
    }

    /// The REQ or SIDR_REQ, if the capture has its beginning.
    pub(super) fn request(&self) -> Option<&Step> {
        self.dialogue.iter().find(|step| step.kind.begins())
    }

    /// True if the capture has its beginning.
    pub(super) fn has_request(&self) -> bool {
        self.request().is_some()
    }

    /// What `owner` has said about its memory before a frame, each with the frame that says it.
    pub(super) fn announced(&self, owner: Side, before: u64) -> Vec<(u64, Descriptor)> {
        let private = self.dialogue.iter().filter(|step| step.from == owner);
        let private = private.flat_map(|step| step.memory().0.into_iter().map(|descriptor| (step.frame, descriptor)));
        let sends = self.stream(owner).requests.iter().filter_map(|send| Some((send.frame, send.descriptor()?)));
        private.chain(sends).filter(|(frame, _)| *frame < before).collect()
    }

    /// The next packet.
    pub(super) fn take(&mut self, recorded: &Recorded, seen: Seen) {
        match recorded.packet.cm() {
            Some(message) => self.cm(recorded, message, seen.from),
            None if recorded.packet.opcode.is_response() => {
                let stream = &mut self.streams[seen.from.other() as usize];
                stream.response(recorded, seen.psn.unwrap_or(0), &mut self.mtu);
            }
            None => self.streams[seen.from as usize].request(recorded, seen.psn, &mut self.mtu),
        }
    }

    fn cm(&mut self, recorded: &Recorded, message: Message, from: Side) {
        let kind = message.kind;
        if let Some(step) = self.dialogue.iter_mut().find(|step| step.kind == kind && step.from == from) {
            step.again += 1;
            return;
        }
        if let Some(code) = req::PATH_MTU.read(message.body).filter(|_| kind == Kind::ConnectRequest) {
            self.mtu = cm::mtu_bytes(code as u8);
        }
        let (frame, step, body) = (recorded.number, recorded.step.clone(), message.body.to_vec());
        let transaction_id = message.transaction_id;
        self.dialogue.push(Step { from, kind, frame, step, again: 0, transaction_id, body });
    }
}
