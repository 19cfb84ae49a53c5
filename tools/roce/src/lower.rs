//! The headers below RoCEv2 and iWARP, declared for showing them: Ethernet, IPv4, IPv6, UDP, TCP.

use crate::field::{headers, only, Field};
use std::net::Ipv4Addr;

headers! {
    /// Ethernet without VLAN tags.
    pub mod ethernet = "Ethernet", "Ethernet II", 14 => {
        Field::bytes("Destination", 0, 6);
        Field::bytes("Source", 6, 6);
        Field::hex("EtherType", (12, 0), 16).means(|v| match v {
            0x0800 => "IPv4".into(),
            0x86dd => "IPv6".into(),
            _ => String::new(),
        });
    }

    /// IPv4 without options (RFC 791).
    pub mod ipv4 = "IPv4", "Internet Protocol version 4", 20 => {
        Field::dec("Version", (0, 0), 4);
        Field::dec("IHL", (0, 4), 4).means(|words| format!("{} bytes", words * 4));
        Field::hex("TypeOfService", (1, 0), 8).means(not_covered);
        Field::dec("TotalLength", (2, 0), 16);
        Field::hex("Identification", (4, 0), 16);
        Field::dec("Reserved", (6, 0), 1);
        Field::dec("DontFragment", (6, 1), 1);
        Field::dec("MoreFragments", (6, 2), 1);
        Field::dec("FragmentOffset", (6, 3), 13);
        Field::dec("TimeToLive", (8, 0), 8).means(not_covered);
        Field::dec("Protocol", (9, 0), 8).means(protocol);
        Field::hex("HeaderChecksum", (10, 0), 16).means(not_covered);
        Field::hex("Source", (12, 0), 32).means(|v| Ipv4Addr::from(v as u32).to_string());
        Field::hex("Destination", (16, 0), 32).means(|v| Ipv4Addr::from(v as u32).to_string());
    }

    /// IPv6 (RFC 8200).
    pub mod ipv6 = "IPv6", "Internet Protocol version 6", 40 => {
        Field::dec("Version", (0, 0), 4);
        Field::hex("TrafficClass", (0, 4), 8).means(not_covered);
        Field::hex("FlowLabel", (1, 4), 20).means(not_covered);
        Field::dec("PayloadLength", (4, 0), 16);
        Field::dec("NextHeader", (6, 0), 8).means(protocol);
        Field::dec("HopLimit", (7, 0), 8).means(not_covered);
        Field::address("Source", 8);
        Field::address("Destination", 24);
    }

    /// UDP (RFC 768).
    pub mod udp = "UDP", "User Datagram Protocol", 8 => {
        Field::dec("SourcePort", (0, 0), 16).means(|_| "chosen per connection, to spread over paths".into());
        Field::dec("DestinationPort", (2, 0), 16).means(|port| only(port, 4791, "RoCEv2"));
        Field::dec("Length", (4, 0), 16);
        Field::hex("Checksum", (6, 0), 16).means(|v| match v {
            0 => "not used: the ICRC protects the packet".into(),
            _ => not_covered(v),
        });
    }

    /// TCP without options (RFC 9293).
    pub mod tcp = "TCP", "Transmission Control Protocol", 20 => {
        Field::dec("SourcePort", (0, 0), 16);
        Field::dec("DestinationPort", (2, 0), 16);
        Field::dec("SequenceNumber", (4, 0), 32).means(|_| "of the first byte of the payload".into());
        Field::dec("AcknowledgmentNumber", (8, 0), 32).means(|_| "of the byte that the sender waits for".into());
        Field::dec("DataOffset", (12, 0), 4).means(|words| format!("{} bytes", words * 4));
        Field::dec("Reserved", (12, 4), 4);
        Field::dec("CWR", (13, 0), 1);
        Field::dec("ECE", (13, 1), 1);
        Field::dec("URG", (13, 2), 1);
        Field::dec("ACK", (13, 3), 1);
        Field::dec("PSH", (13, 4), 1);
        Field::dec("RST", (13, 5), 1);
        Field::dec("SYN", (13, 6), 1);
        Field::dec("FIN", (13, 7), 1);
        Field::dec("Window", (14, 0), 16);
        Field::hex("Checksum", (16, 0), 16);
        Field::dec("UrgentPointer", (18, 0), 16);
    }
}

fn protocol(number: u64) -> String {
    match number {
        6 => "TCP".into(),
        17 => "UDP".into(),
        _ => String::new(),
    }
}

/// For fields that a router may change.
fn not_covered(_: u64) -> String {
    "counts as ones in the ICRC".into()
}
