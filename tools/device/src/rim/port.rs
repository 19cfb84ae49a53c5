//! The port: a UDP socket on port 4791 of one address (annex A17.3.1), and the tap that shows what passes.
//!
//! One process, one device, one address. Two options make the kernel send what a RoCEv2 receiver checks: path MTU discovery
//! on an unconnected socket gives "don't fragment" and the identification 0, which the ICRC counts; and there is no UDP
//! checksum, as with most NICs.

use super::tap::Tap;
use libc::{c_int, c_void};
use nic::datagram;
use nic::packet::Packet;
use roce::link::ROCE_PORT;
use std::env;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

/// The variable that names the device's address.
pub const ADDRESS: &str = "NIC_ADDRESS";
/// The variable which says that the socket is standard input, and that packets go to the tap alone: whoever sits there is the
/// wire, and forwards them, or not.
pub const WIRE: &str = "NIC_WIRE";
/// Larger than any packet: an MTU of 4096 and all headers.
const LARGEST: usize = 8192;

/// The socket of this device.
#[derive(Debug)]
pub struct Port {
    socket: Arc<UdpSocket>,
    address: IpAddr,
    /// The tap forwards packets.
    is_wired: bool,
    /// Shows what passes to whoever has asked for it.
    pub tap: Tap,
}

impl Port {
    /// Takes the address that the environment names, or else the first free one of 127.0.0.2 to 127.0.0.254.
    ///
    /// # Errors
    /// A sentence that says why there is no device, and what helps.
    pub fn open() -> Result<Port, String> {
        let wired = env::var_os(WIRE).is_some_and(|value| !value.is_empty()).then(standard_input).flatten();
        let is_wired = wired.is_some();
        let (socket, address) = match (wired, env::var(ADDRESS)) {
            (Some(given), _) => given,
            (None, Ok(text)) => {
                let no_address = |_| format!("{ADDRESS}={text} is no IP address; an example is 127.0.0.2");
                let address = text.parse().map_err(no_address)?;
                (bind(address).map_err(|error| taken(address, &error))?, address)
            }
            (None, Err(_)) => free().next().ok_or_else(all_taken)?,
        };
        Ok(Port { socket: Arc::new(socket), address, is_wired, tap: Tap::open() })
    }

    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// The socket, to be waited for without the device's lock.
    pub fn socket(&self) -> Arc<UdpSocket> {
        Arc::clone(&self.socket)
    }

    /// Sends a packet. What does not fit into the network is lost, as on any wire.
    pub fn send(&self, to: IpAddr, packet: &Packet) {
        if to.is_ipv4() != self.address.is_ipv4() {
            return;
        }
        let bytes = datagram::seal(self.address, to, packet);
        // First the tap: what the receiver does about it comes later there, too.
        self.tap.packet(&bytes);
        if !self.is_wired {
            let _ = self.socket.send_to(&bytes[datagram::payload_offset(to)..], SocketAddr::new(to, ROCE_PORT));
        }
    }

    /// Takes a packet that has come, with its sender; None if there is none. Damaged ones are dropped.
    pub fn receive(&self) -> Option<(IpAddr, Packet)> {
        let mut bytes = [0; LARGEST];
        loop {
            let (length, from) = self.socket.recv_from(&mut bytes).ok()?;
            match datagram::open(from.ip(), self.address, from.port(), &bytes[..length]) {
                Some(packet) => return Some((from.ip(), packet)),
                None => self.tap.say(|| format!("port: {length} bytes from {from} are no packet, or damaged; dropped")),
            }
        }
    }
}

/// The socket that came as standard input, and its address.
fn standard_input() -> Option<(UdpSocket, IpAddr)> {
    let socket = UdpSocket::from(io::stdin().as_fd().try_clone_to_owned().ok()?);
    let address = socket.local_addr().ok()?.ip();
    Some((socket, address))
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
fn taken(address: IpAddr, error: &io::Error) -> String {
    // No device takes this one by itself.
    const LAST: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 255, 255, 254));
    let is_taken = |error: &io::Error| error.kind() == io::ErrorKind::AddrInUse;
    match error {
        error if !is_taken(error) => format!("cannot have UDP port 4791 of {address}: {error}; {ADDRESS} names the address"),
        _ if bind(LAST).is_err_and(|error| is_taken(&error)) => all_taken(),
        _ => format!(
            "the device of another program has UDP port 4791 of {address}: end that program, or give this one another address, \
             for example {ADDRESS}=127.0.0.7"
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
    set(&socket, level, discover, libc::IP_PMTUDISC_DO);
    set(&socket, no_checksum.0, no_checksum.1, 1);
    set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, 8 << 20);
    Ok(socket)
}

/// Sets an option as far as the system allows.
fn set(socket: &UdpSocket, level: c_int, option: c_int, value: c_int) {
    let pointer: *const c_void = (&value as *const c_int).cast();
    // SAFETY: the value lives until the call returns, and the length is its own.
    unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, pointer, std::mem::size_of::<c_int>() as u32) };
}
