//! Ids: making, binding, listening, resolving. Each call is for one step of an id's way, and refused in any other.

use super::channel::{post, queue_of, withdraw, Events};
use super::{address, connection, Id, Kept, Step};
use crate::rim::bell::locked;
use crate::rim::{random, Device, Nic};
use crate::verbs::call;
use crate::verbs::context::context;
use libc::{c_int, c_void, sockaddr};
use nic::cm::{Event, EventKind};
use rdma_sys::{ibv_qp_type, rdma_cm_id, rdma_event_channel, rdma_port_space};
use std::net::{IpAddr, Ipv4Addr};
use std::ptr::{addr_of_mut, null_mut};
use std::sync::Arc;

/// A new id, which belongs to the program from now on.
pub(super) unsafe fn new(
    channel: *mut rdma_event_channel,
    events: Arc<Events>,
    context: *mut c_void,
    ps: u32,
) -> *mut rdma_cm_id {
    let mut c: rdma_cm_id = unsafe { std::mem::zeroed() };
    (c.channel, c.context, c.ps, c.qp_type) = (channel, context, ps, ibv_qp_type::IBV_QPT_RC);
    Id::give(c, |_| Kept::new(events))
}

/// `rdma_create_id(3)`: for connections, with an event channel.
#[no_mangle]
pub unsafe extern "C" fn rdma_create_id(
    channel: *mut rdma_event_channel,
    id: *mut *mut rdma_cm_id,
    context: *mut c_void,
    ps: u32,
) -> c_int {
    call(|_| unsafe {
        if channel.is_null() || ps != rdma_port_space::RDMA_PS_TCP {
            return Err(libc::EOPNOTSUPP);
        }
        *id = new(channel, queue_of(channel), context, ps);
        Ok(())
    })
}

/// `rdma_destroy_id(3)`: ends its connection; those whom it has not told the program of are turned away. Then it waits until
/// the events that the program has fetched are acknowledged.
#[no_mangle]
pub unsafe extern "C" fn rdma_destroy_id(id: *mut rdma_cm_id) -> c_int {
    call(|device| unsafe {
        forget(device, id);
        device.ring();
        Arc::clone(&Id::own(id).unacked).wait_for_all();
        drop(Id::take_back(id));
        Ok(())
    })
}

unsafe fn forget(device: &Device, id: *mut rdma_cm_id) {
    let mut nic = device.lock();
    for unseen in unsafe { withdraw(id) } {
        unsafe { close(&mut nic, unseen) };
        drop(unsafe { Id::take_back(unseen) });
    }
    unsafe { close(&mut nic, id) };
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

/// Where an id's own address stands.
unsafe fn own(id: *mut rdma_cm_id) -> *mut c_void {
    unsafe { addr_of_mut!((*id).route.addr.src_addr_union) }.cast()
}

/// Where the peer's address stands.
pub(super) unsafe fn peers(id: *mut rdma_cm_id) -> *mut c_void {
    unsafe { addr_of_mut!((*id).route.addr.dst_addr_union) }.cast()
}

/// Binds an id to an address and port, 0 for any that is free; to the device, if the address is its own.
pub(super) unsafe fn bind(nic: &Nic, id: *mut rdma_cm_id, ip: IpAddr, port: u16) {
    unsafe {
        address::write(own(id), ip, if port == 0 { free_port(nic) } else { port });
        if ip == nic.address() {
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
    call(|device| unsafe {
        let nic = device.lock();
        let mut step = locked(&Id::own(id).step);
        let (ip, port) = address::read(to).ok_or(libc::EAFNOSUPPORT)?;
        if *step != Step::New {
            return Err(libc::EINVAL);
        }
        if !ip.is_unspecified() && ip != nic.address() {
            // An address of this machine that no RDMA device has; or none of this machine.
            return Err(if ip.is_loopback() { libc::ENODEV } else { libc::EADDRNOTAVAIL });
        }
        if port != 0 && nic.cm.is_taken(port) {
            return Err(libc::EADDRINUSE);
        }
        bind(&nic, id, ip, port);
        *step = Step::Bound;
        Ok(())
    })
}

/// `rdma_listen(3)`: an id that is not bound takes any port.
#[no_mangle]
pub unsafe extern "C" fn rdma_listen(id: *mut rdma_cm_id, backlog: c_int) -> c_int {
    call(|device| unsafe {
        let mut nic = device.lock();
        let mut step = locked(&Id::own(id).step);
        match *step {
            Step::New => bind(&nic, id, Ipv4Addr::UNSPECIFIED.into(), 0),
            Step::Bound => {}
            _ => return Err(libc::EINVAL),
        }
        nic.cm.listen(port_of(id), id as u64, usize::try_from(backlog).unwrap_or(0))?;
        nic.port.tap.listens(nic.address());
        *step = Step::Listening;
        Ok(())
    })
}

/// `rdma_resolve_addr(3)`: there is one device, and it reaches whom the machine reaches. The id is bound to the device once the
/// program has fetched the event.
#[no_mangle]
pub unsafe extern "C" fn rdma_resolve_addr(
    id: *mut rdma_cm_id,
    from: *mut sockaddr,
    to: *mut sockaddr,
    _ms: c_int,
) -> c_int {
    call(|device| unsafe {
        let nic = device.lock();
        let mut step = locked(&Id::own(id).step);
        let (peer, port) = address::read(to).ok_or(libc::EAFNOSUPPORT)?;
        let bound = address::read(own(id).cast());
        if !matches!(*step, Step::New | Step::Bound) || bound.is_some_and(|(ip, _)| ip.is_ipv4() != peer.is_ipv4()) {
            return Err(libc::EINVAL);
        }
        let named = address::read(from).filter(|(ip, _)| !ip.is_unspecified());
        if named.is_some_and(|(ip, _)| ip != nic.address()) {
            return Err(libc::ENODEV);
        }
        address::write(peers(id), peer, port);
        if peer.is_ipv4() != nic.address().is_ipv4() {
            post_plain(id, EventKind::AddrError, -libc::ENETUNREACH);
            return Ok(());
        }
        let port = Some(port_of(id)).filter(|port| *port != 0);
        address::write(own(id), nic.address(), port.unwrap_or_else(|| free_port(&nic)));
        post_plain(id, EventKind::AddrResolved, 0);
        *step = Step::HasAddress;
        Ok(())
    })
}

/// `rdma_resolve_route(3)`: on Ethernet the IP layer's business.
#[no_mangle]
pub unsafe extern "C" fn rdma_resolve_route(id: *mut rdma_cm_id, _ms: c_int) -> c_int {
    call(|device| unsafe {
        let _nic = device.lock();
        let mut step = locked(&Id::own(id).step);
        if *step != Step::HasAddress || (*id).verbs.is_null() {
            return Err(libc::EINVAL);
        }
        post_plain(id, EventKind::RouteResolved, 0);
        *step = Step::HasRoute;
        Ok(())
    })
}

/// Puts an event that needs no message in the channel of its id.
unsafe fn post_plain(id: *mut rdma_cm_id, kind: EventKind, status: c_int) {
    unsafe { post(id, null_mut(), Event::plain(id as u64, kind, status)) };
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
    call(|_| match (level, name, length) {
        (ID, ACK_TIMEOUT, 1) => unsafe {
            *locked(&Id::own(id).ack_timeout) = Some(value.cast::<u8>().read() & 0x1f);
            Ok(())
        },
        (ID, ACK_TIMEOUT, _) => Err(libc::EINVAL),
        (ID, 0..=LAST, _) => Ok(()),
        _ => Err(libc::ENOSYS),
    })
}
