//! What became of the bytes of a packet at the NIC that they came to, if that NIC tells: packets alone don't show whether they were placed.

use run::capture::Events;

/// The facts that tell: each is about a request's packet or a response's, and says whether its bytes were placed.
const FACTS: [(&str, bool, bool); 9] = [
    ("written", false, true),
    ("received", false, true),
    ("refused", false, false),
    ("dropped", false, false),
    ("gap", false, false),
    ("duplicate", false, false),
    ("placed", true, true),
    ("unplaced", true, false),
    ("old", true, false),
];

/// One that a NIC has told.
struct Told {
    line: u64,
    node: usize,
    is_response: bool,
    psn: u32,
    placed: bool,
}

/// All of a run, in its order.
#[derive(Default)]
pub(super) struct Outcomes(Vec<Told>);

impl Outcomes {
    pub(super) fn new(events: &Events, nodes: &[String]) -> Outcomes {
        let mut all = Vec::new();
        for line in events.lines() {
            let fact = FACTS.iter().find(|(fact, ..)| line.fact() == Some(fact));
            let node = nodes.iter().position(|node| *node == line.node);
            let psn = line.field("psn").and_then(|psn| psn.parse().ok());
            let (Some((_, is_response, placed)), Some(node), Some(psn)) = (fact, node, psn) else { continue };
            all.push(Told { line: line.number, node, is_response: *is_response, psn, placed: *placed });
        }
        Outcomes(all)
    }

    /// Whether a node has placed the bytes of the packet with this number. What its NIC tells next of such a packet is about this one; if
    /// it tells nothing more, what it told before is. If it never told anything, we take it that the bytes were placed.
    pub(super) fn placed(&self, node: usize, is_response: bool, psn: u32, number: u64) -> bool {
        let is_it = |told: &&Told| (told.node, told.is_response, told.psn) == (node, is_response, psn);
        let (before, after) = self.0.split_at(self.0.partition_point(|told| told.line <= number));
        let told = after.iter().find(is_it).or_else(|| before.iter().rev().find(is_it));
        told.map_or(true, |told| told.placed)
    }
}
