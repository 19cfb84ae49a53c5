//! What librdmacm does by itself for programs that leave it to the library: a protection domain for each id, completion queues
//! for a queue pair that comes without, and how often to try again. `common` always says these things, so here C is called.
//!
//! ```text
//! defaults ADDRESS      a server, as lesson-01's, has to listen there
//! ```

#![allow(clippy::undocumented_unsafe_blocks)] // It is C that is called: what holds, the manual pages say.

use rdma_sys::{ibv_alloc_pd, ibv_create_cq, ibv_qp_init_attr, ibv_qp_type, rdma_cm_id, rdma_event_channel};
use rdma_sys::{rdma_ack_cm_event, rdma_connect, rdma_create_event_channel, rdma_create_id, rdma_create_qp};
use rdma_sys::{rdma_get_cm_event, rdma_port_space, rdma_resolve_addr, rdma_resolve_route};
use std::mem::zeroed;
use std::net::Ipv4Addr;
use std::ptr::null_mut;

const PORT: u16 = 7471;

/// An id with a route to the server.
unsafe fn routed(channel: *mut rdma_event_channel, server: Ipv4Addr) -> *mut rdma_cm_id {
    unsafe {
        let (mut id, mut to) = (null_mut(), zeroed::<libc::sockaddr_in>());
        (to.sin_family, to.sin_port) = (libc::AF_INET as u16, PORT.to_be());
        to.sin_addr.s_addr = u32::from_ne_bytes(server.octets());
        assert_eq!(rdma_create_id(channel, &mut id, null_mut(), rdma_port_space::RDMA_PS_TCP), 0);
        assert_eq!(rdma_resolve_addr(id, null_mut(), (&mut to as *mut libc::sockaddr_in).cast(), 2000), 0);
        next_event(channel);
        assert_eq!(rdma_resolve_route(id, 2000), 0);
        next_event(channel);
        id
    }
}

unsafe fn next_event(channel: *mut rdma_event_channel) -> u32 {
    unsafe {
        let mut event = null_mut();
        assert_eq!(rdma_get_cm_event(channel, &mut event), 0);
        let kind = (*event).event;
        rdma_ack_cm_event(event);
        kind
    }
}

fn main() {
    let server = std::env::args().nth(1).and_then(|address| address.parse().ok()).expect("usage: defaults ADDRESS");
    unsafe {
        let channel = rdma_create_event_channel();
        let (first, second) = (routed(channel, server), routed(channel, server));
        let shared = !(*first).pd.is_null() && (*first).pd == (*second).pd;
        println!("ids of one device share a protection domain: {shared}");

        let pd = ibv_alloc_pd((*first).verbs);
        let mut init: ibv_qp_init_attr = zeroed();
        init.qp_type = ibv_qp_type::IBV_QPT_RC;
        (init.cap.max_send_wr, init.cap.max_recv_wr, init.cap.max_send_sge, init.cap.max_recv_sge) = (4, 4, 1, 1);
        let made = rdma_create_qp(first, pd, &mut init) == 0;
        println!("a queue pair without completion queues is made: {made}");

        let cq = ibv_create_cq((*second).verbs, 8, null_mut(), null_mut(), 0);
        (init.send_cq, init.recv_cq) = (cq, cq);
        assert_eq!(rdma_create_qp(second, pd, &mut init), 0);
        // What the REQ says, is on the wire.
        assert_eq!(rdma_connect(second, null_mut()), 0);
        println!("the answer is event {}", next_event(channel));
    }
}
