//! The queue pair of an id, which the library moves from state to state as the connection is made.

use super::{connection, kept};
use crate::cm::gid;
use crate::memory::Rights;
use crate::nic::{device, Device};
use crate::qp::{mask, State};
use crate::verbs::memory::{ibv_alloc_pd, ibv_dealloc_pd};
use crate::verbs::minus_one;
use crate::verbs::qp::{ibv_create_qp, ibv_destroy_qp, ibv_modify_qp};
use libc::c_int;
use rdma_sys::{ibv_pd, ibv_qp_attr, ibv_qp_init_attr, rdma_cm_id};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::Relaxed;

/// `rdma_create_qp(3)`: in INIT, so that receives can be posted.
#[no_mangle]
pub unsafe extern "C" fn rdma_create_qp(id: *mut rdma_cm_id, pd: *mut ibv_pd, init: *mut ibv_qp_init_attr) -> c_int {
    let Some(device) = device() else { return minus_one(libc::ENODEV) };
    if unsafe { (*id).verbs.is_null() || !(*id).qp.is_null() } {
        return minus_one(libc::EINVAL);
    }
    let owns_pd = pd.is_null();
    let pd = if owns_pd { unsafe { ibv_alloc_pd((*id).verbs) } } else { pd };
    let qp = unsafe { ibv_create_qp(pd, init) };
    if qp.is_null() {
        if owns_pd {
            unsafe { ibv_dealloc_pd(pd) };
        }
        return -1;
    }
    unsafe {
        kept(id).owns_pd.store(owns_pd, Relaxed);
        ((*id).qp, (*id).pd) = (qp, pd);
        ((*id).send_cq, (*id).recv_cq, (*id).srq) = ((*init).send_cq, (*init).recv_cq, (*init).srq);
        match move_to(device, id, State::Init) {
            Ok(()) => 0,
            Err(errno) => minus_one(errno),
        }
    }
}

/// `rdma_destroy_qp(3)`.
#[no_mangle]
pub unsafe extern "C" fn rdma_destroy_qp(id: *mut rdma_cm_id) {
    unsafe {
        ibv_destroy_qp((*id).qp);
        (*id).qp = null_mut();
        if kept(id).owns_pd.swap(false, Relaxed) {
            ibv_dealloc_pd((*id).pd);
            (*id).pd = null_mut();
        }
    }
}

/// `rdma_init_qp_attr(3)`: what the connection manager knows of the state in `qp_state`.
#[no_mangle]
pub unsafe extern "C" fn rdma_init_qp_attr(id: *mut rdma_cm_id, attr: *mut ibv_qp_attr, mask: *mut c_int) -> c_int {
    let Some(device) = device() else { return minus_one(libc::ENODEV) };
    let state = State::from_number(unsafe { (*attr).qp_state });
    let told = state.ok_or(libc::EINVAL).and_then(|state| unsafe { attributes(device, id, state) });
    match told {
        Ok((told, bits)) => unsafe {
            attr.write(told);
            *mask = bits as c_int;
            0
        },
        Err(errno) => minus_one(errno),
    }
}

/// Moves an id's queue pair. On the way to RTR it learns in INIT what the peer may do, which is known only now.
pub(super) unsafe fn move_to(device: &Device, id: *mut rdma_cm_id, state: State) -> Result<(), c_int> {
    let before = if state == State::Rtr { Some(State::Init) } else { None };
    for state in before.into_iter().chain([state]) {
        let (mut attr, mask) = unsafe { attributes(device, id, state)? };
        match unsafe { ibv_modify_qp((*id).qp, &mut attr, mask as c_int) } {
            0 => {}
            errno => return Err(errno),
        }
    }
    Ok(())
}

/// Moves an id's queue pair to ERR: what is posted comes back.
pub(super) unsafe fn to_error(_device: &Device, id: *mut rdma_cm_id) {
    let mut attr: ibv_qp_attr = unsafe { std::mem::zeroed() };
    attr.qp_state = State::Err as u32;
    unsafe { ibv_modify_qp((*id).qp, &mut attr, mask::STATE as c_int) };
}

unsafe fn attributes(device: &Device, id: *mut rdma_cm_id, state: State) -> Result<(ibv_qp_attr, u32), c_int> {
    let mut attr: ibv_qp_attr = unsafe { std::mem::zeroed() };
    attr.qp_state = state as u32;
    let mut nic = device.lock();
    let connection = nic.cm.get(unsafe { connection(id) });
    let agreed = connection.as_ref().map(|connection| connection.param);
    let bits = match (state, connection) {
        (State::Init, _) => {
            let serves = agreed.is_some_and(|param| param.responder_resources > 0);
            let reads = if serves { Rights::REMOTE_READ.0 | Rights::REMOTE_ATOMIC.0 } else { 0 };
            attr.qp_access_flags = if agreed.is_some() { Rights::REMOTE_WRITE.0 | reads } else { 0 };
            attr.port_num = 1;
            mask::PORT | mask::PKEY_INDEX | mask::ACCESS_FLAGS
        }
        (State::Rtr, Some(connection)) => {
            (attr.path_mtu, attr.dest_qp_num) = (connection.mtu_code.into(), connection.peer_qpn);
            (attr.rq_psn, attr.max_dest_rd_atomic) = (connection.our_psn.get(), connection.param.responder_resources);
            (attr.ah_attr.is_global, attr.ah_attr.port_num) = (1, 1);
            (attr.ah_attr.grh.dgid.raw, attr.ah_attr.grh.hop_limit) = (gid(connection.peer), 64);
            mask::AV | mask::PATH_MTU | mask::DEST_QPN | mask::RQ_PSN | mask::MAX_DEST_RD_ATOMIC | mask::MIN_RNR_TIMER
        }
        (State::Rts, Some(connection)) => {
            (attr.sq_psn, attr.timeout) = (connection.peer_psn.get(), connection.ack_timeout);
            (attr.retry_cnt, attr.rnr_retry) = (connection.param.retries, connection.peer_rnr_retries);
            attr.max_rd_atomic = connection.param.initiator_depth;
            let retries = mask::TIMEOUT | mask::RETRY_CNT | mask::RNR_RETRY;
            retries | mask::SQ_PSN | mask::MAX_QP_RD_ATOMIC
        }
        _ => return Err(libc::EINVAL),
    };
    Ok((attr, bits | mask::STATE))
}
