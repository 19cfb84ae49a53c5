//! The calls. Each is a few verbs, and docs/more/08_handles.md has them side by side.

use std::collections::BTreeMap;

use common::deadline::Deadline;
use common::tcp::Peer;
use common::{
    Access, Buffer, Context, Error, MemoryRegion, Metadata, ProtectionDomain, QpCap, QpInitAttr, Result, SendWr,
};

use super::wc::{Opcode, Pair, Wc};
use crate::by_hand::connect::meet;

/// What `reg_mr` and `create_qp` return. No handle is used twice, so one that was given back fits nothing any more.
pub type Handle = u32;

/// A piece of our own memory.
#[derive(Debug, Clone, Copy)]
pub struct Local {
    pub mr: Handle,
    pub offset: usize,
    pub length: usize,
}

/// Everything that this program has on a device. The fields are dropped from the top.
pub struct Rdma {
    pairs: BTreeMap<Handle, Pair>,
    regions: BTreeMap<Handle, MemoryRegion>,
    next: Handle,
    pd: ProtectionDomain,
    context: Context,
}

impl Rdma {
    pub fn open(device: &str) -> Result<Self> {
        let context = Context::open(device)?;
        let pd = context.alloc_pd()?;
        Ok(Self { pairs: BTreeMap::new(), regions: BTreeMap::new(), next: 0, pd, context })
    }

    /// Lets the device into the caller's memory.
    pub fn reg_mr(&mut self, addr: &Buffer, length: usize, access_flags: Access) -> Result<Handle> {
        let region = self.pd.reg_buffer(addr, length, access_flags)?;
        self.next += 1;
        self.regions.insert(self.next, region);
        Ok(self.next)
    }

    /// A posted request that uses the region keeps it registered until it's polled.
    pub fn dereg_mr(&mut self, mr: Handle) -> Result<()> {
        self.regions.remove(&mr).map(drop).ok_or_else(|| unknown(mr, "memory region"))
    }

    /// A queue pair in RESET, which knows no peer.
    pub fn create_qp(&mut self, send_cq_size: u32, recv_cq_size: u32) -> Result<Handle> {
        let send_cq = self.context.create_cq(send_cq_size as i32)?;
        let recv_cq = self.context.create_cq(recv_cq_size as i32)?;
        // Each queue is as long as its CQ, so that whatever is posted has room to be reported.
        let cap = QpCap { max_send_wr: send_cq_size, max_recv_wr: recv_cq_size, ..QpCap::SMALL };
        let qp = self.pd.create_qp(&QpInitAttr { recv_cq: &recv_cq, ..QpInitAttr::new(&send_cq, cap) })?;
        qp.dump();
        self.next += 1;
        let room = [send_cq_size as usize, recv_cq_size as usize];
        self.pairs.insert(self.next, Pair { qp, send_cq, recv_cq, connected: false, room, posted: BTreeMap::new() });
        Ok(self.next)
    }

    /// Connects the queue pair to one of the peer's, as `by_hand` does. Each side says where its memory is, and ours is `mr`.
    pub fn connect_qp(&mut self, qp: Handle, mr: Handle, peer: &mut Peer) -> Result<Metadata> {
        let region = self.regions.get(&mr).ok_or_else(|| unknown(mr, "memory region"))?;
        let pair = self.pairs.get_mut(&qp).ok_or_else(|| unknown(qp, "queue pair"))?;
        let remote = meet(&self.context, peer, &pair.qp, region)?;
        // We won't hear any more of what was posted before.
        pair.posted.clear();
        pair.connected = true;
        Ok(remote)
    }

    pub fn destroy_qp(&mut self, qp: Handle) -> Result<()> {
        self.pairs.remove(&qp).map(drop).ok_or_else(|| unknown(qp, "queue pair"))
    }

    /// From our memory into the peer's. This and the next three return the work request's number.
    pub fn post_write(&mut self, qp: Handle, local: Local, remote: &Metadata) -> Result<u64> {
        self.post(qp, Opcode::Write, local, remote)
    }

    /// From the peer's memory into ours.
    pub fn post_read(&mut self, qp: Handle, local: Local, remote: &Metadata) -> Result<u64> {
        self.post(qp, Opcode::Read, local, remote)
    }

    /// A message. The peer's next receive says where it goes.
    pub fn post_send(&mut self, qp: Handle, local: Local) -> Result<u64> {
        self.post(qp, Opcode::Send, local, &Metadata::REFUSAL)
    }

    /// Room for a message of the peer's. If it finds none, our device says "receiver not ready".
    pub fn post_receive(&mut self, qp: Handle, local: Local) -> Result<u64> {
        self.post(qp, Opcode::Receive, local, &Metadata::REFUSAL)
    }

    fn post(&mut self, qp: Handle, opcode: Opcode, local: Local, remote: &Metadata) -> Result<u64> {
        let region = self.regions.get(&local.mr).ok_or_else(|| unknown(local.mr, "memory region"))?;
        let pair = self.pairs.get_mut(&qp).ok_or_else(|| unknown(qp, "queue pair"))?;
        pair.check(opcode)?;
        let range = local.offset..local.offset.saturating_add(local.length);
        let wr_id = match opcode {
            Opcode::Write => pair.qp.post_send(&SendWr::rdma_write(region, range, remote)),
            Opcode::Read => pair.qp.post_send(&SendWr::rdma_read(region, range, remote)),
            Opcode::Send => pair.qp.post_send(&SendWr::send(region, range)),
            Opcode::Receive => pair.qp.post_recv(region, range),
        }?;
        pair.posted.insert(wr_id, (opcode, local.length));
        Ok(wr_id)
    }

    /// What's done in both queues. Never waits.
    pub fn poll_cq(&mut self, qp: Handle, max_entries: usize) -> Result<Vec<Wc>> {
        let pair = self.pairs.get_mut(&qp).ok_or_else(|| unknown(qp, "queue pair"))?;
        let mut done = pair.send_cq.poll_up_to(max_entries)?;
        done.extend(pair.recv_cq.poll_up_to(max_entries - done.len())?);
        Ok(done.iter().filter_map(|wc| pair.complete(wc)).collect())
    }

    pub fn wait(&mut self, qp: Handle, awaited: &'static str) -> Result<Wc> {
        let deadline = Deadline::answer(awaited);
        loop {
            if let Some(wc) = self.poll_cq(qp, 1)?.pop() {
                return Ok(wc);
            }
            deadline.left()?;
        }
    }
}

fn unknown(handle: Handle, what: &str) -> Error {
    let what = format!("handle {handle} is no {what}, or none any more");
    Error::content(what, "Pass what reg_mr or create_qp returned, and not after it was given back")
}
