//! The wire between the two nodes, with a run's rules, and the run file of all that happens on it: no thread, no file, no clock.

use crate::script::NODES;
use anyhow::Result;
use nic::datagram;
use nic::fact::Fact;
use nic::packet::Packet;
use roce::Frame;
use run::file::Line;
use run::recorder::Recorder;
use run::rules;
use run::sighting::Sighting;
use run::wire::{Ports, Scribe, Wire};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// The server's address and the client's: those of the lab.
pub const ADDRESSES: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::new(10, 47, 91, 1)), IpAddr::V4(Ipv4Addr::new(10, 47, 91, 2))];
/// How long a packet is on its way. It's about what a switch and a few metres of fiber take, and short beside every timer, as it
/// is in a data center.
pub const LATENCY: Duration = Duration::from_micros(3);
/// A link of 10 Gbit/s: how long a byte takes to leave, in picoseconds.
const PICOSECONDS_PER_BYTE: u64 = 800;
/// Bytes before the IP header.
const ETHERNET: usize = 14;

/// How long a packet of this many bytes occupies the link that it's sent on.
pub fn leaves_in(bytes: u64) -> Duration {
    Duration::from_nanos((bytes * PICOSECONDS_PER_BYTE).div_ceil(1000))
}

/// The wire, and the file.
pub struct Recorded {
    wire: Wire,
    air: Air,
    file: File,
    facts: Vec<(usize, Fact)>,
    /// Why the file isn't whole. From then on nothing is carried.
    error: Option<anyhow::Error>,
}

/// A packet that was sent, and what became of it.
#[derive(Clone, Debug)]
pub struct Flight {
    /// The number of its frame in the run file.
    pub frame: u64,
    /// Which node has sent it.
    pub from: usize,
    /// When.
    pub sent: Duration,
    /// When it arrives: never if it's lost, twice if it's doubled.
    pub arrives: Vec<Duration>,
    /// Its name, as rules know it.
    pub name: &'static str,
    /// How many of that name this node had sent by then, with this one.
    pub nth: usize,
    /// Whether it arrives with a checksum that doesn't fit.
    pub is_damaged: bool,
    /// Whether a rule has held it back.
    pub was_held: bool,
    /// What's on the wire.
    bytes: Vec<u8>,
    /// Whether a rule holds it back.
    is_held: bool,
}

/// What comes out at the other end.
#[derive(Debug)]
pub enum Arrival {
    /// A packet that's whole.
    Packet(Box<Packet>),
    /// A packet whose checksum doesn't fit, and its length in bytes.
    Damaged(usize),
}

/// What's under way.
#[derive(Default)]
struct Air {
    now: Duration,
    /// In the order of their arrival: when, at which node, and the frame.
    frames: VecDeque<(Duration, usize, Vec<u8>)>,
    flights: Vec<Flight>,
    /// How many packets of which name each node has sent.
    names: [Vec<(&'static str, usize)>; 2],
    /// The packet that's being sent right now.
    sending: Option<usize>,
}

struct File {
    recorder: Recorder<Vec<u8>>,
    /// When each event happened, by its number in the file, from 1.
    times: Vec<Duration>,
}

/// What's left of a run.
pub struct Record {
    /// The run file.
    pub file: Vec<u8>,
    /// All packets that were sent.
    pub flights: Vec<Flight>,
    /// When each event of the file happened.
    pub times: Vec<Duration>,
    /// What the NICs have noted: which of them, and what.
    pub facts: Vec<(usize, Fact)>,
}

impl Recorded {
    /// Begins the file. What's to happen on the wire is said as in `--wire`.
    ///
    /// # Errors
    /// A word isn't understood.
    pub fn begin(rules: &str) -> Result<Recorded> {
        let mut wire = Wire::still(rules, &NODES)?;
        wire.time = Some(Duration::ZERO);
        let recorder = Recorder::still(Vec::new(), "workbench", &NODES)?;
        Ok(Recorded {
            wire,
            air: Air::default(),
            file: File { recorder, times: Vec::new() },
            facts: Vec::new(),
            error: None,
        })
    }

    /// Ends the file.
    ///
    /// # Errors
    /// It couldn't be written, then or before.
    pub fn end(mut self) -> Result<Record> {
        self.keep(|wire, _, file| {
            wire.end(file)?;
            file.act(None, Line::END, "the end of the run")
        });
        if let Some(error) = self.error {
            return Err(error);
        }
        self.file.recorder.flush()?;
        let file = std::mem::take(self.file.recorder.out());
        Ok(Record { file, flights: self.air.flights, times: self.file.times, facts: self.facts })
    }

    fn keep(&mut self, act: impl FnOnce(&mut Wire, &mut Air, &mut File) -> Result<()>) {
        if self.error.is_none() {
            self.error = act(&mut self.wire, &mut self.air, &mut self.file).err();
        }
    }

    /// Packets that were sent so far.
    pub fn sent(&self) -> usize {
        self.air.flights.len()
    }

    /// The number of the last event.
    pub fn number(&self) -> u64 {
        self.file.recorder.number()
    }

    /// A node sends a packet.
    pub fn send(&mut self, from: usize, packet: &Packet) {
        let frame = datagram::ethernet(&datagram::seal(ADDRESSES[from], ADDRESSES[1 - from], packet));
        self.keep(|wire, air, file| {
            let frame_number = file.recorder.number() + 1;
            let carried = wire.carry(from, &frame, air, file);
            if let Some(flight) = air.sending.take().and_then(|at| air.flights.get_mut(at)) {
                flight.frame = frame_number;
                flight.is_held = carried.as_ref().is_ok_and(|carried| carried.waits);
                flight.was_held = flight.is_held;
            }
            carried.map(|_| ())
        });
    }

    /// What has arrived by now and nobody has taken yet: at which node, and what.
    pub fn take(&mut self) -> Option<(usize, Arrival)> {
        let now = self.air.now;
        self.air.frames.front().filter(|(at, ..)| *at <= now)?;
        let (_, to, frame) = self.air.frames.pop_front()?;
        let packet = frame.get(ETHERNET..).and_then(datagram::open_ip);
        let arrival = packet.map_or(Arrival::Damaged(frame.len()), |packet| Arrival::Packet(Box::new(packet)));
        Some((to, arrival))
    }

    /// When something happens on it by itself.
    pub fn due(&self) -> Option<Duration> {
        let own = self.wire.due().map(|wait| self.wire.now() + wait);
        self.air.frames.front().map(|(at, ..)| *at).into_iter().chain(own).min()
    }

    /// It's this time now.
    pub fn goes_on(&mut self, now: Duration) {
        (self.wire.time, self.file.recorder.time, self.air.now) = (Some(now), Some(now), now);
        self.keep(|wire, air, file| wire.let_go(air, file).and_then(|()| wire.cross(air, file)));
    }

    /// A node's NIC notes something.
    pub fn notes(&mut self, node: usize, fact: Fact) {
        self.says(Some(node), Line::of_device(&fact.encode()));
        self.facts.push((node, fact));
    }

    /// A node, or the run as a whole, says something.
    pub fn says(&mut self, node: Option<usize>, line: Line) {
        self.keep(|_, _, file| file.line(node, line));
    }
}

impl Air {
    /// A frame comes out at a node after a while.
    fn put(&mut self, after: Duration, to: usize, frame: &[u8]) {
        let at = self.now + after;
        // It's one that was held back, or that comes out of a switch: these are known by their bytes. Or it's the one that's being
        // sent, whole or damaged. If it could be both, the one that's being sent goes first.
        let is_new =
            self.sending.and_then(|sending| self.flights.get(sending)).is_some_and(|new| new.arrives.is_empty());
        let is_it = |flight: &Flight| flight.from != to && transport(&flight.bytes) == transport(frame);
        let held = self.flights.iter().position(|flight| flight.is_held && is_it(flight)).filter(|_| !is_new);
        let crosses = || self.flights.iter().rposition(|flight| flight.arrives.is_empty() && is_it(flight));
        let known = held.or(self.sending).or_else(crosses);
        if let Some(flight) = known.and_then(|known| self.flights.get_mut(known)) {
            flight.arrives.push(at);
            flight.is_held = false;
            flight.is_damaged |= transport(&flight.bytes) != transport(frame);
        }
        let place = self.frames.iter().position(|(other, ..)| *other > at).unwrap_or(self.frames.len());
        self.frames.insert(place, (at, to, frame.to_vec()));
    }
}

/// What a switch leaves as it is: the packet behind Ethernet, IP and UDP.
fn transport(frame: &[u8]) -> &[u8] {
    /// IPv4 without options, and UDP.
    const IP_AND_UDP: usize = 28;
    frame.get(ETHERNET + IP_AND_UDP..).unwrap_or_default()
}

impl Ports for Air {
    fn target(&mut self, from: usize, sighting: &Sighting<'_>) -> Option<usize> {
        let packet = sighting.packet()?;
        let names = &mut self.names[from];
        let mut own: Vec<&'static str> = rules::names(packet).collect();
        own.dedup();
        for name in own {
            match names.iter_mut().find(|(known, _)| *known == name) {
                Some((_, count)) => *count += 1,
                None => names.push((name, 1)),
            }
        }
        let name = rules::usual_name(packet);
        let nth = names.iter().find(|(known, _)| *known == name).map_or(0, |(_, count)| *count);
        let (bytes, sent) = (sighting.data.to_vec(), self.now);
        self.sending = Some(self.flights.len());
        self.flights.push(Flight {
            frame: 0,
            from,
            sent,
            arrives: Vec::new(),
            name,
            nth,
            is_damaged: false,
            was_held: false,
            bytes,
            is_held: false,
        });
        matches!(sighting.frame, Frame::Roce(_)).then_some(1 - from)
    }

    fn all_but(&self, from: usize) -> Vec<usize> {
        vec![1 - from]
    }

    fn send(&mut self, _: usize, to: &[usize], frame: &[u8]) -> Option<usize> {
        to.iter().for_each(|to| self.put(LATENCY, *to, frame));
        None
    }

    fn arrives(&mut self, to: usize, frame: Vec<u8>) -> bool {
        self.put(Duration::ZERO, to, &frame);
        true
    }
}

impl File {
    fn note(&mut self) {
        self.times.push(self.recorder.time.unwrap_or_default());
    }
}

impl Scribe for File {
    fn packet(&mut self, node: usize, sighting: Sighting<'_>, comment: Option<&str>) -> Result<()> {
        self.recorder.packet(node, sighting, comment)?;
        self.note();
        Ok(())
    }

    fn line(&mut self, node: Option<usize>, line: Line) -> Result<()> {
        self.recorder.line(node, line)?;
        self.note();
        Ok(())
    }

    fn other(&mut self, name: &str) -> Result<usize> {
        Ok(self.recorder.node(name)?)
    }

    fn first_trouble(&mut self) -> &mut Option<String> {
        &mut self.recorder.trouble
    }
}
