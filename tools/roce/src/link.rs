//! From a captured frame down to the UDP datagram: link layer, VLAN tags, IP.

pub mod other;
mod tunnel;

pub use tunnel::{tunnels, Tunnel, Tunnels};

use other::Other;
use std::net::{IpAddr, Ipv4Addr};

/// The UDP destination port of RoCEv2.
pub const ROCE_PORT: u16 = 4791;

/// What a captured frame begins with, by its number in the list of link types that pcap files use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: address family in the byte order of the capturing machine.
    pub const NULL: LinkType = LinkType(0);
    pub const ETHERNET: LinkType = LinkType(1);
    /// What many systems call raw IP inside of themselves; some programs write this number into their files.
    pub const DLT_RAW: LinkType = LinkType(12);
    /// IPv4 or IPv6, told apart by the version.
    pub const RAW: LinkType = LinkType(101);
    /// OpenBSD loopback: address family in network byte order.
    pub const LOOP: LinkType = LinkType(108);
    /// Linux "cooked" capture, as written by older `tcpdump -i any`.
    pub const LINUX_SLL: LinkType = LinkType(113);
    /// Per-Packet Information: a header of the recorder's, which says what link type follows.
    pub const PPI: LinkType = LinkType(192);
    /// Endace's extensible record format: a header for each frame, which says what follows.
    pub const ERF: LinkType = LinkType(197);
    pub const IPV4: LinkType = LinkType(228);
    pub const IPV6: LinkType = LinkType(229);
    /// Native InfiniBand, from the local route header on.
    pub const INFINIBAND: LinkType = LinkType(247);
    /// Linux "cooked" capture, version 2.
    pub const LINUX_SLL2: LinkType = LinkType(276);
}

/// A UDP datagram inside an IP packet.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// From the first byte of the IP header to the end of the datagram, as far as it was recorded.
    pub ip: &'a [u8],
    /// Where the IP header begins in the frame.
    pub ip_offset: usize,
    /// Where the UDP header begins in `ip`.
    pub udp_offset: usize,
    /// Length of `ip` on the wire, in bytes.
    pub wire_length: usize,
    pub src: IpAddr,
    pub dst: IpAddr,
    pub dst_port: u16,
    /// It's inside another packet; [`tunnels`] says in which.
    pub is_tunnelled: bool,
}

impl Datagram<'_> {
    /// A switch on the way has set the mark "congestion experienced": ECN 11 (RFC 3168).
    pub fn is_marked(&self) -> bool {
        self.traffic_class() & 3 == 3
    }

    /// DSCP in the upper six bits, ECN in the lower two; IPv4 calls the byte its type of service.
    pub fn traffic_class(&self) -> u8 {
        match self.ip {
            [version, class, ..] if version >> 4 == 6 => version << 4 | class >> 4,
            [_, service, ..] => *service,
            _ => 0,
        }
    }
}

/// Gives a packet, from its IP header on, another traffic class, as a switch does that marks it. IPv4's checksum is renewed; the
/// ICRC counts the byte as ones, whatever it is.
pub fn set_traffic_class(ip: &mut [u8], class: u8) {
    match ip {
        [version, second, ..] if *version >> 4 == 6 => {
            *version = 0x60 | class >> 4;
            *second = class << 4 | *second & 0x0f;
        }
        [_, service, _, _, _, _, _, _, _, _, high, low, ..] => {
            // RFC 1624, equation 3: the checksum is the complement of a sum of complements.
            let sum = !u16::from_be_bytes([*high, *low]);
            let sum = u32::from(sum) + u32::from(!u16::from(*service)) + u32::from(class);
            let sum = (sum & 0xffff) + (sum >> 16);
            let sum = (sum & 0xffff) + (sum >> 16);
            [*high, *low] = (!(sum as u16)).to_be_bytes();
            *service = class;
        }
        _ => {}
    }
}

pub(crate) const IPV4: u16 = 0x0800;
pub(crate) const IPV6: u16 = 0x86dd;
pub(crate) const UDP: u8 = 17;

/// Finds the UDP datagram in `frame`, or says what else the frame is. It doesn't look into tunnels: a NIC doesn't, either.
pub fn datagram(link: LinkType, frame: &[u8]) -> Result<Datagram<'_>, Other> {
    let (ethertype, at) = network_layer(link, frame)?;
    let packet = frame.get(at..).ok_or(Other::Cut)?;
    let ip = Ip::read(ethertype, packet)?;
    match ip.protocol {
        UDP => udp(packet, at, &ip),
        protocol => Err(Other::Protocol(protocol)),
    }
}

/// Finds the UDP datagram in `frame` that may be RoCEv2. Most captures have it behind Ethernet and IP, so that's where we look first;
/// only a frame that is something else gets a second look, into the tunnels that it may be.
#[inline]
pub fn innermost(link: LinkType, frame: &[u8]) -> Result<Datagram<'_>, Other> {
    match datagram(link, frame) {
        Ok(datagram) if datagram.dst_port == ROCE_PORT => Ok(datagram),
        Err(other @ (Other::Arp | Other::TCP)) => Err(other),
        _ => tunnel::inside(link, frame),
    }
}

/// Between whom an IP packet goes that no tunnel is around, also a fragment of one.
pub fn ends(link: LinkType, frame: &[u8]) -> Option<[IpAddr; 2]> {
    let (ethertype, at) = network_layer(link, frame).ok()?;
    let address = |at: usize, length: usize| frame.get(at..at + length);
    let [src, dst] = match ethertype {
        IPV4 => [12, 16].map(|from| <[u8; 4]>::try_from(address(at + from, 4)?).ok().map(IpAddr::from)),
        IPV6 => [8, 24].map(|from| <[u8; 16]>::try_from(address(at + from, 16)?).ok().map(IpAddr::from)),
        _ => return None,
    };
    Some([src?, dst?])
}

/// The datagram of an IP packet that begins at `at` in its frame.
pub(crate) fn udp<'a>(packet: &'a [u8], at: usize, ip: &Ip) -> Result<Datagram<'a>, Other> {
    let udp_offset = ip.header_length;
    let (dst_port, udp_length) = (u16_at(packet, udp_offset + 2)?, usize::from(u16_at(packet, udp_offset + 4)?));
    // Frames are padded to 60 bytes, so the lengths in the headers decide, not the length of the frame.
    let wire_length = ip.length.min(udp_offset + udp_length);
    if wire_length < udp_offset + 8 {
        return Err(Other::Short);
    }
    let [src, dst] = ip.addresses;
    let ip = &packet[..wire_length.min(packet.len())];
    Ok(Datagram { ip, ip_offset: at, udp_offset, wire_length, src, dst, dst_port, is_tunnelled: false })
}

/// What the headers of an IP packet say.
pub(crate) struct Ip {
    /// What follows.
    pub protocol: u8,
    /// Where that begins.
    pub header_length: usize,
    /// Of the whole packet, in bytes.
    pub length: usize,
    pub addresses: [IpAddr; 2],
}

impl Ip {
    /// Reads the headers of a packet that has this EtherType.
    #[inline]
    pub fn read(ethertype: u16, packet: &[u8]) -> Result<Ip, Other> {
        match ethertype {
            IPV4 => Ip::v4(packet),
            IPV6 => Ip::v6(packet),
            other => Err(Other::of_ethertype(other)),
        }
    }

    fn v4(packet: &[u8]) -> Result<Ip, Other> {
        let header = packet.get(..20).ok_or(Other::Cut)?;
        let header_length = usize::from(header[0] & 0x0f) * 4;
        if header[0] >> 4 != 4 || header_length < 20 {
            return Err(Other::Malformed);
        }
        // More fragments, or an offset.
        let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff;
        if fragment != 0 {
            let is_first = fragment & 0x1fff == 0 && header[9] == UDP;
            return Err(fragment_of(is_first.then(|| packet.get(header_length..)).flatten()));
        }
        let address = |at| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]).into();
        let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        Ok(Ip { protocol: header[9], header_length, length, addresses: [12, 16].map(address) })
    }

    fn v6(packet: &[u8]) -> Result<Ip, Other> {
        let header = packet.get(..40).ok_or(Other::Cut)?;
        if header[0] >> 4 != 6 {
            return Err(Other::Malformed);
        }
        let (protocol, header_length) = after_extension_headers(packet, header[6])?;
        let address = |at| <[u8; 16]>::try_from(&header[at..at + 16]).unwrap_or_default().into();
        let length = 40 + usize::from(u16::from_be_bytes([header[4], header[5]]));
        Ok(Ip { protocol, header_length, length, addresses: [8, 24].map(address) })
    }
}

/// Skips IPv6 extension headers; returns what follows them, and where.
fn after_extension_headers(packet: &[u8], mut next: u8) -> Result<(u8, usize), Other> {
    let mut at = 40;
    loop {
        let length =
            |unit: usize, extra: usize| packet.get(at + 1).map(|&n| (usize::from(n) + extra) * unit).ok_or(Other::Cut);
        let step = match next {
            // Hop-by-hop options, routing, options for the destination; authentication.
            0 | 43 | 60 => length(8, 1)?,
            51 => length(4, 2)?,
            // A whole packet may carry a fragment header too: offset 0 and no more fragments.
            44 if u16_at(packet, at + 2)? & 0xfff9 == 0 => 8,
            44 => {
                let is_first = u16_at(packet, at + 2)? & 0xfff8 == 0 && packet.get(at) == Some(&UDP);
                return Err(fragment_of(is_first.then(|| packet.get(at + 8..)).flatten()));
            }
            protocol => return Ok((protocol, at)),
        };
        next = *packet.get(at).ok_or(Other::Cut)?;
        at += step;
    }
}

/// A piece of a packet. Only the first one has the UDP header, if there's one.
fn fragment_of(udp: Option<&[u8]>) -> Other {
    let port = udp.and_then(|udp| u16_at(udp, 2).ok());
    if port == Some(ROCE_PORT) {
        Other::RoceFragment
    } else {
        Other::Fragment
    }
}

/// The EtherType of what the frame carries, and where that begins.
#[inline]
pub(crate) fn network_layer(link: LinkType, frame: &[u8]) -> Result<(u16, usize), Other> {
    match link {
        LinkType::ETHERNET => after_tags(frame, 12),
        LinkType::PPI => {
            let header = frame.get(..8).ok_or(Other::Cut)?;
            let inner = LinkType(u16::from_le_bytes([header[4], header[5]]));
            layer_behind(frame, usize::from(u16::from_le_bytes([header[2], header[3]])), inner)
        }
        LinkType::ERF => erf(frame),
        _ => layer_behind(frame, 0, link),
    }
}

/// The same for what begins `at` bytes into the frame. What headers of a recorder contain isn't another one: that would be a way to
/// make us go round and round.
fn layer_behind(frame: &[u8], at: usize, link: LinkType) -> Result<(u16, usize), Other> {
    match link {
        LinkType::ETHERNET => after_tags(frame, at + 12),
        LinkType::LINUX_SLL => after_tags(frame, at + 14),
        // The first tag's EtherType stands in the header, the rest of it behind the header.
        LinkType::LINUX_SLL2 => match u16_at(frame, at)? {
            tag if tag_length(tag).is_some() => after_tags(frame, at + 22),
            ethertype => Ok((ethertype, at + 20)),
        },
        LinkType::NULL | LinkType::LOOP => Ok((ip_version(frame, at + 4)?, at + 4)),
        LinkType::RAW | LinkType::DLT_RAW | LinkType::IPV4 | LinkType::IPV6 => Ok((ip_version(frame, at)?, at)),
        LinkType::INFINIBAND => Err(Other::InfiniBand),
        _ => Err(Other::Link(link)),
    }
}

/// An ERF record: 16 bytes, of which the ninth says what follows; while its highest bit is set, eight more bytes come, and the first
/// of them has that bit again. Ethernet has two bytes of padding in front.
fn erf(frame: &[u8]) -> Result<(u16, usize), Other> {
    let kind = *frame.get(8).ok_or(Other::Cut)?;
    let (mut at, mut more) = (16, kind);
    while more & 0x80 != 0 {
        more = *frame.get(at).ok_or(Other::Cut)?;
        at += 8;
    }
    match kind & 0x7f {
        // Ethernet, from cards that color, classify or hash it.
        2 | 11 | 16 | 20 => after_tags(frame, at + 2 + 12),
        21 | 25 => Err(Other::InfiniBand),
        22 => layer_behind(frame, at, LinkType::IPV4),
        23 => layer_behind(frame, at, LinkType::IPV6),
        other => Err(Other::Erf(other)),
    }
}

/// Reads the EtherType at `at` and skips any stacked tags.
#[inline]
pub(crate) fn after_tags(frame: &[u8], mut at: usize) -> Result<(u16, usize), Other> {
    loop {
        let ethertype = u16_at(frame, at)?;
        match tag_length(ethertype) {
            Some(length) => at += length,
            None => return Ok((ethertype, at + 2)),
        }
    }
}

/// How many bytes a tag has that begins with this EtherType; None if it's no tag.
#[inline]
fn tag_length(ethertype: u16) -> Option<usize> {
    match ethertype {
        IPV4 | IPV6 => None,
        // VLAN; a provider's, by the standard and as it was before there was one.
        0x8100 | 0x88a8 | 0x9100 | 0x9200 | 0x9300 => Some(4),
        // Of a switch for its port extenders: Cisco's VN-Tag, and the standard's E-Tag (IEEE 802.1BR).
        0x8926 => Some(6),
        // Cisco's metadata, which says of which security group a sender is, has as many.
        0x893f | 0x8909 => Some(8),
        _ => None,
    }
}

/// IP says its version itself, so the many numbers for "address family" need not be known.
pub(crate) fn ip_version(frame: &[u8], at: usize) -> Result<u16, Other> {
    match frame.get(at).ok_or(Other::Cut)? >> 4 {
        4 => Ok(IPV4),
        6 => Ok(IPV6),
        _ => Err(Other::Malformed),
    }
}

#[inline]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Result<u16, Other> {
    let pair = bytes.get(at..at + 2).and_then(|pair| pair.try_into().ok());
    pair.map(u16::from_be_bytes).ok_or(Other::Cut)
}
