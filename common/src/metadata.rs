//! The metadata that one side tells the other, so that the other can WRITE to, or READ from, its memory.
//!
//! ```text
//!  0        8      12     16     big-endian, the layout that rping uses
//!  ├─ addr ─┼ rkey ┼ len ─┤
//! ```

use std::fmt;
use std::ops::Range;

use crate::error::{Error, Kind, Result};
use crate::mr::MemoryRegion;

/// Where a buffer is, the key to it, and its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metadata {
    /// The virtual address of the first byte, in the memory of whoever sent this.
    pub addr: u64,
    /// The remote key. (It isn't the lkey. Most drivers make them equal, but no driver must.)
    pub rkey: u32,
    /// The length in bytes.
    pub len: u32,
}

impl Metadata {
    /// The length of the encoded form, in bytes.
    pub const LEN: usize = 16;

    /// No buffer at all: how a server says that it cannot serve the one asked for.
    pub const REFUSAL: Self = Self { addr: 0, rkey: 0, len: 0 };

    /// What the peer needs to reach `region`.
    pub fn of(region: &MemoryRegion) -> Self {
        // Regions are at most u32::MAX bytes long.
        Self { addr: region.addr(), rkey: region.rkey(), len: region.len() as u32 }
    }

    /// The 16 bytes for the wire.
    pub fn encode(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..8].copy_from_slice(&self.addr.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.rkey.to_be_bytes());
        bytes[12..].copy_from_slice(&self.len.to_be_bytes());
        bytes
    }

    /// A part of the buffer, in bytes from its start.
    ///
    /// # Errors
    /// `Kind::OutOfRange` if it isn't a part of it.
    pub fn slice(&self, range: Range<u32>) -> Result<Self> {
        if range.start <= range.end && range.end <= self.len {
            // No region can have an address that overflows here.
            let addr = self.addr.wrapping_add(range.start.into());
            return Ok(Self { addr, rkey: self.rkey, len: range.end - range.start });
        }
        let what =
            format!("bytes {}..{} are outside the peer's buffer, which has {}", range.start, range.end, self.len);
        Err(Error::of(Kind::OutOfRange, what, "Ask the peer for a longer buffer, or use less of it"))
    }

    /// Reads what the peer sent, which must be at least 16 bytes. What follows is padding, because private data always comes padded.
    ///
    /// # Errors
    /// `Kind::Malformed` if there are fewer bytes, or no region can be like this.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let too_short = || {
            let what = format!("the peer's metadata has {} bytes, not {}", bytes.len(), Self::LEN);
            Error::of(Kind::Malformed, what, "Read as many bytes as came (byte_len): does the peer send 16 of them?")
        };
        let field = |at: usize, len: usize| bytes.get(at..at + len).ok_or_else(too_short);
        let number = |field: &[u8]| field.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        let (addr, rkey, len) = (number(field(0, 8)?), number(field(8, 4)?), number(field(12, 4)?));
        // The fields are 4 bytes long, so neither cast loses anything.
        let metadata = Self { addr, rkey: rkey as u32, len: len as u32 };
        if !metadata.is_possible() {
            let what = format!("the peer's metadata makes no sense: {metadata}");
            let next =
                "Read it when the completion of its receive is there, the highest byte of each field first. Of two \
                        lessons: run the same one on both sides, with the same --metadata";
            return Err(Error::of(Kind::Malformed, what, next));
        }
        Ok(metadata)
    }

    /// False for what no region can be: of no bytes, or past the end of the address space. A refusal is possible.
    pub(crate) fn is_possible(&self) -> bool {
        *self == Self::REFUSAL || (self.len > 0 && self.addr.checked_add(self.len.into()).is_some())
    }
}

impl fmt::Display for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "addr=0x{:x} rkey=0x{:x} len={}", self.addr, self.rkey, self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: Metadata = Metadata { addr: 0x5581_0123_4567_89ab, rkey: 0x43b, len: 61 };

    #[test]
    fn big_endian_address_key_length() {
        let bytes = SAMPLE.encode();
        assert_eq!(bytes, [0x55, 0x81, 1, 0x23, 0x45, 0x67, 0x89, 0xab, 0, 0, 4, 0x3b, 0, 0, 0, 61]);
        assert_eq!(Metadata::decode(&bytes), Ok(SAMPLE));
    }

    #[test]
    fn longer_is_padding() {
        let mut padded = [0; 196];
        padded[..16].copy_from_slice(&SAMPLE.encode());
        assert_eq!(Metadata::decode(&padded), Ok(SAMPLE));
    }

    #[test]
    fn shorter_is_an_error_at_every_length() {
        for len in 0..16 {
            let error = Metadata::decode(&SAMPLE.encode()[..len]).unwrap_err().to_string();
            assert!(error.contains(&format!("has {len} bytes, not 16")), "{error}");
        }
    }

    #[test]
    #[allow(clippy::reversed_empty_ranges)]
    fn slices_stay_inside() {
        let slice = SAMPLE.slice(8..16).unwrap();
        assert_eq!(slice, Metadata { addr: SAMPLE.addr + 8, rkey: SAMPLE.rkey, len: 8 });
        assert!(slice.slice(0..9).is_err() && SAMPLE.slice(9..8).is_err());
        assert_eq!(SAMPLE.slice(61..61).unwrap().len, 0);
    }

    #[test]
    fn garbage_is_refused() {
        assert!(Metadata::decode(&[0xff; 16]).is_err(), "the buffer would end beyond the address space");
        assert!(Metadata::decode(&Metadata { len: 0, ..SAMPLE }.encode()).is_err());
        assert_eq!(Metadata::decode(&[0; 16]), Ok(Metadata::REFUSAL));
    }
}
