//! One connection: the connection manager's messages, and the requests of both sides.

use super::capture::Recorded;
use super::descriptor::Descriptor;
use super::request::Request;
use super::stream::Stream;
use roce::cm::{Kind, Message};
use roce::opcode::Operation;
use roce::track::{Connection, Side};
use std::net::IpAddr;

/// One CM message of a connection.
#[derive(Debug)]
pub(super) struct CmStep {
    pub from: Side,
    pub kind: Kind,
    pub frame: u64,
    /// The step of the lesson.
    pub step: Option<String>,
    /// How often it was repeated.
    pub again: u32,
    body: Vec<u8>,
}

impl CmStep {
    pub(super) fn message(&self) -> Message<'_> {
        Message { kind: self.kind, transaction_id: 0, body: &self.body }
    }
}

/// One connection, from the request for it to its end.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    /// The CM's messages, each kind once.
    pub dialogue: Vec<CmStep>,
    /// The requests that the client sends, and those that the server sends.
    pub streams: [Stream; 2],
    /// The addresses of the client and the server.
    pub ends: Option<(IpAddr, IpAddr)>,
    /// The path MTU in bytes, as far as it's known.
    pub mtu: Option<u32>,
}

impl Conversation {
    /// The first requests that `side` sends.
    pub(super) fn requests(&self, side: Side) -> &[Request] {
        &self.streams[side as usize].requests
    }

    /// The first message of a kind.
    pub(super) fn step(&self, kind: Kind) -> Option<&CmStep> {
        self.dialogue.iter().find(|step| step.kind == kind)
    }

    /// The REQ or SIDR_REQ, if the capture has its beginning.
    pub(super) fn request(&self) -> Option<&CmStep> {
        self.dialogue.iter().find(|step| step.kind.begins())
    }

    /// True if the capture has its beginning.
    pub(super) fn has_request(&self) -> bool {
        self.request().is_some()
    }

    /// What `owner` says about its memory, each time with the frame that says it.
    pub(super) fn announced(&self, owner: Side) -> Vec<(u64, Descriptor)> {
        let private = self.dialogue.iter().filter(|step| step.from == owner).flat_map(|step| {
            let (memory, _) = Descriptor::of_private_data(step.message().private_data());
            memory.into_iter().map(|descriptor| (step.frame, descriptor))
        });
        let sends = self.requests(owner).iter().filter(|request| request.operation == Operation::Send);
        let sends = sends.filter_map(|send| Some((send.frame, Descriptor::of_message(&send.payload.head)?)));
        private.chain(sends).collect()
    }

    /// The next packet.
    pub(super) fn take(&mut self, recorded: &Recorded, connection: &Connection) {
        let Recorded { packet, seen, .. } = recorded;
        let [client, server] = connection.ips;
        (self.ends, self.mtu) = (Some((client, server)), connection.mtu);
        match packet.cm() {
            Some(message) => self.cm(recorded, message, seen.from),
            None if packet.opcode.is_response() => self.streams[seen.from.other() as usize].response(recorded),
            // Datagrams of programs that know each other from the connection manager.
            None if seen.psn.is_none()
                && self.has_request()
                && self.streams[seen.from as usize].asks_again(recorded) => {}
            None => self.streams[seen.from as usize].request(recorded, self.mtu),
        }
    }

    /// The capture is at its end.
    pub(super) fn end(&mut self) {
        self.streams.iter_mut().for_each(|stream| stream.end(self.mtu));
    }

    fn cm(&mut self, recorded: &Recorded, message: Message, from: Side) {
        let kind = message.kind;
        if let Some(step) = self.dialogue.iter_mut().find(|step| step.kind == kind && step.from == from) {
            step.again += 1;
            return;
        }
        let (frame, step, body) = (recorded.number, recorded.step.clone(), message.body.to_vec());
        self.dialogue.push(CmStep { from, kind, frame, step, again: 0, body });
    }
}
