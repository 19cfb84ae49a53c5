//! What two sides must know of each other before their devices can talk. Programs without a connection manager tell it over
//! TCP, through a job launcher, or through a file.
//!
//! ```text
//! LID :QPN   :PSN   :GID                             :MTU:ADDR        :RKEY:LEN     all of it hexadecimal
//! 0000:000011:d5e8aa:00000000000000000000ffff0a2f5b02:3  :55efcb354000:38e :1000
//! ```
//!
//! The first four are all that `ibv_rc_pingpong` tells, in just this form. It takes an MTU of 1024 bytes for granted.

use std::fmt;
use std::net::Ipv6Addr;

use crate::error::{Error, Kind, Result};
use crate::metadata::Metadata;
use crate::mtu::Mtu;

/// One side's queue pair, and memory that goes with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Card {
    /// The queue pair's number, 24 bits, which every packet for it must carry.
    pub qpn: u32,
    /// The number of the first packet that this side will send, 24 bits.
    pub psn: u32,
    /// The address of this side's port.
    pub gid: Ipv6Addr,
    /// The most payload in a packet that this side's port can take: 256 to 4096 bytes.
    pub mtu: Mtu,
    /// Memory that the other side may use.
    pub memory: Metadata,
}

impl Card {
    /// `ibv_rc_pingpong`'s part.
    pub fn short(&self) -> String {
        format!("0000:{:06x}:{:06x}:{:032x}", self.qpn, self.psn, u128::from(self.gid))
    }

    /// All of it.
    pub fn long(&self) -> String {
        let Metadata { addr, rkey, len } = self.memory;
        format!("{}:{:x}:{addr:x}:{rkey:x}:{len:x}", self.short(), self.mtu.0)
    }

    /// Reads what [`short`](Self::short) writes.
    ///
    /// # Errors
    /// `Kind::Malformed` for any other text.
    pub fn parse_short(text: &str) -> Result<Self> {
        Self::read(&format!("{text}:3:0:0:0")).ok_or_else(|| strange(text, "LID:QPN:PSN:GID"))
    }

    /// Reads what [`long`](Self::long) writes.
    ///
    /// # Errors
    /// `Kind::Malformed` for any other text, and for memory that no region can be.
    pub fn parse(text: &str) -> Result<Self> {
        Self::read(text).ok_or_else(|| strange(text, "LID:QPN:PSN:GID:MTU:ADDR:RKEY:LEN"))
    }

    fn read(text: &str) -> Option<Self> {
        let fields: Vec<_> = text.split(':').map_while(|field| u128::from_str_radix(field, 16).ok()).collect();
        let [_, qpn, psn, gid, mtu, addr, rkey, len] = fields[..] else { return None };
        let fits = (qpn | psn) >> 24 == 0 && (1..=5).contains(&mtu) && addr >> 64 == 0 && (rkey | len) >> 32 == 0;
        let memory = Metadata { addr: addr as u64, rkey: rkey as u32, len: len as u32 };
        (fits && memory.is_possible()).then_some(Self {
            qpn: qpn as u32,
            psn: psn as u32,
            gid: gid.into(),
            mtu: Mtu(mtu as u32),
            memory,
        })
    }
}

fn strange(text: &str, wanted: &str) -> Error {
    let what = format!("the peer says {text:?}, and not {wanted}");
    Error::of(Kind::Malformed, what, "Does it run the same program, with the same options?")
}

impl fmt::Display for Card {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "qpn={} psn={} gid={} mtu={} {}", self.qpn, self.psn, self.gid, self.mtu, self.memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_read_as_it_is_written() {
        let short = "0000:000011:d5e8aa:00000000000000000000ffff0a2f5b02";
        let long = format!("{short}:3:55efcb354000:38e:1000");
        let card = Card::parse(&long).unwrap();
        assert_eq!((card.qpn, card.memory.len, card.gid.to_string().as_str()), (17, 4096, "::ffff:10.47.91.2"));
        assert_eq!((card.short().as_str(), card.long()), (short, long.clone()));
        let from_short = Card::parse_short(short).unwrap();
        assert_eq!(Card { memory: card.memory, ..from_short }, card);
        for wrong in ["", "done", "0:1:2", "0:1000000:1:0", "0:1:x:0", "0:1:2:3:4", &long] {
            assert!(Card::parse_short(wrong).is_err(), "{wrong}");
        }
        for wrong in
            ["", short, &format!("{long}:0"), &long.replace(":3:", ":6:"), &long.replace(":38e:", ":100000000:")]
        {
            assert!(Card::parse(wrong).is_err(), "{wrong}");
        }
        for impossible in [long.replace("55efcb354000", "ffffffffffffffff"), long.replace(":1000", ":0")] {
            assert!(Card::parse(&impossible).is_err(), "{impossible}");
        }
        assert!(Card::parse(&format!("{short}:3:0:0:0")).is_ok(), "no memory at all is possible");
    }
}
