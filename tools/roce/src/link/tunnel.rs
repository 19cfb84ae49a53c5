//! RoCEv2 inside other packets: clouds put it into their overlay's, and switches into those with which they mirror a port. We look
//! inside as far as it takes to find UDP port 4791; the ICRC covers the inner packet alone, so the rest is no matter of ours.

use super::other::Other;
use super::{after_tags, ip_version, network_layer, u16_at, udp, Datagram, Ip, LinkType, IPV4, IPV6, ROCE_PORT, UDP};
use std::fmt;

/// So many packets inside one another are looked into. A switch that mirrors an overlay's port makes two.
const MOST: usize = 4;

/// A header around a packet, with the number that says whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tunnel {
    /// RFC 7348, by its network identifier.
    Vxlan(u32),
    /// VXLAN with other payloads than Ethernet, by its network identifier.
    VxlanGpe(u32),
    /// RFC 8926, by its network identifier.
    Geneve(u32),
    /// RFC 2784 and 2890, perhaps by its key; NVGRE has its network's identifier there.
    Gre(Option<u32>),
    /// Of a switch that mirrors a port: the type, and from II on the session.
    Erspan(u8, Option<u16>),
    /// An IP packet of this version, RFC 2003, 2473 and 4213.
    Ip(u8),
    /// RFC 3378, or an Ethernet frame right behind IP.
    EtherIp,
    /// RFC 3032, by the innermost label.
    Mpls(u32),
    /// RFC 2516, by its session.
    Pppoe(u16),
    /// A mobile network's user plane, by its endpoint's identifier.
    GtpU(u32),
    /// A provider's backbone, IEEE 802.1ah, by its service's identifier.
    MacInMac(u32),
    /// RFC 6325.
    Trill,
    /// Cisco's, with Ethernet inside.
    FabricPath,
    /// Service function chaining, RFC 8300, by its path.
    Nsh(u32),
}

impl fmt::Display for Tunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tunnel::Vxlan(vni) => write!(f, "VXLAN, VNI {vni}"),
            Tunnel::VxlanGpe(vni) => write!(f, "VXLAN-GPE, VNI {vni}"),
            Tunnel::Geneve(vni) => write!(f, "Geneve, VNI {vni}"),
            Tunnel::Gre(None) => f.write_str("GRE"),
            Tunnel::Gre(Some(key)) => write!(f, "GRE, key {key:#x}"),
            Tunnel::Erspan(_, None) => f.write_str("ERSPAN type I"),
            Tunnel::Erspan(2, Some(session)) => write!(f, "ERSPAN type II, session {session}"),
            Tunnel::Erspan(_, Some(session)) => write!(f, "ERSPAN type III, session {session}"),
            Tunnel::Ip(version) => write!(f, "IPv{version}"),
            Tunnel::EtherIp => f.write_str("Ethernet over IP"),
            Tunnel::Mpls(label) => write!(f, "MPLS, label {label}"),
            Tunnel::Pppoe(session) => write!(f, "PPPoE, session {session}"),
            Tunnel::GtpU(endpoint) => write!(f, "GTP-U, TEID {endpoint:#x}"),
            Tunnel::MacInMac(service) => write!(f, "802.1ah, I-SID {service}"),
            Tunnel::Trill => f.write_str("TRILL"),
            Tunnel::FabricPath => f.write_str("FabricPath"),
            Tunnel::Nsh(path) => write!(f, "NSH, path {path}"),
        }
    }
}

/// All headers around a packet, the outermost first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tunnels([Option<Tunnel>; MOST]);

impl Tunnels {
    /// False if there is one more than we look into.
    fn push(&mut self, tunnel: Tunnel) -> bool {
        let free = self.0.iter_mut().find(|place| place.is_none());
        free.map(|place| *place = Some(tunnel)).is_some()
    }
}

/// From the packet outwards, as one says it: `VXLAN, VNI 42, inside ERSPAN type II, session 5`.
impl fmt::Display for Tunnels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, tunnel) in self.0.iter().flatten().rev().enumerate() {
            write!(f, "{}{tunnel}", if i > 0 { ", inside " } else { "" })?;
        }
        Ok(())
    }
}

/// What a frame's innermost packet is inside of.
pub fn tunnels(link: LinkType, frame: &[u8]) -> Tunnels {
    let mut tunnels = Tunnels::default();
    let _ = walk(link, frame, &mut tunnels);
    tunnels
}

/// Finds the datagram for RoCEv2's port inside whatever it is in.
#[cold]
pub(crate) fn inside(link: LinkType, frame: &[u8]) -> Result<Datagram<'_>, Other> {
    walk(link, frame, &mut Tunnels::default())
}

/// A header around something: what it is, the EtherType of what it contains, and where that begins.
type Around = (Tunnel, (u16, usize));

/// Each step goes on in the frame, and there are few of them, so this ends whatever the bytes are.
fn walk<'a>(link: LinkType, frame: &'a [u8], tunnels: &mut Tunnels) -> Result<Datagram<'a>, Other> {
    let (mut ethertype, mut at) = network_layer(link, frame)?;
    loop {
        let (tunnel, inner) = match ethertype {
            IPV4 | IPV6 => {
                let packet = frame.get(at..).ok_or(Other::Cut)?;
                let ip = Ip::read(ethertype, packet)?;
                let next = at + ip.header_length;
                match ip.protocol {
                    UDP => {
                        let datagram = udp(packet, at, &ip)?;
                        if datagram.dst_port == ROCE_PORT {
                            return Ok(Datagram { is_tunnelled: *tunnels != Tunnels::default(), ..datagram });
                        }
                        behind_udp(frame, next, datagram.dst_port)?
                    }
                    protocol => behind_ip(frame, next, protocol, if ethertype == IPV4 { 4 } else { 6 })?,
                }
            }
            _ => behind_ethernet(frame, at, ethertype)?,
        };
        if !tunnels.push(tunnel) {
            return Err(Other::Nested);
        }
        (ethertype, at) = inner;
    }
}

fn behind_ip(frame: &[u8], at: usize, protocol: u8, version: u8) -> Result<Around, Other> {
    match protocol {
        4 => Ok((Tunnel::Ip(version), (IPV4, at))),
        41 => Ok((Tunnel::Ip(version), (IPV6, at))),
        47 => gre(frame, at),
        97 => Ok((Tunnel::EtherIp, ethernet(frame, at + 2)?)),
        137 => mpls(frame, at),
        143 => Ok((Tunnel::EtherIp, ethernet(frame, at)?)),
        other => Err(Other::Protocol(other)),
    }
}

/// `at` is where the UDP header begins.
fn behind_udp(frame: &[u8], at: usize, port: u16) -> Result<Around, Other> {
    let inner = at + 8;
    match port {
        // 8472 is what Linux took before there was a number for it; many overlays still do.
        4789 | 8472 if byte(frame, inner)? & 0x08 != 0 => {
            Ok((Tunnel::Vxlan(three_bytes(frame, inner + 4)?), ethernet(frame, inner + 8)?))
        }
        4790 => {
            let next = next_protocol(frame, inner + 8, byte(frame, inner + 3)?)?;
            Ok((Tunnel::VxlanGpe(three_bytes(frame, inner + 4)?), next))
        }
        // Version 0; the options count in words.
        6081 if byte(frame, inner)? >> 6 == 0 => {
            let options = usize::from(byte(frame, inner)? & 0x3f) * 4;
            let next = by_type(frame, inner + 8 + options, u16_at(frame, inner + 2)?)?;
            Ok((Tunnel::Geneve(three_bytes(frame, inner + 4)?), next))
        }
        6635 => mpls(frame, inner),
        // Version 1, and a packet of a user.
        2152 if byte(frame, inner)? >> 4 == 3 && byte(frame, inner + 1)? == 0xff => gtp(frame, inner),
        port => Err(port_of(port, u16_at(frame, at)?)),
    }
}

/// A service has the lower one of the two ports; the other one is anything.
fn port_of(to: u16, from: u16) -> Other {
    Other::Port(to.min(from))
}

fn behind_ethernet(frame: &[u8], at: usize, ethertype: u16) -> Result<Around, Other> {
    match ethertype {
        0x8847 | 0x8848 => mpls(frame, at),
        0x8864 => {
            // PPP's protocol stands behind six bytes of PPPoE.
            let next = match u16_at(frame, at + 6)? {
                0x0021 => (IPV4, at + 8),
                0x0057 => (IPV6, at + 8),
                _ => return Err(Other::EtherType(ethertype)),
            };
            Ok((Tunnel::Pppoe(u16_at(frame, at + 2)?), next))
        }
        0x88e7 => Ok((Tunnel::MacInMac(three_bytes(frame, at + 1)?), ethernet(frame, at + 4)?)),
        0x8903 => Ok((Tunnel::FabricPath, ethernet(frame, at + 2)?)),
        0x22f3 => {
            let options = usize::from(u16_at(frame, at)? >> 6 & 0x1f) * 4;
            Ok((Tunnel::Trill, ethernet(frame, at + 6 + options)?))
        }
        0x894f => {
            let length = usize::from(byte(frame, at + 1)? & 0x3f) * 4;
            if length < 8 {
                return Err(Other::Malformed);
            }
            Ok((Tunnel::Nsh(three_bytes(frame, at + 4)?), next_protocol(frame, at + length, byte(frame, at + 3)?)?))
        }
        other => Err(Other::of_ethertype(other)),
    }
}

/// The flags say which words follow: checksum or routing, key, sequence number.
fn gre(frame: &[u8], at: usize) -> Result<Around, Other> {
    let (flags, kind) = (u16_at(frame, at)?, u16_at(frame, at + 2)?);
    if flags & 7 != 0 {
        return Err(Other::Protocol(47)); // Version 1 is PPTP's.
    }
    let key_at = at + if flags & 0xc000 != 0 { 8 } else { 4 };
    let key = if flags & 0x2000 != 0 { Some(four_bytes(frame, key_at)?) } else { None };
    let has_number = flags & 0x1000 != 0;
    let inner = key_at + 4 * (usize::from(key.is_some()) + usize::from(has_number));
    let session = || u16_at(frame, inner + 2).map(|word| word & 0x3ff);
    match kind {
        // Without a sequence number it's the first type, which has no header of its own.
        0x88be if !has_number => Ok((Tunnel::Erspan(1, None), ethernet(frame, inner)?)),
        0x88be => Ok((Tunnel::Erspan(2, Some(session()?)), ethernet(frame, inner + 8)?)),
        0x22eb => {
            let last = u16_at(frame, inner + 10)?;
            let behind = inner + if last & 1 != 0 { 20 } else { 12 };
            let next = match last >> 10 & 0x1f {
                0 => ethernet(frame, behind)?,
                2 => (ip_version(frame, behind)?, behind),
                _ => return Err(Other::Malformed),
            };
            Ok((Tunnel::Erspan(3, Some(session()?)), next))
        }
        kind => Ok((Tunnel::Gre(key), by_type(frame, inner, kind)?)),
    }
}

/// Labels up to the one that says it's the last. What follows isn't said: Ethernet, perhaps behind a control word, or IP.
fn mpls(frame: &[u8], mut at: usize) -> Result<Around, Other> {
    let last = loop {
        let label = four_bytes(frame, at)?;
        at += 4;
        if label & 0x100 != 0 {
            break label;
        }
    };
    let is_ip = |inner: &(u16, usize)| ip_version(frame, inner.1) == Ok(inner.0);
    let in_ethernet = [at, at + 4].into_iter().filter_map(|at| ethernet(frame, at).ok()).find(is_ip);
    let inner = match in_ethernet {
        Some(inner) => inner,
        None => (ip_version(frame, at)?, at),
    };
    Ok((Tunnel::Mpls(last >> 12), inner))
}

/// A user's IP packet, behind headers that say whether another one follows.
fn gtp(frame: &[u8], at: usize) -> Result<Around, Other> {
    let mut inner = at + 8;
    if byte(frame, at)? & 7 != 0 {
        let mut next = byte(frame, at + 11)?;
        inner += 4;
        while next != 0 {
            let length = usize::from(byte(frame, inner)?) * 4;
            if length == 0 {
                return Err(Other::Malformed);
            }
            inner += length;
            next = byte(frame, inner - 1)?;
        }
    }
    Ok((Tunnel::GtpU(four_bytes(frame, at + 4)?), (ip_version(frame, inner)?, inner)))
}

/// What begins here, by the numbers that VXLAN-GPE and NSH use.
fn next_protocol(frame: &[u8], at: usize, number: u8) -> Result<(u16, usize), Other> {
    match number {
        1 => Ok((IPV4, at)),
        2 => Ok((IPV6, at)),
        3 => ethernet(frame, at),
        4 => Ok((0x894f, at)),
        5 => Ok((0x8847, at)),
        _ => Err(Other::Malformed),
    }
}

/// What begins here, by its EtherType; 0x6558 is Ethernet itself.
fn by_type(frame: &[u8], at: usize, ethertype: u16) -> Result<(u16, usize), Other> {
    if ethertype == 0x6558 {
        ethernet(frame, at)
    } else {
        Ok((ethertype, at))
    }
}

fn ethernet(frame: &[u8], at: usize) -> Result<(u16, usize), Other> {
    after_tags(frame, at + 12)
}

fn byte(frame: &[u8], at: usize) -> Result<u8, Other> {
    frame.get(at).copied().ok_or(Other::Cut)
}

fn three_bytes(frame: &[u8], at: usize) -> Result<u32, Other> {
    four_bytes(frame, at).map(|word| word >> 8)
}

fn four_bytes(frame: &[u8], at: usize) -> Result<u32, Other> {
    let bytes = frame.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
    bytes.map(u32::from_be_bytes).ok_or(Other::Cut)
}
