//! A thousand connections of a process with itself, through the C functions: all are made and ended, and nothing is left, neither
//! descriptors nor entries in the device's tables.

#![allow(clippy::undocumented_unsafe_blocks)] // One comment for all: every pointer is the library's, and given back once.

use device::rdmacm::{channel::*, connect::*, id::*, qp::*};
use device::verbs::cq::*;
use rdma_sys::rdma_cm_event_type::*;
use rdma_sys::{
    ibv_qp_init_attr, ibv_qp_type, rdma_cm_event, rdma_cm_id, rdma_conn_param, rdma_event_channel, rdma_port_space,
};
use std::net::{IpAddr, SocketAddr};
use std::ptr::null_mut;
use std::time::{Duration, Instant};

const PORT: u16 = 7471;

/// An address in C's form.
fn sockaddr(address: IpAddr, port: u16) -> libc::sockaddr_in {
    let SocketAddr::V4(address) = SocketAddr::new(address, port) else { panic!("{address} is not of IPv4") };
    // SAFETY: a struct of numbers.
    let mut c: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    (c.sin_family, c.sin_port) = (libc::AF_INET as u16, port.to_be());
    c.sin_addr.s_addr = u32::from_ne_bytes(address.ip().octets());
    c
}

/// The next event, which has to be of this kind; gives its id.
///
/// # Safety
/// The channel lives.
unsafe fn expect(channel: *mut rdma_event_channel, wanted: u32) -> *mut rdma_cm_id {
    let mut event: *mut rdma_cm_event = null_mut();
    unsafe {
        loop {
            assert_eq!(rdma_get_cm_event(channel, &mut event), 0);
            let (kind, id) = ((*event).event, (*event).id);
            rdma_ack_cm_event(event);
            // The rest of a connection that was ended before comes when it likes.
            if kind != RDMA_CM_EVENT_TIMEWAIT_EXIT {
                assert_eq!(kind, wanted);
                return id;
            }
        }
    }
}

/// Gives an id a queue pair of its own, and what it needs.
///
/// # Safety
/// The id is bound to the device.
unsafe fn resources(id: *mut rdma_cm_id) {
    unsafe {
        let cq = ibv_create_cq((*id).verbs, 4, null_mut(), null_mut(), 0);
        let mut init: ibv_qp_init_attr = std::mem::zeroed();
        (init.send_cq, init.recv_cq, init.qp_type) = (cq, cq, ibv_qp_type::IBV_QPT_RC);
        (init.cap.max_send_wr, init.cap.max_recv_wr) = (1, 1);
        assert_eq!(rdma_create_qp(id, null_mut(), &mut init), 0);
    }
}

/// Takes it all away again.
///
/// # Safety
/// [`resources`] has made it.
unsafe fn destroy(id: *mut rdma_cm_id) {
    unsafe {
        let cq = (*id).send_cq;
        rdma_destroy_qp(id);
        assert_eq!(ibv_destroy_cq(cq), 0);
        assert_eq!(rdma_destroy_id(id), 0);
    }
}

/// Those of the device and its channels. Other tests of this program have descriptors, too, but of other kinds.
fn eventfds() -> usize {
    let targets = std::fs::read_dir("/proc/self/fd").unwrap().flatten().flat_map(|fd| std::fs::read_link(fd.path()));
    targets.filter(|target| target.to_string_lossy().contains("eventfd")).count()
}

#[test]
fn a_thousand_connections_leave_nothing() {
    let own = device::device().unwrap().lock().address();
    let before = eventfds();
    unsafe {
        let (servers, clients) = (rdma_create_event_channel(), rdma_create_event_channel());
        let mut listener = null_mut();
        assert_eq!(rdma_create_id(servers, &mut listener, null_mut(), rdma_port_space::RDMA_PS_TCP), 0);
        assert_eq!(rdma_bind_addr(listener, (&mut sockaddr(own, PORT) as *mut libc::sockaddr_in).cast()), 0);
        assert_eq!(rdma_listen(listener, 8), 0);
        for _ in 0..1000 {
            let (mut client, mut param): (_, rdma_conn_param) = (null_mut(), std::mem::zeroed());
            assert_eq!(rdma_create_id(clients, &mut client, null_mut(), rdma_port_space::RDMA_PS_TCP), 0);
            let mut to = sockaddr(own, PORT);
            let to = (&mut to as *mut libc::sockaddr_in).cast();
            assert_eq!(rdma_resolve_addr(client, null_mut(), to, 1000), 0);
            expect(clients, RDMA_CM_EVENT_ADDR_RESOLVED);
            assert_eq!(rdma_resolve_route(client, 1000), 0);
            expect(clients, RDMA_CM_EVENT_ROUTE_RESOLVED);
            resources(client);
            assert_eq!(rdma_connect(client, &mut param), 0);
            let server = expect(servers, RDMA_CM_EVENT_CONNECT_REQUEST);
            resources(server);
            assert_eq!(rdma_accept(server, &mut param), 0);
            expect(clients, RDMA_CM_EVENT_ESTABLISHED);
            expect(servers, RDMA_CM_EVENT_ESTABLISHED);
            assert_eq!(rdma_disconnect(client), 0);
            expect(servers, RDMA_CM_EVENT_DISCONNECTED);
            assert_eq!(rdma_disconnect(server), 0);
            expect(clients, RDMA_CM_EVENT_DISCONNECTED);
            destroy(client);
            destroy(server);
        }
        assert_eq!(rdma_destroy_id(listener), 0);
        rdma_destroy_event_channel(servers);
        rdma_destroy_event_channel(clients);
    }
    // Connections rest for a while after their end: these, and those of other tests of this program.
    let deadline = Instant::now() + Duration::from_secs(30);
    let left = || {
        let nic = device::device().unwrap().lock();
        (nic.qps.len(), nic.cm.count(), eventfds().saturating_sub(before))
    };
    while left() != (0, 0, 0) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(left(), (0, 0, 0));
}
