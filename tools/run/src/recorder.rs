//! Writes a run file while the run goes on: frames and lines get their numbers and times here, in the order in which they come.

use crate::calls::Calls;
use crate::file::{Event, Line};
use crate::pcapng::{Section, Writer};
use crate::sighting::{Record, Sighting};
use crate::source::Sources;
use roce::LinkType;
use std::fmt;
use std::io::{self, Write};
use std::time::{Duration, Instant, SystemTime};

/// A run file that is being written.
#[derive(Debug)]
pub struct Recorder<W: Write> {
    capture: Writer<W>,
    /// The nodes' names, in the order of their interfaces.
    pub nodes: Vec<String>,
    /// Events so far.
    number: u64,
    /// What has crossed the wire so far.
    pub counts: Counts,
    /// The first thing that has made the run no good.
    pub trouble: Option<String>,
    sources: Sources,
    /// When it began, since 1970; and by the clock that has counted from then on, if one does.
    begun: (Duration, Option<Instant>),
    /// How long after its begin it is, if time is virtual.
    pub time: Option<Duration>,
}

/// How much has crossed the wire.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// The names of RoCE packets and iWARP units, each with how often it occurred, in the order of their first occurrence.
    pub packets: Vec<(&'static str, usize)>,
    /// Frames with neither: ARP, other TCP and the like.
    pub others: usize,
    /// System calls of the programs, as far as they are told.
    pub calls: Calls,
}

impl Counts {
    fn count(&mut self, node: usize, sighting: &Sighting) {
        let units = sighting.iwarp().map(|brought| brought.units.as_slice()).unwrap_or_default();
        if let Some(packet) = sighting.packet() {
            self.calls.packet(node, packet);
            self.name(packet.told());
        } else if units.is_empty() {
            self.others += 1;
        }
        units.iter().for_each(|unit| self.name(unit.kind.name()));
    }

    fn name(&mut self, told: &'static str) {
        match self.packets.iter_mut().find(|(name, _)| *name == told) {
            Some((_, count)) => *count += 1,
            None => self.packets.push((told, 1)),
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts: Vec<String> = self.packets.iter().map(|(name, count)| format!("{count} {name}")).collect();
        f.write_str(&if counts.is_empty() { "no RoCE packets".to_owned() } else { counts.join(", ") })?;
        match self.others {
            0 => Ok(()),
            others => write!(f, "; and {others} other frames (ARP, TCP, pauses and the like)"),
        }
    }
}

impl<W: Write> Recorder<W> {
    /// Begins a file with an interface for each node. `application` is the program that writes it. From now on readers can open the
    /// file, even if that program is killed before anything happens.
    pub fn begin(out: W, application: &'static str, nodes: &[&str]) -> io::Result<Self> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Ok(Self { begun: (now, Some(Instant::now())), time: None, ..Self::still(out, application, nodes)? })
    }

    /// The same without a clock: the file begins with 1970, and each time is one that it's given.
    pub fn still(out: W, application: &'static str, nodes: &[&str]) -> io::Result<Self> {
        let section = Section { application: Some(application), ..Section::default() };
        let mut capture = Writer::new(out, &section)?;
        for name in nodes {
            capture.interface(LinkType::ETHERNET, Some(name))?;
        }
        capture.flush()?;
        let nodes = nodes.iter().map(|name| (*name).to_owned()).collect();
        let (counts, sources, begun) = (Counts::default(), Sources::new(), Default::default());
        Ok(Self { capture, nodes, number: 0, counts, trouble: None, sources, begun, time: Some(Duration::ZERO) })
    }

    /// The number of the node of this name, which gets an interface now if it has none.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn node(&mut self, name: &str) -> io::Result<usize> {
        if let Some(number) = self.nodes.iter().position(|node| node == name) {
            return Ok(number);
        }
        self.capture.interface(LinkType::ETHERNET, Some(name))?;
        self.nodes.push(name.to_owned());
        Ok(self.nodes.len() - 1)
    }

    /// Writes a frame that a node has sent, and what became of it if it was not simply delivered. The sighting is
    /// [`Lookout::live`](crate::sighting::Lookout::live)'s, and gets its number, node and time here.
    pub fn packet<'a>(
        &'a mut self,
        node: usize,
        sighting: Sighting<'a>,
        comment: Option<&'a str>,
    ) -> io::Result<Event<'a>> {
        let time_ns = sighting.time_ns.unwrap_or_else(|| self.time_ns());
        self.number += 1;
        self.counts.count(node, &sighting);
        self.capture.packet(node as u32, time_ns, sighting.data, sighting.length, comment)?;
        let (number, node) = (self.number, self.nodes.get(node).map(String::as_str));
        let record = Record { number, node, time_ns: Some(time_ns), comment, ..sighting.record };
        Ok(Event::Packet(Sighting { record, ..sighting }))
    }

    /// Writes a line about a node, or about the run as a whole.
    pub fn line(&mut self, node: Option<usize>, mut line: Line) -> io::Result<Event<'static>> {
        self.number += 1;
        if let Some(node) = node.filter(|_| line.fact() == Some("call")) {
            self.counts.calls.call(node);
        }
        line.source.iter_mut().for_each(|source| self.sources.fill(source));
        let name = node.and_then(|node| self.nodes.get(node)).cloned().unwrap_or_default();
        let line = Line { number: self.number, time_us: self.now().as_micros() as u64, node: name, ..line };
        self.capture.line(&line)?;
        Ok(Event::Line(line))
    }

    /// Brings all that was written to the file.
    pub fn flush(&mut self) -> io::Result<()> {
        self.capture.flush()
    }

    /// What the file is written to.
    pub fn out(&mut self) -> &mut W {
        self.capture.out()
    }

    /// The number of the last frame or line.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// What its clock says, in nanoseconds.
    pub fn time_ns(&self) -> u64 {
        self.now().as_nanos() as u64
    }

    /// Since 1970, by a clock that does not jump. Virtual time begins with a second: so the times of two runs can be compared.
    fn now(&self) -> Duration {
        match (self.time, self.begun) {
            (Some(time), (begun, _)) => Duration::from_secs(begun.as_secs()) + time,
            (None, (begun, clock)) => begun + clock.map_or(Duration::ZERO, |clock| clock.elapsed()),
        }
    }
}
