//! The memory of both sides: regions as the log registers them, and their bytes as far as packets show them.
//!
//! A SEND lands where a posted receive says, a WRITE where its RETH says, the answer to a READ where the READ was posted
//! from; and whoever sends bytes has them, too. What no packet has shown stays unknown. A capture without a log
//! shows the regions that RETHs name, as far as they name them.

use super::outcomes::Outcomes;
use super::requests::Requests;
use roce::opcode::Operation;
use roce::packet::{Packet, Remote};
use roce::track::Side;
use run::capture::Events;
use run::said::Said;
use run::sighting::Sighting;
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// What changes in the memory of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "what", rename_all = "lowercase")]
pub(super) enum Change {
    /// A region, or what is now known of it.
    Region { region: usize, node: usize, addr: String, len: u64, lkey: String, rkey: String, access: String },
    /// These bytes of the packet's frame are in a region: `read` by the device, to be sent; otherwise written.
    Bytes { region: usize, at: u64, from: usize, len: usize, read: bool },
    /// An atomic operation has left these bytes.
    Value { region: usize, at: u64, hex: String },
    /// So many of a node's regions are deregistered; the log does not say which.
    Gone { node: usize, count: usize },
}

/// Bytes are shown in this many regions: each is one more change in the page.
const MOST_REGIONS: usize = 16;

struct Region {
    node: usize,
    addr: u64,
    len: u64,
    rkey: u64,
    writable: bool,
}

/// A message on the wire, which may take several packets.
#[derive(Clone, Copy)]
struct Transfer {
    /// Where its bytes come from and go to: node and address.
    from: Option<(usize, u64)>,
    to: Option<(usize, u64)>,
    atomic: Option<(Operation, u64, u64)>,
}

#[derive(Default)]
pub(super) struct Memory {
    regions: Vec<Region>,
    access: HashMap<usize, String>,
    requests: Requests,
    outcomes: Outcomes,
    /// By connection, requester and first PSN.
    messages: HashMap<(usize, Side, i64), Transfer>,
    gone: HashMap<usize, usize>,
    /// The nodes whose log shows their regions.
    logged: HashSet<usize>,
}

impl Memory {
    pub(super) fn new(events: &Events, nodes: &[String]) -> Memory {
        let (requests, logged) = Requests::new(events, nodes);
        Memory { requests, logged, outcomes: Outcomes::new(events, nodes), ..Memory::default() }
    }

    /// Takes note of a line of the log.
    pub(super) fn line(&mut self, node: usize, said: Said) -> Vec<Change> {
        match said {
            Said::RegMr { access } => {
                self.access.insert(node, access.into());
            }
            Said::Call { name: "ibv_dereg_mr", .. } => {
                let count = self.gone.entry(node).or_default();
                *count += 1;
                return vec![Change::Gone { node, count: *count }];
            }
            Said::Mr { addr, len, lkey, rkey } => {
                let access = self.access.remove(&node).unwrap_or_default();
                let writable = ["REMOTE_WRITE", "REMOTE_ATOMIC"].iter().any(|flag| access.contains(flag));
                self.regions.push(Region { node, addr, len, rkey, writable });
                let (region, addr) = (self.regions.len() - 1, format!("{addr:#x}"));
                let (lkey, rkey) = (format!("{lkey:#x}"), format!("{rkey:#x}"));
                return vec![Change::Region { region, node, addr, len, lkey, rkey, access }];
            }
            _ => self.requests.line(node, said),
        }
        Vec::new()
    }

    /// Takes note of a packet between `ends`. One that is lost, or that the receiver's NIC says it hasn't placed, is read from the sender's
    /// memory, and written nowhere.
    pub(super) fn packet(&mut self, sighting: &Sighting, packet: &Packet, ends: [usize; 2], lost: bool) -> Vec<Change> {
        let (mut changes, Some(seen)) = (Vec::new(), sighting.seen) else { return Vec::new() };
        let Some((psn, request)) = seen.psn.zip(seen.request) else { return changes };
        let answer = packet.opcode.is_response();
        let requester = if answer { seen.from.other() } else { seen.from };
        let key = (seen.connection, requester, request.first);
        if request.begins {
            let message = self.begin(packet, ends, &mut changes);
            self.messages.insert(key, message);
        }
        let Some(message) = self.messages.get(&key).copied() else { return changes };
        let lost = lost || !self.outcomes.placed(ends[1], answer, packet.bth.psn, sighting.number);
        let length = packet.payload_length() as u64;
        let mtu = sighting.connection.and_then(|connection| connection.mtu).unwrap_or(0);
        let offset = (psn - request.first).unsigned_abs().saturating_mul(mtu.into());
        let payload = packet.datagram.ip_offset + packet.payload_offset();
        let moves = match packet.opcode.operation {
            Operation::Send | Operation::Write => !answer,
            Operation::ReadResponse => true,
            Operation::AtomicAcknowledge => {
                self.atomic(packet, &message, lost, &mut changes);
                false
            }
            _ => false,
        };
        for (end, read) in [(message.from, true), (message.to, false)] {
            let Some((node, addr)) = end.filter(|_| moves && length > 0 && (read || !lost)) else { continue };
            let (places, len) = (self.within(node, addr.saturating_add(offset), length), packet.payload().len());
            changes.extend(places.map(|(region, at)| Change::Bytes { region, at, from: payload, len, read }));
        }
        changes
    }

    /// Where a new message comes from and goes to.
    fn begin(&mut self, packet: &Packet, ends: [usize; 2], changes: &mut Vec<Change>) -> Transfer {
        let [sender, receiver] = ends;
        let remote = packet.remote();
        let operation = packet.opcode.operation;
        let word = match operation {
            Operation::Send => "SEND",
            Operation::Write => "RDMA_WRITE",
            Operation::ReadRequest => "RDMA_READ",
            _ => "ATOMIC",
        };
        let local = self.requests.take(sender, word, remote.map(|remote| remote.va));
        let local = local.map(|addr| (sender, addr));
        // A WRITE with immediate data takes a receive, and puts nothing there.
        let takes = remote.is_none() || packet.opcode.name.contains("Immediate");
        let receive = takes.then(|| self.requests.receive(receiver, packet.bth.dest_qp)).flatten();
        let there = match remote {
            Some(Remote { va, r_key }) => {
                let length = packet.dma_length().unwrap_or(8);
                self.opened(receiver, va, u64::from(length), u64::from(r_key), operation, changes)
            }
            None => receive.map(|addr| (receiver, addr)),
        };
        let atomic = packet.atomic_operands().map(|(swap_add, compare)| (operation, swap_add, compare));
        let (from, to) = match operation {
            Operation::Send | Operation::Write => (local, there),
            _ => (there, local),
        };
        Transfer { from, to, atomic }
    }

    /// What a RETH names, if a region there has that key, and lets the peer do that.
    fn opened(
        &mut self,
        node: usize,
        addr: u64,
        len: u64,
        rkey: u64,
        operation: Operation,
        changes: &mut Vec<Change>,
    ) -> Option<(usize, u64)> {
        let writes = operation != Operation::ReadRequest;
        let opens = |region: &Region| {
            region.node == node && region.rkey == rkey && (region.writable || !writes) && region.addr <= addr
        };
        let known = self.regions.iter().rposition(opens);
        let at = |region: usize| addr - self.regions[region].addr;
        let is_inside = known.is_some_and(|region| at(region).saturating_add(len) <= self.regions[region].len);
        if is_inside || self.logged.contains(&node) || len == 0 {
            return is_inside.then_some((node, addr));
        }
        // The packet is all that is known.
        let region = known.filter(|region| at(*region) < 1 << 20).unwrap_or(self.regions.len());
        if region == self.regions.len() {
            self.regions.push(Region { node, addr, len, rkey, writable: true });
        }
        let known = &mut self.regions[region];
        known.len = known.len.max(addr - known.addr + len);
        let (addr_of, len) = (format!("{:#x}", known.addr), known.len);
        let (lkey, rkey) = (String::new(), format!("{rkey:#x}"));
        changes.push(Change::Region { region, node, addr: addr_of, len, lkey, rkey, access: String::new() });
        Some((node, addr))
    }

    /// The last regions of a node that have all these bytes, and where: memory may be registered more than once.
    fn within(&self, node: usize, addr: u64, len: u64) -> impl Iterator<Item = (usize, u64)> + '_ {
        let inside = move |(number, region): (usize, &Region)| {
            let at = addr.checked_sub(region.addr).filter(|_| region.node == node)?;
            (at <= region.len && len <= region.len - at).then_some((number, at))
        };
        self.regions.iter().enumerate().rev().filter_map(inside).take(MOST_REGIONS)
    }

    /// The answer tells what was there; what is there now follows. Both processors of a lesson store the lowest byte first.
    fn atomic(&self, packet: &Packet, message: &Transfer, lost: bool, changes: &mut Vec<Change>) {
        let Some(((operation, operand, compare), was)) = message.atomic.zip(packet.atomic_original()) else { return };
        let now = match operation {
            Operation::FetchAdd => was.wrapping_add(operand),
            _ if was == compare => operand,
            _ => was,
        };
        for (end, number) in [(message.from, Some(now)), (message.to, Some(was).filter(|_| !lost))] {
            let Some(((node, addr), number)) = end.zip(number) else { continue };
            let hex = super::hex(&number.to_le_bytes());
            changes.extend(self.within(node, addr, 8).map(|(region, at)| Change::Value {
                region,
                at,
                hex: hex.clone(),
            }));
        }
    }
}
