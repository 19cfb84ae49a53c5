//! What a switch reads in a frame, and the one thing that it writes there.

use roce::link::{self, LinkType};

/// Priorities, from 0 to 7.
pub const PRIORITIES: usize = 8;

const ETHERNET: usize = 14;
/// Not ECN-capable: such a frame is never marked.
const NOT_ECT: u8 = 0;
/// "Congestion experienced".
const CE: u8 = 3;
/// The two bits of ECN in the traffic class; above them stand six of DSCP.
const ECN: u8 = 3;

/// A frame on its way.
#[derive(Clone, Debug)]
pub struct Carried {
    /// The node that has sent it. A frame of the link itself has none, and this number is of no meaning.
    pub from: usize,
    /// None for all.
    pub to: Option<usize>,
    pub bytes: Vec<u8>,
    /// The number that its sender got for it.
    pub number: u64,
    /// The cable by which it has come into the switch where it is.
    pub came_by: Option<usize>,
    /// What is told of its mark.
    pub marked: Option<String>,
    class: u8,
    is_control: bool,
}

impl Carried {
    pub fn new(number: u64, from: usize, to: Option<usize>, bytes: Vec<u8>) -> Carried {
        let class = class(&bytes);
        let is_control = roce::pause::Frame::decode(&bytes).is_some();
        Carried { from, to, bytes, number, came_by: None, marked: None, class, is_control }
    }

    /// It is about the link: it goes no further than to its end.
    pub fn is_control(&self) -> bool {
        self.is_control
    }

    pub fn length(&self) -> u64 {
        self.bytes.len() as u64
    }

    pub fn priority(&self) -> usize {
        usize::from(self.class >> 5)
    }

    pub fn can_be_marked(&self) -> bool {
        self.class & ECN != NOT_ECT
    }

    /// Marks it (RFC 3168, 5). The ICRC counts these bits as ones, so it still fits.
    pub fn mark(&mut self) {
        self.class |= CE;
        link::set_traffic_class(&mut self.bytes[ETHERNET..], self.class);
    }
}

/// DSCP and ECN: IPv4's type of service, IPv6's traffic class. What is no IP has 0.
fn class(frame: &[u8]) -> u8 {
    link::datagram(LinkType::ETHERNET, frame).map_or(0, |datagram| datagram.traffic_class())
}
