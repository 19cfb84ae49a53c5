//! Connecting and disconnecting: which call lets which message go. `rdma_connect` sends the REQ, `rdma_accept` the REP,
//! `rdma_reject` a REJ, `rdma_disconnect` the DREQ, or the DREP if the peer was first. The RTU has no call of its own, unless
//! the program moves its queue pair itself (`rdma_establish`): it goes when the program fetches its event.

use super::{address, connection, id, qp, Id, Step};
use crate::rim::bell::locked;
use crate::rim::{random, Device};
use crate::verbs::call;
use libc::{c_int, c_void};
use nic::cm::{Connection, Param, Phase, REJ_PRIVATE, REP_PRIVATE, REQ_PRIVATE};
use nic::qp::State;
use rdma_sys::{rdma_cm_id, rdma_conn_param};
use std::sync::atomic::Ordering::Relaxed;

/// "As many as the peer asks for, or allows": `RDMA_MAX_RESP_RES`, `RDMA_MAX_INIT_DEPTH`.
const AS_ASKED: u8 = 0xff;

/// What a program says when it connects or accepts.
struct Wish<'a> {
    /// None: whatever is usual.
    param: Option<Param>,
    /// Of the id's queue pair, or of one that the program has made without the id.
    qpn: u32,
    private: &'a [u8],
}

unsafe fn wish_of<'a>(id: *mut rdma_cm_id, c: *const rdma_conn_param) -> Wish<'a> {
    let (qp, c) = unsafe { ((*id).qp, c.as_ref()) };
    Wish {
        param: c.map(|c| Param {
            responder_resources: c.responder_resources,
            initiator_depth: c.initiator_depth,
            retries: c.retry_count & 7,
            rnr_retries: c.rnr_retry_count & 7,
        }),
        qpn: if qp.is_null() { c.map_or(0, |c| c.qp_num) } else { unsafe { (*qp).qp_num } },
        private: c.map_or(&[], |c| unsafe { bytes(c.private_data, c.private_data_len) }),
    }
}

unsafe fn bytes<'a>(data: *const c_void, length: u8) -> &'a [u8] {
    if data.is_null() || length == 0 {
        return &[];
    }
    unsafe { std::slice::from_raw_parts(data.cast(), length.into()) }
}

/// `rdma_connect(3)`: REQ.
#[no_mangle]
pub unsafe extern "C" fn rdma_connect(id: *mut rdma_cm_id, c: *mut rdma_conn_param) -> c_int {
    call(|device| unsafe {
        let mut nic = device.lock();
        let mine = Id::own(id);
        let (wish, mut step) = (wish_of(id, c), locked(&mine.step));
        if *step != Step::HasRoute || wish.private.len() > REQ_PRIVATE {
            return Err(libc::EINVAL);
        }
        let (peer, port) = address::read(id::peers(id).cast()).ok_or(libc::EINVAL)?;
        let local = nic.cm.open(Some(id as u64), peer, random());
        mine.connection.store(local, Relaxed);
        *step = Step::Connecting;
        if let Some(connection) = nic.cm.get(local) {
            connection.param = wish.param.unwrap_or_default();
            connection.qpn = wish.qpn;
            let timeout = &mut connection.attributes.timeout;
            *timeout = locked(&mine.ack_timeout).unwrap_or(*timeout);
        }
        let from = id::port_of(id);
        nic.with_cm(|cm, now, out| cm.connect(local, port, from, wish.private, now, out));
        device.ring();
        Ok(())
    })
}

/// The client's part when the REP has come: its queue pair to RTS, then the RTU.
pub(super) unsafe fn complete(device: &Device, id: *mut rdma_cm_id) -> Result<(), c_int> {
    unsafe { to_rts(device, id)? };
    ready_to_use(device, unsafe { connection(id) })
}

unsafe fn to_rts(device: &Device, id: *mut rdma_cm_id) -> Result<(), c_int> {
    unsafe { qp::move_to(device, id, State::Rtr)? };
    unsafe { qp::move_to(device, id, State::Rts) }
}

fn ready_to_use(device: &Device, local: u32) -> Result<(), c_int> {
    Ok(device.lock().with_cm(|cm, now, out| cm.ready_to_use(local, now, out))?)
}

/// `rdma_establish(3)`: RTU, for programs that move their queue pairs themselves.
#[no_mangle]
pub unsafe extern "C" fn rdma_establish(id: *mut rdma_cm_id) -> c_int {
    call(|device| ready_to_use(device, unsafe { connection(id) }))
}

/// `rdma_accept(3)`: the server's queue pair to RTS, then the REP.
#[no_mangle]
pub unsafe extern "C" fn rdma_accept(id: *mut rdma_cm_id, c: *mut rdma_conn_param) -> c_int {
    call(|device| unsafe {
        let (local, wish) = (connection(id), wish_of(id, c));
        if wish.private.len() > REP_PRIVATE {
            return Err(libc::EINVAL);
        }
        agree(device.lock().cm.expect(local, Phase::ReqReceived)?, &wish);
        if !(*id).qp.is_null() {
            to_rts(device, id)?;
        }
        device.lock().with_cm(|cm, now, out| cm.accept(local, wish.private, now, out))?;
        device.ring();
        Ok(())
    })
}

/// What the program accepts, of what the REQ has asked for.
fn agree(connection: &mut Connection, wish: &Wish) {
    let asked = connection.param;
    let wanted = wish.param.unwrap_or(asked);
    let or_asked = |wanted, asked| if wanted == AS_ASKED { asked } else { wanted };
    connection.qpn = wish.qpn;
    connection.param = Param {
        responder_resources: or_asked(wanted.responder_resources, asked.responder_resources),
        initiator_depth: or_asked(wanted.initiator_depth, asked.initiator_depth),
        rnr_retries: wanted.rnr_retries,
        retries: asked.retries, // The REQ says it for both sides.
    };
}

/// `rdma_reject(3)`: REJ.
#[no_mangle]
pub unsafe extern "C" fn rdma_reject(id: *mut rdma_cm_id, data: *const c_void, length: u8) -> c_int {
    call(|device| unsafe {
        let (local, data) = (connection(id), bytes(data, length));
        if data.len() > REJ_PRIVATE {
            return Err(libc::EINVAL);
        }
        Ok(device.lock().with_cm(|cm, _, out| cm.reject(local, data, out))?)
    })
}

/// `rdma_disconnect(3)`: the queue pair to ERR, then DREQ; or DREP, if the peer has asked.
#[no_mangle]
pub unsafe extern "C" fn rdma_disconnect(id: *mut rdma_cm_id) -> c_int {
    call(|device| unsafe {
        let local = connection(id);
        let listens = *locked(&Id::own(id).step) == Step::Listening;
        if device.lock().cm.get(local).is_none() && !listens {
            return Err(libc::EINVAL);
        }
        if !(*id).qp.is_null() {
            qp::to_error(device, id);
        }
        device.lock().with_cm(|cm, now, out| cm.disconnect(local, now, out));
        device.ring();
        Ok(())
    })
}
