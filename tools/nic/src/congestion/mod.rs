//! Congestion: what a NIC does to keep the queues in switches short. Without a [`Link`] it does none of this.
//!
//! | | |
//! |---|---|
//! | [`notification`] | a marked packet has come: its sender is told, by a CNP |
//! | [`reaction`] | a CNP has come: send slower, and then faster again |
//! | [`pace`] | when the next packet may go out |
//! | [`pause`] | the switch says: nothing of this priority for a while |
//!
//! The first three are DCQCN: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015. There they're
//! called the notification point (NP) and the reaction point (RP). The third party, the switch that marks (the congestion point,
//! CP), isn't part of a NIC. Today's NICs do all of it in hardware, and [`parameters`] holds what their owners can set.

pub mod notification;
pub mod pace;
pub mod parameters;
pub mod pause;
pub mod reaction;

pub use parameters::Parameters;
use pause::Pause;
use std::time::Duration;

/// The lower two bits of a traffic class (RFC 3168). They say whether a switch may mark a packet instead of dropping it, and
/// whether one has.
pub mod ecn {
    pub const BITS: u8 = 3;
    /// ECT(0): its sender reacts to marks.
    pub const CAPABLE: u8 = 2;
    /// CE: it met congestion.
    pub const EXPERIENCED: u8 = 3;
}

/// The link that a NIC sends on, and how the NIC behaves there.
#[derive(Clone, Debug)]
pub struct Link {
    /// In bits per second.
    pub rate: u64,
    /// With None, no packet of ours may be marked, and we report no marks.
    pub dcqcn: Option<Parameters>,
    pub pause: Pause,
}

impl Link {
    pub fn new(rate: u64, dcqcn: Option<Parameters>) -> Link {
        Link { rate, dcqcn, pause: Pause::default() }
    }
}

/// How long this many bytes take at a rate in bits per second, rounded up to a nanosecond because nobody can overtake a link.
pub(crate) fn time(bytes: u64, rate: u64) -> Duration {
    Duration::from_nanos((bytes * 8 * 1_000_000_000).div_ceil(rate.max(1)))
}
