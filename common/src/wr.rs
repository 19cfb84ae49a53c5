//! `ibv_send_wr`, the work request of the send queue: what the device should do (man 3 ibv_post_send).
//!
//! Every request here has one scatter/gather element (a piece of one region) and is signaled: each yields a completion.

use std::ops::Range;

use rdma_sys::{ibv_recv_wr, ibv_send_flags, ibv_send_wr, ibv_sge, ibv_wr_opcode::*, rdma_t, wr_t};

use crate::error::Result;
use crate::metadata::Metadata;
use crate::mr::MemoryRegion;

/// A request for the send queue.
pub struct SendWr<'a> {
    pub(crate) region: &'a MemoryRegion,
    range: Range<usize>,
    opcode: u32,
    remote: Option<(u64, u32)>,
}

impl<'a> SendWr<'a> {
    /// `IBV_WR_SEND`: the bytes go into the buffer of the peer's next receive. The peer's program gets a completion.
    pub fn send(region: &'a MemoryRegion, range: Range<usize>) -> Self {
        Self { region, range, opcode: IBV_WR_SEND, remote: None }
    }

    /// `IBV_WR_RDMA_WRITE`: the bytes go to the start of the peer's buffer. The peer's program is told nothing.
    pub fn rdma_write(region: &'a MemoryRegion, range: Range<usize>, to: &Metadata) -> Self {
        Self { region, range, opcode: IBV_WR_RDMA_WRITE, remote: Some((to.addr, to.rkey)) }
    }

    /// `IBV_WR_RDMA_READ`: the bytes come from the start of the peer's buffer. The peer's program is told nothing.
    pub fn rdma_read(region: &'a MemoryRegion, range: Range<usize>, from: &Metadata) -> Self {
        Self { region, range, opcode: IBV_WR_RDMA_READ, remote: Some((from.addr, from.rkey)) }
    }

    /// The length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.range.len()
    }

    /// The opcode's C name without its prefix.
    pub(crate) fn name(&self) -> &'static str {
        match self.opcode {
            IBV_WR_RDMA_WRITE => "RDMA_WRITE",
            IBV_WR_RDMA_READ => "RDMA_READ",
            _ => "SEND",
        }
    }

    /// As in `wr_id=1 opcode=RDMA_WRITE signaled=1 num_sge=1 remote_addr=0x… rkey=0x…`.
    pub(crate) fn dump(&self, wr_id: u64) -> String {
        let remote = match self.remote {
            Some((addr, rkey)) => format!(" remote_addr=0x{addr:x} rkey=0x{rkey:x}"),
            None => String::new(),
        };
        format!("wr_id={wr_id} opcode={} signaled=1 num_sge=1{remote}", self.name())
    }

    /// Its scatter/gather element, if the range lies inside the region.
    pub(crate) fn sge(&self) -> Result<ibv_sge> {
        sge(self.region, self.range.clone())
    }

    /// The C struct. It points to `sge`, which must live as long.
    pub(crate) fn to_c(&self, wr_id: u64, sge: &mut ibv_sge) -> ibv_send_wr {
        // SAFETY: ibv_send_wr is plain data, for which zero is a value: no next request, no flags, no immediate.
        let mut wr: ibv_send_wr = unsafe { std::mem::zeroed() };
        wr.wr_id = wr_id;
        wr.sg_list = sge;
        wr.num_sge = 1;
        wr.opcode = self.opcode;
        wr.send_flags = ibv_send_flags::IBV_SEND_SIGNALED.0;
        if let Some((remote_addr, rkey)) = self.remote {
            wr.wr = wr_t { rdma: rdma_t { remote_addr, rkey } };
        }
        wr
    }
}

/// One piece of one region.
pub(crate) fn sge(region: &MemoryRegion, range: Range<usize>) -> Result<ibv_sge> {
    let range = region.check(range)?;
    // Regions are at most u32::MAX bytes long, so the length fits.
    let (addr, length) = (region.addr() + range.start as u64, range.len() as u32);
    Ok(ibv_sge { addr, length, lkey: region.lkey() })
}

/// As in `addr=0x… len=16 lkey=0x…`.
pub(crate) fn dump_sge(sge: &ibv_sge) -> String {
    format!("addr=0x{:x} len={} lkey=0x{:x}", sge.addr, sge.length, sge.lkey)
}

/// A request for the receive queue. It points to `sge`, which must live as long.
pub(crate) fn recv_wr(wr_id: u64, sge: &mut ibv_sge) -> ibv_recv_wr {
    ibv_recv_wr { wr_id, next: std::ptr::null_mut(), sg_list: sge, num_sge: 1 }
}
