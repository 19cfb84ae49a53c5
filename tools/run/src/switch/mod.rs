//! A switch between nodes, as it could be in a rack, and its cables: in a time of its own, without I/O and without a clock.
//! What is sent at the same times arrives at the same times, gets the same marks and the same losses.
//!
#![doc = concat!("```text\n", include_str!("grammar.txt"), "```")]
//! | | |
//! |---|---|
//! | `parse` | reads what it is like |
//! | `cable` | one direction of a cable, with the queues in front of it |
//! | `frame` | what a switch reads in a frame, and writes: the mark |
//! | `queueing` | what becomes of a frame at a port: it waits, is marked, is lost |
//! | `pausing` | who is told to send nothing, and for how long |
//! | `event` | what it tells of itself |
//!
//! A frame takes its time on a cable (its bytes, and 24 more for preamble, checksum and gap: IEEE 802.3), and then the cable's
//! delay. Each port has eight queues, by the frame's priority, which is the upper half of its DSCP; the highest is sent first
//! (IEEE 802.1Q, 8.6.8.1). A real switch has one memory for all ports, and thresholds that follow how full it is; this one
//! has a fixed room at each queue.

mod cable;
mod event;
mod frame;
mod lot;
mod parse;
mod pausing;
mod queueing;
#[cfg(test)]
mod tests;

pub use event::{done, Event, What};
pub use lot::Lot;
pub use parse::{settings, split};

use anyhow::Result;
use cable::{Cable, CableEnd};
use frame::Carried;
use std::collections::BTreeMap;
use std::time::Duration;

/// How it is written, for people.
pub const GRAMMAR: &str = include_str!("grammar.txt");

/// How often the length of a queue is told while it changes.
const LOOK: Duration = Duration::from_micros(100);

/// What a switch and its cables are like.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Bits per second on each cable.
    pub rate: u64,
    /// From one end of a cable to the other.
    pub delay: Duration,
    /// Bytes for which a queue has room; with PFC, for which it has room of each neighbour.
    pub room: u64,
    /// When frames are marked; None if none is.
    pub ecn: Option<Ecn>,
    /// When neighbours are paused; None if none is.
    pub pfc: Option<Pfc>,
    /// One in this many frames is lost; 0 for none.
    pub lose: u64,
    /// Ways through the switch, if there are several.
    pub paths: Option<Paths>,
    /// So many switches in a ring; 0 for one switch.
    pub ring: usize,
    /// The parameters of the NICs, which read them; None if they do not heed marks.
    pub dcqcn: Option<String>,
}

/// From how many bytes in a queue on frames are marked (RFC 3168), as RED does it (RFC 2309), with the queue as it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ecn {
    /// Up to here none is: Kmin.
    pub none: u64,
    /// From here on all are: Kmax.
    pub all: u64,
    /// The share just below: Pmax.
    pub most: f64,
}

/// How many bytes of one neighbour and one priority wait when that is told to pause, and when to go on (IEEE 802.1Qbb).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pfc {
    /// Xoff.
    pub off: u64,
    /// Xon.
    pub on: u64,
}

/// Several ways through the switch, which frames take in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paths {
    /// So many.
    pub count: u32,
    /// So much later is each than the one before.
    pub by: Duration,
}

/// What comes out of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Out {
    /// A frame has come to a port and is queued there, or is lost; or the switch itself sends it, then it is from nobody.
    /// Nothing arrives by this: it is what a recorder in the switch sees.
    Passed {
        /// The node that has sent it.
        from: Option<usize>,
        /// The number that it got when it was [sent](Switch::send); 0 if it's from nobody.
        number: u64,
        /// As it is now, perhaps marked.
        frame: Vec<u8>,
        /// That it is lost, or marked, and why.
        comment: Option<String>,
    },
    /// A frame arrives at a node.
    Deliver {
        /// The node.
        to: usize,
        /// The Ethernet frame, without its checksum.
        frame: Vec<u8>,
    },
    /// Something to be told.
    Tell(Event),
}

/// One switch, or several in a ring, with nodes.
#[derive(Debug)]
pub struct Switch {
    /// What it is like.
    pub settings: Settings,
    /// Two for each node, from it and to it; then two for each switch in a ring, to the next one and from there.
    cables: Vec<Cable>,
    /// The nodes' names.
    names: Vec<String>,
    /// What is to happen; the number tells apart what happens at the same time.
    due: BTreeMap<(Duration, u64), Happening>,
    count: u64,
    lot: Lot,
    /// Frames that nodes have sent.
    sent: u64,
    /// Frames that have come in, for taking paths in turn.
    turns: u32,
    out: Vec<(Duration, Out)>,
}

/// What happens at a time: a number is that of a cable.
#[derive(Debug)]
enum Happening {
    /// The last bit of a frame is on the cable.
    Sent(usize),
    /// It is at the other end.
    Arrives(usize, Carried),
    /// It has come through the switch, to the port of this cable.
    Queues(usize, Carried),
    /// A pause that this cable's end was told may be over.
    Wakes(usize),
    /// Whoever sends on this cable is told again to pause.
    Pauses(usize, u8),
    /// It is looked at how much waits for this cable.
    Looks(usize),
}

impl Switch {
    /// Reads what a switch for these nodes is like; None if the text says nothing. The message about a word that is not
    /// understood points at it.
    pub fn parse(text: &str, nodes: &[&str]) -> Result<Option<Switch>> {
        Ok(parse::settings(text)?.map(|settings| Switch::new(settings, nodes)))
    }

    /// One like this.
    pub fn new(settings: Settings, nodes: &[&str]) -> Switch {
        let cables = cable::laid(nodes.len(), settings.ring);
        let names = nodes.iter().map(|name| (*name).to_owned()).collect();
        Switch {
            settings,
            cables,
            names,
            due: BTreeMap::new(),
            count: 0,
            lot: Lot::default(),
            sent: 0,
            turns: 0,
            out: Vec::new(),
        }
    }

    /// A node hands a frame to its cable, for another node, or for all. There it waits for its turn. Its number tells which one it
    /// is when it comes out.
    pub fn send(&mut self, now: Duration, from: usize, to: Option<usize>, frame: Vec<u8>) -> u64 {
        let cable = cable::from_node(from);
        self.sent += 1;
        self.cables[cable].push(Carried::new(self.sent, from, to, frame));
        self.start(now, cable);
        self.sent
    }

    /// When something happens next.
    pub fn next(&self) -> Option<Duration> {
        self.due.first_key_value().map(|((time, _), _)| *time)
    }

    /// Whether nothing is under way but pauses, which neighbours tell each other again and again.
    pub fn is_stuck(&self) -> bool {
        self.due.values().all(|happening| match happening {
            Happening::Sent(cable) => self.cables[*cable].sends_control(),
            Happening::Arrives(_, frame) | Happening::Queues(_, frame) => frame.is_control(),
            Happening::Wakes(_) | Happening::Pauses(..) | Happening::Looks(_) => true,
        })
    }

    /// Lets all happen that is due, and says what came of it, and when.
    pub fn advance(&mut self, now: Duration) -> Vec<(Duration, Out)> {
        while let Some(next) = self.due.first_entry().filter(|next| next.key().0 <= now) {
            let ((time, _), happening) = next.remove_entry();
            match happening {
                Happening::Sent(cable) => self.sent(time, cable),
                Happening::Arrives(cable, frame) => self.arrives(time, cable, frame),
                Happening::Queues(cable, frame) => self.queues(time, cable, frame),
                Happening::Wakes(cable) => self.start(time, cable),
                Happening::Pauses(cable, priority) => self.pause_again(time, cable, priority),
                Happening::Looks(cable) => self.look(time, cable),
            }
        }
        std::mem::take(&mut self.out)
    }

    fn at(&mut self, time: Duration, happening: Happening) {
        self.count += 1;
        self.due.insert((time, self.count), happening);
    }

    fn passes(&mut self, now: Duration, frame: &Carried, comment: Option<String>) {
        let Carried { from, number, bytes, .. } = frame;
        self.out.push((now, Out::Passed { from: Some(*from), number: *number, frame: bytes.clone(), comment }));
    }

    fn tell(&mut self, now: Duration, event: Event) {
        self.out.push((now, Out::Tell(event)));
    }

    /// Begins to send what is next on a cable that is free.
    fn start(&mut self, now: Duration, cable: usize) {
        if let Some(length) = self.cables[cable].start(now) {
            self.at(now + self.settings.time_of(length), Happening::Sent(cable));
        }
    }

    fn sent(&mut self, now: Duration, cable: usize) {
        if let Some(mut frame) = self.cables[cable].finish() {
            self.leaves(now, &frame);
            self.watch(now, cable);
            frame.came_by = Some(cable);
            self.at(now + self.settings.delay, Happening::Arrives(cable, frame));
        }
        self.start(now, cable);
    }

    fn arrives(&mut self, now: Duration, cable: usize, frame: Carried) {
        if let Some(pause) = roce::pause::Frame::decode(&frame.bytes) {
            self.obey(now, cable, pause);
        }
        match self.cables[cable].to {
            CableEnd::Node(to) => self.out.push((now, Out::Deliver { to, frame: frame.bytes })),
            CableEnd::Switch(_) if frame.is_control() => {}
            CableEnd::Switch(here) => self.comes_in(now, here, frame),
        }
    }

    /// A frame has come into a switch: it goes to the port of its node, or round the ring.
    fn comes_in(&mut self, now: Duration, here: usize, frame: Carried) {
        // One for all is recorded where it comes in, one for a node where it leaves the last switch.
        if frame.to.is_none() && here == frame.from % self.settings.ring.max(1) {
            self.passes(now, &frame, None);
        }
        self.turns = self.turns.wrapping_add(1);
        let turns = self.turns;
        let later = self.settings.paths.map_or(Duration::ZERO, |paths| paths.by * (turns % paths.count));
        for port in self.ports(here, &frame) {
            self.at(now + later, Happening::Queues(port, frame.clone()));
        }
    }

    /// The cables on which a frame goes on from this switch.
    fn ports(&self, here: usize, frame: &Carried) -> Vec<usize> {
        let switches = self.settings.ring.max(1);
        let is_here = |node: usize| node % switches == here;
        let next = || cable::to_next(self.names.len(), here);
        match frame.to {
            Some(to) if is_here(to) => vec![cable::to_node(to)],
            Some(_) => vec![next()],
            None => {
                let all =
                    (0..self.names.len()).filter(|node| is_here(*node) && *node != frame.from).map(cable::to_node);
                let is_last = (here + 1) % switches == frame.from % switches;
                all.chain((!is_last).then(next)).collect()
            }
        }
    }
}

impl Settings {
    /// How long a frame of this many bytes, without its checksum, keeps a cable busy.
    pub fn time_of(&self, length: usize) -> Duration {
        const SHORTEST: u64 = 60;
        const AROUND: u64 = 24;
        Duration::from_nanos(((length as u64).max(SHORTEST) + AROUND) * 8 * 1_000_000_000 / self.rate)
    }
}
