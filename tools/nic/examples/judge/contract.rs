//! The contract of a reliable connection: whatever the wire does, every message arrives once, in order, with its bytes, and
//! everything ends. A case that breaks it is made smaller as long as it still does, and drawn.

use crate::end::in_rts;
use crate::ladder::drawn;
use crate::Verdict;
pub use pair::contract::Op;
use pair::contract::{fault, run};
use pair::{attributes, Fault, Pair};
use std::collections::BTreeMap;

/// Steps after which something goes in circles.
const STEPS: usize = 5_000;
/// What is sent over which wire.
#[derive(Clone, Debug)]
pub struct Case {
    pub ops: Vec<Op>,
    /// By the place of the packet among all that are sent.
    pub faults: BTreeMap<usize, Fault>,
    /// The first PSN of the client's requests.
    pub psn: u32,
    pub retries: u8,
    /// Receives that are posted at the beginning; the others are late.
    pub early: usize,
}

/// How a case breaks the contract, and what has happened.
struct Breach {
    said: String,
    ladder: String,
}

/// Tries cases until one breaks the contract.
pub fn holds(cases: impl IntoIterator<Item = Case>) -> Verdict {
    let mut tried = 0;
    for case in cases {
        if let Some(breach) = breach(&case) {
            let (case, Breach { said, ladder }) = smallest(case, breach);
            let ops: Vec<String> = case.ops.iter().map(|op| op.shown()).collect();
            let (ops, faults) = (ops.join(", "), case.faults.len());
            let plural = if faults == 1 { "" } else { "s" };
            let what = format!("The least that shows it: {ops}; the wire has {faults} fault{plural}.");
            return Err(format!("{said}\n{what}\n\n{ladder}"));
        }
        tried += 1;
    }
    Ok(format!("{tried} wires that lose, double and delay: every message arrives once, in order, and everything ends."))
}

/// Leaves out faults and messages, one by one, as long as it still goes wrong.
fn smallest(case: Case, breach: Breach) -> (Case, Breach) {
    match smaller(&case).into_iter().find_map(|case| Some((self::breach(&case)?, case))) {
        Some((breach, case)) => smallest(case, breach),
        None => (case, breach),
    }
}

fn smaller(case: &Case) -> Vec<Case> {
    let mut all = Vec::new();
    for at in case.faults.keys() {
        let mut faults = case.faults.clone();
        faults.remove(at);
        all.push(Case { faults, ..case.clone() });
    }
    for at in 0..case.ops.len() {
        let mut ops = case.ops.clone();
        ops.remove(at);
        // With a message less, its packets are missing before the fault.
        let earlier = |by| case.faults.iter().map(|(at, fault)| (at.saturating_sub(by), *fault)).collect();
        all.extend((0..5).map(|by| Case { ops: ops.clone(), faults: earlier(by), ..case.clone() }));
    }
    if case.psn > 0 {
        all.push(Case { psn: 0, ..case.clone() });
    }
    if case.early < case.ops.len() {
        all.push(Case { early: case.ops.len(), ..case.clone() });
    }
    all
}

/// Runs a case, and looks.
fn breach(case: &Case) -> Option<Breach> {
    let client = in_rts(attributes(case.psn, 0, case.retries, 7));
    let server = in_rts(attributes(0, case.psn, case.retries, 7));
    let pair = Pair::new(client, server, case.faults.clone());
    let mut pair = Pair { happened: Some(Vec::new()), patience: STEPS, ..pair };
    let said = match run(&mut pair, &case.ops, case.early) {
        true => fault(&case.ops, &pair, None)?,
        false => "It never ends.".to_owned(),
    };
    Some(Breach { said, ladder: drawn(&pair.happened.unwrap_or_default()) })
}

/// Numbers that look like chance, and are the same each time.
pub struct Random(pub u64);

impl Random {
    /// One below this.
    pub fn below(&mut self, end: usize) -> usize {
        // A generator of Donald Knuth's, MMIX; its upper bits are the better ones.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    /// What happens to up to so many of the first packets.
    pub fn faults(&mut self, most: usize, packets: usize) -> BTreeMap<usize, Fault> {
        let count = 1 + self.below(most);
        (0..count).map(|_| (self.below(packets), self.fault())).collect()
    }

    fn fault(&mut self) -> Fault {
        match self.below(4) {
            0 | 1 => Fault::Lose,
            2 => Fault::Double,
            _ => Fault::Delay(1 + self.below(5) as u8),
        }
    }
}
