//! From a transport packet to what crosses the network, and back: the IP and UDP headers in front of it and the invariant CRC
//! after it (specification, volume 1, 7.8.1; annex A17.3).
//!
//! A socket adds and removes the real headers. We make them a second time, exactly as the kernel does, because the ICRC covers
//! most of their fields. There's one field that a UDP socket doesn't show to the receiver, IPv4's identification.

use crate::packet::Packet;
use roce::icrc;
use roce::link::{self, LinkType, ROCE_PORT};
use std::net::IpAddr;

const UDP_LENGTH: usize = 8;
const GRH_LENGTH: usize = 40;

/// Where a packet came from, and where it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    pub from: IpAddr,
    /// Our address, or that of a multicast group.
    pub to: IpAddr,
}

impl Route {
    /// The 40 bytes that precede a datagram in its receive: an IP header, in the place where InfiniBand has its Global Route
    /// Header of the same length. IPv4's header is only half as long and follows 20 bytes of zeroes (annex A17).
    pub fn grh(self, packet: &Packet) -> Vec<u8> {
        let Route { from, to } = self;
        let mut headers = headers(from, to, ROCE_PORT, packet.encode().len() + icrc::LENGTH);
        link::set_traffic_class(&mut headers, packet.class);
        let ip = &headers[..payload_offset(from) - UDP_LENGTH];
        [&vec![0; GRH_LENGTH - ip.len()], ip].concat()
    }
}

/// Where the UDP payload begins in what [`seal`] returns: after the IP header (without options) and the UDP header, both of which
/// the socket adds itself.
pub fn payload_offset(address: IpAddr) -> usize {
    UDP_LENGTH + if address.is_ipv4() { 20 } else { 40 }
}

/// Wraps a packet in IP and UDP, from our port to theirs, and adds its ICRC.
pub fn seal(from: IpAddr, to: IpAddr, packet: &Packet) -> Vec<u8> {
    let transport = packet.encode();
    let mut bytes = headers(from, to, ROCE_PORT, transport.len() + icrc::LENGTH);
    link::set_traffic_class(&mut bytes, packet.class);
    bytes.extend_from_slice(&transport);
    let sum = icrc::compute(&bytes, payload_offset(from) - UDP_LENGTH).unwrap_or_default();
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

/// The IP and UDP headers of a datagram with `payload` bytes of payload, marked "don't fragment", and with 0 as its
/// identification.
fn headers(from: IpAddr, to: IpAddr, src_port: u16, payload: usize) -> Vec<u8> {
    const HOPS: u8 = 64;
    const UDP: u8 = 17;
    let udp_length = ((payload + 8) as u16).to_be_bytes();
    let mut bytes = match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let mut ip = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, HOPS, UDP, 0, 0];
            ip[2..4].copy_from_slice(&((payload + 28) as u16).to_be_bytes());
            ip.extend(from.octets().into_iter().chain(to.octets()));
            let sum: u32 = ip.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
            let sum = (sum >> 16) + (sum & 0xffff);
            let sum = (sum >> 16) + (sum & 0xffff); // The first one may carry.
            ip[10..12].copy_from_slice(&(!sum as u16).to_be_bytes());
            ip
        }
        (from, to) => {
            let octets = |address| match address {
                IpAddr::V6(address) => address.octets(),
                IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            };
            let mut ip = vec![0x60, 0, 0, 0, udp_length[0], udp_length[1], UDP, HOPS];
            ip.extend(octets(from).into_iter().chain(octets(to)));
            ip
        }
    };
    bytes.extend(src_port.to_be_bytes().into_iter().chain(ROCE_PORT.to_be_bytes()));
    bytes.extend(udp_length.into_iter().chain([0, 0])); // no checksum, since the ICRC protects more
    bytes
}

/// A packet in an Ethernet frame, as run files have them. There was none: the addresses are made of the IP addresses' ends.
pub fn ethernet(ip: &[u8]) -> Vec<u8> {
    let (source, target, kind) = match ip.first().map(|byte| byte >> 4) {
        Some(6) => (20, 36, [0x86, 0xdd]),
        _ => (12, 16, [0x08, 0x00]),
    };
    let end = |at: usize| ip.get(at..at + 4).unwrap_or(&[0; 4]);
    [&[2, 0], end(target), &[2, 0], end(source), &kind, ip].concat()
}

/// How long a packet occupies the link, counted in bytes. Ethernet's header and checksum add 18, and each frame is surrounded by
/// 20 bytes' worth of time that carry nothing (IEEE 802.3, 4.4.2).
pub fn bytes_of_link(to: IpAddr, packet: &Packet) -> u64 {
    const SHORTEST: usize = 64;
    let headers: usize = packet.row().headers.iter().map(|header| header.length).sum();
    let payload = packet.payload.len().next_multiple_of(4);
    let ip = payload_offset(to) + roce::bth::HEADER.length + headers + payload + icrc::LENGTH;
    ((ip + 18).max(SHORTEST) + 20) as u64
}

/// Takes a packet out of what a socket received. None if it's damaged or isn't a packet at all; a NIC drops either without a
/// word.
pub fn open(from: IpAddr, to: IpAddr, src_port: u16, payload: &[u8]) -> Option<Packet> {
    let mut bytes = headers(from, to, src_port, payload.len());
    bytes.extend_from_slice(payload);
    open_ip(&bytes)
}

/// The same, for a caller that also got the IP header.
pub fn open_ip(bytes: &[u8]) -> Option<Packet> {
    let packet = roce::Packet::new(link::datagram(LinkType::RAW, bytes).ok()?).ok()?;
    let expected = packet.expected_icrc()?;
    let ip = packet.datagram.ip;
    let sum = u32::from_le_bytes(ip[ip.len() - icrc::LENGTH..].try_into().ok()?);
    if expected != sum && !(packet.datagram.src.is_ipv4() && fits_some_identification(ip, expected ^ sum)) {
        return None;
    }
    Packet::decode(&packet)
}

/// Whether an ICRC that's wrong by `difference` would be right for some IPv4 identification other than 0, because kernels use
/// those.
///
/// A CRC is linear, so each of the field's sixteen bits flips a certain pattern of the sum, whatever else the packet holds. The
/// question is then whether `difference` is a sum of some of these patterns, and Gaussian elimination answers it. 2^16 of the
/// 2^32 wrong sums pass. So between a kernel and us, the ICRC protects no better than a 16-bit checksum would; between two of our
/// devices the identification is always 0, and it protects fully.
fn fits_some_identification(ip: &[u8], difference: u32) -> bool {
    const IDENTIFICATION: usize = 4;
    let covered = &ip[..ip.len() - icrc::LENGTH];
    let Some(zero) = icrc::compute(covered, 20) else { return false };
    let mut flipped = covered.to_vec();
    let mut patterns = [0u32; 32]; // at index n, one whose highest bit is n
    for bit in 0..16 {
        flipped[IDENTIFICATION..][..2].copy_from_slice(&(1u16 << bit).to_be_bytes());
        let pattern = reduce(&patterns, icrc::compute(&flipped, 20).unwrap_or(zero) ^ zero);
        if let Some(highest) = pattern.checked_ilog2() {
            patterns[highest as usize] = pattern;
        }
    }
    reduce(&patterns, difference) == 0
}

/// What's left of `value` after the patterns have been taken out, from the highest bit down.
fn reduce(patterns: &[u32; 32], mut value: u32) -> u32 {
    for highest in (0..32).rev() {
        if value >> highest & 1 == 1 {
            value ^= patterns[highest];
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{code, AtomicEth};
    use crate::psn::Psn;

    #[test]
    fn what_is_sealed_can_be_opened_over_both_versions_of_ip() {
        let sample = Packet {
            opcode: code::COMPARE_SWAP,
            solicited: true,
            dest_qp: 0x12,
            psn: Psn::new(77),
            atomic: AtomicEth { va: 1 << 40, rkey: 2, swap_add: 3 << 40, compare: 4 << 40 },
            payload: b"hello".to_vec(),
            ..Packet::default()
        };
        for (from, to) in [("127.0.0.2", "127.0.0.3"), ("fd47:91::1", "fd47:91::2")] {
            let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
            let bytes = seal(from, to, &sample);
            let payload = &bytes[payload_offset(from)..];
            assert_eq!(open(from, to, ROCE_PORT, payload).as_ref(), Some(&sample));
            assert_eq!(open(to, from, ROCE_PORT, payload), None, "other addresses");
            let marked = Packet { class: 26 << 2 | 3, ..sample.clone() };
            let bytes = seal(from, to, &marked);
            assert_eq!(open_ip(&bytes).as_ref(), Some(&marked), "the class is in the IP header");
            let sums =
                |ip: &[u8]| ip.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum::<u32>();
            let sum = sums(&bytes[..20]);
            assert!(!from.is_ipv4() || (sum & 0xffff) + (sum >> 16) == 0xffff, "IPv4's checksum fits");
            assert_eq!(bytes_of_link(to, &marked), (bytes.len() + 38) as u64);
        }
    }
}
