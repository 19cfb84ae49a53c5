//! The work requests of the log, and the memory that each names.

use super::number;
use run::capture::{Error, Reader};
use run::file::Event;
use std::collections::{HashMap, HashSet, VecDeque};

/// A posted send: its node and operation, its memory, and the peer's.
struct Posted {
    node: usize,
    opcode: String,
    local: Option<u64>,
    remote: Option<u64>,
    used: bool,
}

pub(super) struct Requests {
    /// The node's last `ibv_post_…`, whose SGE and WR follow.
    posting: HashMap<usize, (String, u64, Option<u64>)>,
    posted: Vec<Posted>,
    /// By node and number of the request.
    receives: HashMap<(usize, u64), u64>,
    /// By node and queue pair: the receives in the order in which they will complete.
    completions: HashMap<(usize, u64), VecDeque<u64>>,
}

impl Requests {
    /// Looks ahead for what completes; and which nodes' logs show their regions.
    pub(super) fn new(file: &[u8], nodes: &[String]) -> Result<(Requests, HashSet<usize>), Error> {
        let (mut completions, mut logged) = (HashMap::<_, VecDeque<u64>>::new(), HashSet::new());
        let mut reader = Reader::new(file)?;
        while let Ok(Some(event)) = reader.event() {
            let Event::Line(line) = event else { continue };
            let Some(node) = nodes.iter().position(|node| *node == line.node) else { continue };
            let said = line.said();
            if said.contains("MR: addr=") {
                logged.insert(node);
            }
            let received = ["WC: ", "IBV_WC_SUCCESS", "opcode=IBV_WC_RECV"].iter().all(|word| said.contains(word));
            if let Some((qp, wr)) = number(said, "qp_num").zip(number(said, "wr_id")).filter(|_| received) {
                completions.entry((node, qp)).or_default().push_back(wr);
            }
        }
        let (posting, posted, receives) = Default::default();
        Ok((Requests { posting, posted, receives, completions }, logged))
    }

    /// Takes note of a line of the log.
    pub(super) fn line(&mut self, node: usize, said: &str) {
        if let Some((_, call)) = said.split_once("ibv_post_") {
            let opcode = call.split(' ').nth(1).unwrap_or_default();
            self.posting.insert(node, (opcode.into(), number(said, "wr_id").unwrap_or(0), None));
        } else if said.contains("SGE: ") {
            let Some((opcode, wr, local)) = self.posting.get_mut(&node) else { return };
            *local = local.or(number(said, "addr"));
            // A receive has no opcode.
            if let Some(local) = local.filter(|_| opcode.starts_with("wr_id")) {
                self.receives.insert((node, *wr), local);
            }
        } else if said.contains("WR: ") {
            let Some((opcode, _, local)) = self.posting.remove(&node) else { return };
            self.posted.push(Posted { node, opcode, local, remote: number(said, "remote_addr"), used: false });
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
