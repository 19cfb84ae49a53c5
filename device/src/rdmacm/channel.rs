//! Event channels, and the events in them.

use super::{address, connect, kept};
use crate::cm::{Event, EventKind, Param};
use crate::nic::bell::{BellQueue, Unacked};
use crate::nic::{device, Nic};
use crate::verbs::{minus_one, null};
use libc::{c_char, c_int};
use rdma_sys::{param_t, rdma_cm_event, rdma_cm_id, rdma_conn_param, rdma_event_channel};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

/// An event channel, as the library knows it. Its queue holds addresses of [`EventFace`]s.
#[repr(C)]
pub(super) struct ChannelFace {
    c: rdma_event_channel,
    events: BellQueue<usize>,
}

/// An event, as the library knows it: the peer's private data lies behind it.
#[repr(C)]
pub(super) struct EventFace {
    c: rdma_cm_event,
    private: Vec<u8>,
}

/// `rdma_create_event_channel(3)`: the first call of most programs, so here they learn that there is no device.
#[no_mangle]
pub unsafe extern "C" fn rdma_create_event_channel() -> *mut rdma_event_channel {
    if device().is_none() {
        return null(libc::ENODEV);
    }
    let Ok(events) = BellQueue::new() else { return null(libc::EMFILE) };
    let c = rdma_event_channel { fd: events.fd() };
    Box::into_raw(Box::new(ChannelFace { c, events })).cast()
}

/// `rdma_destroy_event_channel(3)`.
#[no_mangle]
pub unsafe extern "C" fn rdma_destroy_event_channel(channel: *mut rdma_event_channel) {
    let channel = unsafe { Box::from_raw(channel.cast::<ChannelFace>()) };
    channel
        .events
        .take_out(|_| true)
        .into_iter()
        .for_each(|event| drop(unsafe { Box::from_raw(event as *mut EventFace) }));
}

/// `rdma_get_cm_event(3)`: blocks, or not, as the channel's descriptor is set.
#[no_mangle]
pub unsafe extern "C" fn rdma_get_cm_event(channel: *mut rdma_event_channel, to: *mut *mut rdma_cm_event) -> c_int {
    let Some(device) = device() else { return minus_one(libc::ENODEV) };
    // Counted before anybody can see that it is gone: the id of an event that is being fetched is not destroyed.
    let count = |event: &usize| unsafe { counted(&(*(*event as *mut EventFace)).c).add() };
    let face = match unsafe { (*channel.cast::<ChannelFace>()).events.pop(count) } {
        Ok(event) => event as *mut EventFace,
        Err(errno) => return minus_one(errno),
    };
    unsafe {
        let event = &mut (*face).c;
        let id = event.id;
        match event.event {
            kind if kind == EventKind::ConnectRequest as u32 => {
                (*id).context = (*event.listen_id).context;
                device.lock().cm.fetched(event.listen_id as u64);
            }
            kind if kind == EventKind::ConnectResponse as u32 && !(*id).qp.is_null() => {
                event.event = match connect::complete(device, id) {
                    Ok(()) => EventKind::Established as u32,
                    Err(errno) => {
                        event.status = -errno;
                        EventKind::ConnectError as u32
                    }
                };
            }
            kind if kind == EventKind::Rejected as u32 && !(*id).qp.is_null() => super::qp::to_error(device, id),
            _ => {}
        }
        *to = face.cast();
    }
    0
}

/// Where this event is counted: the id whose destruction waits for it.
unsafe fn counted<'a>(event: &rdma_cm_event) -> &'a Arc<Unacked> {
    unsafe { &kept(if event.listen_id.is_null() { event.id } else { event.listen_id }).unacked }
}

/// `rdma_ack_cm_event(3)`: frees the event, and the private data that it points to.
#[no_mangle]
pub unsafe extern "C" fn rdma_ack_cm_event(event: *mut rdma_cm_event) -> c_int {
    let event = unsafe { Box::from_raw(event.cast::<EventFace>()) };
    // With this the id may be destroyed at once, by another thread.
    let unacked = unsafe { Arc::clone(counted(&event.c)) };
    unacked.acknowledge(1);
    0
}

/// Puts the connection manager's events in the channels of their ids. Called with the device's lock held, so that no id
/// goes away meanwhile.
pub fn deliver(nic: &mut Nic) {
    for event in std::mem::take(&mut nic.cm_events) {
        // SAFETY: the connection manager knows an id as owner only until it is destroyed, under the same lock.
        unsafe { deliver_one(nic, event) };
    }
}

unsafe fn deliver_one(nic: &mut Nic, event: Event) {
    let (mut id, mut listen_id) = (event.owner as *mut rdma_cm_id, null_mut());
    if event.kind == EventKind::ConnectRequest {
        let Some(connection) = nic.cm.get(event.connection) else { return };
        let (peer, port) = (connection.peer, connection.peer_port);
        (listen_id, id) = (id, unsafe { super::id::new((*id).channel, null_mut(), (*id).ps) });
        connection.owner = Some(id as u64);
        unsafe {
            kept(id).connection.store(event.connection, Relaxed);
            super::id::bind(id, nic.address(), super::id::port_of(listen_id));
            address::write(super::id::peers(id), peer, port);
        }
    }
    unsafe {
        post(id, listen_id, event.kind as u32, event.status, event.private, conn_param(&event.param, event.peer_qpn))
    };
}

fn conn_param(param: &Param, qp_num: u32) -> rdma_conn_param {
    // SAFETY: zeroes are a null pointer and numbers.
    let mut c: rdma_conn_param = unsafe { std::mem::zeroed() };
    (c.responder_resources, c.initiator_depth) = (param.responder_resources, param.initiator_depth);
    (c.retry_count, c.rnr_retry_count, c.qp_num) = (param.retries, param.rnr_retries, qp_num);
    c
}

/// Puts an event that needs no message in the channel of its id.
pub(super) unsafe fn post_plain(id: *mut rdma_cm_id, event: u32, status: c_int) {
    unsafe { post(id, null_mut(), event, status, Vec::new(), std::mem::zeroed()) };
}

unsafe fn post(
    id: *mut rdma_cm_id,
    listen_id: *mut rdma_cm_id,
    event: u32,
    status: c_int,
    private: Vec<u8>,
    mut conn: rdma_conn_param,
) {
    if !private.is_empty() {
        conn.private_data = private.as_ptr().cast();
        conn.private_data_len = private.len() as u8;
    }
    let c = rdma_cm_event { id, listen_id, event, status, param: param_t { conn } };
    let face = Box::into_raw(Box::new(EventFace { c, private }));
    unsafe { (*(*id).channel.cast::<ChannelFace>()).events.push(face as usize) };
}

/// Takes an id's events that the program has not fetched out of its channel. Gives the ids that only these knew of.
pub(super) unsafe fn withdraw(id: *mut rdma_cm_id) -> Vec<*mut rdma_cm_id> {
    let is_about = |event: &usize| unsafe {
        let event = &(*(*event as *mut EventFace)).c;
        event.id == id || event.listen_id == id
    };
    let events = unsafe { (*(*id).channel.cast::<ChannelFace>()).events.take_out(is_about) };
    let taken = events.into_iter().map(|event| unsafe { Box::from_raw(event as *mut EventFace) }.c.id);
    taken.filter(|about| *about != id).collect()
}

/// `rdma_migrate_id(3)`: an id's events come along.
#[no_mangle]
pub unsafe extern "C" fn rdma_migrate_id(id: *mut rdma_cm_id, channel: *mut rdma_event_channel) -> c_int {
    let Some(device) = device() else { return minus_one(libc::ENODEV) };
    if channel.is_null() {
        return minus_one(libc::EOPNOTSUPP); // An id without a channel of its own works synchronously.
    }
    unsafe { Arc::clone(&kept(id).unacked) }.wait_for_all();
    let _nic = device.lock();
    let is_about = |event: &usize| unsafe { (*(*event as *mut EventFace)).c.id == id };
    unsafe {
        let events = (*(*id).channel.cast::<ChannelFace>()).events.take_out(is_about);
        (*id).channel = channel;
        events.into_iter().for_each(|event| (*channel.cast::<ChannelFace>()).events.push(event));
    }
    0
}

/// `rdma_event_str(3)`.
#[no_mangle]
pub extern "C" fn rdma_event_str(event: u32) -> *const c_char {
    const NAMES: [&[u8]; 16] = [
        b"RDMA_CM_EVENT_ADDR_RESOLVED\0",
        b"RDMA_CM_EVENT_ADDR_ERROR\0",
        b"RDMA_CM_EVENT_ROUTE_RESOLVED\0",
        b"RDMA_CM_EVENT_ROUTE_ERROR\0",
        b"RDMA_CM_EVENT_CONNECT_REQUEST\0",
        b"RDMA_CM_EVENT_CONNECT_RESPONSE\0",
        b"RDMA_CM_EVENT_CONNECT_ERROR\0",
        b"RDMA_CM_EVENT_UNREACHABLE\0",
        b"RDMA_CM_EVENT_REJECTED\0",
        b"RDMA_CM_EVENT_ESTABLISHED\0",
        b"RDMA_CM_EVENT_DISCONNECTED\0",
        b"RDMA_CM_EVENT_DEVICE_REMOVAL\0",
        b"RDMA_CM_EVENT_MULTICAST_JOIN\0",
        b"RDMA_CM_EVENT_MULTICAST_ERROR\0",
        b"RDMA_CM_EVENT_ADDR_CHANGE\0",
        b"RDMA_CM_EVENT_TIMEWAIT_EXIT\0",
    ];
    NAMES.get(event as usize).copied().unwrap_or(b"UNKNOWN EVENT\0").as_ptr().cast()
}
