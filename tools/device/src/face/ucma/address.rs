//! Addresses and ports (rdma_bind_addr(3), rdma_listen(3), rdma_resolve_addr(3), rdma_resolve_route(3)).
//!
//! A device has one address. An id is bound to it, or to a port alone: then it listens on whatever address there is. A port
//! belongs to a port space of the node, which is not that of TCP, and is the end of a service's ID in a REQ.

use super::abi::{self, PathRec, SockAddr};
use super::id::{Id, State};
use super::options::Options;
use super::{answer, command, errno, Done, Ids, Net, Then};
use crate::machine::Asker;
use bytemuck::Zeroable;
use nic::cm::{gid, Cm, EventKind};
use nic::fact::Fact;
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::ops::RangeInclusive;

/// The ports that Linux gives out, if nobody has changed it (net.ipv4.ip_local_port_range).
const FREE_PORTS: RangeInclusive<u16> = 32_768..=60_999;
/// 1,024 bytes, as `ibv_mtu`: what fits into a frame of Ethernet.
const MTU_1024: u32 = 3;
/// The selector "exactly this" of a path's numbers.
const EXACTLY: u8 = 2;
/// 4.096 µs × 2^n: what Linux takes for a packet's life on Ethernet.
const PACKET_LIFE_TIME: u8 = 18;

/// Not an address to be reached at: none, or the machine's to itself, which leads over no device.
fn is_any(address: IpAddr) -> bool {
    let localhosts = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    address.is_unspecified() || localhosts.contains(&address)
}

/// Whether the machine has this address.
fn is_of_this_machine(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

/// What BIND_IP asks for, in words.
pub fn asks(call: Fact, command: Result<abi::BindIp, Errno>) -> Fact {
    let to = command.ok().and_then(|command| command.addr.read());
    to.iter().fold(call, |call, to| call.with("addr", to.ip()).with("port", to.port()))
}

impl Options {
    /// Whether an id that is bound to all addresses is so to those of one family only.
    fn is_one_family(&self, own: SocketAddr) -> bool {
        self.is_one_family.unwrap_or(own.is_ipv4())
    }
}

impl Id {
    /// Whether one who listens here takes what comes to this address.
    pub(super) fn hears(&self, address: IpAddr) -> bool {
        self.own.is_some_and(|own| !self.options.is_one_family(own) || own.is_ipv4() == address.is_ipv4())
    }
}

impl Ids {
    /// Those who have a port of a port space.
    fn owners(&self, space: u16) -> impl Iterator<Item = (u32, &Id, SocketAddr)> {
        let ids = self.ids.iter().filter_map(|(number, id)| Some((*number, id, id.own?)));
        ids.filter(move |(_, id, _)| id.port_space == space && !id.is_guest && id.state != State::Gone)
    }

    /// A port that nobody has.
    fn free_port(&self, space: u16, random: u64) -> Result<u16, Errno> {
        let taken: BTreeSet<u16> = self.owners(space).map(|(_, _, own)| own.port()).collect();
        let count = FREE_PORTS.len() as u64;
        let mut any = (0..count).map(|n| FREE_PORTS.start() + (random.wrapping_add(n) % count) as u16);
        any.find(|port| !taken.contains(port)).ok_or(Errno::ADDRNOTAVAIL)
    }

    /// Whether an id may have this port of this address, or of all (`cma_check_port`).
    fn check_port(&self, number: u32, id: &Id, own: SocketAddr, may_share: bool) -> Result<(), Errno> {
        for (other, its, at) in self.owners(id.port_space) {
            let is_shared = may_share && its.options.is_port_shared;
            let are_one_family = id.options.is_one_family(own) && its.options.is_one_family(at);
            let are_apart = are_one_family && own.is_ipv4() != at.is_ipv4();
            if other != number && at.port() == own.port() && !is_shared && !are_apart {
                return Err(if is_any(own.ip()) || is_any(at.ip()) { Errno::ADDRNOTAVAIL } else { Errno::ADDRINUSE });
            }
        }
        Ok(())
    }

    /// rdma_bind_addr(3).
    pub(super) fn bind_ip(&mut self, net: &mut Net, asker: &Asker) -> Result<Done, Errno> {
        let command: abi::BindIp = command(asker)?;
        let to = command.addr.read().ok_or(Errno::INVAL)?;
        self.id(asker.file, command.id)?;
        self.bind(net, command.id, to)?;
        Ok(Done::All)
    }

    fn bind(&mut self, net: &Net, number: u32, mut to: SocketAddr) -> Result<(), Errno> {
        let id = self.ids.get(&number).filter(|id| id.state == State::Idle).ok_or(Errno::INVAL)?;
        let has_device = to.ip() == self.address;
        if !has_device && !is_any(to.ip()) {
            // One without an RDMA device; or not this machine's at all.
            return Err(if is_of_this_machine(to.ip()) { Errno::NODEV } else { Errno::ADDRNOTAVAIL });
        }
        if to.port() == 0 {
            to.set_port(self.free_port(id.port_space, net.random)?);
        }
        self.check_port(number, id, to, id.options.is_port_shared)?;
        let bound = (State::Bound, Some(to), has_device);
        self.ids.entry(number).and_modify(|id| (id.state, id.own, id.has_device) = bound);
        Ok(())
    }

    /// rdma_listen(3): an id that is not bound takes any port.
    pub(super) fn listen(&mut self, net: &mut Net, asker: &Asker) -> Result<Done, Errno> {
        let command: abi::Listen = command(asker)?;
        if self.id(asker.file, command.id)?.state != State::Bound {
            self.bind(net, command.id, (Ipv4Addr::UNSPECIFIED, 0).into())?;
        }
        let id = self.ids.get(&command.id).ok_or(Errno::NOENT)?;
        let own = id.own.ok_or(Errno::INVAL)?;
        // From now on the port is nobody else's.
        self.check_port(command.id, id, own, false)?;
        let backlog = usize::try_from(command.backlog).unwrap_or(0);
        net.cm.listen(id.space()?, own.port(), command.id.into(), backlog).map_err(errno)?;
        let id = self.id(asker.file, command.id)?;
        (id.state, id.options.is_port_shared) = (State::Listen, false);
        Ok(Done::Listens)
    }

    /// rdma_resolve_addr(3): which device leads there, and from which address. The answer is an event.
    pub(super) fn resolve_ip(&mut self, net: &mut Net, asker: &Asker) -> Result<Done, Errno> {
        let command: abi::ResolveIp = command(asker)?;
        let to = command.dst_addr.read().ok_or(Errno::INVAL)?;
        let from = command.src_addr.read();
        if from.is_none() && command.src_addr.family != 0 {
            return Err(Errno::INVAL);
        }
        if self.id(asker.file, command.id)?.state != State::Bound {
            let any = if to.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { Ipv6Addr::UNSPECIFIED.into() };
            self.bind(net, command.id, from.unwrap_or((any, 0).into()))?;
        }
        let address = self.address;
        let id = self.id(asker.file, command.id)?;
        id.peer = Some(to);
        let own = id.own.filter(|own| own.is_ipv4() == to.is_ipv4()).ok_or(Errno::INVAL)?;
        let (event, status) = match reach(address, to) {
            Ok(()) => {
                let ip = if is_any(to.ip()) && !id.has_device { to.ip() } else { address };
                id.own = Some(SocketAddr::new(ip, own.port()));
                (id.state, id.has_device) = (State::HasAddress, true);
                (EventKind::AddrResolved, 0)
            }
            Err(errno) => (EventKind::AddrError, -errno.raw_os_error()),
        };
        self.post_plain(command.id, event as u32, status);
        Ok(Done::All)
    }

    /// rdma_resolve_route(3): on Ethernet the IP layer's business. The machine's address to itself leads over no device.
    pub(super) fn resolve_route(&mut self, asker: &Asker) -> Result<Done, Errno> {
        let command: abi::ResolveRoute = command(asker)?;
        let address = self.address;
        let id = self.id_with_device(asker.file, command.id)?;
        if command.timeout_ms == 0 || id.state != State::HasAddress {
            return Err(Errno::INVAL);
        }
        if id.own.is_some_and(|own| own.ip() != address) {
            return Err(Errno::NODEV);
        }
        id.state = State::HasRoute;
        self.post_plain(command.id, EventKind::RouteResolved as u32, 0);
        Ok(Done::All)
    }

    /// What librdmacm shows in `id->route`, as far as it is known.
    pub(super) fn query_route(&mut self, asker: &Asker) -> Result<Done, Errno> {
        let command: abi::Query = command(asker)?;
        let guid = Cm::guid(self.address);
        let id = self.id(asker.file, command.id)?;
        let (src_addr, dst_addr) = (SockAddr::from(id.own), SockAddr::from(id.peer));
        // The library finds the device by its GUID.
        let mut route = abi::QueryRouteResp { src_addr, dst_addr, ibdev_index: u32::MAX, ..Zeroable::zeroed() };
        if id.has_device {
            let gid_of = |address: Option<SocketAddr>| address.map_or([0; 16], |address| gid(address.ip()));
            let path = PathRec { dgid: gid_of(id.peer), sgid: gid_of(id.own), pkey: 0xffff, ..PathRec::zeroed() };
            (route.node_guid, route.port_num, route.ib_route[0]) = (guid.to_be(), 1, path);
        }
        if matches!(id.state, State::HasRoute | State::Connect | State::Disconnect) {
            route.num_paths = 1;
            route.ib_route[0] = PathRec {
                reversible: 1,
                mtu: MTU_1024,
                hop_limit: 64,
                traffic_class: id.options.tos,
                numb_path: 1,
                mtu_selector: EXACTLY,
                rate_selector: EXACTLY,
                packet_life_time_selector: EXACTLY,
                // An ACK comes after two of them at the latest.
                packet_life_time: id.options.ack_timeout.map_or(PACKET_LIFE_TIME, |n| n.saturating_sub(1)),
                ..route.ib_route[0]
            };
        }
        answer(command.response, &route, Then::Nothing)
    }
}

/// Whether the network leads from the device's address to another: the machine's routes say it, no packet is sent.
fn reach(from: IpAddr, to: SocketAddr) -> Result<(), Errno> {
    if is_any(to.ip()) || to.ip().is_multicast() {
        return Ok(());
    }
    if from.is_ipv4() != to.is_ipv4() {
        return Err(Errno::NETUNREACH);
    }
    let connected = UdpSocket::bind((from, 0)).and_then(|socket| socket.connect((to.ip(), 1)));
    connected.map_err(|error| {
        Errno::from_io_error(&error).filter(|errno| *errno != Errno::INVAL).unwrap_or(Errno::NETUNREACH)
    })
}
