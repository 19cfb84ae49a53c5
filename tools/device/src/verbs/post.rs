//! The fast path: posting work requests. The first of a list that is refused ends the call, and `bad` says which one it was.

use super::verb;
use libc::c_int;
use nic::errno::Errno;
use nic::memory::{copy_out, Sge};
use nic::work::{Local, ReceiveRequest, Remote, SendRequest, Work};
use rdma_sys::{ibv_qp, ibv_recv_wr, ibv_send_flags, ibv_send_wr, ibv_sge, ibv_wr_opcode};

/// `ibv_post_send(3)`: puts requests in the queue and rings the doorbell. The program's thread sends nothing itself.
pub(super) unsafe extern "C" fn post_send(
    qp: *mut ibv_qp,
    mut wr: *mut ibv_send_wr,
    bad: *mut *mut ibv_send_wr,
) -> c_int {
    verb(|device| unsafe {
        let mut nic = device.lock();
        while !wr.is_null() {
            let mut post = |request| nic.with_qp((*qp).qp_num, |qp, ctx| qp.post_send(request, ctx));
            let posted = send_request(&*wr).and_then(|request| Ok(post(request).unwrap_or(Err(Errno::EINVAL))?));
            if posted.is_err() {
                *bad = wr;
                device.ring();
                return posted;
            }
            wr = (*wr).next;
        }
        device.ring();
        Ok(())
    })
}

/// `ibv_post_recv(3)`.
pub(super) unsafe extern "C" fn post_recv(
    qp: *mut ibv_qp,
    mut wr: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
) -> c_int {
    verb(|device| unsafe {
        let mut nic = device.lock();
        while !wr.is_null() {
            let request = receive_request(&*wr);
            let posted = nic.with_qp((*qp).qp_num, |qp, ctx| qp.post_receive(request, ctx));
            if let Err(errno) = posted.unwrap_or(Err(Errno::EINVAL)) {
                *bad = wr;
                return Err(errno.into());
            }
            wr = (*wr).next;
        }
        Ok(())
    })
}

unsafe fn send_request(wr: &ibv_send_wr) -> Result<SendRequest, c_int> {
    use ibv_wr_opcode::*;
    let (rdma, atomic) = unsafe { (wr.wr.rdma, wr.wr.atomic) };
    let remote = Remote { address: rdma.remote_addr, rkey: rdma.rkey };
    let cell = Remote { address: atomic.remote_addr, rkey: atomic.rkey };
    let work = match wr.opcode {
        IBV_WR_SEND | IBV_WR_SEND_WITH_IMM => Work::Send,
        IBV_WR_RDMA_WRITE | IBV_WR_RDMA_WRITE_WITH_IMM => Work::Write(remote),
        IBV_WR_RDMA_READ => Work::Read(remote),
        IBV_WR_ATOMIC_CMP_AND_SWP => Work::CompareSwap { remote: cell, compare: atomic.compare_add, swap: atomic.swap },
        IBV_WR_ATOMIC_FETCH_AND_ADD => Work::FetchAdd { remote: cell, add: atomic.compare_add },
        _ => return Err(libc::EOPNOTSUPP),
    };
    let brings_immediate = matches!(wr.opcode, IBV_WR_SEND_WITH_IMM | IBV_WR_RDMA_WRITE_WITH_IMM);
    let immediate = brings_immediate.then(|| u32::from_be(unsafe { wr.imm_data_invalidated_rkey_union.imm_data }));
    let has = |flag: ibv_send_flags| wr.send_flags & flag.0 != 0;
    let list = unsafe { sg_list(wr.sg_list, wr.num_sge) };
    let length = list.iter().map(|sge| u64::from(sge.length)).sum::<u64>();
    let local = if has(ibv_send_flags::IBV_SEND_INLINE) {
        // Inline bytes are copied now, lkey or not: the program may change them as soon as the call returns.
        let copy = |sge: &Sge| unsafe { copy_out(sge.address as *const u8, sge.length as usize) };
        Local::Inline(list.iter().flat_map(copy).collect())
    } else {
        Local::SgList(list)
    };
    Ok(SendRequest {
        wr_id: wr.wr_id,
        work,
        local,
        length: u32::try_from(length).map_err(|_| libc::EINVAL)?,
        immediate,
        signaled: has(ibv_send_flags::IBV_SEND_SIGNALED),
        solicited: has(ibv_send_flags::IBV_SEND_SOLICITED),
        fence: has(ibv_send_flags::IBV_SEND_FENCE),
    })
}

pub(super) unsafe fn receive_request(wr: &ibv_recv_wr) -> ReceiveRequest {
    ReceiveRequest { wr_id: wr.wr_id, sge: unsafe { sg_list(wr.sg_list, wr.num_sge) } }
}

unsafe fn sg_list(list: *const ibv_sge, count: c_int) -> Vec<Sge> {
    let from_c = |sge: &ibv_sge| Sge { address: sge.addr, length: sge.length, lkey: sge.lkey };
    match usize::try_from(count) {
        Ok(count @ 1..) => unsafe { std::slice::from_raw_parts(list, count) }.iter().map(from_c).collect(),
        _ => Vec::new(),
    }
}
