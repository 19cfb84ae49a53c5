//! Connecting and disconnecting.

use super::{address, connection, id, kept, qp};
use crate::cm::{Param, Phase};
use crate::nic::bell::locked;
use crate::nic::{device, random, Device};
use crate::qp::State;
use crate::verbs::minus_one;
use libc::{c_int, c_void};
use rdma_sys::{rdma_cm_id, rdma_conn_param};
use std::sync::atomic::Ordering::Relaxed;

/// "As many as the peer asks for, or allows": `RDMA_MAX_RESP_RES`, `RDMA_MAX_INIT_DEPTH`.
const AS_ASKED: u8 = 0xff;

fn from_c(c: &rdma_conn_param) -> Param {
    Param {
        responder_resources: c.responder_resources,
        initiator_depth: c.initiator_depth,
        retries: c.retry_count & 7,
        rnr_retries: c.rnr_retry_count & 7,
    }
}

unsafe fn private<'a>(data: *const c_void, length: u8) -> &'a [u8] {
    if data.is_null() || length == 0 {
        return &[];
    }
    unsafe { std::slice::from_raw_parts(data.cast(), length.into()) }
}

/// The number of the queue pair that belongs to an id, or that the program says.
unsafe fn qp_number(id: *mut rdma_cm_id, c: *const rdma_conn_param) -> u32 {
    unsafe {
        match ((*id).qp.is_null(), c.is_null()) {
            (false, _) => (*(*id).qp).qp_num,
            (true, false) => (*c).qp_num,
            (true, true) => 0,
        }
    }
}

/// `rdma_connect(3)`: REQ.
#[no_mangle]
pub unsafe extern "C" fn rdma_connect(id: *mut rdma_cm_id, c: *mut rdma_conn_param) -> c_int {
    let Some(device) = device() else { return minus_one(libc::ENODEV) };
    let mut nic = device.lock();
    let Some((peer, port)) = (unsafe { address::read(id::peers(id).cast()) }) else { return minus_one(libc::EINVAL) };
    if unsafe { (*id).verbs.is_null() || connection(id) != 0 || !kept(id).has_route.load(Relaxed) } {
        return minus_one(libc::EINVAL);
    }
    let data = if c.is_null() { &[] } else { unsafe { private((*c).private_data, (*c).private_data_len) } };
    if data.len() > crate::cm::REQ_PRIVATE {
        return minus_one(libc::EINVAL);
    }
    let local = nic.cm.open(Some(id as u64), peer, random());
    let mine = unsafe { kept(id) };
    mine.connection.store(local, Relaxed);
    if let Some(connection) = nic.cm.get(local) {
        connection.param = if c.is_null() { Param::default() } else { from_c(unsafe { &*c }) };
        connection.qpn = unsafe { qp_number(id, c) };
        connection.ack_timeout = locked(&mine.ack_timeout).unwrap_or(connection.ack_timeout);
    }
    let from = unsafe { id::port_of(id) };
    nic.with_cm(|cm, now, out| cm.connect(local, port, from, data, now, out));
    device.ring();
    0
}

/// The client's part when the REP has come: its queue pair to RTS, then the RTU.
pub(super) unsafe fn complete(device: &Device, id: *mut rdma_cm_id) -> Result<(), c_int> {
    unsafe { qp::move_to(device, id, State::Rtr)? };
    unsafe { qp::move_to(device, id, State::Rts)? };
    let local = unsafe { connection(id) };
    device.lock().with_cm(|cm, now, out| cm.ready_to_use(local, now, out))
}

/// `rdma_establish(3)`: RTU, for programs that move their queue pairs themselves.
#[no_mangle]
pub unsafe extern "C" fn rdma_establish(id: *mut rdma_cm_id) -> c_int {
    let Some(device) = device() else { return minus_one(libc::ENODEV) };
    let local = unsafe { connection(id) };
    let told = device.lock().with_cm(|cm, now, out| cm.ready_to_use(local, now, out));
    told.map_or_else(minus_one, |()| 0)
}

/// `rdma_accept(3)`: the server's queue pair to RTS, then the REP.
#[no_mangle]
pub unsafe extern "C" fn rdma_accept(id: *mut rdma_cm_id, c: *mut rdma_conn_param) -> c_int {
    let Some(device) = device() else { return minus_one(libc::ENODEV) };
    let local = unsafe { connection(id) };
    let data = if c.is_null() { &[] } else { unsafe { private((*c).private_data, (*c).private_data_len) } };
    {
        let mut nic = device.lock();
        let connection = match nic.cm.expect(local, Phase::ReqReceived) {
            Ok(connection) => connection,
            Err(errno) => return minus_one(errno),
        };
        let asked = connection.param;
        let mut param = if c.is_null() { asked } else { from_c(unsafe { &*c }) };
        if param.responder_resources == AS_ASKED {
            param.responder_resources = asked.responder_resources;
        }
        if param.initiator_depth == AS_ASKED {
            param.initiator_depth = asked.initiator_depth;
        }
        param.retries = asked.retries; // The REQ says it for both sides.
        connection.param = param;
        connection.qpn = unsafe { qp_number(id, c) };
    }
    if !unsafe { (*id).qp }.is_null() {
        for state in [State::Rtr, State::Rts] {
            if let Err(errno) = unsafe { qp::move_to(device, id, state) } {
                return minus_one(errno);
            }
        }
    }
    device.lock().with_cm(|cm, now, out| cm.accept(local, data, now, out));
    device.ring();
    0
}

/// `rdma_reject(3)`: REJ.
#[no_mangle]
pub unsafe extern "C" fn rdma_reject(id: *mut rdma_cm_id, data: *const c_void, length: u8) -> c_int {
    let Some(device) = device() else { return minus_one(libc::ENODEV) };
    let (local, data) = unsafe { (connection(id), private(data, length)) };
    let mut nic = device.lock();
    if let Err(errno) = nic.cm.expect(local, Phase::ReqReceived) {
        return minus_one(errno);
    }
    nic.with_cm(|cm, _, out| cm.reject(local, data, out));
    0
}

/// `rdma_disconnect(3)`: the queue pair to ERR, then DREQ; or DREP, if the peer has asked.
#[no_mangle]
pub unsafe extern "C" fn rdma_disconnect(id: *mut rdma_cm_id) -> c_int {
    let Some(device) = device() else { return minus_one(libc::ENODEV) };
    let local = unsafe { connection(id) };
    if device.lock().cm.get(local).is_none() {
        return minus_one(libc::EINVAL);
    }
    if !unsafe { (*id).qp }.is_null() {
        unsafe { qp::to_error(device, id) };
    }
    let ended = device.lock().with_cm(|cm, now, out| cm.disconnect(local, now, out));
    device.ring();
    if ended {
        0
    } else {
        minus_one(libc::EINVAL)
    }
}
