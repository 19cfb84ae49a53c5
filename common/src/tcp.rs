//! Plain TCP, for programs that exchange over it what the connection manager would carry otherwise. A message is a text and
//! a zero byte after it, as in `ibv_rc_pingpong` and its relatives.

use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;

use crate::address::try_each;
use crate::args::Args;
use crate::deadline::{answer_limit, Deadline};
use crate::error::{Error, Kind, Result};
use crate::narrate::{preview, stage};
use crate::{say, slow};

/// No message is longer.
const MAX_LEN: usize = 256;

/// Waits at the address and port of the command line. `::` is all addresses of this machine, IPv4 too.
///
/// # Errors
/// `Kind::NoAddress` if nobody knows the name; `Error::Content` if the port is taken, or the address not this machine's.
#[track_caller]
pub fn listen(args: &Args) -> Result<TcpListener> {
    let _stage = stage("listen");
    try_each(&args.address, args.port, |address| {
        slow!("listen, TCP {address}");
        let listener = TcpListener::bind(address).map_err(failed)?;
        say!("listening on {address}");
        Ok(listener)
    })
}

/// The other side.
pub struct Peer(BufReader<TcpStream>);

impl Peer {
    /// The client's way to one: to the address and port of the command line.
    ///
    /// # Errors
    /// `Kind::NoAddress` if nobody knows the name; `Error::Content` if nobody listens there.
    #[track_caller]
    pub fn connect(args: &Args) -> Result<Self> {
        let _stage = stage("connect_tcp");
        try_each(&args.address, args.port, |address| {
            slow!("connect, TCP {address}");
            Self::new(TcpStream::connect_timeout(&address, answer_limit()))
        })
    }

    /// For the server: takes the next client.
    ///
    /// # Errors
    /// `Error::Deadline` if no client comes.
    #[track_caller]
    pub fn accept(listener: &TcpListener) -> Result<Self> {
        let _stage = stage("accept_tcp");
        slow!("accept, TCP");
        Deadline::knock("a client that connects over TCP").wait_readable(&[listener.as_fd()])?;
        Self::new(listener.accept().map(|(stream, _)| stream))
    }

    fn new(stream: io::Result<TcpStream>) -> Result<Self> {
        let stream = stream.map_err(failed)?;
        stream.set_write_timeout(Some(answer_limit())).map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        Ok(Self(BufReader::new(stream)))
    }

    /// The address of the other end, for people.
    pub fn name(&self) -> String {
        self.0.get_ref().peer_addr().map_or_else(|_| "somebody".into(), |address| address.to_string())
    }

    /// The address of our own end: the one by which the other side reaches us.
    ///
    /// # Errors
    /// `Error::Content` if the connection is gone.
    pub fn own_ip(&self) -> Result<IpAddr> {
        self.0.get_ref().local_addr().map(|address| address.ip().to_canonical()).map_err(failed)
    }

    /// Sends a message.
    ///
    /// # Errors
    /// `Error::Content` if the peer has gone; `Error::Deadline` if it does not read.
    #[track_caller]
    pub fn tell(&mut self, message: &str) -> Result<()> {
        slow!("TCP, to the peer: {message}");
        self.0.get_mut().write_all(format!("{message}\0").as_bytes()).map_err(failed)
    }

    /// Waits for a message.
    ///
    /// # Errors
    /// `Kind::PeerGone` if the peer has hung up; `Kind::Malformed` for bytes that aren't a message; `Error::Deadline` if it is not
    /// whole in time.
    #[track_caller]
    pub fn hear(&mut self) -> Result<String> {
        let (mut bytes, deadline) = (Vec::new(), Deadline::answer("a message of the peer's over TCP"));
        while bytes.len() < MAX_LEN && bytes.last() != Some(&0) {
            // One deadline for the whole message, in however many pieces it comes.
            self.0.get_ref().set_read_timeout(Some(deadline.left()?)).map_err(failed)?;
            match self.0.by_ref().take(1).read_to_end(&mut bytes) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(failed(error)),
            }
        }
        let text = bytes.strip_suffix(b"\0").and_then(|text| String::from_utf8(text.to_vec()).ok());
        let text = text.ok_or_else(|| {
            let (kind, what) = match bytes.is_empty() {
                true => (Kind::PeerGone, "the peer has hung up".into()),
                false => (Kind::Malformed, format!("the peer sends what is no message: {}", preview(&bytes))),
            };
            Error::of(kind, what, "Look at the other side's log. Do both sides run the same lesson?")
        })?;
        slow!("TCP, from the peer: {}", text.escape_debug());
        Ok(text)
    }
}

fn failed(error: io::Error) -> Error {
    let next = match error.kind() {
        ErrorKind::ConnectionRefused => "Start the server first, and give both sides the same port with -p",
        ErrorKind::AddrInUse => "Another program listens there (`ss -lntp` names it): choose another port with -p",
        ErrorKind::AddrNotAvailable => "That address is not this machine's: `ip address` lists its own",
        _ => "Look at the other side's log: has it ended, and with which error?",
    };
    match error.kind() {
        ErrorKind::WouldBlock => {
            Error::Deadline { awaited: "a message of the peer's over TCP".into(), limit: answer_limit() }
        }
        _ => Error::content(format!("TCP: {error}"), next),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Peer, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let other = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (Peer::accept(&listener).unwrap(), other)
    }

    #[test]
    fn messages_end_with_a_zero() {
        let (mut peer, mut other) = pair();
        other.write_all(b"one\0two\0thr").unwrap();
        assert_eq!((peer.hear().unwrap(), peer.hear().unwrap()), ("one".into(), "two".into()));
        peer.tell("four").unwrap();
        let mut bytes = [0; 5];
        other.read_exact(&mut bytes).unwrap();
        assert_eq!((&bytes, peer.own_ip().unwrap()), (b"four\0", [127, 0, 0, 1].into()));
        drop(other);
        assert!(peer.hear().unwrap_err().to_string().contains("no message: \"thr\""));
        assert!(peer.hear().unwrap_err().to_string().contains("hung up"));
    }

    #[test]
    fn a_peer_that_drips_has_no_more_time_than_one_that_is_silent() {
        let (mut peer, mut other) = pair();
        crate::deadline::set(std::time::Duration::from_secs(2));
        let dripping = std::thread::spawn(move || {
            (0..200)
                .take_while(|_| {
                    std::thread::sleep(std::time::Duration::from_millis(50));
                    other.write_all(b"x").is_ok()
                })
                .count()
        });
        let error = peer.hear().unwrap_err();
        assert!(matches!(error, Error::Deadline { .. }), "{error}");
        drop(peer);
        assert!(dripping.join().unwrap() < 200);
    }

    #[test]
    fn nonsense_without_end_is_refused() {
        let (mut peer, mut other) = pair();
        other.write_all(&[0xff; 1000]).unwrap();
        assert!(peer.hear().unwrap_err().to_string().contains("no message: ff ff"));
    }
}
