//! What programs do with the C functions that no lesson does: they leave things too early, too full, and a thousand times. The
//! device of this test program talks to itself.

#![allow(clippy::undocumented_unsafe_blocks)] // It is C that is called: what holds, the manual pages say.

use device::rdmacm::{channel::*, connect::*, id::*, qp::*};
use device::verbs::{cq::*, device::*, events::*, memory::*, qp::*};
use rdma_sys::rdma_cm_event_type::*;
use rdma_sys::{
    ibv_async_event, ibv_context, ibv_cq, ibv_event_type, ibv_gid, ibv_pd, ibv_qp, ibv_qp_attr, ibv_qp_init_attr,
    ibv_qp_state, ibv_qp_type, ibv_send_wr, ibv_wr_opcode, rdma_cm_id, rdma_conn_param, rdma_event_channel,
    rdma_port_space,
};
use std::mem::zeroed;
use std::net::IpAddr;
use std::ptr::null_mut;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// What an act gives, if it takes no longer than anything may.
fn in_time<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, waited) = mpsc::channel();
    thread::spawn(move || done.send(act()));
    let told = waited.recv_timeout(Duration::from_secs(60));
    told.expect("the device does not answer any more, or not as expected")
}

/// The device's own address, and a port.
fn own_address(port: u16) -> libc::sockaddr_in {
    let IpAddr::V4(address) = device::device().unwrap().lock().address() else { panic!("not of IPv4") };
    let mut to: libc::sockaddr_in = unsafe { zeroed() };
    (to.sin_family, to.sin_port) = (libc::AF_INET as u16, port.to_be());
    to.sin_addr.s_addr = u32::from_ne_bytes(address.octets());
    to
}

/// An id that listens.
unsafe fn listening(channel: *mut rdma_event_channel, port: u16) -> *mut rdma_cm_id {
    unsafe {
        let (mut id, mut at) = (null_mut(), own_address(port));
        assert_eq!(rdma_create_id(channel, &mut id, null_mut(), rdma_port_space::RDMA_PS_TCP), 0);
        assert_eq!(rdma_bind_addr(id, (&mut at as *mut libc::sockaddr_in).cast()), 0);
        assert_eq!(rdma_listen(id, 8), 0);
        id
    }
}

/// An id that can be connected to a port.
unsafe fn resolved(channel: *mut rdma_event_channel, port: u16) -> *mut rdma_cm_id {
    unsafe {
        let (mut id, mut to) = (null_mut(), own_address(port));
        assert_eq!(rdma_create_id(channel, &mut id, null_mut(), rdma_port_space::RDMA_PS_TCP), 0);
        assert_eq!(rdma_resolve_addr(id, null_mut(), (&mut to as *mut libc::sockaddr_in).cast(), 1000), 0);
        expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
        assert_eq!(rdma_resolve_route(id, 1000), 0);
        expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
        id
    }
}

/// Asks for a connection to a port. Its queue pair has the port's number: one that comes a second time, while somebody still holds
/// it for connected, is refused as stale.
unsafe fn knock(channel: *mut rdma_event_channel, port: u16) -> *mut rdma_cm_id {
    unsafe {
        let (id, mut param) = (resolved(channel, port), zeroed::<rdma_conn_param>());
        param.qp_num = port.into();
        assert_eq!(rdma_connect(id, &mut param), 0);
        id
    }
}

/// The next event, which has to be of this kind; gives its id. The rest of a connection that was ended before comes when it likes.
unsafe fn expect(channel: *mut rdma_event_channel, wanted: u32) -> *mut rdma_cm_id {
    unsafe {
        loop {
            let mut event = null_mut();
            assert_eq!(rdma_get_cm_event(channel, &mut event), 0);
            let (kind, id) = ((*event).event, (*event).id);
            rdma_ack_cm_event(event);
            if kind != RDMA_CM_EVENT_TIMEWAIT_EXIT {
                assert_eq!(kind, wanted);
                return id;
            }
        }
    }
}

/// Other tests of this program count what its device has: nothing stays there.
unsafe fn give_back<const N: usize>(ids: [*mut rdma_cm_id; N]) {
    ids.into_iter().for_each(|id| assert_eq!(unsafe { rdma_destroy_id(id) }, 0));
}

/// A program destroys an event channel before the ids that have it. Then somebody knocks there, and elsewhere.
#[test]
fn a_channel_may_go_before_its_ids() {
    in_time(|| unsafe {
        let (first, second) = (rdma_create_event_channel(), rdma_create_event_channel());
        let (without_channel, listener) = (listening(first, 7001), listening(second, 7002));
        rdma_destroy_event_channel(first);
        // What the channel's memory holds now is somebody else's.
        let others: Vec<Vec<u8>> = (0..200).map(|size| vec![0x41; 8 + size]).collect();
        let clients = [knock(second, 7001), knock(second, 7002)];
        let child = expect(second, RDMA_CM_EVENT_CONNECT_REQUEST);
        drop(others);
        // An id that has lost its channel can still be given back, and so can those who knocked.
        give_back([without_channel, listener, child]);
        give_back(clients);
        rdma_destroy_event_channel(second);
    });
}

/// Somebody knocks, the listener migrates, and only then the program takes the knock: the new id has the listener's channel of
/// now. The old channel may go, and what happens to the new id is told in the other one.
#[test]
fn who_has_knocked_goes_along_with_a_listener_that_migrates() {
    in_time(|| unsafe {
        let [first, second, clients] = std::array::from_fn(|_| rdma_create_event_channel());
        let (listener, client) = (listening(first, 7003), knock(clients, 7003));
        let mut knocked = libc::pollfd { fd: (*first).fd, events: libc::POLLIN, revents: 0 };
        assert_eq!(libc::poll(&mut knocked, 1, -1), 1);
        assert_eq!(rdma_migrate_id(listener, second), 0);
        let child = expect(second, RDMA_CM_EVENT_CONNECT_REQUEST);
        assert_eq!((*child).channel, second);
        rdma_destroy_event_channel(first);
        assert_eq!(rdma_accept(child, &mut zeroed()), 0);
        expect(clients, RDMA_CM_EVENT_CONNECT_RESPONSE);
        assert_eq!(rdma_establish(client), 0);
        expect(second, RDMA_CM_EVENT_ESTABLISHED);
        give_back([child, listener, client]);
        [second, clients].into_iter().for_each(|channel| rdma_destroy_event_channel(channel));
    });
}

/// Gives an id a queue pair of its own, and what it needs.
unsafe fn resources(id: *mut rdma_cm_id) {
    unsafe {
        let cq = ibv_create_cq((*id).verbs, 4, null_mut(), null_mut(), 0);
        let mut init: ibv_qp_init_attr = zeroed();
        (init.send_cq, init.recv_cq, init.qp_type) = (cq, cq, ibv_qp_type::IBV_QPT_RC);
        (init.cap.max_send_wr, init.cap.max_recv_wr) = (1, 1);
        assert_eq!(rdma_create_qp(id, null_mut(), &mut init), 0);
    }
}

/// Those of the device and its channels. Other tests of this program have descriptors, too, but of other kinds.
fn eventfds() -> usize {
    let targets = std::fs::read_dir("/proc/self/fd").unwrap().flatten().flat_map(|fd| std::fs::read_link(fd.path()));
    targets.filter(|target| target.to_string_lossy().contains("eventfd")).count()
}

/// Connects a client to a listener, says goodbye, and gives all back.
unsafe fn come_and_go(servers: *mut rdma_event_channel, clients: *mut rdma_event_channel, port: u16) {
    unsafe {
        let (client, mut param) = (resolved(clients, port), zeroed::<rdma_conn_param>());
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
        for id in [client, server] {
            let cq = (*id).send_cq;
            rdma_destroy_qp(id);
            assert_eq!((ibv_destroy_cq(cq), rdma_destroy_id(id)), (0, 0));
        }
    }
}

/// A thousand connections of a process with itself: nothing is left, neither descriptors nor entries in the device's tables.
#[test]
fn a_thousand_connections_leave_nothing() {
    assert!(device::device().is_some());
    let before = eventfds();
    in_time(|| unsafe {
        let (servers, clients) = (rdma_create_event_channel(), rdma_create_event_channel());
        let listener = listening(servers, 7471);
        (0..1000).for_each(|_| come_and_go(servers, clients, 7471));
        give_back([listener]);
        [servers, clients].into_iter().for_each(|channel| rdma_destroy_event_channel(channel));
    });
    // Connections rest for a while after their end: these, and those of other tests of this program.
    let deadline = Instant::now() + Duration::from_secs(30);
    let left = || {
        let nic = device::device().unwrap().lock();
        (nic.qps.len(), nic.cm.count(), eventfds().saturating_sub(before))
    };
    while left() != (0, 0, 0) && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(left(), (0, 0, 0));
}

/// Two queue pairs that are connected to each other, with a queue of so many completions.
unsafe fn pair(context: *mut ibv_context, completions: i32) -> ([*mut ibv_qp; 2], *mut ibv_cq, *mut ibv_pd) {
    unsafe {
        let (pd, mut gid) = (ibv_alloc_pd(context), zeroed::<ibv_gid>());
        assert_eq!(ibv_query_gid(context, 1, 0, &mut gid), 0);
        let cq = ibv_create_cq(context, completions, null_mut(), null_mut(), 0);
        let mut init: ibv_qp_init_attr = zeroed();
        (init.send_cq, init.recv_cq, init.qp_type, init.sq_sig_all) = (cq, cq, ibv_qp_type::IBV_QPT_RC, 1);
        (init.cap.max_send_wr, init.cap.max_send_sge, init.cap.max_inline_data) = (16, 1, 16);
        let qps = [ibv_create_qp(pd, &mut init), ibv_create_qp(pd, &mut init)];
        for (qp, peer) in [(qps[0], qps[1]), (qps[1], qps[0])] {
            let mut attr: ibv_qp_attr = zeroed();
            (attr.port_num, attr.qp_access_flags, attr.path_mtu) = (1, 15, 3);
            (attr.dest_qp_num, attr.ah_attr.is_global, attr.ah_attr.port_num) = ((*peer).qp_num, 1, 1);
            (attr.ah_attr.grh.dgid, attr.timeout, attr.retry_cnt, attr.rnr_retry) = (gid, 14, 7, 7);
            for state in [nic::qp::State::Init, nic::qp::State::Rtr, nic::qp::State::Rts] {
                attr.qp_state = state as u32;
                let mask = nic::qp::mask::STATE | state.needs().unwrap();
                assert_eq!(ibv_modify_qp(qp, &mut attr, mask as i32), 0, "{state}");
            }
        }
        (qps, cq, pd)
    }
}

/// WRITEs of no bytes: they need no memory at the peer.
unsafe fn post_writes(qp: *mut ibv_qp, count: u64) {
    unsafe {
        for wr_id in 0..count {
            let (mut wr, mut bad) = (zeroed::<ibv_send_wr>(), null_mut());
            (wr.wr_id, wr.opcode) = (wr_id, ibv_wr_opcode::IBV_WR_RDMA_WRITE);
            assert_eq!((*(*qp).context).ops.post_send.unwrap()(qp, &mut wr, &mut bad), 0);
        }
    }
}

unsafe fn state(qp: *mut ibv_qp) -> u32 {
    unsafe {
        let (mut attr, mut init) = (zeroed::<ibv_qp_attr>(), zeroed::<ibv_qp_init_attr>());
        assert_eq!(ibv_query_qp(qp, &mut attr, 1, &mut init), 0);
        attr.qp_state
    }
}

/// A completion is lost. That is told once, the queue pair that could not complete its request is in ERR, and neither goes
/// before the program has acknowledged what it was told.
#[test]
fn a_completion_queue_overflows() {
    let told = in_time(|| unsafe {
        let context = ibv_open_device(*ibv_get_device_list(null_mut()));
        let ([ours, theirs], cq, pd) = pair(context, 2);
        post_writes(ours, 6);
        let mut events = Vec::new();
        for _ in 0..2 {
            let mut event: ibv_async_event = zeroed();
            assert_eq!(ibv_get_async_event(context, &mut event), 0);
            events.push(event);
        }
        let kinds: Vec<u32> = events.iter().map(|event| event.event_type as u32).collect();
        // What comes later would have come by now.
        thread::sleep(Duration::from_millis(50));
        let more = device::device().unwrap().raised.take_out(|_| true);
        let (state, other) = (state(ours), state(theirs));
        let qp = ours as usize;
        let waits = thread::spawn(move || ibv_destroy_qp(qp as *mut ibv_qp));
        thread::sleep(Duration::from_millis(50));
        let has_waited = !waits.is_finished();
        events.iter_mut().for_each(|event| ibv_ack_async_event(event));
        assert_eq!(waits.join().unwrap(), 0);
        assert_eq!((ibv_destroy_qp(theirs), ibv_destroy_cq(cq), ibv_dealloc_pd(pd)), (0, 0, 0));
        (kinds, more.len(), state, other, has_waited)
    });
    let (kinds, more, state, other, has_waited) = told;
    let expected = [ibv_event_type::IBV_EVENT_CQ_ERR as u32, ibv_event_type::IBV_EVENT_QP_FATAL as u32];
    assert_eq!((kinds, more), (expected.to_vec(), 0));
    assert_eq!((state, other), (ibv_qp_state::IBV_QPS_ERR, ibv_qp_state::IBV_QPS_RTS));
    assert!(has_waited, "the queue pair was destroyed before its event was acknowledged");
}
