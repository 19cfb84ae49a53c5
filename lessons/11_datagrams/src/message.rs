//! What's in requests and answers: four numbers of 32 bits, big-endian. And what the device puts in front of a datagram.
//!
//! ```text
//!  0        4           8          12         16
//!  │ "DG11" │ client    │ number   │ word     │ padding …
//! ```

use std::net::Ipv4Addr;

pub const LEN: usize = 16;
const MAGIC: u32 = u32::from_be_bytes(*b"DG11");

/// The word of a request is how many coins to put into the box, or goodbye; that of an answer, how many are in it.
pub const GOODBYE: u32 = 0;
/// In place of a client's number: the message is for the whole group.
pub const ALL: u32 = 0;

#[derive(Clone, Copy)]
pub struct Message {
    /// The number that the server gave to the client, from 1.
    pub client: u32,
    /// Which request of that client, from 1. If it comes again, it has the same number, and so has the answer.
    pub number: u32,
    pub word: u32,
}

impl Message {
    pub fn encode(&self) -> Vec<u8> {
        [MAGIC, self.client, self.number, self.word].map(u32::to_be_bytes).concat()
    }

    /// None if these bytes aren't a message. They may be anything, since anybody can send us a datagram.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let number = |bytes: &[u8]| bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
        let numbers: Vec<u32> = bytes.get(..LEN)?.chunks_exact(4).map(number).collect();
        let [MAGIC, client, number, word] = numbers[..] else { return None };
        Some(Self { client, number, word })
    }
}

/// The 40 bytes as text. They have room for an IPv6 header; a packet over IPv4 leaves its header in the last 20.
pub fn describe(front: &[u8]) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    match front.split_at(front.len().min(20)) {
        (first, last @ [0x45, .., a, b, c, d, _, _, _, _]) => {
            format!("{}, then the IPv4 header of {}: {}", hex(first), Ipv4Addr::new(*a, *b, *c, *d), hex(last))
        }
        _ => hex(front),
    }
}
