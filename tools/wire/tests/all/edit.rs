//! Bundled captures, changed frame by frame.

use crate::files::{self, packet, Piece, Recorded};
use roce::icrc;
use run::capture::Reader;
use wire::compare::{compare, Capture, Report};

/// Where the BTH begins in an Ethernet frame with IPv4, as the lab's are.
pub const BTH: usize = 14 + 20 + 8;
/// Where the headers after the BTH begin.
pub const EXTENDED: usize = BTH + 12;
/// Where a CM message begins: behind BTH, DETH and MAD header.
pub const CM: usize = EXTENDED + 8 + 24;

/// A capture's frames.
#[derive(Clone)]
pub struct Frames(pub Vec<Recorded>);

impl Frames {
    /// The capture of a lesson: `04_rdma_write`.
    pub fn bundled(name: &str) -> Frames {
        Frames(files::frames(&std::fs::read(files::bundled(name)).unwrap()))
    }

    /// Frames of one's own making, without comments.
    pub fn of(frames: Vec<Vec<u8>>) -> Frames {
        Frames(frames.into_iter().map(Recorded::of).collect())
    }

    /// Index of the packet with this name; `NAME #2` is the second one.
    pub fn find(&self, name: &str) -> usize {
        let (kind, nth) = name.split_once(" #").map_or((name, 1), |(kind, nth)| (kind, nth.parse().unwrap()));
        let is_it = |at: &usize| packet(&self.0[*at].data).is_some_and(|packet| packet.name() == kind);
        (0..self.0.len()).filter(is_it).nth(nth - 1).unwrap_or_else(|| panic!("no {name}"))
    }

    /// The bytes of a packet.
    pub fn copy(&self, name: &str) -> Vec<u8> {
        self.0[self.find(name)].data.clone()
    }

    /// Changes a packet, and makes its ICRC right again.
    pub fn edit(mut self, name: &str, change: impl FnOnce(&mut [u8])) -> Frames {
        let at = self.find(name);
        let frame = &mut self.0[at].data;
        change(frame);
        let end = 14 + usize::from(u16::from_be_bytes([frame[16], frame[17]]));
        let sum = icrc::compute(&frame[14..end - 4], 20).unwrap();
        frame[end - 4..end].copy_from_slice(&sum.to_le_bytes());
        self
    }

    /// Overwrites bytes of a packet.
    pub fn put(self, name: &str, at: usize, bytes: &[u8]) -> Frames {
        self.edit(name, |frame| frame[at..at + bytes.len()].copy_from_slice(bytes))
    }

    /// Turns bits of a packet.
    pub fn flip(self, name: &str, at: usize, bits: u8) -> Frames {
        self.edit(name, |frame| frame[at] ^= bits)
    }

    /// Removes a packet.
    pub fn without(mut self, name: &str) -> Frames {
        self.0.remove(self.find(name));
        self
    }

    /// Keeps what comes before a packet.
    pub fn before(mut self, name: &str) -> Frames {
        self.0.truncate(self.find(name));
        self
    }

    /// A packet comes this many times more.
    pub fn again(self, name: &str, times: usize) -> Frames {
        let (at, copy) = (self.find(name), self.copy(name));
        self.insert(at, vec![copy; times])
    }

    /// Inserts copies of frames before the frame at `index`.
    pub fn insert(mut self, index: usize, frames: Vec<Vec<u8>>) -> Frames {
        self.0.splice(index..index, frames.into_iter().map(Recorded::of));
        self
    }

    /// As a file.
    pub fn file(&self) -> Vec<u8> {
        files::written(self.0.iter().cloned().map(Piece::Frame))
    }

    pub fn capture(&self) -> Capture {
        Capture::read(&mut Reader::new(self.file().as_slice()).unwrap()).unwrap()
    }

    /// Compares with a reference.
    pub fn against(&self, reference: &Frames) -> Report {
        compare(&self.capture(), &reference.capture())
    }
}
