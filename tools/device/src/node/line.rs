//! The line to the runner of a node whose time is virtual: by it the runner says what time it is, and brings a frame, or nothing.
//! The node does what is due, and says that by its [tap](super::tap).

use nic::time::Time;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

/// A time is this many bytes long: nanoseconds since the begin, in the order of this machine.
const TIME: usize = 8;
const LARGEST: usize = 16 << 10;

/// The node's end.
#[derive(Debug)]
pub struct Line(UnixDatagram);

/// The runner's end.
#[derive(Debug)]
pub struct Rein(UnixDatagram);

/// What time it is; and an Ethernet frame, if one has come.
#[derive(Debug)]
pub struct Step {
    pub time: Time,
    pub frame: Option<Vec<u8>>,
}

/// A line with both ends.
///
/// # Errors
/// What socketpair(2) says.
pub fn pair() -> io::Result<(Rein, Line)> {
    let (ours, theirs) = UnixDatagram::pair()?;
    theirs.set_nonblocking(true)?;
    Ok((Rein(ours), Line(theirs)))
}

impl Rein {
    /// Moves the node's time. False: nobody is there any more.
    pub fn step(&self, time: Duration, frame: &[u8]) -> bool {
        self.0.send(&[&(time.as_nanos() as u64).to_ne_bytes(), frame].concat()).is_ok()
    }
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Line {
    /// What the runner has said; None if that is nothing yet.
    pub fn take(&self) -> Option<Step> {
        let mut bytes = vec![0; LARGEST];
        let length = self.0.recv(&mut bytes).ok()?;
        bytes.truncate(length);
        let frame = bytes.split_off(TIME.min(length));
        let time = u64::from_ne_bytes(bytes.try_into().ok()?);
        let time = Time::START + Duration::from_nanos(time);
        Some(Step { time, frame: Some(frame).filter(|frame| !frame.is_empty()) })
    }
}
