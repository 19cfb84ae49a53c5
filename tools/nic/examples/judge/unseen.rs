//! Lesson 14, what no capture has: a packet over IPv6, from another port than ours, with a checksum that carries twice, with options in its
//! IPv4 header, or cut off. Headers and ICRC are those that the specification gives (annex A17.3).

use crate::dump::{difference, differing};
use nic::datagram;
use nic::packet::{code, Packet};
use roce::icrc;
use std::net::IpAddr;

/// Of an IPv4 header without options.
const IPV4: usize = 20;
/// The port of a sender that spreads its packets, as rdma_rxe does.
const PORT: u16 = 0xc123;

const UDP: usize = 40;
const WANTED: &str = "wanted";

/// What seals a packet without payload, from one address to another: its headers, and itself.
#[rustfmt::skip]
const HEADERS: [u8; UDP + 8] = [
    // version; length behind this header; UDP; hop limit
    0x60, 0, 0, 0, 0, 28, 17, 64,
    // source and destination
    0xfd, 0x47, 0, 0x91, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
    0xfd, 0x47, 0, 0x91, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x20, 0x02,
    // ports, length, checksum
    0x12, 0xb7, 0x12, 0xb7, 0, 28, 0, 0,
];

/// A READ response without bytes has a BTH and an AETH: 16 bytes.
fn response() -> Packet {
    Packet { opcode: code::READ_RESPONSE_ONLY, dest_qp: 17, ..Packet::default() }
}

/// The addresses in the headers above.
fn addresses() -> (IpAddr, IpAddr) {
    let address = |at: usize| -> IpAddr { <[u8; 16]>::try_from(&HEADERS[at..at + 16]).unwrap_or_default().into() };
    (address(8), address(24))
}

pub fn headers() -> Result<(), String> {
    let (from, to) = addresses();
    let yours = datagram::seal(from, to, &response());
    let yours = &yours[..yours.len().min(HEADERS.len())];
    if let Some(at) = difference(&HEADERS, yours) {
        let field = if at < UDP { ", IPv6" } else { ", UDP" };
        let dump = differing(WANTED, &HEADERS, yours, at, field);
        return Err(format!("A READ response without bytes goes out over IPv6, its IP and UDP headers:\n{dump}"));
    }
    checksum()?;
    let v4 = ([192, 0, 2, 1].into(), [192, 0, 2, 7].into());
    [v4, (from, to)].into_iter().try_for_each(|(from, to)| other_port(from, to))
}

/// What is above 16 bits is added at the low end, and what is above 16 bits then once more: the words of this header are 0x1ffff together.
fn checksum() -> Result<(), String> {
    let (from, to) = ([192, 0, 2, 1], [10, 0, 110, 189]);
    let sealed = datagram::seal(from.into(), to.into(), &response());
    let yours = sealed.get(10..12).unwrap_or_default();
    if yours == [0xff, 0xfe] {
        return Ok(());
    }
    Err(format!(
        "A READ response without bytes goes from 192.0.2.1 to 10.0.110.189. The ten words of its IPv4 header are 0x1ffff together; \
         0x1 and 0xffff are 0x10000, which carries once more: the checksum is ff fe. Yours: {yours:02x?}."
    ))
}

/// A packet comes from a port that isn't ours. It fits its ICRC, which counts the port, if the headers say so.
fn other_port(from: IpAddr, to: IpAddr) -> Result<(), String> {
    let mut bytes = datagram::seal(from, to, &response());
    let payload = datagram::payload_offset(from);
    let (udp, end) = (payload - 8, bytes.len() - icrc::LENGTH);
    bytes[udp..udp + 2].copy_from_slice(&PORT.to_be_bytes());
    // It may still be a sum that's wrong: that is the next hole.
    let sum = icrc::compute(&bytes[..end], udp).unwrap_or_default();
    bytes[end..].copy_from_slice(&sum.to_le_bytes());
    if datagram::open(from, to, PORT, &bytes[payload..]) == Some(response()) {
        return Ok(());
    }
    Err(format!(
        "A packet comes from port {PORT} of {from}, and its ICRC counts that port. With your headers it does not fit: is `src_port` in \
         them, and {} the destination's?",
        roce::link::ROCE_PORT
    ))
}

/// The ICRC by its definition: bit after bit, over eight bytes of ones, and what a router may change as ones.
pub fn icrc() -> Result<Vec<u8>, String> {
    let transport = [0x10, 0, 0xff, 0xff, 0, 0, 0, 17, 0, 0, 0, 1, 0x1f, 0, 0, 2];
    let v6 = [&HEADERS[..], &transport].concat();
    // Four bytes of options: the header is six words long.
    let (from, to) = ([192, 0, 2, 1], [192, 0, 2, 7]);
    let v4 = datagram::seal(from.into(), to.into(), &response());
    let options = [&[0x46], &v4[1..IPV4], &[0x94, 4, 0, 0], &v4[IPV4..v4.len() - icrc::LENGTH]].concat();
    for (what, covered, udp) in
        [("over IPv6", &v6, UDP), ("with four bytes of options in its IPv4 header", &options, IPV4 + 4)]
    {
        let (sum, yours) = (by_definition(covered, udp), icrc::compute(covered, udp));
        if yours != Some(sum) {
            let yours = yours.map_or("none".to_owned(), |yours| format!("{:02x?}", yours.to_le_bytes()));
            let wanted = sum.to_le_bytes();
            return Err(format!("A READ response without bytes, {what}: its ICRC is {wanted:02x?}. Yours: {yours}."));
        }
    }
    for length in 1..UDP + 20 {
        if icrc::compute(&v6[..length], UDP).is_some() {
            return Err(format!(
                "Of a packet over IPv6 there are {length} bytes, and its BTH is not whole: None. Yours is a sum."
            ));
        }
    }
    Ok(v6)
}

fn by_definition(covered: &[u8], udp: usize) -> u32 {
    let mut masked = covered.to_vec();
    let of_ip: &[usize] = if covered[0] >> 4 == 4 { &[1, 8, 10, 11] } else { &[1, 2, 3, 7] };
    masked[0] |= if covered[0] >> 4 == 4 { 0 } else { 0x0f };
    of_ip.iter().chain(&[udp + 6, udp + 7, udp + 12]).for_each(|at| masked[*at] = 0xff);
    let bytes = [0xff; 8].into_iter().chain(masked);
    !bytes.fold(!0u32, |sum, byte| {
        (0..8).fold(sum ^ u32::from(byte), |sum, _| sum >> 1 ^ if sum & 1 == 1 { 0xedb8_8320 } else { 0 })
    })
}
