//! The socket that brings all that programs and their devices say.

use anyhow::{Context, Result};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::net::sockopt::set_socket_send_buffer_size;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// Something that a program said, or its device, or that happened to it.
pub struct Report {
    pub node: usize,
    /// One of [`kind`](device::node::tap::kind).
    pub kind: u8,
    pub bytes: Vec<u8>,
}

pub struct Inbox {
    socket: UnixDatagram,
    /// Room for what comes next.
    bytes: Vec<u8>,
    /// For taps.
    pub name: String,
}

impl Inbox {
    /// A socket with a name that no other run has.
    pub fn open() -> Result<Inbox> {
        // Two containers on one network may have processes of the same number.
        let name = format!("rdma-device-{:016x}", RandomState::new().build_hasher().finish());
        let address = SocketAddr::from_abstract_name(&name)?;
        let socket = UnixDatagram::bind_addr(&address).context("cannot make a socket")?;
        socket.set_nonblocking(true)?;
        Ok(Inbox { socket, bytes: vec![0; 1 << 20], name })
    }

    /// What comes next, if it comes in time. What a program prints comes from a stream's name; in all else the first two
    /// bytes say what it is.
    pub fn next(&mut self, wait: Duration) -> Result<Option<Report>> {
        // Not by a time-out of the socket, which the kernel rounds up to its own ticks.
        if !wait.is_zero() {
            let time = Timespec::try_from(wait).ok();
            let _ = poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], time.as_ref());
        }
        let (length, from) = match self.socket.recv_from(&mut self.bytes) {
            Ok(received) => received,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                return Ok(None)
            }
            Err(error) => return Err(error).context("cannot read what the programs say"),
        };
        let bytes = &self.bytes[..length];
        let stream = from.as_abstract_name().and_then(|name| name.strip_prefix(self.name.as_bytes()));
        let (kind, node, bytes) = match (stream, bytes) {
            (Some([kind, node]), _) => (*kind, *node, bytes),
            (_, [kind, node, rest @ ..]) => (*kind, *node, rest),
            _ => return Ok(None),
        };
        Ok(Some(Report { node: node.into(), kind, bytes: bytes.to_vec() }))
    }

    /// A stream for a program to print to: a socket with a name of its own, by which we know it.
    pub fn stream(&self, kind: u8, node: usize) -> Result<OwnedFd> {
        let attempt = || -> io::Result<UnixDatagram> {
            let name = [self.name.as_bytes(), &[kind, node as u8]].concat();
            let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?)?;
            socket.connect_addr(&SocketAddr::from_abstract_name(&self.name)?)?;
            // What is written at once is one message, and must fit: as much as the kernel allows, 416 KiB unless an
            // administrator has changed it (socket(7), wmem_max).
            set_socket_send_buffer_size(&socket, 1 << 20)?;
            Ok(socket)
        };
        Ok(attempt().context("cannot make a socket")?.into())
    }
}
