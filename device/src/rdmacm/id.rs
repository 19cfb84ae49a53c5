//! Ids: making, binding, listening, resolving.

use super::channel::{post_plain, withdraw};
use super::{address, connection, kept, Id, Kept};
use crate::nic::bell::locked;
use crate::nic::{device, random, Nic};
use crate::verbs::context::context;
use crate::verbs::minus_one;
use libc::{c_int, c_void, sockaddr};
use rdma_sys::rdma_cm_event_type::{
    RDMA_CM_EVENT_ADDR_ERROR, RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_ROUTE_RESOLVED,
};
use rdma_sys::{ibv_qp_type, rdma_cm_id, rdma_event_channel, rdma_port_space};
use std::net::IpAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

/// A new id, which belongs to the program from now on.
pub(super) unsafe fn new(channel: *mut rdma_event_channel, context: *mut c_void, ps: u32) -> *mut rdma_cm_id {
    let mut c: rdma_cm_id = unsafe { std::mem::zeroed() };
    (c.channel, c.context, c.ps, c.qp_type) = (channel, context, ps, ibv_qp_type::IBV_QPT_RC);
    Box::into_raw(Box::new(Id { c, kept: Kept::default() })).cast()
}

/// `rdma_create_id(3)`: for connections, with an event channel.
#[no_mangle]
pub unsafe extern "C" fn rdma_create_id(
    channel: *mut rdma_event_channel,
    id: *mut *mut rdma_cm_id,
    context: *mut c_void,
    ps: u32,
) -> c_int {
    if device().is_none() {
        return minus_one(libc::ENODEV);
    }
    if channel.is_null() || ps != rdma_port_space::RDMA_PS_TCP {
        return minus_one(libc::EOPNOTSUPP);
    }
    unsafe { *id = new(channel, context, ps) };
    0
}

/// `rdma_destroy_id(3)`: ends its connection; those whom it has not told the program of are turned away. Then it waits until
/// the events that the program has fetched are acknowledged.
#[no_mangle]
pub unsafe extern "C" fn rdma_destroy_id(id: *mut rdma_cm_id) -> c_int {
    let Some(device) = device() else { return minus_one(libc::ENODEV) };
    unsafe {
        {
            let mut nic = device.lock();
            for unseen in withdraw(id) {
                close(&mut nic, unseen);
                drop(Box::from_raw(unseen.cast::<Id>()));
            }
            close(&mut nic, id);
        }
        device.ring();
        Arc::clone(&kept(id).unacked).wait_for_all();
        drop(Box::from_raw(id.cast::<Id>()));
    }
    0
}

/// The device forgets an id: from now on there are no events for it.
unsafe fn close(nic: &mut Nic, id: *mut rdma_cm_id) {
    let connection = unsafe { connection(id) };
    nic.with_cm(|cm, now, out| cm.close(id as u64, connection, now, out));
    nic.cm_events.retain(|event| event.owner != id as u64);
}

/// The port that an id is bound to.
pub(super) unsafe fn port_of(id: *mut rdma_cm_id) -> u16 {
    unsafe { address::read(own(id).cast()) }.map_or(0, |(_, port)| port)
}

fn own(id: *mut rdma_cm_id) -> *mut c_void {
    // SAFETY: only the address of a field is taken.
    unsafe { std::ptr::addr_of_mut!((*id).route.addr.src_addr_union) }.cast()
}

/// Where the peer's address stands.
pub(super) fn peers(id: *mut rdma_cm_id) -> *mut c_void {
    // SAFETY: as above.
    unsafe { std::ptr::addr_of_mut!((*id).route.addr.dst_addr_union) }.cast()
}

/// Binds an id to an address and port; to the device, if the address is its own.
pub(super) unsafe fn bind(id: *mut rdma_cm_id, ip: IpAddr, port: u16) {
    unsafe {
        address::write(own(id), ip, port);
        if !ip.is_unspecified() {
            ((*id).verbs, (*id).port_num) = (context(), 1);
        }
    }
}

/// A port nobody listens on, of those that Linux gives to clients.
fn free_port(nic: &Nic) -> u16 {
    let any = || 32_768 + (random() % 28_000) as u16;
    std::iter::repeat_with(any).find(|port| !nic.cm.is_taken(*port)).unwrap_or_default()
}

/// `rdma_bind_addr(3)`.
#[no_mangle]
pub unsafe extern "C" fn rdma_bind_addr(id: *mut rdma_cm_id, to: *mut sockaddr) -> c_int {
    let Some(device) = device() else { return minus_one(libc::ENODEV) };
    let nic = device.lock();
    let Some((ip, port)) = (unsafe { address::read(to) }) else { return minus_one(libc::EAFNOSUPPORT) };
    if !ip.is_unspecified() && ip != nic.address() {
        // An address of this machine that no RDMA device has; or none of this machine.
        return minus_one(if ip.is_loopback() { libc::ENODEV } else { libc::EADDRNOTAVAIL });
    }
    if port != 0 && nic.cm.is_taken(port) {
        return minus_one(libc::EADDRINUSE);
    }
    unsafe { bind(id, ip, if port == 0 { free_port(&nic) } else { port }) };
    0
}

/// `rdma_listen(3)`.
#[no_mangle]
pub unsafe extern "C" fn rdma_listen(id: *mut rdma_cm_id, backlog: c_int) -> c_int {
    let Some(device) = device() else { return minus_one(libc::ENODEV) };
    let mut nic = device.lock();
    if unsafe { port_of(id) } == 0 {
        unsafe { bind(id, [0, 0, 0, 0].into(), free_port(&nic)) };
    }
    match nic.cm.listen(unsafe { port_of(id) }, id as u64, usize::try_from(backlog).unwrap_or(0)) {
        Ok(()) => {
            nic.port.tap.listens(nic.address());
            0
        }
        Err(errno) => minus_one(errno),
    }
}

/// `rdma_resolve_addr(3)`: there is one device, and it reaches whom the machine reaches.
#[no_mangle]
pub unsafe extern "C" fn rdma_resolve_addr(
    id: *mut rdma_cm_id,
    from: *mut sockaddr,
    to: *mut sockaddr,
    _ms: c_int,
) -> c_int {
    let Some(device) = device() else { return minus_one(libc::ENODEV) };
    let nic = device.lock();
    let Some((peer, port)) = (unsafe { address::read(to) }) else { return minus_one(libc::EAFNOSUPPORT) };
    let own = nic.address();
    let named = unsafe { address::read(from) }.filter(|(ip, _)| !ip.is_unspecified());
    if named.is_some_and(|(ip, _)| ip != own) {
        return minus_one(libc::ENODEV);
    }
    unsafe { address::write(peers(id), peer, port) };
    if peer.is_ipv4() != own.is_ipv4() {
        unsafe { post_plain(id, RDMA_CM_EVENT_ADDR_ERROR, -libc::ENETUNREACH) };
        return 0;
    }
    let bound = unsafe { port_of(id) };
    unsafe {
        bind(id, own, if bound == 0 { free_port(&nic) } else { bound });
        post_plain(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
    }
    0
}

/// `rdma_resolve_route(3)`: on Ethernet the IP layer's business.
#[no_mangle]
pub unsafe extern "C" fn rdma_resolve_route(id: *mut rdma_cm_id, _ms: c_int) -> c_int {
    let Some(device) = device() else { return minus_one(libc::ENODEV) };
    let _nic = device.lock();
    if unsafe { (*id).verbs }.is_null() {
        return minus_one(libc::EINVAL);
    }
    unsafe { kept(id) }.has_route.store(true, Relaxed);
    unsafe { post_plain(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0) };
    0
}

/// `rdma_set_option(3)`: the ACK time-out; the others change nothing here.
#[no_mangle]
pub unsafe extern "C" fn rdma_set_option(
    id: *mut rdma_cm_id,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    length: usize,
) -> c_int {
    const ID: c_int = 0;
    const ACK_TIMEOUT: c_int = 3;
    const LAST: c_int = 3;
    if level != ID || !(0..=LAST).contains(&name) {
        return minus_one(libc::ENOSYS);
    }
    if name == ACK_TIMEOUT {
        if length != 1 {
            return minus_one(libc::EINVAL);
        }
        *locked(&unsafe { kept(id) }.ack_timeout) = Some(unsafe { value.cast::<u8>().read() } & 0x1f);
    }
    0
}
