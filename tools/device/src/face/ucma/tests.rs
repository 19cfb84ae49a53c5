//! Two nodes and a wire between them: commands as bytes, messages as bytes.

use super::abi::{command::*, *};
use super::id::State;
use super::*;
use crate::abi::QpAttr;
use crate::machine::Process;
use bytemuck::{pod_read_unaligned, Zeroable};
use nic::cm::{CmEffect, EventKind::*};
use nic::psn::Psn;
use nic::qp::mask;
use nic::time::Time;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};

const FILE: FileId = 1;
const PORT: u16 = 18_515;
const MULTICAST_JOIN: u32 = 12;

struct Node {
    address: IpAddr,
    ids: Ids,
    cm: Cm,
    out: Vec<CmEffect>,
    now: Time,
    lots: u64,
}

impl Node {
    fn new(address: &str) -> Node {
        let address: IpAddr = address.parse().unwrap();
        let (ids, cm) = (Ids::new(address, std::sync::Arc::default(), false), Cm::new(address));
        Node { address, ids, cm, out: Vec::new(), now: Time::START, lots: 1 }
    }

    fn with<R>(&mut self, act: impl FnOnce(&mut Ids, &mut Net) -> R) -> R {
        self.lots = self.lots.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let mut net = Net { cm: &mut self.cm, now: self.now, out: &mut self.out, random: self.lots };
        act(&mut self.ids, &mut net)
    }

    /// Writes bytes to an open rdma_cm.
    fn write(&mut self, file: FileId, bytes: &[u8]) -> Result<Done, Errno> {
        let (address, length, process) = (bytes.as_ptr() as u64, bytes.len(), Process::own());
        self.with(|ids, net| ids.command(net, &Asker { file, process, address, length }, Some))
    }

    fn command<T: Pod>(&mut self, cmd: u32, command: T) -> Result<Vec<u8>, Errno> {
        self.command_of(FILE, cmd, command)
    }

    fn command_of<T: Pod>(&mut self, file: FileId, cmd: u32, command: T) -> Result<Vec<u8>, Errno> {
        let header = Header { cmd, input: size_of::<T>() as u16, out: 400 };
        let done = self.write(file, &[bytes_of(&header), bytes_of(&command)].concat())?;
        let Done::Answer { bytes, then, .. } = done else { return Ok(Vec::new()) };
        self.ids.then(then, true);
        Ok(bytes)
    }

    fn create(&mut self, ps: u16) -> u32 {
        let id = self.command(CREATE_ID, CreateId { uid: 7, ps, qp_type: qp_type::RC, ..CreateId::zeroed() });
        pod_read_unaligned(&id.unwrap())
    }

    fn bind(&mut self, id: u32, to: &str) -> Result<u16, Errno> {
        let addr = SockAddr::from(Some(to.parse().unwrap()));
        self.command(BIND_IP, BindIp { addr, id, ..BindIp::zeroed() })?;
        Ok(self.route(id).src_addr.read().unwrap().port())
    }

    fn listener(&mut self, to: &str) -> u32 {
        self.listener_in(port_space::TCP, to)
    }

    fn listener_in(&mut self, ps: u16, to: &str) -> u32 {
        let id = self.create(ps);
        self.bind(id, to).unwrap();
        self.command(LISTEN, Listen { id, backlog: 2 }).unwrap();
        id
    }

    fn resolve(&mut self, id: u32, to: SocketAddr) -> Result<Vec<u8>, Errno> {
        let dst_addr = SockAddr::from(Some(to));
        self.command(RESOLVE_IP, ResolveIp { dst_addr, id, timeout_ms: 1000, ..ResolveIp::zeroed() })
    }

    fn resolved(&mut self, to: SocketAddr) -> u32 {
        self.resolved_in(port_space::TCP, to)
    }

    fn resolved_in(&mut self, ps: u16, to: SocketAddr) -> u32 {
        let id = self.create(ps);
        self.resolve(id, to).unwrap();
        self.command(RESOLVE_ROUTE, ResolveRoute { id, timeout_ms: 1000 }).unwrap();
        assert_eq!(self.events(), [(AddrResolved as u32, id, 0), (RouteResolved as u32, id, 0)]);
        id
    }

    fn route(&mut self, id: u32) -> QueryRouteResp {
        pod_read_unaligned(&self.command(QUERY_ROUTE, Query { id, ..Query::zeroed() }).unwrap())
    }

    fn attr(&mut self, id: u32, qp_state: u32) -> Result<QpAttr, Errno> {
        let answer = self.command(INIT_QP_ATTR, InitQpAttr { id, qp_state, ..InitQpAttr::zeroed() });
        answer.map(|bytes| pod_read_unaligned(&bytes))
    }

    /// Fetches all events.
    fn fetch_of(&mut self, file: FileId) -> Vec<EventResp> {
        let mut events = Vec::new();
        while let Some(event) = self.ids.files.get_mut(&file).and_then(File::next) {
            self.ids.fetched(&event, &mut self.cm);
            events.push(event.response);
        }
        events
    }

    fn events(&mut self) -> Vec<(u32, u32, i32)> {
        self.fetch_of(FILE).iter().map(|event| (event.event, event.id, event.status)).collect()
    }

    fn destroy(&mut self, id: u32) -> Result<u32, Errno> {
        self.command(DESTROY_ID, DestroyId { id, ..DestroyId::zeroed() }).map(|bytes| pod_read_unaligned(&bytes))
    }

    fn close(&mut self, file: FileId) {
        self.with(|ids, net| {
            ids.files.remove(&file);
            ids.end_all(net, file);
        });
    }
}

/// Carries all messages there and back, and delivers what they cause. Gives the names of the messages, in their order.
fn carry(nodes: &mut [Node; 2]) -> Vec<&'static str> {
    let (mut wire, mut names) = (VecDeque::new(), Vec::new());
    loop {
        for index in [0, 1] {
            for effect in std::mem::take(&mut nodes[index].out) {
                match effect {
                    CmEffect::Send(to, mad) => {
                        names.push(mad.kind().short());
                        wire.push_back((usize::from(nodes[1].address == to), nodes[index].address, mad));
                    }
                    CmEffect::Event(event) => nodes[index].with(|ids, net| ids.deliver(net, event)),
                    CmEffect::Say(_) => {}
                }
            }
        }
        let Some((to, from, mad)) = wire.pop_front() else {
            if nodes.iter().all(|node| node.out.is_empty()) {
                return names;
            }
            continue;
        };
        let payload = mad.packet(Psn::default()).payload;
        nodes[to].with(|_, net| net.cm.receive(from, &payload, net.random, net.now, net.out));
    }
}

fn server_of(nodes: &[Node; 2]) -> SocketAddr {
    (nodes[0].address, PORT).into()
}

fn pair() -> [Node; 2] {
    ["127.0.0.2", "127.0.0.3"].map(Node::new)
}

fn param() -> ConnParam {
    let mut private_data = [0; 256];
    private_data[..2].copy_from_slice(b"hi");
    ConnParam {
        qp_num: 77,
        private_data,
        private_data_len: 2,
        responder_resources: 3,
        initiator_depth: 5,
        retry_count: 6,
        rnr_retry_count: 9,
        valid: 1,
        ..ConnParam::zeroed()
    }
}

fn conn_of(event: &EventResp) -> ConnParam {
    pod_read_unaligned(&event.param[..size_of::<ConnParam>()])
}

/// A client's REQ has come: (nodes, listener, the server's id, the client's).
fn knocked() -> ([Node; 2], u32, u32, u32) {
    let mut nodes = pair();
    let listener = nodes[0].listener(&format!("[::]:{PORT}"));
    let client = {
        let to = server_of(&nodes);
        nodes[1].resolved(to)
    };
    nodes[1].command(CONNECT, Connect { conn_param: param(), id: client, reserved: 0 }).unwrap();
    assert_eq!(carry(&mut nodes), ["REQ"]);
    let events = nodes[0].fetch_of(FILE);
    let [event] = &events[..] else { panic!("{events:?}") };
    assert_eq!((event.event, event.status, event.uid), (ConnectRequest as u32, 0, 7));
    let conn = conn_of(event);
    assert_eq!((conn.qp_num, conn.private_data_len, &conn.private_data[..3]), (77, 56, &b"hi\0"[..]));
    assert_eq!((conn.responder_resources, conn.initiator_depth, conn.retry_count, conn.rnr_retry_count), (5, 3, 6, 7));
    let server = event.id;
    (nodes, listener, server, client)
}

fn accept(node: &mut Node, id: u32, valid: u8) -> Result<Vec<u8>, Errno> {
    node.command(ACCEPT, Accept { uid: 9, conn_param: ConnParam { valid, ..param() }, id, reserved: 0 })
}

fn connected() -> ([Node; 2], u32, u32) {
    let (mut nodes, _, server, client) = knocked();
    accept(&mut nodes[0], server, 1).unwrap();
    assert_eq!(carry(&mut nodes), ["REP"]);
    let event = nodes[1].fetch_of(FILE)[0];
    let conn = conn_of(&event);
    assert_eq!((event.event, event.id, conn.private_data_len, conn.qp_num), (ConnectResponse as u32, client, 196, 77));
    accept(&mut nodes[1], client, 0).unwrap();
    assert_eq!(carry(&mut nodes), ["RTU"]);
    assert_eq!(nodes[0].events(), [(Established as u32, server, 0)]);
    (nodes, server, client)
}

fn disconnect(node: &mut Node, id: u32) -> Result<Vec<u8>, Errno> {
    node.command(DISCONNECT, Disconnect { id })
}

#[test]
fn a_connection_is_made_and_ended() {
    let (mut nodes, server, client) = connected();
    let route = nodes[0].route(server);
    let addresses = [route.src_addr, route.dst_addr].map(|address| address.read().unwrap().ip());
    assert_eq!(addresses, [nodes[0].address, nodes[1].address]);
    disconnect(&mut nodes[1], client).unwrap();
    assert_eq!(carry(&mut nodes), ["DREQ"]);
    assert_eq!(nodes[0].events(), [(Disconnected as u32, server, 0)]);
    disconnect(&mut nodes[0], server).unwrap();
    assert_eq!(carry(&mut nodes), ["DREP"]);
    assert_eq!(nodes[1].events(), [(Disconnected as u32, client, 0)]);
    // Both rest for a while, and hear of its end.
    for node in &mut nodes {
        node.now += std::time::Duration::from_secs(5);
        node.with(|_, net| net.cm.tick(net.now, net.out));
    }
    carry(&mut nodes);
    assert_eq!(nodes[0].events(), [(TimewaitExit as u32, server, 0)]);
    assert_eq!(nodes[1].events(), [(TimewaitExit as u32, client, 0)]);
    // ADDR_RESOLVED, ROUTE_RESOLVED, CONNECT_RESPONSE, DISCONNECTED, TIMEWAIT_EXIT.
    assert_eq!(nodes[1].destroy(client), Ok(5));
    assert_eq!((nodes[1].destroy(client), nodes[1].ids.ids.len()), (Err(Errno::NOENT), 0));
}

#[test]
fn queue_pairs_are_told_what_both_sides_have_said() {
    let (mut nodes, server, client) = connected();
    let attrs =
        [(0, server), (1, client)].map(|(node, id)| [1, 2, 3].map(|state| nodes[node].attr(id, state).unwrap()));
    let rtr = mask::STATE | mask::AV | mask::PATH_MTU | mask::DEST_QPN | mask::RQ_PSN;
    // The client's are those of the REP, seen from there.
    for ([init, to_rtr, to_rts], depths) in attrs.iter().zip([(3, 5), (5, 3)]) {
        // Also READs and atomics, because both sides want some.
        assert_eq!((init.qp_access_flags, init.port_num), (2 | 4 | 8, 1));
        assert_eq!(to_rtr.qp_attr_mask, rtr | mask::MAX_DEST_RD_ATOMIC | mask::MIN_RNR_TIMER);
        assert_eq!((to_rtr.dest_qp_num, to_rtr.path_mtu), (77, 3));
        assert_eq!((to_rts.retry_cnt, to_rts.rnr_retry), (6, 7));
        assert_eq!((to_rtr.max_dest_rd_atomic, to_rts.max_rd_atomic), depths);
    }
    let [[_, server_rtr, server_rts], [_, client_rtr, client_rts]] = attrs;
    assert_eq!((server_rtr.rq_psn, client_rtr.rq_psn), (client_rts.sq_psn, server_rts.sq_psn));
    assert_eq!(server_rtr.ah_attr.dgid, nic::cm::gid(nodes[1].address));
    for state in [0, 4, 6, 7, u32::MAX] {
        assert_eq!(nodes[0].attr(server, state).unwrap_err(), Errno::INVAL);
    }
}

#[test]
fn depths_that_a_rep_gives_are_swapped_at_the_client() {
    let (mut nodes, _, server, client) = knocked();
    // Before the REP nobody knows the peer's queue pair.
    assert_eq!(nodes[1].attr(client, 2).unwrap_err(), Errno::INVAL);
    let conn_param = ConnParam { responder_resources: 1, initiator_depth: 2, ..param() };
    nodes[0].command(ACCEPT, Accept { uid: 9, conn_param, id: server, reserved: 0 }).unwrap();
    carry(&mut nodes);
    let conn = conn_of(&nodes[1].fetch_of(FILE)[0]);
    assert_eq!((conn.responder_resources, conn.initiator_depth), (2, 1));
    assert_eq!(nodes[1].attr(client, 2).unwrap().max_dest_rd_atomic, 2);
    assert_eq!(nodes[1].attr(client, 3).unwrap().max_rd_atomic, 1);
}

#[test]
fn ack_timeout_is_said_in_the_req_and_to_the_own_queue_pair() {
    let mut nodes = pair();
    nodes[0].listener("0.0.0.0:18515");
    let to = server_of(&nodes);
    let client = nodes[1].resolved(to);
    let value = 17u8;
    let optval = &value as *const u8 as u64;
    let mut option = SetOption { optval, id: client, level: 0, optname: option::ACK_TIMEOUT, optlen: 1 };
    nodes[1].command(SET_OPTION, option).unwrap();
    assert_eq!(nodes[1].route(client).ib_route[0].packet_life_time, 16);
    option.optval = 1;
    assert_eq!(nodes[1].command(SET_OPTION, option).unwrap_err(), Errno::FAULT);
    for (level, optname, optlen, errno) in
        [(0, 3, 4, Errno::INVAL), (0, 4, 1, Errno::NOSYS), (1, 1, 8, Errno::NOSYS), (0, 2, 4, Errno::INVAL)]
    {
        let optval = &0u64 as *const u64 as u64;
        let option = SetOption { optval, id: client, level, optname, optlen };
        assert_eq!(nodes[1].command(SET_OPTION, option).unwrap_err(), errno, "{optname}");
    }
    nodes[1].command(CONNECT, Connect { conn_param: param(), id: client, reserved: 0 }).unwrap();
    carry(&mut nodes);
    let server = nodes[0].fetch_of(FILE)[0].id;
    assert_eq!(nodes[0].attr(server, 3).unwrap().timeout, 17);
}

#[test]
fn a_server_may_say_no() {
    let (mut nodes, listener, server, client) = knocked();
    let mut reject = Reject { id: server, private_data_len: 149, ..Reject::zeroed() };
    assert_eq!(nodes[0].command(REJECT, reject).unwrap_err(), Errno::INVAL);
    (reject.private_data_len, reject.reason) = (3, 1);
    assert_eq!(nodes[0].command(REJECT, reject).unwrap_err(), Errno::INVAL);
    reject.reason = 0;
    nodes[0].command(REJECT, reject).unwrap();
    assert_eq!(carry(&mut nodes), ["REJ"]);
    let event = nodes[1].fetch_of(FILE)[0];
    assert_eq!((event.event, event.status, conn_of(&event).private_data_len), (Rejected as u32, 28, 148));
    // What is over is ended without a word; a listener that is bound to no device has nothing to end.
    assert_eq!(nodes[0].command(REJECT, reject).unwrap_err(), Errno::INVAL);
    assert!(disconnect(&mut nodes[0], server).is_ok() && disconnect(&mut nodes[1], client).is_ok());
    assert_eq!(disconnect(&mut nodes[0], listener).unwrap_err(), Errno::INVAL);
    assert!(carry(&mut nodes).is_empty());
    assert_eq!(nodes[1].attr(client, 1).unwrap_err(), Errno::INVAL);
}

#[test]
fn a_server_may_change_its_mind() {
    let (mut nodes, _, server, client) = knocked();
    accept(&mut nodes[0], server, 1).unwrap();
    nodes[0].command(REJECT, Reject { id: server, ..Reject::zeroed() }).unwrap();
    assert_eq!(carry(&mut nodes), ["REP", "REJ"]);
    assert_eq!(nodes[1].events(), [(ConnectResponse as u32, client, 0), (Rejected as u32, client, 28)]);
}

#[test]
fn an_accept_that_cannot_be_sent_is_a_no() {
    let (mut nodes, _, server, _) = knocked();
    // An RTU where a REP is due.
    assert_eq!(accept(&mut nodes[0], server, 0).unwrap_err(), Errno::INVAL);
    assert_eq!(carry(&mut nodes), ["REJ"]);
    assert_eq!(nodes[1].events()[0].2, 28);
}

#[test]
fn nobody_listens() {
    let mut nodes = pair();
    let to = server_of(&nodes);
    let client = nodes[1].resolved(to);
    nodes[1].command(CONNECT, Connect { conn_param: param(), id: client, reserved: 0 }).unwrap();
    assert_eq!(carry(&mut nodes), ["REQ", "REJ"]);
    assert_eq!(nodes[1].events(), [(Rejected as u32, client, 8)]);
}

#[test]
fn a_port_space_has_listeners_of_its_own() {
    let mut nodes = pair();
    nodes[0].listener_in(port_space::IB, "0.0.0.0:18515");
    let to = server_of(&nodes);
    for (space, messages) in [(port_space::IB, &["REQ"][..]), (port_space::TCP, &["REQ", "REJ"])] {
        let id = nodes[1].resolved_in(space, to);
        nodes[1].command(CONNECT, Connect { conn_param: param(), id, reserved: 0 }).unwrap();
        assert_eq!(carry(&mut nodes), messages, "{space:#x}");
        nodes[1].events();
    }
    assert_eq!(nodes[0].events().len(), 1);
    for space in [1, port_space::TCP + 1] {
        assert_eq!(nodes[0].command(CREATE_ID, CreateId { ps: space, ..CreateId::zeroed() }), Err(Errno::INVAL));
    }
}

#[test]
fn a_node_may_connect_to_itself() {
    let mut nodes = pair();
    nodes[0].listener("0.0.0.0:18515");
    let to = server_of(&nodes);
    let client = nodes[0].resolved(to);
    nodes[0].command(CONNECT, Connect { conn_param: param(), id: client, reserved: 0 }).unwrap();
    assert_eq!(carry(&mut nodes), ["REQ"]);
    let server = nodes[0].fetch_of(FILE)[0].id;
    accept(&mut nodes[0], server, 1).unwrap();
    assert_eq!((carry(&mut nodes), nodes[0].events()), (vec!["REP"], vec![(ConnectResponse as u32, client, 0)]));
    accept(&mut nodes[0], client, 0).unwrap();
    assert_eq!((carry(&mut nodes), nodes[0].events()), (vec!["RTU"], vec![(Established as u32, server, 0)]));
    disconnect(&mut nodes[0], server).unwrap();
    assert_eq!((carry(&mut nodes), nodes[0].events()), (vec!["DREQ"], vec![(Disconnected as u32, client, 0)]));
    disconnect(&mut nodes[0], client).unwrap();
    assert_eq!((carry(&mut nodes), nodes[0].events()), (vec!["DREP"], vec![(Disconnected as u32, server, 0)]));
}

#[test]
fn the_queue_pair_may_hear_of_the_client_before_the_rtu() {
    let (mut nodes, _, server, client) = knocked();
    let notify = |node: &mut Node, event| node.command(NOTIFY, Notify { id: server, event });
    assert_eq!(notify(&mut nodes[0], 4).unwrap_err(), Errno::INVAL);
    accept(&mut nodes[0], server, 1).unwrap();
    assert_eq!(notify(&mut nodes[0], 5).unwrap_err(), Errno::INVAL);
    notify(&mut nodes[0], 4).unwrap();
    carry(&mut nodes);
    assert_eq!(nodes[0].events(), [(Established as u32, server, 0)]);
    assert_eq!(notify(&mut nodes[0], 4).unwrap_err(), Errno::ISCONN);
    accept(&mut nodes[1], client, 0).unwrap();
    assert_eq!((carry(&mut nodes), nodes[0].events()), (vec!["RTU"], vec![]));
}

#[test]
fn a_program_that_ends_says_goodbye() {
    let (mut nodes, _, client) = connected();
    nodes[0].close(FILE);
    assert_eq!(carry(&mut nodes), ["DREQ"]);
    assert_eq!((nodes[1].events(), nodes[0].ids.ids.len()), (vec![(Disconnected as u32, client, 0)], 0));
    disconnect(&mut nodes[1], client).unwrap();
    carry(&mut nodes);
    // Of those who have knocked, and who have not been looked at, none is left waiting.
    let mut nodes = pair();
    nodes[0].listener("0.0.0.0:18515");
    let to = server_of(&nodes);
    for _ in 0..3 {
        let client = nodes[1].resolved(to);
        nodes[1].command(CONNECT, Connect { conn_param: param(), id: client, reserved: 0 }).unwrap();
    }
    // The backlog has room for two.
    assert_eq!((carry(&mut nodes).len(), nodes[0].ids.ids.len()), (3, 3));
    nodes[0].close(FILE);
    assert_eq!((carry(&mut nodes), nodes[0].ids.ids.len()), (vec!["REJ"; 2], 0));
    assert_eq!(nodes[1].events().len(), 2);
}

#[test]
fn a_listener_takes_its_events_along_to_another_channel() {
    let mut nodes = pair();
    let listener = nodes[0].listener("0.0.0.0:18515");
    let to = server_of(&nodes);
    let client = nodes[1].resolved(to);
    nodes[1].command(CONNECT, Connect { conn_param: param(), id: client, reserved: 0 }).unwrap();
    carry(&mut nodes);
    let migrate = MigrateId { id: listener, fd: FILE, ..MigrateId::zeroed() };
    assert_eq!(nodes[0].command_of(5, MIGRATE_ID, MigrateId { fd: 4, ..migrate }).unwrap_err(), Errno::INVAL);
    assert_eq!(nodes[0].command_of(5, MIGRATE_ID, migrate).unwrap(), [0; 4]);
    assert_eq!((nodes[0].events(), disconnect(&mut nodes[0], listener).unwrap_err()), (vec![], Errno::INVAL));
    let guest = nodes[0].fetch_of(5)[0].id;
    nodes[0].command_of(5, ACCEPT, Accept { uid: 9, conn_param: param(), id: guest, reserved: 0 }).unwrap();
    assert_eq!(carry(&mut nodes), ["REP"]);
}

#[test]
fn an_id_that_stays_in_its_channel_keeps_its_place() {
    let mut node = Node::new("127.0.0.2");
    let ids = [(); 2].map(|()| node.create(port_space::TCP));
    for id in ids {
        node.resolve(id, "127.0.0.3:1".parse().unwrap()).unwrap();
    }
    node.command(MIGRATE_ID, MigrateId { id: ids[0], fd: FILE, response: 0 }).unwrap();
    assert_eq!(node.events().iter().map(|event| event.1).collect::<Vec<_>>(), ids);
}

#[test]
fn ports_are_taken_once() {
    let mut node = Node::new("127.0.0.2");
    let [all, one] = [(); 2].map(|()| node.create(port_space::TCP));
    assert_eq!(node.bind(all, "[::]:7000"), Ok(7000));
    assert_eq!(node.bind(one, "127.0.0.2:7000"), Err(Errno::ADDRNOTAVAIL));
    assert_eq!(node.bind(one, "127.0.0.2:7001"), Ok(7001));
    assert_eq!(node.bind(one, "127.0.0.2:7002"), Err(Errno::INVAL));
    let same = node.create(port_space::TCP);
    assert_eq!(node.bind(same, "127.0.0.2:7001"), Err(Errno::ADDRINUSE));
    let other_space = node.create(port_space::UDP);
    assert_eq!(node.bind(other_space, "127.0.0.2:7001"), Ok(7001));
    assert!((32_768..61_000).contains(&node.bind(same, "127.0.0.2:0").unwrap()));
    // Two that share a port, until one listens.
    let shared = [(); 2].map(|()| node.create(port_space::TCP));
    let on = 1u32;
    for id in shared {
        let optval = &on as *const u32 as u64;
        node.command(SET_OPTION, SetOption { optval, id, level: 0, optname: option::REUSEADDR, optlen: 4 }).unwrap();
        assert_eq!(node.bind(id, "127.0.0.2:7003"), Ok(7003));
    }
    assert_eq!(node.command(LISTEN, Listen { id: shared[0], backlog: 0 }).unwrap_err(), Errno::ADDRINUSE);
    node.destroy(shared[1]).unwrap();
    node.command(LISTEN, Listen { id: shared[0], backlog: 0 }).unwrap();
    // Of other addresses, the errno says whose they are.
    assert_eq!(node.bind(shared[1], "127.0.0.3:0"), Err(Errno::NOENT));
    let id = node.create(port_space::TCP);
    assert_eq!(node.bind(id, "127.0.0.3:0"), Err(Errno::NODEV));
    assert_eq!(node.bind(id, "203.0.113.1:0"), Err(Errno::ADDRNOTAVAIL));
    assert_eq!(node.bind(id, "127.0.0.1:0").map(|port| port > 0), Ok(true));
}

#[test]
fn addresses_are_resolved_if_the_network_leads_there() {
    let mut node = Node::new("127.0.0.2");
    let id = node.create(port_space::TCP);
    assert_eq!(
        node.resolve(id, "[fd47::1]:1".parse().unwrap()).map(|_| node.events()),
        Ok(vec![(AddrError as u32, id, -101)])
    );
    // Its family is chosen.
    assert_eq!(node.resolve(id, "127.0.0.3:1".parse().unwrap()), Err(Errno::INVAL));
    let id = node.create(port_space::TCP);
    // To a network without loopback nothing leads from here.
    assert_eq!(
        node.resolve(id, "203.0.113.1:1".parse().unwrap()).map(|_| node.events()),
        Ok(vec![(AddrError as u32, id, -101)])
    );
    assert_eq!((node.route(id).port_num, node.route(id).node_guid), (0, 0));
    // After that it may be tried again.
    assert_eq!(
        node.resolve(id, "127.0.0.3:1".parse().unwrap()).map(|_| node.events()),
        Ok(vec![(AddrResolved as u32, id, 0)])
    );
    assert_eq!(node.resolve(id, "127.0.0.3:1".parse().unwrap()), Err(Errno::INVAL));
    let route = node.route(id);
    assert_eq!((route.port_num, route.num_paths, route.ib_route[0].sgid), (1, 0, nic::cm::gid(node.address)));
    assert_eq!(route.node_guid.to_be(), Cm::guid(node.address));
    let to = |timeout_ms| ResolveRoute { id, timeout_ms };
    assert_eq!(node.command(RESOLVE_ROUTE, to(0)), Err(Errno::INVAL));
    assert!(node.command(RESOLVE_ROUTE, to(1)).is_ok() && node.route(id).num_paths == 1);
    // The machine itself: no device leads there.
    let id = node.create(port_space::TCP);
    assert_eq!(node.resolve(id, "127.0.0.1:1".parse().unwrap()).map(|_| node.events().len()), Ok(2));
    assert_eq!(node.command(RESOLVE_ROUTE, ResolveRoute { id, timeout_ms: 1 }), Err(Errno::NODEV));
    // Unless that is where the device is.
    let mut node = Node::new("::1");
    node.resolved("[::1]:1".parse().unwrap());
}

#[test]
fn a_listener_of_one_family_does_not_hear_the_other() {
    // The kernel says no in the program's name.
    let mut nodes = ["fd47::1", "fd47::2"].map(Node::new);
    nodes[0].listener("0.0.0.0:18515");
    let to = nodes[0].address;
    nodes[1].with(|_, net| {
        let local = net.cm.open(Some(1), to, net.random);
        net.cm.connect(local, PORT, 4711, &[], net.now, net.out);
    });
    assert_eq!(carry(&mut nodes), ["REQ", "REJ"]);
    assert_eq!((nodes[0].events(), nodes[0].cm.count()), (vec![], 0));
}

#[test]
fn datagrams_need_a_question_and_an_answer() {
    let mut nodes = pair();
    let [listener, refuser] = ["127.0.0.2:18515", "[::]:18516"].map(|to| {
        let id = nodes[0].create(port_space::UDP);
        nodes[0].bind(id, to).unwrap();
        nodes[0].command(LISTEN, Listen { id, backlog: 0 }).unwrap();
        id
    });
    let ask = |nodes: &mut [Node; 2], port: u16| {
        let id = nodes[1].create(port_space::UDP);
        nodes[1].resolve(id, (nodes[0].address, port).into()).unwrap();
        nodes[1].command(RESOLVE_ROUTE, ResolveRoute { id, timeout_ms: 1000 }).unwrap();
        nodes[1].events();
        nodes[1].command(CONNECT, Connect { conn_param: param(), id, reserved: 0 }).unwrap();
        id
    };
    let client = ask(&mut nodes, PORT);
    assert_eq!(carry(&mut nodes).len(), 1);
    let event = nodes[0].fetch_of(FILE)[0];
    let ud = |event: &EventResp| pod_read_unaligned::<UdParam>(&event.param);
    assert_eq!((event.event, ud(&event).private_data_len, &ud(&event).private_data[..2]), (4, 180, &b"hi"[..]));
    let conn_param = ConnParam { private_data_len: 136, ..param() };
    let accept = Accept { uid: 9, conn_param, id: event.id, reserved: 0 };
    nodes[0].command(ACCEPT, accept).unwrap();
    assert_eq!(nodes[0].command(ACCEPT, accept), Err(Errno::INVAL));
    assert_eq!(carry(&mut nodes).len(), 1);
    let event = nodes[1].fetch_of(FILE)[0];
    let said = ud(&event);
    assert_eq!((event.event, event.id, said.qp_num, said.qkey), (Established as u32, client, 77, 0x0123_4567));
    assert_eq!((said.private_data_len, said.ah_attr.dgid), (136, nic::cm::gid(nodes[0].address)));
    assert!(disconnect(&mut nodes[1], client).is_ok() && carry(&mut nodes).is_empty());
    // No, and nobody.
    ask(&mut nodes, PORT + 1);
    carry(&mut nodes);
    let id = nodes[0].fetch_of(FILE)[0].id;
    nodes[0].command(REJECT, Reject { id, ..Reject::zeroed() }).unwrap();
    ask(&mut nodes, PORT + 2);
    carry(&mut nodes);
    let statuses: Vec<_> = nodes[1].events().iter().map(|(event, _, status)| (*event, *status)).collect();
    assert_eq!(statuses, [(Unreachable as u32, 2), (Unreachable as u32, 1)]);
    for id in [listener, refuser] {
        nodes[0].destroy(id).unwrap();
    }
}

#[test]
fn a_group_is_joined_and_left() {
    let mut node = Node::new("127.0.0.2");
    let [id, tcp] = [port_space::UDP, port_space::TCP].map(|space| node.create(space));
    let to = |id, address: &str| {
        let addr = SockAddr::from(Some(format!("{address}:0").parse().unwrap()));
        JoinIpMcast { addr, id, uid: 99, ..JoinIpMcast::zeroed() }
    };
    assert_eq!(node.command(JOIN_IP_MCAST, to(id, "239.0.0.7")), Err(Errno::INVAL));
    for id in [id, tcp] {
        node.bind(id, "127.0.0.2:0").unwrap();
    }
    assert_eq!(node.command(JOIN_IP_MCAST, to(tcp, "239.0.0.7")), Err(Errno::INVAL));
    assert_eq!(node.command(JOIN_IP_MCAST, to(id, "[ff0e::7]")), Err(Errno::from_raw_os_error(524)));
    let group: u32 = pod_read_unaligned(&node.command(JOIN_IP_MCAST, to(id, "239.0.0.7")).unwrap());
    let event = node.fetch_of(FILE)[0];
    let ud: UdParam = pod_read_unaligned(&event.param);
    assert_eq!((event.event, event.uid, event.id), (MULTICAST_JOIN, 99, group));
    assert_eq!(
        (ud.qp_num, ud.qkey, ud.ah_attr.dgid[10..].to_vec()),
        (0xff_ffff, 0x0123_4567, vec![255, 255, 239, 0, 0, 7])
    );
    let attr = node.attr(id, 1).unwrap();
    assert_eq!((attr.qp_attr_mask, attr.qkey), (1 | 1 << 4 | 1 << 5 | 1 << 6, 0x0123_4567));
    let leave = DestroyId { id: group, ..DestroyId::zeroed() };
    assert_eq!(node.command(LEAVE_MCAST, leave).unwrap(), 1u32.to_ne_bytes());
    assert_eq!(node.command(LEAVE_MCAST, leave), Err(Errno::NOENT));
    // One whose event nobody has fetched goes with it.
    let group: u32 = pod_read_unaligned(&node.command(JOIN_IP_MCAST, to(id, "239.0.0.7")).unwrap());
    assert_eq!(node.command(LEAVE_MCAST, DestroyId { id: group, ..leave }).unwrap(), [0; 4]);
    node.command(JOIN_IP_MCAST, to(id, "239.0.0.7")).unwrap();
    assert_eq!((node.destroy(id), node.ids.groups.len(), node.events()), (Ok(1), 0, vec![]));
}

/// A call that a signal has interrupted is made again.
#[test]
fn what_the_program_has_not_heard_it_may_ask_again() {
    let mut node = Node::new("127.0.0.2");
    let bytes = [
        bytes_of(&Header { cmd: CREATE_ID, input: 24, out: 4 }),
        bytes_of(&CreateId { ps: 0x106, ..CreateId::zeroed() }),
    ]
    .concat();
    let Ok(Done::Answer { then, .. }) = node.write(FILE, &bytes) else { panic!() };
    assert_eq!(node.ids.ids.len(), 1);
    node.ids.then(then, false);
    assert_eq!(node.ids.ids.len(), 0);
    let id = node.listener("127.0.0.2:7000");
    let command = DestroyId { id, ..DestroyId::zeroed() };
    let bytes = [bytes_of(&Header { cmd: DESTROY_ID, input: 16, out: 4 }), bytes_of(&command)].concat();
    for is_heard in [false, true] {
        let Ok(Done::Answer { then, .. }) = node.write(FILE, &bytes) else { panic!() };
        assert_eq!(then, Then::Destroyed(id));
        assert_eq!(disconnect(&mut node, id), Err(Errno::NOENT));
        node.listener("127.0.0.2:7000");
        node.ids.then(then, is_heard);
        node.close(FILE + 1);
        let all: Vec<u32> =
            node.ids.ids.iter().filter(|(_, id)| id.state == State::Listen).map(|(id, _)| *id).collect();
        all.into_iter().for_each(|id| assert!(node.destroy(id).is_ok()));
    }
    assert_eq!((node.write(FILE, &bytes).unwrap_err(), node.ids.ids.len()), (Errno::NOENT, 0));
}

#[test]
fn headers_that_do_not_fit() {
    let mut node = Node::new("127.0.0.2");
    let header = |cmd, input, out| bytes_of(&Header { cmd, input, out }).to_vec();
    for (bytes, errno) in [
        (vec![0; 7], Errno::INVAL),
        (header(23, 0, 0), Errno::INVAL),
        (header(u32::MAX, 0, 0), Errno::INVAL),
        (header(CREATE_ID, 1, 4), Errno::INVAL),
        (header(CREATE_ID, 0, 3), Errno::NOSPC),
        (header(QUERY_ROUTE, 0, 199), Errno::NOSPC),
        (header(GET_EVENT, 0, 323), Errno::NOSPC),
        (header(13, 0, 0), Errno::NOSYS),
        (header(20, 0, 0), Errno::NOSYS),
    ] {
        assert_eq!(node.write(FILE, &bytes).unwrap_err(), errno, "{bytes:?}");
    }
    let nowhere = Asker { file: FILE, process: Process::own(), address: u64::MAX - 3, length: 64 };
    assert_eq!(node.with(|ids, net| ids.command(net, &nowhere, Some)).unwrap_err(), Errno::FAULT);
}

/// A command as a program would write it, to any id, with one number that may be anything.
fn shaped(cmd: u32, id: u32, number: u32) -> Vec<u8> {
    let ip = [[127, 0, 0, 2], [127, 0, 0, 3], [0, 0, 0, 0], [239, 0, 0, 1]][number as usize % 4];
    let addr = SockAddr::from(Some((Ipv4Addr::from(ip), number as u16 % 3).into()));
    let conn_param = ConnParam { private_data_len: number as u8, valid: 1 - number as u8 % 2, ..param() };
    match cmd {
        CREATE_ID => {
            bytes_of(&CreateId { uid: 1, response: 0, ps: 0x106 + 11 * (id as u16 % 2), ..CreateId::zeroed() }).to_vec()
        }
        DESTROY_ID | LEAVE_MCAST => bytes_of(&DestroyId { id, ..DestroyId::zeroed() }).to_vec(),
        BIND_IP => bytes_of(&BindIp { addr, id, response: 0 }).to_vec(),
        RESOLVE_IP => {
            let resolve = ResolveIp { dst_addr: addr, id, timeout_ms: number, ..ResolveIp::zeroed() };
            bytes_of(&resolve).to_vec()
        }
        QUERY_ROUTE | INIT_QP_ATTR => bytes_of(&Query { id, option: number, response: 0 }).to_vec(),
        CONNECT => bytes_of(&Connect { conn_param, id, reserved: 0 }).to_vec(),
        ACCEPT => bytes_of(&Accept { uid: 1, conn_param, id, reserved: 0 }).to_vec(),
        REJECT => bytes_of(&Reject { id, private_data_len: number as u8, ..Reject::zeroed() }).to_vec(),
        MIGRATE_ID => bytes_of(&MigrateId { id, fd: number, response: 0 }).to_vec(),
        JOIN_IP_MCAST => bytes_of(&JoinIpMcast { addr, id, ..JoinIpMcast::zeroed() }).to_vec(),
        // RESOLVE_ROUTE, LISTEN, DISCONNECT, NOTIFY, and those that do not exist.
        _ => [id, number].map(u32::to_ne_bytes).concat(),
    }
}

/// A number of a file, an id or a state; or anything.
fn number() -> impl Strategy<Value = u32> {
    prop_oneof![5 => 0..6u32, 1 => Just(u32::MAX), 1 => any::<u32>()]
}

/// A command's bytes: in shape, or any.
fn written() -> impl Strategy<Value = (u32, Vec<u8>)> {
    let in_shape = (0..19u32, number(), number()).prop_map(|(cmd, id, number)| (cmd, shaped(cmd, id, number)));
    let any = (0..26u32, prop::collection::vec(number(), 0..90));
    prop_oneof![3 => in_shape, 1 => any.prop_map(|(cmd, words)| (cmd, bytemuck::cast_slice(&words).to_vec()))]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    /// Whatever is written to an open rdma_cm, it is done, or answered with an errno; and nothing is left of it in the end.
    #[test]
    fn hostile_commands(commands in prop::collection::vec(
        (written(), prop_oneof![8 => Just(1), 1 => 0..3u32], prop_oneof![8 => Just(400), 1 => any::<u16>()], any::<u8>()), 1..80,
    )) {
        // Ids 1 to 4: a listener, one who has knocked there, one that may connect, one for datagrams.
        let (mut nodes, _, _, _) = knocked();
        nodes[1].listener("127.0.0.3:18515");
        let to = (nodes[1].address, PORT).into();
        nodes[0].resolved(to);
        let datagrams = nodes[0].create(port_space::UDP);
        nodes[0].bind(datagrams, "127.0.0.2:0").unwrap();
        for ((cmd, body), file, out, dice) in commands {
            // Sometimes not as long as it says.
            let input = if dice % 16 == 0 { dice.into() } else { body.len() as u16 };
            let mut bytes = [bytes_of(&Header { cmd, input, out }), &body].concat();
            let length = bytes.len();
            // What comes after it also belongs to the program.
            bytes.resize(length + 400, 0);
            let asker = Asker { file, process: Process::own(), address: bytes.as_ptr() as u64, length };
            match nodes[0].with(|ids, net| ids.command(net, &asker, Some)) {
                Ok(Done::Answer { bytes, then, .. }) => {
                    prop_assert!(bytes.len() <= out.into());
                    nodes[0].ids.then(then, dice % 8 > 0);
                }
                Ok(_) => {}
                Err(errno) => prop_assert!(errno.raw_os_error() > 0),
            }
            carry(&mut nodes);
            if dice % 3 == 0 {
                nodes[0].fetch_of(file);
            }
        }
        for file in 0..3 {
            nodes[0].close(file);
        }
        let left = &nodes[0].ids;
        prop_assert_eq!((left.ids.len(), left.groups.len(), left.files.values().all(File::is_empty)), (0, 0, true));
    }
}
