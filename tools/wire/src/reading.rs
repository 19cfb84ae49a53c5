//! How far a capture can be read: the tunnels that its packets were in, and what to do about the frames that aren't read.

use roce::link::Tunnels;
use roce::{Other, Others};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;

/// So many tunnels are told apart; a capture of noise has thousands.
const MOST: usize = 64;
/// Of these, this many are named in a sentence.
const MOST_NAMED: usize = 4;

/// How many packets were inside which tunnels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inside {
    packets: BTreeMap<Tunnels, u64>,
    /// In tunnels beyond those.
    more: u64,
}

impl Inside {
    /// Takes note of a packet inside these.
    pub fn see(&mut self, tunnels: Tunnels) {
        match self.packets.len() < MOST || self.packets.contains_key(&tunnels) {
            true => *self.packets.entry(tunnels).or_default() += 1,
            false => self.more += 1,
        }
    }

    /// Whether no packet was in a tunnel.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
}

/// As `8 packets inside VXLAN, VNI 42; 2 inside GRE`.
impl fmt::Display for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all: Vec<(&Tunnels, u64)> = self.packets.iter().map(|(tunnels, count)| (tunnels, *count)).collect();
        all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        for (i, (tunnels, count)) in all.iter().take(MOST_NAMED).enumerate() {
            let noun = ["packets ", "packet "][usize::from(*count == 1)];
            write!(f, "{}{count} {}inside {tunnels}", if i > 0 { "; " } else { "" }, if i > 0 { "" } else { noun })?;
        }
        let rest: u64 = all.iter().skip(MOST_NAMED).map(|(_, count)| count).sum::<u64>() + self.more;
        match rest {
            0 => Ok(()),
            rest => write!(f, "; {rest} inside others"),
        }
    }
}

impl Serialize for Inside {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.packets.iter().map(|(tunnels, count)| (tunnels.to_string(), count)))
    }
}

/// What to do about frames that may be RDMA and aren't read, a sentence for each kind, without its full stop.
pub fn advice(others: &Others) -> Vec<String> {
    let each = others.iter().filter_map(|(other, count)| about(other, count)).take(MOST_NAMED);
    fragments(others).into_iter().chain(each).collect()
}

/// Frames of which there's no advice: what else there is, beside ARP.
pub fn rest(others: &Others) -> Others {
    let is_told =
        |other| matches!(other, Other::Arp | Other::Fragment | Other::RoceFragment) || about(other, 1).is_some();
    others.without(is_told)
}

/// What IP fragments there are. Only the first of a packet has the UDP header that says whose it is.
fn fragments(others: &Others) -> Option<String> {
    let (first, rest) = (others.count(Other::RoceFragment), others.count(Other::Fragment));
    let frames = if first + rest == 1 {
        "1 frame is an IP fragment".into()
    } else {
        format!("{} frames are IP fragments", first + rest)
    };
    match (first, rest) {
        (0, 0) => None,
        (0, _) => Some(format!("{frames}, and none of them is the beginning of a RoCEv2 packet")),
        _ => Some(format!(
            "{frames}, and {first} of RoCEv2 packets begin in them. Fragments aren't put together, so nothing is said of what \
             these packets carried. A RoCE device sends no fragments itself: the path MTU is too large for the network, or for \
             a tunnel on the way"
        )),
    }
}

fn about(other: Other, count: u64) -> Option<String> {
    let (frames, are) = if count == 1 { ("1 frame".to_owned(), "is") } else { (format!("{count} frames"), "are") };
    let said = match other {
        Other::InfiniBand => {
            "native InfiniBand, which has no Ethernet, IP or UDP: this program reads RoCEv2, and Wireshark reads both"
        }
        Other::RoceV1 => {
            "RoCEv1 (EtherType 0x8915), which has no IP and isn't read: give the connection a GID whose type is RoCE v2 \
             (`ibv_devinfo -v` lists them), or write \"RoCE v2\" to the device's default_roce_mode \
             in /sys/kernel/config/rdma_cm"
        }
        Other::Cut => {
            "cut so short that we can't see what they are: record whole frames, with `tcpdump -s 0` or `dumpcap -s 0`"
        }
        Other::Link(_) => {
            return Some(format!("{other} is not read ({frames}): record on an Ethernet interface, or convert the file"))
        }
        Other::Erf(_) => return Some(format!("{other} is not read ({frames}); of ERF, only Ethernet and IP are")),
        _ => return None,
    };
    Some(format!("{frames} {are} {said}"))
}

/// That answers are cut too early, and how to record them, without the full stop.
pub fn cut_answers(count: u64, snap_length: usize) -> Option<String> {
    let answers = if count == 1 { "1 answer ends".to_owned() } else { format!("{count} answers end") };
    (count > 0).then(|| {
        format!(
            "{answers} before the AETH, because this capture was cut after {snap_length} bytes per packet, so ACK and NAK \
             can't be told apart: record whole packets, with `tcpdump -s 0` or `dumpcap -s 0` (--snapshot-length 0)"
        )
    })
}
