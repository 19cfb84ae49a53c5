//! The machines' network cards, which hang on the wire.
//!
//! They learn which address is behind which port; what nobody knows is for all. Nothing goes on by itself: the session takes each
//! frame and has the [wire](run::wire) carry it.

use anyhow::{Context, Result};
use run::sighting::Sighting;
use run::wire::Ports;
use std::collections::{HashMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

/// A frame longer than this is not one: the stream has lost its beat.
const MAX_FRAME: usize = 65_536 + 14;
/// Bytes that may wait for a machine that does not read. A real switch also drops frames when its buffer is full.
const MAX_WAITING: usize = 4 << 20;
/// So much is read from one card at a time.
const MAX_READ: usize = 1 << 20;

#[derive(Debug, Default)]
pub struct Cards {
    ports: Vec<Port>,
    /// Which port an address was last seen on.
    known: HashMap<[u8; 6], usize>,
}

#[derive(Debug)]
struct Port {
    card: UnixStream,
    incoming: Vec<u8>,
    /// So much of it has been taken.
    taken: usize,
    outgoing: VecDeque<u8>,
}

impl Cards {
    /// Plugs a machine in, whose card has this address. More than two machines know each other's: then the first frame for one
    /// may come before it has sent any.
    pub fn plug(&mut self, card: UnixStream, address: [u8; 6]) -> Result<()> {
        card.set_nonblocking(true).context("cannot prepare a network card")?;
        self.known.insert(address, self.ports.len());
        self.ports.push(Port { card, incoming: Vec::new(), taken: 0, outgoing: VecDeque::new() });
        Ok(())
    }

    /// The sockets to wait for, and whether frames wait to be written to them.
    pub fn streams(&self) -> impl Iterator<Item = (&UnixStream, bool)> {
        self.ports.iter().map(|port| (&port.card, !port.outgoing.is_empty()))
    }

    /// Reads what a port has sent, without waiting. Call [`Cards::take`] for its frames.
    pub fn read(&mut self, port: usize) {
        let port = &mut self.ports[port];
        port.incoming.drain(..std::mem::take(&mut port.taken));
        let mut bytes = [0; 65_536];
        while port.incoming.len() < MAX_READ {
            // An end or an error means that the machine is gone, which its console also shows.
            let Ok(count @ 1..) = port.card.read(&mut bytes) else { return };
            port.incoming.extend_from_slice(&bytes[..count]);
        }
    }

    /// The next whole frame that a port has sent.
    pub fn take(&mut self, port: usize) -> Result<Option<Vec<u8>>> {
        let port = &mut self.ports[port];
        let incoming = &port.incoming[port.taken..];
        let Some(header) = incoming.get(..4) else { return Ok(None) };
        let length = u32::from_be_bytes([header[0], header[1], header[2], header[3]]) as usize;
        anyhow::ensure!(length <= MAX_FRAME, "a network card sent {length} bytes, which is too long for a frame");
        if incoming.len() < 4 + length {
            return Ok(None);
        }
        let frame = incoming[4..4 + length].to_vec();
        port.taken += 4 + length;
        Ok(Some(frame))
    }

    /// Writes what waits, as far as the machines take it.
    pub fn flush(&mut self) {
        self.ports.iter_mut().for_each(Port::flush);
    }
}

impl Ports for Cards {
    fn target(&mut self, from: usize, sighting: &Sighting<'_>) -> Option<usize> {
        self.known.insert(address(sighting.data, 6)?, from);
        self.known.get(&address(sighting.data, 0)?).copied()
    }

    fn all_but(&self, from: usize) -> Vec<usize> {
        (0..self.ports.len()).filter(|port| *port != from).collect()
    }

    fn send(&mut self, from: usize, to: &[usize], frame: &[u8]) -> Option<usize> {
        // Nobody gets a part of a header, or what it has sent itself.
        let reached = to.iter().copied().filter(|port| *port != from && address(frame, 6).is_some());
        reached.fold(None, |full, port| full.or((!self.ports[port].queue(frame)).then_some(port)))
    }

    fn arrives(&mut self, to: usize, frame: Vec<u8>) -> bool {
        self.ports[to].queue(&frame)
    }
}

impl Port {
    /// False if there is no room for a frame.
    fn queue(&mut self, frame: &[u8]) -> bool {
        if self.outgoing.len() + frame.len() > MAX_WAITING {
            return false;
        }
        self.outgoing.extend((frame.len() as u32).to_be_bytes());
        self.outgoing.extend(frame);
        self.flush();
        true
    }

    fn flush(&mut self) {
        while !self.outgoing.is_empty() {
            match self.card.write(self.outgoing.as_slices().0) {
                Ok(count) => drop(self.outgoing.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // The machine is gone; nobody waits for these frames.
                Err(_) => self.outgoing.clear(),
            }
        }
    }
}

/// An Ethernet address within a frame: the destination at 0, the source at 6.
fn address(frame: &[u8], at: usize) -> Option<[u8; 6]> {
    frame.get(at..at + 6)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use run::sighting::Lookout;

    const A: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const B: [u8; 6] = [2, 0, 0, 0, 0, 2];
    const ALL: [u8; 6] = [0xff; 6];

    fn cards() -> (Cards, Vec<UnixStream>) {
        let mut cards = Cards::default();
        let machines = (0..3).map(|index| {
            let (card, machine) = UnixStream::pair().unwrap();
            machine.set_nonblocking(true).unwrap();
            cards.plug(card, [4, 0, 0, 0, 0, index]).unwrap();
            machine
        });
        let machines = machines.collect();
        (cards, machines)
    }

    fn frame(destination: [u8; 6], source: [u8; 6]) -> Vec<u8> {
        [&destination[..], &source, b"\x08\x00payload"].concat()
    }

    fn target(cards: &mut Cards, from: usize, frame: &[u8]) -> Option<usize> {
        cards.target(from, &Lookout::default().live(None, frame))
    }

    /// As the wire does it.
    fn forward(cards: &mut Cards, from: usize, frame: &[u8]) -> Option<usize> {
        let to = target(cards, from, frame).map_or_else(|| cards.all_but(from), |to| vec![to]);
        cards.send(from, &to, frame)
    }

    fn receives(machine: &mut UnixStream) -> bool {
        matches!(machine.read(&mut [0; 2048]), Ok(1..))
    }

    #[test]
    fn unknown_addresses_are_flooded_and_known_ones_are_not() {
        let (mut cards, mut machines) = cards();
        assert_eq!(target(&mut cards, 0, &frame([4, 0, 0, 0, 0, 2], A)), Some(2), "it has sent nothing yet");
        for (port, frame, receivers) in [
            (0, frame(ALL, A), [false, true, true]),
            (1, frame(A, B), [true, false, false]),
            (0, frame(A, A), [false; 3]),
            (2, b"too short".to_vec(), [false; 3]),
        ] {
            forward(&mut cards, port, &frame);
            assert_eq!(machines.iter_mut().map(receives).collect::<Vec<_>>(), receivers);
        }
    }

    #[test]
    fn a_machine_that_does_not_read_loses_frames_but_stops_nobody() {
        let (mut cards, machines) = cards();
        let large = [&frame(ALL, A)[..], &[0; 9000]].concat();
        assert!((0..2000).any(|_| forward(&mut cards, 0, &large) == Some(1)));
        assert!(cards.streams().nth(1).unwrap().1, "frames wait");
        // Closing it would not do: a program that another test starts at this moment may hold a copy until its exec.
        machines[1].shutdown(std::net::Shutdown::Both).unwrap();
        cards.flush();
        assert!(!cards.streams().nth(1).unwrap().1, "nothing waits for a machine that is gone");
    }

    #[test]
    fn a_frame_is_taken_when_it_is_whole_and_nonsense_is_an_error() {
        let (mut cards, mut machines) = cards();
        let mut taken = |bytes: &[u8]| {
            machines[0].write_all(bytes).unwrap();
            cards.read(0);
            cards.take(0)
        };
        assert_eq!(taken(&[0, 0, 0, 2, 9]).unwrap(), None);
        assert_eq!(taken(&[8]).unwrap(), Some(vec![9, 8]));
        assert!(taken(&[0xff; 8]).is_err());
    }
}
