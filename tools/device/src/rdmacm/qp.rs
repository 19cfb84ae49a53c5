//! The queue pair of an id, which the library moves from state to state as the connection is made.

use super::{connection, Id, Step};
use crate::rim::bell::locked;
use crate::rim::Device;
use crate::verbs::memory::{ibv_alloc_pd, ibv_dealloc_pd};
use crate::verbs::qp::{ibv_create_qp, ibv_destroy_qp, modify, to_c};
use crate::verbs::{call, errno};
use libc::c_int;
use nic::qp::{mask, Attributes, State};
use rdma_sys::{ibv_pd, ibv_qp_attr, ibv_qp_init_attr, rdma_cm_id};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::Relaxed;

/// `rdma_create_qp(3)`: in INIT, so that receives can be posted.
#[no_mangle]
pub unsafe extern "C" fn rdma_create_qp(id: *mut rdma_cm_id, pd: *mut ibv_pd, init: *mut ibv_qp_init_attr) -> c_int {
    call(|device| unsafe {
        if (*id).verbs.is_null() || !(*id).qp.is_null() {
            return Err(libc::EINVAL);
        }
        let owns_pd = pd.is_null();
        let pd = if owns_pd { ibv_alloc_pd((*id).verbs) } else { pd };
        ((*id).qp, (*id).pd) = (ibv_create_qp(pd, init), pd);
        Id::own(id).owns_pd.store(owns_pd, Relaxed);
        ((*id).send_cq, (*id).recv_cq, (*id).srq) = ((*init).send_cq, (*init).recv_cq, (*init).srq);
        let made = if (*id).qp.is_null() { Err(errno()) } else { move_to(device, id, State::Init) };
        if made.is_err() {
            rdma_destroy_qp(id);
        }
        made
    })
}

/// `rdma_destroy_qp(3)`.
#[no_mangle]
pub unsafe extern "C" fn rdma_destroy_qp(id: *mut rdma_cm_id) {
    unsafe {
        if !(*id).qp.is_null() {
            ibv_destroy_qp((*id).qp);
            (*id).qp = null_mut();
        }
        if Id::own(id).owns_pd.swap(false, Relaxed) {
            ibv_dealloc_pd((*id).pd);
            (*id).pd = null_mut();
        }
    }
}

/// `rdma_init_qp_attr(3)`: what the connection manager knows of the state in `qp_state`.
#[no_mangle]
pub unsafe extern "C" fn rdma_init_qp_attr(id: *mut rdma_cm_id, attr: *mut ibv_qp_attr, mask: *mut c_int) -> c_int {
    call(|device| unsafe {
        let state = State::from_number((*attr).qp_state).ok_or(libc::EINVAL)?;
        let (known, bits) = attributes(device, id, state)?;
        attr.write(to_c(state, &known));
        *mask = bits as c_int;
        Ok(())
    })
}

/// Moves an id's queue pair. On the way to RTR it learns in INIT what the peer may do, which is known only now.
pub(super) unsafe fn move_to(device: &Device, id: *mut rdma_cm_id, state: State) -> Result<(), c_int> {
    let before = (state == State::Rtr).then_some(State::Init);
    for state in before.into_iter().chain([state]) {
        let (known, bits) = unsafe { attributes(device, id, state)? };
        unsafe { modify(device, (*id).qp, bits, state, &known)? };
    }
    Ok(())
}

/// Moves an id's queue pair to ERR: what is posted comes back.
pub(super) unsafe fn to_error(device: &Device, id: *mut rdma_cm_id) {
    // From RESET there is no such move, and nothing is posted.
    let _ = unsafe { modify(device, (*id).qp, mask::STATE, State::Err, &Attributes::default()) };
}

/// The attributes that a queue pair needs for a state, and which these are.
unsafe fn attributes(device: &Device, id: *mut rdma_cm_id, state: State) -> Result<(Attributes, u32), c_int> {
    let known = match device.lock().cm.get(unsafe { connection(id) }) {
        Some(connection) if connection.is_alive() => connection.attributes(),
        None if state == State::Init && *locked(&unsafe { Id::own(id) }.step) != Step::Listening => {
            Attributes { mtu: 1024, ..Attributes::default() }
        }
        _ => return Err(libc::EINVAL),
    };
    let needed = state.needs().ok_or(libc::EINVAL)?;
    Ok((known, mask::STATE | needed))
}
