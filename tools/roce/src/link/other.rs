//! What a frame is if it's no RoCEv2 packet: named, and with its number where there's no name, so that a reader of a capture sees
//! what's in it.

use super::LinkType;
use std::collections::BTreeMap;
use std::fmt;

/// A frame that isn't a RoCEv2 packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Other {
    /// Who has this IPv4 address?
    Arp,
    /// A machine announces itself after a restore.
    Rarp,
    /// A piece of an IP packet: its transport header may be elsewhere.
    Fragment,
    /// The first piece of a RoCEv2 packet.
    RoceFragment,
    /// A switch, or a device, tells its neighbour to be silent for a while.
    Pause,
    /// RoCE version 1, straight on Ethernet.
    RoceV1,
    /// InfiniBand's own link layer.
    InfiniBand,
    /// UDP port 4791, but shorter than a BTH and an ICRC.
    Short,
    /// Recorded too short to tell what it is.
    Cut,
    /// A header contradicts itself.
    Malformed,
    /// More packets inside one another than anybody sends.
    Nested,
    /// A link type that isn't read.
    Link(LinkType),
    /// A type of ERF record that isn't read.
    Erf(u8),
    /// Another EtherType; below 0x600 it's a length.
    EtherType(u16),
    /// Another protocol on IP.
    Protocol(u8),
    /// UDP to, or from, another port.
    Port(u16),
}

impl Other {
    /// TCP: what two programs tell each other beside RDMA.
    pub const TCP: Other = Other::Protocol(6);
    /// A machine tells its network which multicast groups it is in.
    pub const IGMP: Other = Other::Protocol(2);

    pub(crate) fn of_ethertype(ethertype: u16) -> Other {
        match ethertype {
            0x0806 => Other::Arp,
            0x8035 => Other::Rarp,
            0x8808 => Other::Pause,
            0x8915 => Other::RoceV1,
            0..=0x5ff => Other::EtherType(0),
            other => Other::EtherType(other),
        }
    }
}

impl fmt::Display for Other {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, number, name) = match *self {
            Other::Arp => return f.write_str("ARP"),
            Other::Rarp => return f.write_str("RARP"),
            Other::Fragment => return f.write_str("IP fragment"),
            Other::RoceFragment => return f.write_str("first IP fragment of a RoCEv2 packet"),
            Other::TCP => return f.write_str("TCP"),
            Other::IGMP => return f.write_str("IGMP"),
            Other::Pause => return f.write_str("pause"),
            Other::RoceV1 => return f.write_str("RoCEv1"),
            Other::InfiniBand => return f.write_str("native InfiniBand"),
            Other::Short => return f.write_str("too short for RoCEv2"),
            Other::Cut => return f.write_str("cut frame"),
            Other::Malformed => return f.write_str("malformed header"),
            Other::Nested => return f.write_str("too many packets inside one another"),
            Other::EtherType(0) => return f.write_str("IEEE 802.3 without EtherType"),
            Other::EtherType(ethertype) => {
                return named(f, format_args!("EtherType {ethertype:#06x}"), name_of_ethertype(ethertype))
            }
            Other::Link(link) => ("link type", link.0, name_of_link(link)),
            Other::Erf(kind) => ("ERF type", kind.into(), ""),
            Other::Protocol(protocol) => ("IP protocol", protocol.into(), name_of_protocol(protocol)),
            Other::Port(port) => ("UDP port", port, name_of_port(port)),
        };
        named(f, format_args!("{what} {number}"), name)
    }
}

fn named(f: &mut fmt::Formatter<'_>, what: fmt::Arguments<'_>, name: &str) -> fmt::Result {
    if name.is_empty() {
        f.write_fmt(what)
    } else {
        write!(f, "{what} ({name})")
    }
}

fn name_of_link(link: LinkType) -> &'static str {
    match link.0 {
        9 | 50 => "PPP",
        51 => "PPPoE",
        104 => "Cisco HDLC",
        105 => "802.11",
        107 => "frame relay",
        127 => "802.11 with radiotap",
        147..=162 => "a program's own",
        189 | 220 | 249 => "USB",
        192 => "PPI",
        197 => "ERF",
        239 => "NFLOG",
        242 => "IP over InfiniBand",
        253 => "netlink",
        _ => "",
    }
}

fn name_of_ethertype(ethertype: u16) -> &'static str {
    match ethertype {
        0x22f0 => "AVTP",
        0x6003..=0x6007 => "DECnet",
        0x8137 => "IPX",
        0x8863 => "PPPoE discovery",
        0x8864 => "PPPoE",
        0x886d => "a NIC's teaming",
        0x888e => "802.1X",
        0x8899 => "Realtek",
        0x8906 => "Fibre Channel over Ethernet",
        0x8914 => "FIP",
        0x88cc => "LLDP",
        0x88e5 => "MACsec, which may be encrypted",
        0x88f7 => "PTP",
        0x8902 => "CFM",
        0x8809 => "LACP and other slow protocols",
        0x892f => "HSR",
        0x894f => "NSH",
        0x9000 => "loopback test",
        _ => "",
    }
}

fn name_of_protocol(protocol: u8) -> &'static str {
    match protocol {
        1 => "ICMP",
        47 => "GRE",
        50 => "ESP, which is encrypted",
        58 => "ICMPv6",
        59 => "no next header",
        88 => "EIGRP",
        89 => "OSPF",
        103 => "PIM",
        112 => "VRRP",
        115 => "L2TP",
        132 => "SCTP",
        _ => "",
    }
}

fn name_of_port(port: u16) -> &'static str {
    match port {
        53 => "DNS",
        67 | 68 => "DHCP",
        123 => "NTP",
        319 | 320 => "PTP",
        443 => "QUIC",
        500 | 4500 => "IPsec, which is encrypted",
        514 => "syslog",
        546 | 547 => "DHCPv6",
        1701 => "L2TP",
        3784 | 3785 | 4784 => "BFD",
        5246 | 5247 => "CAPWAP",
        5353 => "mDNS",
        5355 => "LLMNR",
        1900 => "SSDP",
        6343 => "sFlow",
        2055 | 4739 => "flow records",
        51820 => "WireGuard, which is encrypted",
        _ => "",
    }
}

/// How many frames of each kind there were.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Others(BTreeMap<Other, u64>);

impl Others {
    /// So many kinds are named; a capture of noise has thousands.
    const MOST: usize = 12;

    pub fn see(&mut self, other: Other) {
        *self.0.entry(other).or_default() += 1;
    }

    /// How many frames were this.
    pub fn count(&self, other: Other) -> u64 {
        self.0.get(&other).copied().unwrap_or_default()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (Other, u64)> + '_ {
        self.0.iter().map(|(other, count)| (*other, *count))
    }

    /// Without those that nobody wants to hear of.
    pub fn without(&self, is_unwanted: impl Fn(Other) -> bool) -> Others {
        Others(self.iter().filter(|(other, _)| !is_unwanted(*other)).collect())
    }
}

/// As `3 TCP, 2 ARP`, what there was most of first.
impl fmt::Display for Others {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all: Vec<(Other, u64)> = self.iter().collect();
        all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        for (i, (other, count)) in all.iter().take(Self::MOST).enumerate() {
            write!(f, "{}{count} {other}", if i > 0 { ", " } else { "" })?;
        }
        match all.get(Self::MOST..) {
            Some(rest @ [_, ..]) => {
                let frames: u64 = rest.iter().map(|(_, count)| count).sum();
                write!(f, ", {frames} of {} other kinds", rest.len())
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_was_most_of_stands_first_and_the_list_ends() {
        let mut others = Others::default();
        for other in [Other::Arp, Other::TCP, Other::TCP, Other::EtherType(0x88cc), Other::Protocol(200)] {
            others.see(other);
        }
        assert_eq!(others.to_string(), "2 TCP, 1 ARP, 1 EtherType 0x88cc (LLDP), 1 IP protocol 200");
        (0x4000..0x4100).for_each(|ethertype| others.see(Other::EtherType(ethertype)));
        assert!(others.to_string().ends_with(", 248 of 248 other kinds"), "{others}");
    }
}
