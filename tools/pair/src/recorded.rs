//! A run's wire between two ends, with its rules, and a run file of all that happens on it: no thread, no file, no clock.

use crate::pair::Carrier;
use crate::{Fault, OURS, PEERS};
use anyhow::Result;
use nic::datagram;
use nic::packet::Packet;
use nic::time::Time;
use roce::Frame;
use run::file::Line;
use run::recorder::Recorder;
use run::sighting::Sighting;
use run::wire::{Ports, Scribe, Wire};
use std::collections::VecDeque;
use std::io::Write;
use std::net::IpAddr;

/// The nodes in the order of the ends, and their addresses.
const NODES: [&str; 2] = ["server", "client"];
const ADDRESSES: [IpAddr; 2] = [OURS, PEERS];
/// Bytes before the IP header.
const ETHERNET: usize = 14;

/// The wire, and the file.
pub struct Recorded<W: Write> {
    wire: Wire,
    inbox: Inbox,
    file: File<W>,
    /// Why the file isn't whole. From then on nothing is carried.
    error: Option<anyhow::Error>,
}

/// What has arrived and nobody has taken yet: at which end, and the frame.
#[derive(Default)]
struct Inbox(VecDeque<(usize, Vec<u8>)>);

struct File<W: Write>(Recorder<W>);

impl<W: Write> Recorded<W> {
    /// Begins the file. What's to happen on the wire is said as in `--wire`.
    ///
    /// # Errors
    /// A word isn't understood, or the file can't be written.
    pub fn begin(out: W, rules: &str) -> Result<Recorded<W>> {
        let wire = Wire::still(rules, &NODES)?;
        let file = File(Recorder::still(out, "pair", &NODES)?);
        Ok(Recorded { wire, inbox: Inbox::default(), file, error: None })
    }

    /// Ends the file.
    ///
    /// # Errors
    /// It couldn't be written, then or before.
    pub fn end(mut self) -> Result<()> {
        self.keep(|wire, _, file| {
            wire.end(file)?;
            file.act(None, Line::END, "the end of the run")
        });
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.file.0.flush()?),
        }
    }

    fn keep(&mut self, act: impl FnOnce(&mut Wire, &mut Inbox, &mut File<W>) -> Result<()>) {
        if self.error.is_none() {
            self.error = act(&mut self.wire, &mut self.inbox, &mut self.file).err();
        }
    }
}

impl<W: Write> Carrier for Recorded<W> {
    fn send(&mut self, from: usize, packet: &Packet) -> Option<Fault> {
        let frame = datagram::ethernet(&datagram::seal(ADDRESSES[from], ADDRESSES[1 - from], packet));
        self.keep(|wire, inbox, file| wire.carry(from, &frame, inbox, file).map(|_| ()));
        None
    }

    fn take(&mut self) -> Option<(usize, Option<Fault>, Packet)> {
        loop {
            let (to, frame) = self.inbox.0.pop_front()?;
            // What is damaged a NIC drops in silence.
            if let Some(packet) = frame.get(ETHERNET..).and_then(datagram::open_ip) {
                return Some((to, None, packet));
            }
        }
    }

    fn due(&self) -> Option<Time> {
        self.wire.due().map(|wait| Time::START + self.wire.now() + wait)
    }

    fn goes_on(&mut self, now: Time) {
        let time = Some(now.since(Time::START));
        (self.wire.time, self.file.0.time) = (time, time);
        self.keep(|wire, inbox, file| wire.let_go(inbox, file).and_then(|()| wire.cross(inbox, file)));
    }

    fn is_empty(&self) -> bool {
        self.inbox.0.is_empty()
    }

    fn says(&mut self, end: usize, program: &str, text: &str) {
        let line = Line { program: program.to_owned(), text: text.to_owned(), ..Line::default() };
        self.keep(|_, _, file| file.line(Some(end), line));
    }
}

impl Ports for Inbox {
    fn target(&mut self, from: usize, sighting: &Sighting<'_>) -> Option<usize> {
        matches!(sighting.frame, Frame::Roce(_)).then_some(1 - from)
    }

    fn all_but(&self, from: usize) -> Vec<usize> {
        vec![1 - from]
    }

    fn send(&mut self, _: usize, to: &[usize], frame: &[u8]) -> Option<usize> {
        self.0.extend(to.iter().map(|to| (*to, frame.to_vec())));
        None
    }

    fn arrives(&mut self, to: usize, frame: Vec<u8>) -> bool {
        self.0.push_back((to, frame));
        true
    }
}

impl<W: Write> Scribe for File<W> {
    fn packet(&mut self, node: usize, sighting: Sighting<'_>, comment: Option<&str>) -> Result<()> {
        self.0.packet(node, sighting, comment)?;
        Ok(())
    }

    fn line(&mut self, node: Option<usize>, line: Line) -> Result<()> {
        self.0.line(node, line)?;
        Ok(())
    }

    fn other(&mut self, name: &str) -> Result<usize> {
        Ok(self.0.node(name)?)
    }

    fn first_trouble(&mut self) -> &mut Option<String> {
        &mut self.0.trouble
    }
}
