//! `ibv_mtu`: the most payload in a packet (man 3 ibv_query_port, ibv_modify_qp).

use std::fmt;

/// An MTU as C's code. It counts the payload alone: headers come on top.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mtu(pub u32);

impl Mtu {
    /// `IBV_MTU_256`.
    pub const BYTES_256: Self = Self(1);
    /// `IBV_MTU_512`.
    pub const BYTES_512: Self = Self(2);
    /// `IBV_MTU_1024`.
    pub const BYTES_1024: Self = Self(3);
    /// `IBV_MTU_2048`.
    pub const BYTES_2048: Self = Self(4);
    /// `IBV_MTU_4096`.
    pub const BYTES_4096: Self = Self(5);

    /// In bytes; 0 if it isn't one of these, because a QP has none before RTR.
    pub fn bytes(self) -> usize {
        match self.0 {
            1..=5 => 128 << self.0,
            _ => 0,
        }
    }
}

/// The code: 3 for 1024 bytes.
impl fmt::Display for Mtu {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Mtu {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_in_bytes() {
        let bytes = [3, 5, 0, 77].map(|code| Mtu(code).bytes());
        assert_eq!((bytes, Mtu::BYTES_256.bytes()), ([1024, 4096, 0, 0], 256));
        assert!(Mtu::BYTES_512 < Mtu::BYTES_2048);
    }
}
