//! From a captured frame down to the UDP datagram: link layer, VLAN tags, IP.

use std::net::{IpAddr, Ipv4Addr};

/// The UDP destination port of RoCEv2.
pub const ROCE_PORT: u16 = 4791;

/// What a captured frame begins with, by its number in the list of link types that pcap files use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: address family in the byte order of the capturing machine.
    pub const NULL: LinkType = LinkType(0);
    pub const ETHERNET: LinkType = LinkType(1);
    /// IPv4 or IPv6, told apart by the version.
    pub const RAW: LinkType = LinkType(101);
    /// OpenBSD loopback: address family in network byte order.
    pub const LOOP: LinkType = LinkType(108);
    /// Linux "cooked" capture, as written by older `tcpdump -i any`.
    pub const LINUX_SLL: LinkType = LinkType(113);
    pub const IPV4: LinkType = LinkType(228);
    pub const IPV6: LinkType = LinkType(229);
    /// Linux "cooked" capture, version 2.
    pub const LINUX_SLL2: LinkType = LinkType(276);
}

/// A frame that is not a RoCEv2 packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Other {
    /// Who has this IPv4 address?
    Arp,
    /// A machine announces itself after a restore.
    Rarp,
    /// A piece of an IP packet: its transport header may be elsewhere.
    Fragment,
    /// TCP: what two programs tell each other beside RDMA.
    Tcp,
    /// A machine tells its network which multicast groups it is in.
    Igmp,
    /// A switch, or a device, tells its neighbour to be silent for a while.
    Pause,
    /// RoCE version 1, straight on Ethernet.
    RoceV1,
    /// UDP port 4791, but shorter than a BTH and an ICRC.
    Short,
    /// Recorded too short to tell what it is.
    Cut,
    Foreign,
}

impl Other {
    pub fn name(self) -> &'static str {
        match self {
            Other::Arp => "ARP",
            Other::Rarp => "RARP",
            Other::Fragment => "IP fragment",
            Other::Tcp => "TCP",
            Other::Igmp => "IGMP",
            Other::Pause => "pause",
            Other::RoceV1 => "RoCEv1",
            Other::Short => "too short for RoCEv2",
            Other::Cut => "cut frame",
            Other::Foreign => "not RoCE",
        }
    }
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

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const UDP: u8 = 17;
const TCP: u8 = 6;
const IGMP: u8 = 2;

/// Finds the UDP datagram in `frame`, or says what else the frame is.
pub fn datagram(link: LinkType, frame: &[u8]) -> Result<Datagram<'_>, Other> {
    let (ethertype, ip_offset) = network_layer(link, frame)?;
    let packet = frame.get(ip_offset..).ok_or(Other::Cut)?;
    let (udp_offset, ip_length, [src, dst]) = match ethertype {
        ETHERTYPE_IPV4 => ipv4(packet)?,
        ETHERTYPE_IPV6 => ipv6(packet)?,
        0x0806 => return Err(Other::Arp),
        0x8035 => return Err(Other::Rarp),
        0x8808 => return Err(Other::Pause),
        0x8915 => return Err(Other::RoceV1),
        _ => return Err(Other::Foreign),
    };
    let (dst_port, udp_length) = (u16_at(packet, udp_offset + 2)?, usize::from(u16_at(packet, udp_offset + 4)?));
    // Frames are padded to 60 bytes, so the lengths in the headers decide, not the length of the frame.
    let wire_length = ip_length.min(udp_offset + udp_length);
    if wire_length < udp_offset + 8 {
        return Err(Other::Short);
    }
    let ip = &packet[..wire_length.min(packet.len())];
    Ok(Datagram { ip, ip_offset, udp_offset, wire_length, src, dst, dst_port })
}

/// What an IP header says: where the UDP header begins, the length of the packet, and its addresses.
type Ip = (usize, usize, [IpAddr; 2]);

/// The EtherType of what the frame carries, and where that begins.
fn network_layer(link: LinkType, frame: &[u8]) -> Result<(u16, usize), Other> {
    match link {
        LinkType::ETHERNET => after_vlan_tags(frame, 12),
        LinkType::LINUX_SLL => after_vlan_tags(frame, 14),
        // The first tag's EtherType stands in the header, the rest of it behind the header.
        LinkType::LINUX_SLL2 => match u16_at(frame, 0)? {
            tag if is_vlan(tag) => after_vlan_tags(frame, 22),
            ethertype => Ok((ethertype, 20)),
        },
        LinkType::NULL | LinkType::LOOP => Ok((ip_version(frame, 4)?, 4)),
        LinkType::RAW | LinkType::IPV4 | LinkType::IPV6 => Ok((ip_version(frame, 0)?, 0)),
        _ => Err(Other::Foreign),
    }
}

/// Reads the EtherType at `at` and skips any stacked VLAN tags.
fn after_vlan_tags(frame: &[u8], mut at: usize) -> Result<(u16, usize), Other> {
    loop {
        match u16_at(frame, at)? {
            tag if is_vlan(tag) => at += 4,
            ethertype => return Ok((ethertype, at + 2)),
        }
    }
}

fn is_vlan(ethertype: u16) -> bool {
    matches!(ethertype, 0x8100 | 0x88a8 | 0x9100)
}

/// IP says its version itself, so the many numbers for "address family" need not be known.
fn ip_version(frame: &[u8], at: usize) -> Result<u16, Other> {
    match frame.get(at).ok_or(Other::Cut)? >> 4 {
        4 => Ok(ETHERTYPE_IPV4),
        6 => Ok(ETHERTYPE_IPV6),
        _ => Err(Other::Foreign),
    }
}

fn ipv4(packet: &[u8]) -> Result<Ip, Other> {
    let header = packet.get(..20).ok_or(Other::Cut)?;
    let header_length = usize::from(header[0] & 0x0f) * 4;
    if header[0] >> 4 != 4 || header_length < 20 {
        return Err(Other::Foreign);
    }
    // More fragments, or an offset.
    if u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0 {
        return Err(Other::Fragment);
    }
    match header[9] {
        UDP => {}
        TCP => return Err(Other::Tcp),
        IGMP => return Err(Other::Igmp),
        _ => return Err(Other::Foreign),
    }
    let address = |at| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]).into();
    let total_length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    Ok((header_length, total_length, [12, 16].map(address)))
}

fn ipv6(packet: &[u8]) -> Result<Ip, Other> {
    let header = packet.get(..40).ok_or(Other::Cut)?;
    if header[0] >> 4 != 6 {
        return Err(Other::Foreign);
    }
    let udp_offset = after_extension_headers(packet, header[6])?;
    let address = |at| <[u8; 16]>::try_from(&header[at..at + 16]).unwrap_or_default().into();
    let total_length = 40 + usize::from(u16::from_be_bytes([header[4], header[5]]));
    Ok((udp_offset, total_length, [8, 24].map(address)))
}

/// Skips IPv6 extension headers; returns where the UDP header begins.
fn after_extension_headers(packet: &[u8], mut next: u8) -> Result<usize, Other> {
    let mut at = 40;
    loop {
        let length =
            |unit: usize, extra: usize| packet.get(at + 1).map(|&n| (usize::from(n) + extra) * unit).ok_or(Other::Cut);
        let step = match next {
            UDP => return Ok(at),
            TCP => return Err(Other::Tcp),
            // Hop-by-hop options, routing, options for the destination; authentication.
            0 | 43 | 60 => length(8, 1)?,
            51 => length(4, 2)?,
            // A whole packet may carry a fragment header too: offset 0 and no more fragments.
            44 if u16_at(packet, at + 2)? & 0xfff9 == 0 => 8,
            44 => return Err(Other::Fragment),
            _ => return Err(Other::Foreign),
        };
        next = *packet.get(at).ok_or(Other::Cut)?;
        at += step;
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Result<u16, Other> {
    let pair = bytes.get(at..at + 2).and_then(|pair| pair.try_into().ok());
    pair.map(u16::from_be_bytes).ok_or(Other::Cut)
}
