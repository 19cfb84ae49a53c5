//! The wire: an Ethernet switch whose ports are the machines' network cards.
//!
//! It learns which address is behind which port, and floods what it does not know. It forwards nothing by
//! itself: the caller takes each frame, looks at it, and hands it on.

use anyhow::{Context, Result};
use std::collections::{HashMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

/// A frame longer than this is not one: the stream has lost its beat.
const MAX_FRAME: usize = 65_536 + 14;
/// Bytes that may wait for a machine that does not read. A real switch drops frames, too, when its buffer is full.
const MAX_WAITING: usize = 4 << 20;
/// So much is read from one card at a time.
const MAX_READ: usize = 1 << 20;

#[derive(Debug, Default)]
pub struct Switch {
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
    is_cut: bool,
}

/// Why a frame did not get to a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// Too much waits for its machine already.
    Full,
    /// Its cable is cut, or that of the frame's sender.
    Cut,
}

impl Switch {
    /// Plugs a machine in, whose card has this address. More than two machines know each other's: then the first frame for one
    /// may come before it has sent any.
    pub fn plug(&mut self, card: UnixStream, address: [u8; 6]) -> Result<()> {
        card.set_nonblocking(true).context("cannot prepare a network card")?;
        self.known.insert(address, self.ports.len());
        self.ports.push(Port { card, incoming: Vec::new(), taken: 0, outgoing: VecDeque::new(), is_cut: false });
        Ok(())
    }

    /// The sockets to wait for, and whether frames wait to be written to them.
    pub fn streams(&self) -> impl Iterator<Item = (&UnixStream, bool)> {
        self.ports.iter().map(|port| (&port.card, !port.outgoing.is_empty()))
    }

    /// Reads what a port has sent, without waiting. Call [`Switch::take`] for its frames.
    pub fn read(&mut self, port: usize) {
        let port = &mut self.ports[port];
        port.incoming.drain(..std::mem::take(&mut port.taken));
        let mut bytes = [0; 65_536];
        while port.incoming.len() < MAX_READ {
            // An end or an error means that the machine is gone; its console tells, too.
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
        anyhow::ensure!(length <= MAX_FRAME, "a network card sent a frame of {length} bytes, which is none");
        if incoming.len() < 4 + length {
            return Ok(None);
        }
        let frame = incoming[4..4 + length].to_vec();
        port.taken += 4 + length;
        Ok(Some(frame))
    }

    /// The port that a frame is for; None if it is for all, or nobody knows.
    pub fn target(&self, frame: &[u8]) -> Option<usize> {
        self.known.get(&address(frame, 0)?).copied()
    }

    /// Sends a frame that came from `port` to whom it concerns, and gives the ports where it was lost.
    pub fn forward(&mut self, port: usize, frame: &[u8]) -> Vec<(usize, Lost)> {
        let Some(source) = address(frame, 6) else { return Vec::new() };
        self.known.insert(source, port);
        if self.ports[port].is_cut {
            return vec![(port, Lost::Cut)];
        }
        let target = self.target(frame);
        let is_meant = |index: usize| index != port && target.map_or(true, |target| target == index);
        let meant = self.ports.iter_mut().enumerate().filter(|(index, _)| is_meant(*index));
        meant.filter_map(|(index, port)| port.queue(frame).map(|lost| (index, lost))).collect()
    }

    /// Sends a frame out of a port, and says why it is lost there, if it is.
    pub fn deliver(&mut self, port: usize, frame: &[u8]) -> Option<Lost> {
        self.ports[port].queue(frame)
    }

    pub fn is_cut(&self, port: usize) -> bool {
        self.ports[port].is_cut
    }

    /// Cuts a port's cable: from now on nothing gets in or out there.
    pub fn cut(&mut self, port: usize) {
        self.ports[port].is_cut = true;
    }

    /// Writes what waits, as far as the machines take it.
    pub fn flush(&mut self) {
        self.ports.iter_mut().for_each(Port::flush);
    }
}

impl Port {
    /// Says why the frame is lost, if it is.
    fn queue(&mut self, frame: &[u8]) -> Option<Lost> {
        if self.is_cut {
            return Some(Lost::Cut);
        }
        if self.outgoing.len() + frame.len() > MAX_WAITING {
            return Some(Lost::Full);
        }
        self.outgoing.extend((frame.len() as u32).to_be_bytes());
        self.outgoing.extend(frame);
        self.flush();
        None
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

    const A: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const B: [u8; 6] = [2, 0, 0, 0, 0, 2];
    const ALL: [u8; 6] = [0xff; 6];

    fn switch() -> (Switch, Vec<UnixStream>) {
        let mut switch = Switch::default();
        let machines = (0..3).map(|index| {
            let (card, machine) = UnixStream::pair().unwrap();
            machine.set_nonblocking(true).unwrap();
            switch.plug(card, [4, 0, 0, 0, 0, index]).unwrap();
            machine
        });
        let machines = machines.collect();
        (switch, machines)
    }

    fn frame(destination: [u8; 6], source: [u8; 6]) -> Vec<u8> {
        [&destination[..], &source, b"\x08\x00payload"].concat()
    }

    fn receives(machine: &mut UnixStream) -> bool {
        matches!(machine.read(&mut [0; 2048]), Ok(1..))
    }

    #[test]
    fn unknown_addresses_are_flooded_and_known_ones_are_not() {
        let (mut switch, mut machines) = switch();
        assert_eq!(switch.target(&frame([4, 0, 0, 0, 0, 2], A)), Some(2), "it has sent nothing yet");
        for (port, frame, receivers) in [
            (0, frame(ALL, A), [false, true, true]),
            (1, frame(A, B), [true, false, false]),
            (0, frame(A, A), [false; 3]),
            (2, b"too short".to_vec(), [false; 3]),
        ] {
            switch.forward(port, &frame);
            assert_eq!(machines.iter_mut().map(receives).collect::<Vec<_>>(), receivers);
        }
    }

    #[test]
    fn nothing_passes_a_cable_that_is_cut() {
        let (mut switch, mut machines) = switch();
        switch.forward(0, &frame(ALL, A));
        machines.iter_mut().map(receives).for_each(drop);
        switch.cut(0);
        for (port, frame) in [(0, frame(ALL, A)), (1, frame(A, B)), (1, frame(ALL, B))] {
            assert_eq!(switch.forward(port, &frame), [(0, Lost::Cut)]);
        }
        assert_eq!(machines.iter_mut().map(receives).collect::<Vec<_>>(), [false, false, true]);
    }

    #[test]
    fn a_machine_that_does_not_read_loses_frames_but_stops_nobody() {
        let (mut switch, machines) = switch();
        let large = [&frame(ALL, A)[..], &[0; 9000]].concat();
        assert!((0..2000).any(|_| switch.forward(0, &large) == [(1, Lost::Full), (2, Lost::Full)]));
        assert!(switch.streams().nth(1).unwrap().1, "frames wait");
        // Closing it would not do: a program that another test starts at this moment may hold a copy until its exec.
        machines[1].shutdown(std::net::Shutdown::Both).unwrap();
        switch.flush();
        assert!(!switch.streams().nth(1).unwrap().1, "nothing waits for a machine that is gone");
    }

    #[test]
    fn a_frame_is_taken_when_it_is_whole_and_nonsense_is_an_error() {
        let (mut switch, mut machines) = switch();
        let mut taken = |bytes: &[u8]| {
            machines[0].write_all(bytes).unwrap();
            switch.read(0);
            switch.take(0)
        };
        assert_eq!(taken(&[0, 0, 0, 2, 9]).unwrap(), None);
        assert_eq!(taken(&[8]).unwrap(), Some(vec![9, 8]));
        assert!(taken(&[0xff; 8]).is_err());
    }
}
