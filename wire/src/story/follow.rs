//! Which step of a story each packet of a capture belongs to.
//!
//! Nothing is read from addresses, queue pairs or counts that differ between runs. The client is the one who sends
//! the ConnectRequest. A CM message belongs to the step with its name. The requests of one side come in the order of
//! the story, and packet sequence numbers tell to which request a later part, a repetition or an answer belongs; so
//! neither another path MTU, nor ACKs for several requests at once, nor lost packets change the assignment.

use super::{Side, Step, Story};
use crate::cm::{Kind, Message};
use crate::opcode::{Part, Service};
use crate::packet::Packet;
use crate::track::{Seen, Tracker};
use std::fmt;

/// Follows a capture packet by packet.
#[derive(Debug)]
pub struct Follow<'s> {
    story: &'s Story,
    tracker: Tracker,
    /// The connection that began with the last ConnectRequest.
    connection: Option<usize>,
    /// For the requests of the client and of the server, in order: the sequence number that each begins with.
    requests: [Vec<i64>; 2],
}

/// A packet that the story does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unexpected {
    /// The frame's number.
    pub frame: u64,
    /// The packet's name, with its sender as far as that is known.
    pub packet: String,
    /// What the story has instead.
    pub expected: String,
}

impl fmt::Display for Unexpected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "frame {}: {} is not part of the story; expected {}", self.frame, self.packet, self.expected)
    }
}

impl std::error::Error for Unexpected {}

impl<'s> Follow<'s> {
    pub(super) fn new(story: &'s Story) -> Follow<'s> {
        Follow { story, tracker: Tracker::default(), connection: None, requests: [Vec::new(), Vec::new()] }
    }

    /// The side that sent a packet; None before the ConnectRequest.
    pub fn side(&self, packet: &Packet) -> Option<Side> {
        let [client, _] = self.tracker.connections()[self.connection?].ips;
        Some(if packet.datagram.src == client { Side::Client } else { Side::Server })
    }

    /// The step that the next packet of the capture belongs to. `frame` is its number, for the error.
    ///
    /// # Errors
    /// The story has no such packet at this point. The next packets may fit again.
    pub fn packet(&mut self, frame: u64, packet: &Packet) -> Result<&'s Step, Unexpected> {
        let seen = self.tracker.see(packet);
        let found = match packet.cm() {
            Some(message) => self.cm_step(packet, &message, seen),
            None => self.rc_step(packet, seen.filter(|seen| Some(seen.connection) == self.connection)),
        };
        let sender = self.side(packet).map_or(String::new(), |side| format!("the {}'s ", side.name()));
        found.map_err(|expected| Unexpected { frame, packet: format!("{sender}{}", packet.name()), expected })
    }

    fn cm_step(&mut self, packet: &Packet, message: &Message, seen: Option<Seen>) -> Result<&'s Step, String> {
        let connection = seen.map(|seen| seen.connection).filter(|_| message.kind == Kind::ConnectRequest);
        // A new connection starts the story over; a repeated ConnectRequest does not.
        if connection.is_some() && self.connection != connection {
            self.connection = connection;
            self.requests = [Vec::new(), Vec::new()];
        }
        let side = self.side(packet).ok_or("a ConnectRequest first")?;
        let mut own = self.story.steps.iter().filter(|step| step.side == side && !step.packets.starts_with("RC "));
        let found = own.clone().find(|step| step.fits(packet));
        found.ok_or_else(|| match own.next() {
            None => "no CM message of this side".into(),
            Some(first) => own.fold(first.packets.clone(), |names, step| format!("{names} or {}", step.packets)),
        })
    }

    fn rc_step(&mut self, packet: &Packet, seen: Option<Seen>) -> Result<&'s Step, String> {
        let side = self.side(packet).ok_or("a ConnectRequest first")?;
        if packet.opcode.service != Service::Rc {
            return Err("a packet of a reliable connection".into());
        }
        let known = seen.and_then(|seen| Some((seen.psn?, seen.again)));
        let (psn, again) = known.ok_or("a packet of the connection whose ConnectRequest the capture has")?;
        let answer = packet.opcode.is_response();
        let starts = &mut self.requests[if answer { side.other() } else { side } as usize];
        if !answer && !again && matches!(packet.opcode.part, Part::First | Part::Only) {
            starts.push(psn);
        }
        // Each request has the numbers from its own first to the next one's.
        let index = starts.partition_point(|start| *start <= psn).checked_sub(1);
        let index = index.ok_or("an answer only after its request")?;
        let wanted = |step: &&Step| step.side == side && if answer { step.is_answer() } else { step.is_request() };
        let steps: Vec<&Step> = self.story.steps.iter().filter(wanted).collect();
        match (steps.get(index), steps.last()) {
            (Some(step), _) if step.fits(packet) => Ok(step),
            (Some(step), _) => Err(format!("{} (step {}: {})", step.packets, step.number, step.title)),
            (None, Some(last)) => Err(format!("no more of this side after step {}: {}", last.number, last.title)),
            (None, None) => Err("only connection management from this side".into()),
        }
    }
}
