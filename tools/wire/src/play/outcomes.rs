//! What became of the bytes of a packet at the NIC that they came to, if that NIC tells: packets alone don't show whether they were placed.

use run::capture::{Error, Reader};
use std::collections::HashMap;

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

/// All of a run, by node, kind and PSN: the numbers of their lines, and whether bytes were placed.
#[derive(Default)]
pub(super) struct Outcomes(HashMap<(usize, bool, u32), Vec<(u64, bool)>>);

impl Outcomes {
    pub(super) fn new(file: &[u8], nodes: &[String]) -> Result<Outcomes, Error> {
        let (mut all, mut reader) = (HashMap::<_, Vec<_>>::new(), Reader::new(file)?);
        while let Ok(Some(line)) = reader.line() {
            let Some((_, is_response, placed)) = FACTS.iter().find(|(fact, ..)| line.fact() == Some(fact)) else {
                continue;
            };
            let node = nodes.iter().position(|node| *node == line.node);
            let psn = line.field("psn").and_then(|psn| psn.parse().ok());
            let Some((node, psn)) = node.zip(psn) else { continue };
            all.entry((node, *is_response, psn)).or_default().push((line.number, *placed));
        }
        Ok(Outcomes(all))
    }

    /// Whether a node has placed the bytes of the packet with this number, unless nothing says that it hasn't. What's told next is about
    /// it; if a NIC says nothing more of the same packet, it's what it said before.
    pub(super) fn placed(&self, node: usize, is_response: bool, psn: u32, number: u64) -> bool {
        let told = self.0.get(&(node, is_response, psn));
        let said = told.and_then(|told| told.iter().find(|(line, _)| *line > number).or(told.last()));
        said.map_or(true, |(_, placed)| *placed)
    }
}
