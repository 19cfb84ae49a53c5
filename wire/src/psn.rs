//! Packet sequence numbers made readable: counted from the first of their direction.
//!
//! Each direction of a connection numbers its *requests*, modulo 2^24, from a random start. Responses (ACKs,
//! READ data) carry the number of the request they answer, so they belong to the opposite direction's
//! numbers. REQ and REP announce where the *peer* shall start.

use crate::cm::{Kind, Message};
use crate::opcode::Service;
use crate::packet::Packet;
use std::collections::HashMap;
use std::net::IpAddr;

/// A queue pair on the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// The machine.
    pub ip: IpAddr,
    /// The queue pair's number there.
    pub qp: u32,
}

/// The requests that go to one queue pair.
#[derive(Clone, Copy, Debug)]
struct Stream {
    /// The machine they come from.
    from: IpAddr,
    /// Number of the first.
    first: u32,
    /// Number of the newest; None before the first.
    newest: Option<u32>,
}

/// A PSN made readable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relative {
    /// Counted from the first request of its direction.
    pub psn: i32,
    /// A request that is not newer than one before it: its sender missed the answer.
    pub again: bool,
}

/// What a capture has told so far about queue pairs and their numbers.
#[derive(Debug, Default)]
pub struct Spaces {
    streams: HashMap<Endpoint, Stream>,
    peers: HashMap<Endpoint, Endpoint>,
    /// Queue pairs named in REQs, by machine and communication ID, until the REP comes.
    asking: HashMap<(IpAddr, u32), u32>,
}

/// `a - b` modulo 2^24, as the number nearest to zero.
pub fn distance(a: u32, b: u32) -> i32 {
    (a.wrapping_sub(b) << 8) as i32 >> 8
}

impl Spaces {
    /// Takes note of a packet and counts its PSN. None for datagrams, and for responses to requests that the
    /// capture does not have.
    pub fn relative(&mut self, packet: &Packet) -> Option<Relative> {
        if let Some(message) = packet.cm() {
            self.learn(packet, &message);
        }
        if !matches!(packet.opcode.service, Service::Rc | Service::Uc) {
            return None;
        }
        let (src, dst, psn) = (packet.datagram.src, packet.datagram.dst, packet.bth.psn);
        let receiver = Endpoint { ip: dst, qp: packet.bth.dest_qp };
        if packet.opcode.is_response() {
            let responder = self.peer(receiver).or_else(|| self.guess_peer(src, receiver, psn))?;
            let stream = self.streams.get(&responder)?;
            return Some(Relative { psn: distance(psn, stream.first), again: false });
        }
        let stream = self.streams.entry(receiver).or_insert(Stream { from: src, first: psn, newest: None });
        let again = stream.newest.is_some_and(|newest| distance(psn, newest) <= 0);
        if !again {
            stream.newest = Some(psn);
        }
        Some(Relative { psn: distance(psn, stream.first), again })
    }

    /// The queue pair at the other end of a connection.
    pub fn peer(&self, endpoint: Endpoint) -> Option<Endpoint> {
        self.peers.get(&endpoint).copied()
    }

    fn learn(&mut self, packet: &Packet, message: &Message) {
        let (from, to) = (packet.datagram.src, packet.datagram.dst);
        let (Some(id), Some(qp), Some(psn)) = (message.local_id(), message.local_qpn(), message.starting_psn()) else {
            return;
        };
        // The sender of a REQ or REP chooses the number that requests *to* it begin with.
        let sender = Endpoint { ip: from, qp };
        self.streams.insert(sender, Stream { from: to, first: psn, newest: None });
        if message.kind == Kind::ConnectRequest {
            self.asking.insert((from, id), qp);
        } else if let Some(qp) = message.remote_id().and_then(|id| self.asking.remove(&(to, id))) {
            self.connect(sender, Endpoint { ip: to, qp });
        }
    }

    fn connect(&mut self, one: Endpoint, other: Endpoint) {
        self.peers.insert(one, other);
        self.peers.insert(other, one);
    }

    /// Without the CM's messages: a response answers the stream whose newest number is the nearest.
    fn guess_peer(&mut self, from: IpAddr, to: Endpoint, psn: u32) -> Option<Endpoint> {
        const WINDOW: u32 = 1 << 16;
        let streams = self.streams.iter().filter(|(at, stream)| at.ip == from && stream.from == to.ip);
        let away = |stream: &Stream| distance(psn, stream.newest.unwrap_or(stream.first)).unsigned_abs();
        let (&responder, _) = streams
            .filter(|(at, stream)| away(stream) < WINDOW && !self.peers.contains_key(*at))
            .min_by_key(|(at, stream)| (away(stream), at.qp))?;
        self.connect(responder, to);
        Some(responder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_wrap() {
        assert_eq!(distance(5, 3), 2);
        assert_eq!(distance(3, 5), -2);
        assert_eq!(distance(1, 0xff_ffff), 2);
        assert_eq!(distance(0xff_ffff, 1), -2);
    }
}
