//! The socket that brings all that programs and their devices say.

use anyhow::{Context, Result};
use device::rim::tap;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Something that a program said, or its device, or that happened to it.
pub struct Message {
    pub node: usize,
    /// One of [`tap::kind`].
    pub kind: u8,
    pub bytes: Vec<u8>,
}

pub struct Inbox {
    socket: UnixDatagram,
    /// For [`tap::TAP`].
    pub name: String,
}

impl Inbox {
    /// A socket with a name that no other run has.
    pub fn open() -> Result<Inbox> {
        let name = format!("rdma-device-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name)?;
        let socket = UnixDatagram::bind_addr(&address).context("cannot make a socket")?;
        Ok(Inbox { socket, name })
    }

    /// What comes next, if it comes in time. What a program prints comes from a stream's name; in all else the first two
    /// bytes say what it is.
    pub fn next(&self, wait: Duration) -> Result<Option<Message>> {
        let mut bytes = vec![0; 256 << 10];
        self.socket.set_read_timeout(Some(wait))?;
        let (length, from) = match self.socket.recv_from(&mut bytes) {
            Ok(received) => received,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                return Ok(None)
            }
            Err(error) => return Err(error).context("cannot read what the programs say"),
        };
        bytes.truncate(length);
        let stream = from.as_abstract_name().and_then(|name| name.strip_prefix(self.name.as_bytes()));
        let (kind, node, bytes) = match (stream, bytes.as_slice()) {
            (Some([kind, node]), _) => (*kind, *node, bytes),
            (_, [kind, node, rest @ ..]) => (*kind, *node, rest.to_vec()),
            _ => return Ok(None),
        };
        Ok(Some(Message { node: node.into(), kind, bytes }))
    }

    /// A stream for a program to print to: a socket with a name of its own, by which we know it.
    pub fn stream(&self, kind: u8, node: usize) -> Result<OwnedFd> {
        let attempt = || -> io::Result<UnixDatagram> {
            let name = [self.name.as_bytes(), &[kind, node as u8]].concat();
            let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?)?;
            socket.connect_addr(&SocketAddr::from_abstract_name(&self.name)?)?;
            Ok(socket)
        };
        Ok(attempt().context("cannot make a socket")?.into())
    }

    /// Whether a program of this run listens on a TCP port, as those do that have no connection manager. A shell may have
    /// started it: that it is ours its environment says.
    pub fn listens_on_tcp(&self) -> bool {
        let mark = format!("{}={}", tap::TAP, self.name);
        let is_ours = |process: &PathBuf| {
            let environment = fs::read(process.join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
        };
        entries(Path::new("/proc")).filter(is_ours).any(|process| listens(&process))
    }
}

/// Whether one of a process's sockets is in the kernel's table of TCP sockets as one that listens.
fn listens(process: &Path) -> bool {
    const LISTEN: &str = "0A";
    let own: Vec<PathBuf> =
        entries(&process.join("fd")).filter_map(|descriptor| fs::read_link(descriptor).ok()).collect();
    ["net/tcp", "net/tcp6"].into_iter().any(|table| {
        let table = fs::read_to_string(process.join(table)).unwrap_or_default();
        table.lines().any(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let socket = words.get(9).map(|inode| PathBuf::from(format!("socket:[{inode}]")));
            words.get(3) == Some(&LISTEN) && socket.is_some_and(|socket| own.contains(&socket))
        })
    })
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}
