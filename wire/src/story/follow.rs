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
use crate::psn::{Relative, Spaces};
use std::fmt;
use std::net::IpAddr;

/// Follows a capture packet by packet.
#[derive(Debug)]
pub struct Follow<'s> {
    story: &'s Story,
    spaces: Spaces,
    /// The client's machine and its number for the connection, from the ConnectRequest.
    client: Option<(IpAddr, u32)>,
    /// For the requests of the client and of the server, in order: the sequence number that each begins with.
    requests: [Vec<i32>; 2],
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
        Follow { story, spaces: Spaces::default(), client: None, requests: [Vec::new(), Vec::new()] }
    }

    /// The side that sent a packet; None before the ConnectRequest.
    pub fn side(&self, packet: &Packet) -> Option<Side> {
        let (client, _) = self.client?;
        Some(if packet.datagram.src == client { Side::Client } else { Side::Server })
    }

    /// The step that the next packet of the capture belongs to. `frame` is its number, for the error.
    ///
    /// # Errors
    /// The story has no such packet at this point. The next packets may fit again.
    pub fn packet(&mut self, frame: u64, packet: &Packet) -> Result<&'s Step, Unexpected> {
        let relative = self.spaces.relative(packet);
        let found = match packet.cm() {
            Some(message) => self.cm_step(packet, &message),
            None => self.rc_step(packet, relative),
        };
        let sender = self.side(packet).map_or(String::new(), |side| format!("the {}'s ", side.name()));
        found.map_err(|expected| Unexpected { frame, packet: format!("{sender}{}", packet.name()), expected })
    }

    fn cm_step(&mut self, packet: &Packet, message: &Message) -> Result<&'s Step, String> {
        if let (Kind::ConnectRequest, Some(id)) = (message.kind, message.local_id()) {
            self.begin((packet.datagram.src, id));
        }
        let side = self.side(packet).ok_or("a ConnectRequest first")?;
        let mut own = self.story.steps.iter().filter(|step| step.side == side && !step.packets.starts_with("RC "));
        let found = own.clone().find(|step| step.fits(packet));
        found.ok_or_else(|| match own.next() {
            None => "no CM message of this side".into(),
            Some(first) => own.fold(first.packets.clone(), |names, step| format!("{names} or {}", step.packets)),
        })
    }

    /// A new connection starts the story over; a repeated ConnectRequest does not.
    fn begin(&mut self, client: (IpAddr, u32)) {
        if self.client != Some(client) {
            self.client = Some(client);
            self.requests = [Vec::new(), Vec::new()];
        }
    }

    fn rc_step(&mut self, packet: &Packet, relative: Option<Relative>) -> Result<&'s Step, String> {
        let side = self.side(packet).ok_or("a ConnectRequest first")?;
        if packet.opcode.service != Service::Rc {
            return Err("a packet of a reliable connection".into());
        }
        let relative = relative.ok_or("a packet of the connection whose ConnectRequest the capture has")?;
        let answer = packet.opcode.is_response();
        let index = if answer { self.answered(side, relative) } else { self.request(side, packet, relative) };
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

    /// Which request of this side a packet is, or is part of; counted from 0.
    fn request(&mut self, side: Side, packet: &Packet, relative: Relative) -> Option<usize> {
        let starts = &mut self.requests[side as usize];
        let begins = matches!(packet.opcode.part, Part::First | Part::Only);
        if begins && !relative.again {
            starts.push(relative.psn);
        }
        at(starts, relative.psn)
    }

    /// Which request of the other side an answer of this side is for.
    fn answered(&self, side: Side, relative: Relative) -> Option<usize> {
        at(&self.requests[side.other() as usize], relative.psn)
    }
}

/// The request that a sequence number belongs to: each has those from its own first to the next one's.
fn at(starts: &[i32], psn: i32) -> Option<usize> {
    starts.partition_point(|start| *start <= psn).checked_sub(1)
}
