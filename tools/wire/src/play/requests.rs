//! The work requests of the log, and the memory that each names.

use run::capture::Events;
use run::said::Said;
use std::collections::{HashMap, HashSet, VecDeque};

/// A posted send: its node and operation, its memory, and the peer's.
struct Posted {
    node: usize,
    opcode: String,
    local: Option<u64>,
    remote: Option<u64>,
    used: bool,
}

#[derive(Default)]
pub(super) struct Requests {
    /// The node's last `ibv_post_…`, whose SGE and WR follow.
    posting: HashMap<usize, (Option<String>, u64, Option<u64>)>,
    posted: Vec<Posted>,
    /// By node and number of the request.
    receives: HashMap<(usize, u64), u64>,
    /// By node and queue pair: the receives in the order in which they will complete.
    completions: HashMap<(usize, u64), VecDeque<u64>>,
}

impl Requests {
    /// Looks ahead for what completes; and which nodes' logs show their regions.
    pub(super) fn new(events: &Events, nodes: &[String]) -> (Requests, HashSet<usize>) {
        let (mut completions, mut logged) = (HashMap::<_, VecDeque<u64>>::new(), HashSet::new());
        for line in events.lines() {
            let Some(node) = nodes.iter().position(|node| *node == line.node) else { continue };
            match Said::of(line) {
                Said::Mr { .. } => {
                    logged.insert(node);
                }
                Said::Wc { wr_id, status: "IBV_WC_SUCCESS", opcode: Some(opcode), qp_num }
                    if opcode.starts_with("IBV_WC_RECV") =>
                {
                    completions.entry((node, qp_num)).or_default().push_back(wr_id);
                }
                _ => {}
            }
        }
        (Requests { completions, ..Requests::default() }, logged)
    }

    /// Takes note of a line of the log.
    pub(super) fn line(&mut self, node: usize, said: Said) {
        match said {
            Said::Post { opcode, wr_id, .. } => {
                self.posting.insert(node, (opcode.map(str::to_owned), wr_id, None));
            }
            Said::Sge { addr, .. } => {
                let Some((opcode, wr_id, local)) = self.posting.get_mut(&node) else { return };
                let local = *local.get_or_insert(addr);
                if opcode.is_none() {
                    self.receives.insert((node, *wr_id), local);
                }
            }
            Said::Wr { remote, .. } => {
                let Some((Some(opcode), _, local)) = self.posting.remove(&node) else { return };
                self.posted.push(Posted { node, opcode, local, remote, used: false });
            }
            _ => {}
        }
    }

    /// The memory of the next request of a node that a packet fits, which begins it.
    pub(super) fn take(&mut self, node: usize, operation: &str, remote: Option<u64>) -> Option<u64> {
        let fits = |posted: &&mut Posted| {
            posted.node == node && !posted.used && posted.opcode.starts_with(operation) && posted.remote == remote
        };
        let posted = self.posted.iter_mut().find(fits)?;
        posted.used = true;
        posted.local
    }

    /// The memory of the receive that the next message for a queue pair takes.
    pub(super) fn receive(&mut self, node: usize, qp: u32) -> Option<u64> {
        let wr = self.completions.get_mut(&(node, u64::from(qp)))?.pop_front()?;
        self.receives.get(&(node, wr)).copied()
    }
}
