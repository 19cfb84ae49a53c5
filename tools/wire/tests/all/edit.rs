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

    /// Index of the `nth` packet (from 0) with this name.
    pub fn find(&self, name: &str, nth: usize) -> usize {
        let named =
            self.0.iter().enumerate().filter(|(_, frame)| packet(&frame.data).is_some_and(|p| p.name() == name));
        named.map(|(index, _)| index).nth(nth).unwrap_or_else(|| panic!("no {name} number {nth}"))
    }

    /// Changes the `nth` packet of a name, and makes its ICRC right again.
    pub fn edit(mut self, name: &str, nth: usize, change: impl FnOnce(&mut [u8])) -> Frames {
        let index = self.find(name, nth);
        change(&mut self.0[index].data);
        seal(&mut self.0[index].data);
        self
    }

    /// Removes the `nth` packet of a name.
    pub fn without(mut self, name: &str, nth: usize) -> Frames {
        let index = self.find(name, nth);
        self.0.remove(index);
        self
    }

    /// Keeps what comes before the `nth` packet of a name.
    pub fn before(mut self, name: &str, nth: usize) -> Frames {
        let index = self.find(name, nth);
        self.0.truncate(index);
        self
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

/// Computes the ICRC again after a change.
pub fn seal(frame: &mut [u8]) {
    let length = usize::from(u16::from_be_bytes([frame[16], frame[17]]));
    let sum = icrc::compute(&frame[14..14 + length - 4], 20).unwrap();
    frame[14 + length - 4..14 + length].copy_from_slice(&sum.to_le_bytes());
}

/// Overwrites bytes.
pub fn put(frame: &mut [u8], at: usize, bytes: &[u8]) {
    frame[at..at + bytes.len()].copy_from_slice(bytes);
}
