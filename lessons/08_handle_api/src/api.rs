//! The calls. Each is a few verbs; docs/08_handle_api.md has them side by side.

use std::cell::Cell;
use std::time::UNIX_EPOCH;

use common::deadline::Deadline;
use common::{Access, Buffer, Context, Metadata, ProtectionDomain, QpCap, QpInitAttr, QpState, SendWr};

use crate::error::{RdmaError, Result};
use crate::handle::{Handle, Object, Pair, Table};
use crate::wc::{Opcode, Posted, Wc};

/// A device, opened, and all that this program has on it.
pub struct Rdma {
    pub context: Context,
    pd: ProtectionDomain,
    pub table: Table,
    /// Where the next connection's packet numbers begin.
    pub psn: Cell<u32>,
}

impl Rdma {
    pub fn open(device: &str) -> Result<Self> {
        let context = Context::open(device)?;
        let pd = ProtectionDomain::alloc(&context)?;
        // Any start will do. Not the same each time, or late packets of a program before would be taken for ours. (In the upper half,
        // so that `--wrong rq_psn+1` ends alike each time: to a repetition before the first request, SoftRoCE says ACK -1.)
        let psn = UNIX_EPOCH.elapsed().unwrap_or_default().subsec_nanos() & 0x7f_ffff | 0x80_0000;
        Ok(Self { context, pd, table: Table::default(), psn: Cell::new(psn) })
    }

    /// `int rdma_reg_mr(void *addr, uint64 length, int access_flags)`
    pub fn reg_mr(&mut self, addr: &Buffer, length: usize, access_flags: Access) -> Result<Handle> {
        let has = |right| access_flags | right == access_flags;
        if has(Access::REMOTE_WRITE) && !has(Access::LOCAL_WRITE) {
            // The kernel would say EINVAL, and no more.
            return Err(RdmaError::Permission);
        }
        let region = self.pd.reg_buffer(addr, length, access_flags)?;
        Ok(self.table.add(Object::Region(region)))
    }

    /// `int rdma_dereg_mr(int mr_handle)`. A posted request that uses the region keeps it registered until it is polled.
    pub fn dereg_mr(&mut self, mr_handle: Handle) -> Result<()> {
        self.table.region(mr_handle)?;
        self.table.give_back(mr_handle);
        Ok(())
    }

    /// `int rdma_create_qp(int send_cq_size, int recv_cq_size)`. It is in RESET, and leads nowhere: connect.rs.
    pub fn create_qp(&mut self, send_cq_size: u32, recv_cq_size: u32) -> Result<Handle> {
        let send_cq = self.context.create_cq(send_cq_size as i32)?;
        let recv_cq = self.context.create_cq(recv_cq_size as i32)?;
        // Each queue as long as its CQ: whatever is posted, has room to be reported.
        let cap = QpCap { max_send_wr: send_cq_size, max_recv_wr: recv_cq_size, ..QpCap::SMALL };
        let qp = self.pd.create_qp(&QpInitAttr { recv_cq: &recv_cq, ..QpInitAttr::new(&send_cq, cap) })?;
        qp.dump();
        let (room, state) = ([send_cq_size as usize, recv_cq_size as usize], Cell::new(QpState::RESET));
        Ok(self.table.add(Object::Pair(Box::new(Pair {
            qp,
            send_cq,
            recv_cq,
            state,
            room,
            posted: Posted::default(),
        }))))
    }

    /// `int rdma_destroy_qp(int qp_num)`
    pub fn destroy_qp(&mut self, qp_num: Handle) -> Result<()> {
        self.table.pair(qp_num)?;
        self.table.give_back(qp_num);
        Ok(())
    }

    /// `int rdma_post_write(int qp_num, int local_mr, uint64 local_offset, uint64 remote_addr, uint32 rkey, uint64 length)`
    #[rustfmt::skip]
    pub fn post_write(&self, qp_num: Handle, local_mr: Handle, local_offset: u64, remote_addr: u64, rkey: u32, length: u64) -> Result<u64> {
        self.post(Opcode::Write, qp_num, local_mr, local_offset, (remote_addr, rkey), length)
    }

    /// The other way: from the peer's memory into ours.
    #[rustfmt::skip]
    pub fn post_read(&self, qp_num: Handle, local_mr: Handle, local_offset: u64, remote_addr: u64, rkey: u32, length: u64) -> Result<u64> {
        self.post(Opcode::Read, qp_num, local_mr, local_offset, (remote_addr, rkey), length)
    }

    /// `int rdma_post_send(int qp_num, int local_mr, uint64 length)`
    pub fn post_send(&self, qp_num: Handle, local_mr: Handle, length: u64) -> Result<u64> {
        self.post(Opcode::Send, qp_num, local_mr, 0, (0, 0), length)
    }

    /// Room for a SEND of the peer's. If it finds none, our device says "receiver not ready".
    pub fn post_receive(&self, qp_num: Handle, local_mr: Handle, length: u64) -> Result<u64> {
        self.post(Opcode::Receive, qp_num, local_mr, 0, (0, 0), length)
    }

    /// Checks what needs no device, posts, and notes what the completion will not tell.
    #[rustfmt::skip]
    fn post(&self, opcode: Opcode, qp: Handle, mr: Handle, offset: u64, (addr, rkey): (u64, u32), length: u64) -> Result<u64> {
        let (pair, region) = (self.table.pair(qp)?, self.table.region(mr)?);
        // SoftRoCE would refuse what comes too early, too; but it keeps what it has refused, and sends it later.
        let (room, ready) = match opcode {
            Opcode::Receive => (pair.room[1], pair.state.get() != QpState::RESET),
            _ => (pair.room[0], pair.state.get() == QpState::RTS),
        };
        if !ready {
            return Err(RdmaError::NotConnected);
        }
        if pair.posted.count(opcode) >= room {
            return Err(RdmaError::QueueFull(room));
        }
        let range = offset as usize..offset.saturating_add(length) as usize;
        let remote = Metadata { addr, rkey, len: length as u32 };
        let wr_id = match opcode {
            Opcode::Write => pair.qp.post_send(&SendWr::rdma_write(region, range, &remote)),
            Opcode::Read => pair.qp.post_send(&SendWr::rdma_read(region, range, &remote)),
            Opcode::Send => pair.qp.post_send(&SendWr::send(region, range)),
            Opcode::Receive => pair.qp.post_recv(region, range),
        }?;
        pair.posted.0.borrow_mut().insert(wr_id, (opcode, length));
        Ok(wr_id)
    }

    /// `int rdma_poll_cq(int qp_num, struct rdma_wc *wc, int max_entries)`: `ibv_poll_cq` on both CQs. Never waits.
    pub fn poll_cq(&self, qp_num: Handle, wc: &mut [Wc], max_entries: usize) -> Result<usize> {
        let pair = self.table.pair(qp_num)?;
        let (most, mut count) = (max_entries.min(wc.len()), 0);
        for cq in [&pair.send_cq, &pair.recv_cq] {
            for done in cq.poll_up_to(most - count)? {
                wc[count] = pair.posted.complete(&done);
                count += 1;
            }
        }
        Ok(count)
    }

    /// Polls until one request is done.
    pub fn wait(&self, qp_num: Handle, awaited: &str) -> Result<Wc> {
        let (mut wc, deadline) = ([Wc::default()], Deadline::answer(awaited.to_owned()));
        while self.poll_cq(qp_num, &mut wc, 1)? == 0 {
            deadline.left()?;
        }
        Ok(wc[0])
    }
}
