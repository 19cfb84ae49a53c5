//! The port: a UDP socket on port 4791 of one address (annex A17.3.1), one for each multicast group that is joined, and the tap
//! that shows what passes.
//!
//! One node, one device, one address. Two options make the kernel send what a RoCEv2 receiver checks: path MTU discovery
//! on an unconnected socket gives "don't fragment" and the identification 0, which the ICRC counts; and there is no UDP
//! checksum, as with most NICs.

use super::tap::Tap;
use libc::{c_int, c_void};
use nic::datagram::{self, Route};
use nic::fact::Fact;
use nic::packet::Packet;
use roce::link::{self, LinkType, ROCE_PORT};
use rustix::net::{bind as bind_to, socket_with, sockopt, AddressFamily, SocketFlags, SocketType};
use std::io;
use std::iter;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// Larger than any packet: an MTU of 4096 and all headers.
const LARGEST: usize = 8192;

/// The socket of this device.
#[derive(Debug)]
pub struct Port {
    socket: UdpSocket,
    address: IpAddr,
    /// The groups that are joined.
    groups: Vec<(IpAddr, UdpSocket)>,
    /// The tap forwards packets.
    is_wired: bool,
    /// Whose own taps tell what they send: the nodes of this run.
    run: Vec<IpAddr>,
    /// Shows what passes to whoever has asked for it.
    pub tap: Arc<Tap>,
}

impl Port {
    /// So many groups can be joined: each is a descriptor.
    pub const GROUPS: usize = 256;

    /// The port of a node: a socket, which is the wire's own if that forwards what is told to the tap; the addresses of all nodes of
    /// the run; and the tap.
    pub fn new(socket: UdpSocket, address: IpAddr, is_wired: bool, run: Vec<IpAddr>, tap: Tap) -> Port {
        Port { socket, address, groups: Vec::new(), is_wired, run, tap: Arc::new(tap) }
    }

    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Sends a packet. What does not fit into the network is lost, as on any wire.
    pub fn send(&self, to: IpAddr, packet: &Packet) {
        if to.is_ipv4() != self.address.is_ipv4() {
            return;
        }
        let bytes = datagram::seal(self.address, to, packet);
        // The tap comes first, because there as well the receiver acts later.
        self.tap.packet(&bytes);
        if !self.is_wired {
            send(&self.socket, to, packet.class, &bytes[datagram::payload_offset(to)..]);
        }
    }

    /// The sockets that packets may come to: our own, and those of the groups.
    pub fn sockets(&self) -> impl Iterator<Item = &UdpSocket> {
        iter::once(&self.socket).chain(self.groups.iter().map(|(_, socket)| socket))
    }

    /// From now on takes what is sent to a group.
    ///
    /// # Errors
    /// What the kernel says: ip(7), "IP_ADD_MEMBERSHIP". `EOPNOTSUPP`: not over IPv6. `ENOMEM`: too many.
    pub fn join(&mut self, group: IpAddr) -> io::Result<()> {
        let (IpAddr::V4(to), IpAddr::V4(own)) = (group, self.address) else {
            return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        };
        if self.groups.len() >= Self::GROUPS {
            return Err(io::Error::from_raw_os_error(libc::ENOMEM));
        }
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
        // Other nodes of this machine also join it.
        sockopt::set_socket_reuseaddr(&socket, true)?;
        bind_to(&socket, &SocketAddrV4::new(to, ROCE_PORT))?;
        let socket = UdpSocket::from(socket);
        set(&socket, libc::IPPROTO_IP, libc::IP_MULTICAST_ALL, 0);
        socket.join_multicast_v4(&to, &own)?;
        self.groups.push((group, socket));
        Ok(())
    }

    pub fn leave(&mut self, group: IpAddr) {
        self.groups.retain(|(joined, _)| *joined != group);
    }

    /// Takes a packet that has come, to our address or to a group; None if there is none. Damaged ones are dropped.
    pub fn receive(&self) -> Option<(Route, Packet)> {
        let to_us = self.take(self.address, &self.socket);
        to_us.or_else(|| self.groups.iter().find_map(|(group, socket)| self.take(*group, socket)))
    }

    /// Takes a packet out of an Ethernet frame; None if it is damaged, or no packet.
    pub fn open(&self, frame: &[u8]) -> Option<(Route, Packet)> {
        let datagram = link::datagram(LinkType::ETHERNET, frame).ok()?;
        Some((Route { from: datagram.src, to: datagram.dst }, datagram::open_ip(datagram.ip)?))
    }

    fn take(&self, to: IpAddr, socket: &UdpSocket) -> Option<(Route, Packet)> {
        let mut bytes = [0; LARGEST];
        loop {
            let (length, from) = socket.recv_from(&mut bytes).ok()?;
            match datagram::open(from.ip(), to, from.port(), &bytes[..length]) {
                Some(packet) => {
                    if !self.run.contains(&from.ip()) {
                        self.tap.outside(&datagram::seal(from.ip(), to, &packet));
                    }
                    return Some((Route { from: from.ip(), to }, packet));
                }
                None => self.tap.say(|| Fact::new("damaged").with("bytes", length).with("from", from)),
            }
        }
    }
}

/// The sockets of all addresses from 127.0.0.2 to 127.0.0.254 that nobody has.
pub fn free() -> impl Iterator<Item = (UdpSocket, IpAddr)> {
    let all = (2..=254).map(|last| IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)));
    all.filter_map(|address| bind(address).ok().map(|socket| (socket, address)))
}

/// The sentence for a port that is taken on all addresses.
pub fn all_taken() -> String {
    "UDP port 4791 is taken on all addresses of this network namespace, as rdma_rxe takes it: `sudo rmmod rdma_rxe`, or run in \
     a namespace of your own: `unshare -rn sh -c 'ip link set lo up; exec sh'`"
        .to_owned()
}

/// The sentence for an address that cannot be had.
pub fn taken(address: IpAddr, error: &io::Error) -> String {
    // No device takes this one by itself.
    const LAST: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 255, 255, 254));
    let is_taken = |error: &io::Error| error.kind() == io::ErrorKind::AddrInUse;
    match error {
        error if !is_taken(error) => format!("cannot bind UDP port 4791 of {address}: {error}. Choose another address of this machine with --address"),
        _ if bind(LAST).is_err_and(|error| is_taken(&error)) => all_taken(),
        _ => format!(
            "the device of another program has UDP port 4791 of {address}: end that program, or give this one another address, \
             for example --address 127.0.0.7"
        ),
    }
}

/// A socket on port 4791 of an address, with the options that RoCEv2 needs.
pub fn bind(address: IpAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(SocketAddr::new(address, ROCE_PORT))?;
    socket.set_nonblocking(true)?;
    let (level, discover, no_checksum) = match address {
        IpAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, (libc::SOL_SOCKET, libc::SO_NO_CHECK)),
        IpAddr::V6(_) => {
            const UDP_NO_CHECK6_TX: c_int = 101;
            const UDP_NO_CHECK6_RX: c_int = 102;
            set(&socket, libc::SOL_UDP, UDP_NO_CHECK6_RX, 1);
            (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, (libc::SOL_UDP, UDP_NO_CHECK6_TX))
        }
    };
    if let IpAddr::V4(own) = address {
        // Datagrams to groups also go from our address, and over a router if there is one.
        set(&socket, level, libc::IP_MULTICAST_IF, c_int::from_ne_bytes(own.octets()));
        set(&socket, level, libc::IP_MULTICAST_TTL, 64);
    }
    set(&socket, level, discover, libc::IP_PMTUDISC_DO);
    set(&socket, no_checksum.0, no_checksum.1, 1);
    set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, 8 << 20);
    Ok(socket)
}

/// Sends a datagram with this traffic class in its IP header. What does not fit into the network is lost.
pub fn send(socket: &UdpSocket, to: IpAddr, class: u8, payload: &[u8]) {
    let _ = match to {
        IpAddr::V4(_) => sockopt::set_ip_tos(socket, class),
        IpAddr::V6(_) => sockopt::set_ipv6_tclass(socket, class.into()),
    };
    let _ = socket.send_to(payload, SocketAddr::new(to, ROCE_PORT));
}

/// Sets an option as far as the system allows.
fn set(socket: &UdpSocket, level: c_int, option: c_int, value: c_int) {
    let pointer: *const c_void = (&value as *const c_int).cast();
    // SAFETY: the value lives until the call returns, and the length is its own.
    unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, pointer, std::mem::size_of::<c_int>() as u32) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_has_its_traffic_class_and_the_next_one_its_own() {
        // No device takes these by itself.
        let own = format!("127.0.2.{}", 1 + std::process::id() % 250).parse().unwrap();
        let (socket, heard) = (bind(own).unwrap(), UdpSocket::bind("[::1]:0").unwrap());
        for class in [0x60, 0, 3] {
            send(&socket, own, class, &[class]);
            let mut bytes = [0; 2];
            assert_eq!(socket.recv(&mut bytes).unwrap(), 1);
            assert_eq!((bytes[0], sockopt::ip_tos(&socket).unwrap()), (class, class));
            send(&heard, "::1".parse().unwrap(), class, &[]);
            assert_eq!(sockopt::ipv6_tclass(&heard).unwrap(), u32::from(class));
        }
    }
}
