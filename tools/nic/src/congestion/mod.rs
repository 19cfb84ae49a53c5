//! Congestion: what a NIC does so that the queues of switches stay short. Without a [`Link`] it does none of it.
//!
//! | | |
//! |---|---|
//! | [`notification`] | a marked packet has come: its sender is told, by a CNP |
//! | [`reaction`] | a CNP has come: send slower, and then faster again |
//! | [`pace`] | when the next packet may go out |
//! | [`pause`] | the switch says: nothing of this priority for a while |
//!
//! The first three are DCQCN: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015. Its names for them
//! are notification point (NP) and reaction point (RP). The third party, the switch that marks (the congestion point, CP), is no
//! part of a NIC. A NIC of today does all of it in hardware; what it is told by its owner is in [`parameters`].

pub mod notification;
pub mod pace;
pub mod parameters;
pub mod pause;
pub mod reaction;

pub use parameters::Parameters;
use pause::Pause;
use std::time::Duration;

/// The lower two bits of a traffic class (RFC 3168): what switches may do with a packet instead of dropping it, and have done.
pub mod ecn {
    pub const BITS: u8 = 3;
    /// ECT(0): its sender reacts to marks.
    pub const CAPABLE: u8 = 2;
    /// CE: it met congestion.
    pub const EXPERIENCED: u8 = 3;
}

/// The link that a NIC sends on, and how it behaves there.
#[derive(Clone, Debug)]
pub struct Link {
    /// In bits per second.
    pub rate: u64,
    /// None: no packet is marked for us, and nobody is told.
    pub dcqcn: Option<Parameters>,
    pub pause: Pause,
}

impl Link {
    pub fn new(rate: u64, dcqcn: Option<Parameters>) -> Link {
        Link { rate, dcqcn, pause: Pause::default() }
    }
}

/// How long so many bytes take at a rate in bits per second; to the next nanosecond, for a link cannot be overtaken.
pub(crate) fn time(bytes: u64, rate: u64) -> Duration {
    Duration::from_nanos((bytes * 8 * 1_000_000_000).div_ceil(rate.max(1)))
}
