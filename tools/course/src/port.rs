//! TCP ports of this machine, each for one run: many go on at a time, and somebody else may run the same lesson now.

use anyhow::{Context, Result};
use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{bind, getsockname, ipproto, socket, AddressFamily, SocketType};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

/// A port that nobody gets who asks for any. A socket is bound to it that does not listen; a program that names the port, and
/// allows addresses to be used again as Rust's listeners do, can listen there all the same (ip(7), SO_REUSEADDR).
#[derive(Debug)]
pub struct ReservedPort {
    pub number: u16,
    _held: OwnedFd,
}

impl ReservedPort {
    /// Holds a free port until this is dropped.
    pub fn hold() -> Result<Self> {
        let attempt = |family, all: IpAddr| -> rustix::io::Result<Self> {
            let held = socket(family, SocketType::STREAM, Some(ipproto::TCP))?;
            set_socket_reuseaddr(&held, true)?;
            bind(&held, &SocketAddr::new(all, 0))?;
            let number = SocketAddr::try_from(getsockname(&held)?)?.port();
            Ok(Self { number, _held: held })
        };
        // A machine may have no IPv6.
        let port = attempt(AddressFamily::INET6, Ipv6Addr::UNSPECIFIED.into());
        let port = port.or_else(|_| attempt(AddressFamily::INET, Ipv4Addr::UNSPECIFIED.into()));
        port.context("cannot hold a free TCP port")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_held_and_can_be_listened_on() {
        let port = ReservedPort::hold().unwrap();
        let all = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port.number);
        let other = socket(AddressFamily::INET6, SocketType::STREAM, Some(ipproto::TCP)).unwrap();
        assert!(bind(&other, &all).is_err(), "it is held");
        std::net::TcpListener::bind(all).unwrap();
    }
}
