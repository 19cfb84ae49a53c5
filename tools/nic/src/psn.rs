//! Packet sequence numbers. They form a circle of 2^24, on which the shorter way round decides what comes before and what after
//! (specification, volume 1, 9.7).

use std::fmt;

const MASK: u32 = 0xff_ffff;

/// A packet sequence number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Psn(u32);

impl Psn {
    /// The number of these lower 24 bits.
    pub fn new(number: u32) -> Psn {
        Psn(number & MASK)
    }

    /// The number itself.
    pub fn get(self) -> u32 {
        self.0
    }

    /// The PSN of the packet that comes this many packets later.
    pub fn plus(self, packets: u32) -> Psn {
        Psn::new(self.0.wrapping_add(packets))
    }

    /// The packet before.
    pub fn before(self) -> Psn {
        Psn::new(self.0.wrapping_sub(1))
    }

    /// How many packets this comes after `other`; negative if it comes before.
    pub fn since(self, other: Psn) -> i32 {
        // The difference's 24 bits at the top of 32 carry their sign.
        (self.0.wrapping_sub(other.0) << 8) as i32 >> 8
    }
}

impl fmt::Display for Psn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
