//! Event channels, and the events in them: how a program learns of a message. A REQ is a CONNECT_REQUEST at the server, a REP
//! is ESTABLISHED at the client, the RTU at the server; a REJ is REJECTED, a DREQ or its DREP is DISCONNECTED.

use super::{address, connect, id, Id, Kept, Step};
use crate::rim::bell::{locked, BellQueue, Unacked};
use crate::rim::{Device, Face, Nic};
use crate::verbs::context::context;
use crate::verbs::{call, object, Object};
use libc::{c_char, c_int};
use nic::cm::{Event, EventKind, Param};
use rdma_sys::rdma_cm_event_type::*;
use rdma_sys::{param_t, rdma_cm_event, rdma_cm_id, rdma_conn_param, rdma_event_channel};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

/// The addresses of events that a program has not fetched.
pub(super) type Events = BellQueue<Face>;

/// An event channel. Its ids share the queue: a program may destroy the channel before them.
type Channel = Object<rdma_event_channel, Arc<Events>>;

/// An event, with the peer's private data, which it points to.
type CmEvent = Object<rdma_cm_event, Vec<u8>>;

/// `rdma_create_event_channel(3)`: the first call of most programs, so here they learn that there is no device.
#[no_mangle]
pub unsafe extern "C" fn rdma_create_event_channel() -> *mut rdma_event_channel {
    object(|_| {
        let events = BellQueue::new().map_err(|_| libc::EMFILE)?;
        Ok(Channel::give(rdma_event_channel { fd: events.fd() }, |_| Arc::new(events)))
    })
}

/// `rdma_destroy_event_channel(3)`.
#[no_mangle]
pub unsafe extern "C" fn rdma_destroy_event_channel(channel: *mut rdma_event_channel) {
    let channel = unsafe { Channel::take_back(channel) };
    for event in channel.own.take_out(|_| true) {
        drop(unsafe { CmEvent::take_back(event as *mut rdma_cm_event) });
    }
}

/// `rdma_get_cm_event(3)`: blocks, or not, as the channel's descriptor is set.
#[no_mangle]
pub unsafe extern "C" fn rdma_get_cm_event(channel: *mut rdma_event_channel, to: *mut *mut rdma_cm_event) -> c_int {
    call(|device| unsafe {
        // Counted before anybody can see that it is gone: the id of an event that is being fetched is not destroyed.
        let count = |event: &Face| counted(*event as *mut rdma_cm_event).add();
        let event = Channel::own(channel).pop(count)? as *mut rdma_cm_event;
        library_part(device, &mut *event);
        *to = event;
        Ok(())
    })
}

/// What librdmacm does for the id before it hands out an event.
unsafe fn library_part(device: &Device, event: &mut rdma_cm_event) {
    let id = event.id;
    unsafe {
        match event.event {
            RDMA_CM_EVENT_ADDR_RESOLVED => ((*id).verbs, (*id).port_num) = (context(), 1),
            RDMA_CM_EVENT_CONNECT_REQUEST => {
                let listener = event.listen_id;
                (*id).context = (*listener).context;
                // The listener may have migrated since the knock. Its new ids have the channel that it has now (librdmacm,
                // `ucma_process_conn_req`); none of them has had another event, as none is accepted.
                attach(id, (*listener).channel, events(listener));
                device.lock().cm.fetched(listener as u64);
            }
            RDMA_CM_EVENT_CONNECT_RESPONSE if !(*id).qp.is_null() => {
                let ready = connect::complete(device, id);
                event.event = if ready.is_ok() { RDMA_CM_EVENT_ESTABLISHED } else { RDMA_CM_EVENT_CONNECT_ERROR };
                event.status = ready.err().map_or(0, |errno| -errno);
            }
            RDMA_CM_EVENT_REJECTED if !(*id).qp.is_null() => super::qp::to_error(device, id),
            _ => {}
        }
    }
}

/// Where an event is counted: the id whose destruction waits for it.
unsafe fn counted<'a>(event: *mut rdma_cm_event) -> &'a Arc<Unacked> {
    let (id, listen_id) = unsafe { ((*event).id, (*event).listen_id) };
    let kept: &Kept = unsafe { Id::own(if listen_id.is_null() { id } else { listen_id }) };
    &kept.unacked
}

/// `rdma_ack_cm_event(3)`: frees the event, and the private data that it points to.
#[no_mangle]
pub unsafe extern "C" fn rdma_ack_cm_event(event: *mut rdma_cm_event) -> c_int {
    // With this the id may be destroyed at once, by another thread.
    let unacked = unsafe { Arc::clone(counted(event)) };
    drop(unsafe { CmEvent::take_back(event) });
    unacked.acknowledge(1);
    0
}

/// The queue of a channel.
pub(super) unsafe fn queue_of(channel: *mut rdma_event_channel) -> Arc<Events> {
    Arc::clone(unsafe { Channel::own(channel) })
}

/// The queue of an id's channel.
unsafe fn events(id: *mut rdma_cm_id) -> Arc<Events> {
    Arc::clone(&locked(unsafe { &Id::own(id).events }))
}

/// From now on an id's events go to this channel.
unsafe fn attach(id: *mut rdma_cm_id, channel: *mut rdma_event_channel, to: Arc<Events>) {
    unsafe {
        (*id).channel = channel;
        *locked(&Id::own(id).events) = to;
    }
}

/// Puts the connection manager's events in the channels of their ids. Called with the device's lock held, so that no id
/// goes away meanwhile.
pub fn deliver(nic: &mut Nic) {
    for event in std::mem::take(&mut nic.cm_events) {
        // SAFETY: the connection manager knows an id as owner only until it is destroyed, under the same lock.
        unsafe {
            let about = event.owner as *mut rdma_cm_id;
            match event.kind {
                EventKind::ConnectRequest => connect_request(nic, about, event),
                _ => post(about, null_mut(), event),
            }
        }
    }
}

/// A ConnectRequest comes with a new id, which has what the listener has.
unsafe fn connect_request(nic: &mut Nic, listen_id: *mut rdma_cm_id, event: Event) {
    let Some(connection) = nic.cm.get(event.connection) else { return };
    let (peer, port) = (connection.peer, connection.peer_port);
    unsafe {
        let id = id::new((*listen_id).channel, events(listen_id), null_mut(), (*listen_id).ps);
        connection.owner = Some(id as u64);
        Id::own(id).connection.store(event.connection, Relaxed);
        *locked(&Id::own(id).step) = Step::Connecting;
        id::bind(nic, id, nic.address(), id::port_of(listen_id));
        address::write(id::peers(id), peer, port);
        post(id, listen_id, event);
    }
}

/// Puts an event in the channel of its id.
pub(super) unsafe fn post(id: *mut rdma_cm_id, listen_id: *mut rdma_cm_id, of: Event) {
    let mut conn = to_c(&of.param, of.peer_qpn);
    if !of.private.is_empty() {
        conn.private_data = of.private.as_ptr().cast();
        conn.private_data_len = of.private.len() as u8;
    }
    let (event, status) = (of.kind as u32, of.status);
    let c = rdma_cm_event { id, listen_id, event, status, param: param_t { conn } };
    let event = CmEvent::give(c, |_| of.private);
    unsafe { events(id) }.push(event as Face);
}

fn to_c(param: &Param, qp_num: u32) -> rdma_conn_param {
    rdma_conn_param {
        responder_resources: param.responder_resources,
        initiator_depth: param.initiator_depth,
        retry_count: param.retries,
        rnr_retry_count: param.rnr_retries,
        qp_num,
        // SAFETY: zeroes are a null pointer and numbers.
        ..unsafe { std::mem::zeroed() }
    }
}

/// Takes an id's events that the program has not fetched out of its channel. Gives the ids that only these knew of.
pub(super) unsafe fn withdraw(id: *mut rdma_cm_id) -> Vec<*mut rdma_cm_id> {
    let events = unsafe { events(id) }.take_out(|event| unsafe { is_about(event, id) }).into_iter();
    let ids = events.map(|event| unsafe { CmEvent::take_back(event as *mut rdma_cm_event) }.c.id);
    ids.filter(|about| *about != id).collect()
}

/// Whether an event is an id's own, or of somebody who knocks at it.
unsafe fn is_about(event: &Face, id: *mut rdma_cm_id) -> bool {
    let event = *event as *mut rdma_cm_event;
    unsafe { (*event).id == id || (*event).listen_id == id }
}

/// `rdma_migrate_id(3)`: an id's events come along, with those who have knocked at it.
#[no_mangle]
pub unsafe extern "C" fn rdma_migrate_id(id: *mut rdma_cm_id, channel: *mut rdma_event_channel) -> c_int {
    call(|device| unsafe {
        if channel.is_null() {
            return Err(libc::EOPNOTSUPP); // An id without a channel of its own works synchronously.
        }
        Arc::clone(&Id::own(id).unacked).wait_for_all();
        let _nic = device.lock();
        let (before, after) = (events(id), queue_of(channel));
        attach(id, channel, Arc::clone(&after));
        before.take_out(|event| is_about(event, id)).into_iter().for_each(|event| after.push(event));
        Ok(())
    })
}

/// The names of events in their order, as C wants them: each with a zero at its end.
macro_rules! names {
    ($($name:ident)*) => { [$(concat!("RDMA_CM_EVENT_", stringify!($name), "\0")),*] };
}

/// `rdma_event_str(3)`.
#[no_mangle]
pub extern "C" fn rdma_event_str(event: u32) -> *const c_char {
    const NAMES: [&str; 16] = names! {
        ADDR_RESOLVED ADDR_ERROR ROUTE_RESOLVED ROUTE_ERROR CONNECT_REQUEST CONNECT_RESPONSE CONNECT_ERROR UNREACHABLE
        REJECTED ESTABLISHED DISCONNECTED DEVICE_REMOVAL MULTICAST_JOIN MULTICAST_ERROR ADDR_CHANGE TIMEWAIT_EXIT
    };
    NAMES.get(event as usize).unwrap_or(&"UNKNOWN EVENT\0").as_ptr().cast()
}
