//! The tap: tells the runner each packet that is sent and, if asked, each decision.
//!
//! Without privileges nobody can listen on a network interface. But a device knows every byte that it sends. The runner's
//! socket is also the standard output of the programs, and keeps the order: so a log line, the packet that its call caused and
//! the line that the packet caused at the other end come in the order of cause and effect.

use nic::fact::Fact;
use run::exit::Exit;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// What a message is: its first byte.
pub mod kind {
    pub const PACKET: u8 = b'P';
    /// A packet of a device that is not in this run.
    pub const FROM_OUTSIDE: u8 = b'F';
    pub const DECISION: u8 = b'D';
    /// An id listens: our address, in words.
    pub const LISTENS: u8 = b'L';
    /// The program has ended: by itself or killed, and its status or the signal, in words.
    pub const EXIT: u8 = b'X';
    /// A step in virtual time is done, or the node is gone: a [`Stepped`](super::Stepped).
    pub const STEPPED: u8 = b's';
    /// The device has panicked: where, and its words.
    pub const PANIC: u8 = b'!';
    /// What the program prints.
    pub const OUT: u8 = b'o';
    pub const ERROR: u8 = b'e';
}

/// What a node says of a step in virtual time, and at its end, whatever its time is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stepped {
    /// When something is due here next, if nothing happens before; and whether a program has called, or was told something.
    Next { due: Option<Duration>, was_busy: bool },
    /// No program is left on it, and no device.
    Gone,
}

impl Stepped {
    fn encode(self) -> [u8; 9] {
        let (due, flag) = match self {
            Stepped::Next { due, was_busy } => {
                (due.map_or(u64::MAX, |due| due.as_nanos().try_into().unwrap_or(u64::MAX)), was_busy.into())
            }
            Stepped::Gone => (0, 2),
        };
        let mut bytes = [flag; 9];
        bytes[..8].copy_from_slice(&due.to_ne_bytes());
        bytes
    }

    /// Reads what [`Tap::stepped`] has sent.
    pub fn decode(bytes: &[u8]) -> Option<Stepped> {
        let (due, [flag]) = (bytes.len() == 9).then(|| bytes.split_at(8))? else { return None };
        let due = u64::from_ne_bytes(due.try_into().ok()?);
        let due = (due != u64::MAX).then_some(Duration::from_nanos(due));
        Some(if *flag == 2 { Stepped::Gone } else { Stepped::Next { due, was_busy: *flag == 1 } })
    }
}

/// Where what passes is told; perhaps to nobody.
#[derive(Debug, Default)]
pub struct Tap {
    socket: Option<UnixDatagram>,
    /// Our number in the run, with which each message begins.
    pub node: u8,
    /// Decisions are wanted.
    pub talks: bool,
}

impl Tap {
    /// A node's tap to the socket of this name.
    pub fn to(name: &str, node: u8, talks: bool) -> Tap {
        let attempt = || -> io::Result<UnixDatagram> {
            let socket = UnixDatagram::unbound()?;
            socket.connect_addr(&SocketAddr::from_abstract_name(name)?)?;
            Ok(socket)
        };
        Tap { socket: attempt().ok(), node, talks }
    }

    pub fn packet(&self, bytes: &[u8]) {
        self.tell(kind::PACKET, bytes);
    }

    pub fn outside(&self, bytes: &[u8]) {
        self.tell(kind::FROM_OUTSIDE, bytes);
    }

    /// A decision, if anybody listens.
    pub fn say(&self, decision: impl FnOnce() -> Fact) {
        if self.talks {
            self.tell(kind::DECISION, decision().encode().as_bytes());
        }
    }

    /// An id listens.
    pub fn listens(&self, address: std::net::IpAddr) {
        self.tell(kind::LISTENS, address.to_string().as_bytes());
    }

    /// The program has ended.
    pub fn exits(&self, exit: Exit) {
        self.tell(kind::EXIT, format!("{} {}", exit.word(), exit.value()).as_bytes());
    }

    /// A step in virtual time is done.
    pub fn stepped(&self, stepped: Stepped) {
        self.tell(kind::STEPPED, &stepped.encode());
    }

    /// The device itself has panicked.
    pub fn panics(&self, words: &str) {
        self.tell(kind::PANIC, words.as_bytes());
    }

    fn tell(&self, kind: u8, bytes: &[u8]) {
        if let Some(socket) = &self.socket {
            let _ = socket.send(&[&[kind, self.node], bytes].concat());
        }
    }
}
