//! Lesson 14, what no capture has: a packet over IPv6. Its headers and its ICRC are those that the specification gives (annex A17.3).

use crate::dump::{difference, differing};
use nic::datagram;
use nic::packet::{code, Packet};
use roce::icrc;
use std::net::IpAddr;

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
fn sealed() -> Vec<u8> {
    let address = |at: usize| -> IpAddr { <[u8; 16]>::try_from(&HEADERS[at..at + 16]).unwrap_or_default().into() };
    let packet = Packet { opcode: code::READ_RESPONSE_ONLY, dest_qp: 17, ..Packet::default() };
    datagram::seal(address(8), address(24), &packet)
}

pub fn headers() -> Result<(), String> {
    let yours = sealed();
    let yours = &yours[..yours.len().min(HEADERS.len())];
    difference(&HEADERS, yours).map_or(Ok(()), |at| {
        let field = if at < UDP { ", IPv6" } else { ", UDP" };
        let dump = differing(WANTED, &HEADERS, yours, at, field);
        Err(format!("A READ response without bytes goes out over IPv6, its IP and UDP headers:\n{dump}"))
    })
}

/// The ICRC by its definition: bit after bit, over eight bytes of ones, and what a router may change as ones.
pub fn icrc() -> Result<Vec<u8>, String> {
    let mut covered = HEADERS.to_vec();
    covered.extend_from_slice(&[0x10, 0, 0xff, 0xff, 0, 0, 0, 17, 0, 0, 0, 1, 0x1f, 0, 0, 2]);
    let mut masked = covered.clone();
    masked[0] |= 0x0f;
    [1, 2, 3, 7, UDP + 6, UDP + 7, UDP + 12].iter().for_each(|at| masked[*at] = 0xff);
    let bytes = [0xff; 8].into_iter().chain(masked);
    let sum = !bytes.fold(!0u32, |sum, byte| {
        (0..8).fold(sum ^ u32::from(byte), |sum, _| sum >> 1 ^ if sum & 1 == 1 { 0xedb8_8320 } else { 0 })
    });
    let yours = icrc::compute(&covered, UDP);
    if yours == Some(sum) {
        return Ok(covered);
    }
    let yours = yours.map_or("none".to_owned(), |yours| format!("{:02x?}", yours.to_le_bytes()));
    Err(format!("A READ response without bytes, over IPv6: its ICRC is {:02x?}. Yours: {yours}.", sum.to_le_bytes()))
}
