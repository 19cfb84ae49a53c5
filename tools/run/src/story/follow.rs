//! Which step of a story each packet of a capture belongs to.
//!
//! Nothing is read from addresses, queue pairs or counts that differ between runs. The client is the one who sends
//! the ConnectRequest, or the question where datagrams go; where there are several, each connection follows the story by itself. In a story without connection
//! management the client is the one who sends the first request, and all queue pairs follow the story together. A CM message
//! belongs to the step with its name. The requests of one side come in the order of the story, and packet sequence numbers
//! tell to which request a later part, a repetition or an answer belongs (of datagrams, which have none, the name tells); so neither another path MTU, nor ACKs for several
//! requests at once, nor lost packets change the assignment.

use super::{Side, Step, Story};
use crate::sighting::Sighting;
use roce::opcode::Service;
use roce::packet::Packet;
use roce::track::Membership;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::net::IpAddr;

/// Follows a capture packet by packet.
#[derive(Debug)]
pub struct Follow<'s> {
    story: &'s Story,
    /// The clients of these connections.
    clients: HashSet<IpAddr>,
    /// Each connection that began with a ConnectRequest, or all of them as one if the story has none; and for the requests of
    /// its client and of its server, in order, the connection and the sequence number that each begins with.
    connections: HashMap<usize, [Vec<(usize, i64)>; 2]>,
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

impl Story {
    /// Begins to follow a capture of this story.
    pub fn follow(&self) -> Follow<'_> {
        Follow { story: self, clients: HashSet::new(), connections: HashMap::new() }
    }
}

impl<'s> Follow<'s> {
    /// The step that a packet, the next one, belongs to; after an error the next ones may fit again.
    pub fn packet(&mut self, sighting: &Sighting, packet: &Packet) -> Result<&'s Step, Unexpected> {
        let (seen, frame) = (sighting.seen, sighting.number);
        let message = packet.cm();
        let begins = message.as_ref().map_or(self.story.has_no_cm(), |message| message.kind.begins());
        if let Some(seen) = seen.filter(|_| begins) {
            self.connections.entry(self.group(seen)).or_default();
            self.clients.extend(sighting.connection.map(|connection| connection.ips[0]));
        }
        let side = self.side(packet, seen);
        let found = match (side, message) {
            (None, _) => Err("a ConnectRequest first".into()),
            (Some(side), Some(_)) => self.cm_step(packet, side),
            (Some(side), None) if packet.opcode.service == Service::Ud => self.ud_step(packet, side),
            (Some(side), None) if packet.opcode.service == Service::Cnp => self.cnp_step(side),
            (Some(side), None) => self.rc_step(packet, side, seen),
        };
        let sender = side.map_or(String::new(), |side| format!("the {}'s ", side.name()));
        found.map_err(|expected| Unexpected { frame, packet: format!("{sender}{}", packet.told()), expected })
    }

    /// What follows the story by itself.
    fn group(&self, seen: Membership) -> usize {
        if self.story.has_no_cm() {
            0
        } else {
            seen.connection
        }
    }

    /// Who sent a packet: one end of its connection, or, if it is of none, whose machine that is. None before the first
    /// ConnectRequest.
    fn side(&self, packet: &Packet, seen: Option<Membership>) -> Option<Side> {
        let known = seen.filter(|seen| self.connections.contains_key(&self.group(*seen))).map(|seen| seen.from);
        known.or_else(|| {
            let side = if self.clients.contains(&packet.datagram.src) { Side::Client } else { Side::Server };
            (!self.connections.is_empty()).then_some(side)
        })
    }

    fn cm_step(&self, packet: &Packet, side: Side) -> Result<&'s Step, String> {
        let is_cm = |step: &&Step| !["RC ", "UD ", "CNP"].iter().any(|service| step.packets.starts_with(service));
        let mut own = self.story.steps.iter().filter(|step| step.side == side).filter(is_cm);
        let found = own.clone().find(|step| step.fits(packet));
        found.ok_or_else(|| match own.next() {
            None => "no CM message of this side".into(),
            Some(first) => own.fold(first.packets.clone(), |names, step| format!("{names} or {}", step.packets)),
        })
    }

    /// Datagrams have no numbers that tell what they belong to: those of one name are of one step.
    fn ud_step(&self, packet: &Packet, side: Side) -> Result<&'s Step, String> {
        let own = self.story.steps.iter().filter(|step| step.side == side && step.packets.starts_with("UD "));
        let found = own.filter(|step| step.fits(packet)).max_by_key(|step| step.packets.len());
        found.ok_or_else(|| "no such datagram of this side".into())
    }

    /// They have no numbers, either.
    fn cnp_step(&self, side: Side) -> Result<&'s Step, String> {
        let found = self.story.steps.iter().find(|step| step.side == side && step.is_notification());
        found.ok_or_else(|| "no notification of this side".into())
    }

    fn rc_step(&mut self, packet: &Packet, side: Side, seen: Option<Membership>) -> Result<&'s Step, String> {
        if packet.opcode.service != Service::Rc {
            return Err("a packet of a reliable connection".into());
        }
        let group = seen.map(|seen| self.group(seen));
        let requests = group.and_then(|group| self.connections.get_mut(&group));
        let (seen, requests) =
            seen.zip(requests).ok_or("a packet of a connection whose ConnectRequest the capture has")?;
        let (connection, again) = (seen.connection, seen.again);
        let request = seen.request.ok_or("an answer only after its request")?;
        let answer = packet.opcode.is_response();
        let starts = &mut requests[if answer { side.other() } else { side } as usize];
        if request.begins {
            // One that comes again was lost before: others have been sent since then.
            let later = |(of, first): &(usize, i64)| *of == connection && *first > request.first;
            let at = Some(starts.len()).filter(|_| !again).or_else(|| starts.iter().position(later));
            starts.insert(at.unwrap_or(starts.len()), (connection, request.first));
        }
        let index = starts.iter().rposition(|start| *start == (connection, request.first));
        let index = index.ok_or("an answer only after its request")?;
        let wanted = |step: &&Step| step.side == side && if answer { step.is_answer() } else { step.is_request() };
        let steps: Vec<&Step> = self.story.steps.iter().filter(wanted).collect();
        let step = |index: usize| {
            let index = if self.story.repeats { index.checked_rem(steps.len())? } else { index };
            steps.get(index).copied()
        };
        // A SEND or WRITE that comes again is acknowledged with the number of the last request that was carried out (IBTA
        // C9-105), even if that one is answered in another way: this ACK is that of an earlier request.
        if answer && again && !step(index).is_some_and(|step| step.fits(packet)) {
            let earlier = (0..index).rev().take(steps.len()).filter(|at| starts[*at].0 == connection);
            if let Some(step) = earlier.filter_map(step).find(|step| step.fits(packet)) {
                return Ok(step);
            }
        }
        match (step(index), steps.last()) {
            (Some(step), _) if step.fits(packet) => Ok(step),
            (Some(step), _) => Err(format!("{} (step {}: {})", step.packets, step.number, step.title)),
            (None, Some(last)) => Err(format!("no more of this side after step {}: {}", last.number, last.title)),
            (None, None) => Err("only connection management from this side".into()),
        }
    }
}
