//! What's in the server's memory, and what the two programs say to each other. All numbers are big-endian.
//!
//! ```text
//! table     buckets 64 each │ small places 128 each │ large places 1024 each    in the server's memory: clients READ it
//! bucket    4 slots: key 8 │ where the record is 8 (offset 48 bits, length 16 bits; 0: nowhere)
//! record    seal 8 │ key 8 │ version 4 │ length 4 │ value       the seal is a hash of everything after it
//! lock      the number of the client that has it, or 0; 8      in the server's memory: clients swap it
//! request   what 1 │ key 8 │ value                 a client's SEND
//! answer    1: yes, 0: no │ record                 the server's SEND
//! hello     "KV12"                                 private data of the ConnectRequest
//! welcome   table 16 │ lock 16 │ number 1           private data of the ConnectReply
//! ```

use std::ops::Range;

use common::{Error, Metadata, Result};

pub type Key = [u8; 8];
/// A part of the table, in bytes from its start.
pub type Place = Range<usize>;

pub const BUCKETS: usize = 256;
const SLOT_LEN: usize = 16;
pub const BUCKET_LEN: usize = 4 * SLOT_LEN;
/// Length and number of the places of each size.
pub const SIZES: [(usize, usize); 2] = [(128, 600), (1024, 100)];
pub const TABLE_LEN: usize = BUCKETS * BUCKET_LEN + SIZES[0].0 * SIZES[0].1 + SIZES[1].0 * SIZES[1].1;
/// What precedes the value in a record.
pub const HEAD: usize = 24;
pub const VALUE_MAX: usize = SIZES[1].0 - HEAD;
pub const MESSAGE_LEN: usize = 1 + SIZES[1].0;
pub const HELLO: &[u8] = b"KV12";
pub const PUT: u8 = 1;
pub const ASK: u8 = 2;

/// A key of up to eight bytes, filled up with zeroes.
pub fn key(text: &str) -> Result<Key> {
    match text.len() {
        1..=8 => Ok(key_of(text.as_bytes())),
        _ => Err(Error::content(format!("{text:?} is no key"), "Take one to eight bytes")),
    }
}

/// The key at the front of these bytes.
pub fn key_of(bytes: &[u8]) -> Key {
    std::array::from_fn(|at| bytes.get(at).copied().unwrap_or_default())
}

pub fn name(key: &Key) -> String {
    String::from_utf8_lossy(key).trim_end_matches('\0').to_owned()
}

/// The buckets in which to look for a key, one after the other, because if one is full the key is in the next.
pub fn buckets(key: &Key) -> impl Iterator<Item = Place> {
    let first = hash(key) as usize % BUCKETS;
    let starts = (first..first + BUCKETS).map(|bucket| bucket % BUCKETS * BUCKET_LEN);
    starts.map(|start| start..start + BUCKET_LEN)
}

/// A key's slot in a bucket, or else the first free one. Returns where it begins in these bytes, and where it leads.
pub fn slot_of(key: &Key, bucket: &[u8]) -> Option<(usize, Option<Place>)> {
    let slots = bucket.chunks(SLOT_LEN).map(|slot| (key_of(slot), number(&slot[8..])));
    let mut those = slots.enumerate().filter(|(_, (found, word))| found == key || *word == 0);
    those.next().map(|(at, (_, word))| (at * SLOT_LEN, place(word)))
}

pub fn word(place: &Place) -> u64 {
    (place.start << 16 | place.len()) as u64
}

pub fn place(word: u64) -> Option<Place> {
    let (start, len) = ((word >> 16) as usize, word as usize & 0xffff);
    (start > 0 && start + len <= TABLE_LEN).then_some(start..start + len)
}

/// What the ConnectReply says to a client.
pub struct Welcome {
    pub table: Metadata,
    pub lock: Metadata,
    pub number: u8,
}

impl Welcome {
    pub fn encode(&self) -> Vec<u8> {
        [&self.table.encode()[..], &self.lock.encode(), &[self.number]].concat()
    }

    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let (table, lock) = (Metadata::decode(bytes)?, Metadata::decode(bytes.get(16..).unwrap_or_default())?);
        match bytes.get(32) {
            Some(&number) if (table.len as usize, lock.len) == (TABLE_LEN, 8) => Ok(Self { table, lock, number }),
            _ => Err(Error::content("the server's welcome makes no sense", "Run lesson 12 on both sides")),
        }
    }
}

pub fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// FNV-1a with 64 bits. It's meant to find accidents, not attacks.
pub fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}
