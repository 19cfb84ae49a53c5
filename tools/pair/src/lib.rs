//! Two NICs in memory, and a wire between them: one process, no thread, and no clock but the one that they're given.
//!
//! | | |
//! |---|---|
//! | [`memory`] | what a program has registered, with guards around it |
//! | [`end`] | a queue pair with its program, and all that has come out of it |
//! | [`wire`] | loses, doubles and delays |
//! | [`pair`] | two ends and a wire, until nothing more can happen |
//! | [`contract`] | requests over a bad wire, and what must hold at the end |
//! | `network`, `fluid` | many ends at a switch, and what a paper expects of them; with the feature `run` |
//!
//! The tests of the crate `nic` and the judge of the holes use it.

#![forbid(unsafe_code)]
// Names that say it all need no comment.
#![allow(missing_docs)]

pub mod contract;
pub mod end;
#[cfg(feature = "run")]
pub mod fluid;
pub mod memory;
#[cfg(feature = "run")]
pub mod network;
pub mod pair;
pub mod wire;

pub use end::{attributes, End, Setup};
pub use memory::{Buffer, PD};
pub use pair::{Happened, Pair};
pub use wire::{Fault, Wire};

use std::net::{IpAddr, Ipv4Addr};

/// The ends of the wire.
pub const SERVER: usize = 0;
pub const CLIENT: usize = 1;
/// The address of an end that is looked at, and that of its peer.
pub const OURS: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
pub const PEERS: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 3));
/// The smallest there is: short messages have many packets.
pub const MTU: u32 = 256;
