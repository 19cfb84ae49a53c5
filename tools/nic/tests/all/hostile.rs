//! Whatever a peer sends, the device does not panic, writes nothing outside a region, and keeps its promises to the program:
//! every request completes once at most.

use crate::pair;
use crate::pair::{attributes, Side, MTU};
use nic::cm::{Cm, Mad, Param, QP1};
use nic::datagram;
use nic::memory::Access;
use nic::outside::Ctx;
use nic::packet::{code, Aeth, AtomicEth, Packet, Reth};
use nic::psn::Psn;
use nic::qp::{mask, Attributes, Qp, State};
use nic::work::{Local, Remote, SendRequest, Work};
use proptest::prelude::*;
use roce::link::ROCE_PORT;
use std::net::IpAddr;
use std::time::{Duration, Instant};

const SIZE: usize = 4096;
const OURS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 2));
const PEERS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 3));

/// Mostly what fits, sometimes anything: what is wrong everywhere is refused at the first gate.
fn mostly<T: Clone + std::fmt::Debug + 'static>(
    fits: impl Strategy<Value = T> + 'static,
    any: impl Strategy<Value = T> + 'static,
) -> BoxedStrategy<T> {
    prop_oneof![6 => fits, 1 => any].boxed()
}

#[derive(Clone, Debug)]
struct Hostile {
    opcode: u8,
    psn_ahead: u32,
    offset: u64,
    length: u32,
    key_is_ours: bool,
    syndrome: u8,
    payload: usize,
    flags: u8,
}

fn hostile() -> impl Strategy<Value = Hostile> {
    let payload = prop_oneof![Just(MTU as usize), Just(0), 0..600usize];
    (
        mostly(0..0x15u8, any::<u8>()),
        mostly(0..3u32, any::<u32>()),
        mostly(0..SIZE as u64, any::<u64>()),
        mostly(0..600u32, any::<u32>()),
        any::<bool>(),
        prop_oneof![Just(0x1fu8), 0x60..0x65u8, any::<u8>()],
        payload,
        any::<u8>(),
    )
        .prop_map(|(opcode, psn_ahead, offset, length, key_is_ours, syndrome, payload, flags)| Hostile {
            opcode,
            psn_ahead,
            offset,
            length,
            key_is_ours,
            syndrome,
            payload,
            flags,
        })
}

fn packet(hostile: &Hostile, side: &Side, psn: &mut u32) -> Packet {
    let va = side.address(0).wrapping_add(hostile.offset);
    let rkey = if hostile.key_is_ours { side.key } else { hostile.length };
    let packet = Packet {
        opcode: hostile.opcode,
        psn: Psn::new(psn.wrapping_add(hostile.psn_ahead)),
        dest_qp: 17,
        ack_request: hostile.flags & 1 == 1,
        solicited: hostile.flags & 2 == 2,
        reth: Reth { va, rkey, length: hostile.length },
        atomic: AtomicEth { va, rkey, swap_add: 7, compare: 9 },
        aeth: Aeth { syndrome: hostile.syndrome, msn: 0 },
        payload: vec![0xee; hostile.payload],
        ..Packet::default()
    };
    // Requests move on, so that some are the expected one.
    if !packet.row().is_response() && hostile.psn_ahead == 0 {
        *psn = psn.wrapping_add(1);
    }
    packet
}

fn endure(packets: &[Hostile]) -> Result<(), TestCaseError> {
    let mut side = Side::new(17, 18, SIZE, attributes(100, 500, 2, 2));
    let mut now = Instant::now();
    for wr_id in 0..4 {
        let piece = side.piece(0, 700);
        side.post_receive(now, wr_id, piece).unwrap();
        let remote = Remote { address: 4096, rkey: 1 };
        let work =
            [Work::Write(remote), Work::Read(remote), Work::FetchAdd { remote, add: 1 }, Work::Send][wr_id as usize];
        let length = if work.is_atomic() { 8 } else { 600 };
        let local = Local::SgList(vec![side.piece(1024, length)]);
        let (immediate, length) = (None, length as u32);
        let request =
            SendRequest { wr_id, work, local, length, immediate, signaled: true, solicited: false, fence: false };
        side.act(now, |qp, out| qp.post_send(request, out)).unwrap();
    }
    let mut psn = 500;
    for hostile in packets {
        side.act(now, Qp::tick);
        let mut packet = packet(hostile, &side, &mut psn);
        if packet.row().is_response() {
            packet.psn = Psn::new(100 + hostile.psn_ahead);
        }
        // Through the network, as a peer would send it.
        let bytes = datagram::seal(PEERS, OURS, &packet);
        if let Some(packet) = datagram::open(PEERS, OURS, ROCE_PORT, &bytes[datagram::payload_offset(OURS)..]) {
            side.act(now, |qp, out| qp.receive(packet, out));
        }
        now += Duration::from_millis(u64::from(hostile.flags) / 16);
    }
    prop_assert!(side.guards_stand());
    for told in [&side.sent, &side.received] {
        let mut numbers: Vec<u64> = told.iter().map(|wc| wc.wr_id).collect();
        prop_assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "out of order, or twice: {:?}", numbers);
        numbers.dedup();
        prop_assert!(numbers.len() <= 4);
    }
    Ok(())
}

fn endures(cases: u32) {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(pair::cases(cases)) };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let packets = proptest::collection::vec(hostile(), 1..if cfg!(miri) { 8 } else { 40 });
    if let Err(error) = runner.run(&packets, |packets| endure(&packets)) {
        panic!("{error}");
    }
}

#[test]
fn hostile_packets_do_no_harm() {
    endures(2_000);
}

#[test]
#[ignore = "takes long: make test-long"]
fn two_million_hostile_packets_do_no_harm() {
    endures(100_000);
}

/// A packet of another service is not for this queue pair, however well it fits.
#[test]
fn packets_of_other_services_are_dropped() {
    let mut side = Side::new(17, 18, SIZE, attributes(100, 500, 2, 2));
    let (now, piece) = (Instant::now(), side.piece(0, 700));
    side.post_receive(now, 1, piece).unwrap();
    let send = |opcode| Packet { opcode, dest_qp: 17, psn: Psn::new(500), payload: vec![1; 8], ..Packet::default() };
    for opcode in [0x24, 0x64, 0xa4, 0xc4] {
        side.act(now, |qp, out| qp.receive(send(opcode), out));
        assert!(side.received.is_empty(), "{opcode:#x}");
    }
    side.act(now, |qp, out| qp.receive(send(0x04), out));
    assert_eq!(side.received.len(), 1);
}

/// A READ that has an old PSN, and was never asked before: what a READ may not do, it may not do in this way.
#[test]
fn a_read_with_an_old_psn_needs_what_a_new_one_needs() {
    let both = Access(Access::REMOTE_READ.0 | Access::REMOTE_WRITE.0);
    for (access, reads, psn, length, answers) in [
        (both, 1, 499, 8, 1),
        (Access::REMOTE_WRITE, 1, 499, 8, 0),
        (both, 0, 499, 8, 0),
        (both, 1, 499, MTU + 1, 0),
        (both, 1, 498, MTU + 1, 2),
    ] {
        let attributes = Attributes { access, max_dest_rd_atomic: reads, ..attributes(100, 500, 2, 2) };
        let mut side = Side::new(17, 18, SIZE, attributes);
        let narrow = |qp: &mut Qp, out: &mut Ctx| qp.modify(mask::ACCESS_FLAGS, State::Rts, &attributes, out);
        side.act(Instant::now(), narrow).unwrap();
        let reth = Reth { va: side.address(0), rkey: side.key, length };
        let read = Packet { opcode: code::READ_REQUEST, dest_qp: 17, psn: Psn::new(psn), reth, ..Packet::default() };
        side.act(Instant::now(), |qp, out| qp.receive(read, out));
        assert_eq!(side.take_out().len(), answers, "{access:?} {reads} {psn} {length}");
    }
}

/// Messages of the connection manager with a changed byte, and bytes that are none, to somebody who listens.
#[test]
fn damaged_messages_of_the_connection_manager_do_no_harm() {
    let (mut listener, mut now) = (Cm::new(OURS), Instant::now());
    listener.listen(7471, 1, 0).unwrap();
    let mut client = Cm::new(PEERS);
    let mut out = Vec::new();
    let local = client.open(Some(2), OURS, 0x1234_5678_9abc_def0);
    client.get(local).unwrap().param = Param { retries: 7, ..Param::default() };
    client.connect(local, 7471, 40_000, b"hello", now, &mut out);
    let nic::cm::CmEffect::Send(_, mad) = &out[0] else { panic!("{out:?}") };
    let good = mad.packet(Psn::new(1)).payload;
    let all = 0..good.len();
    for at in all.step_by(if cfg!(miri) { 32 } else { 1 }) {
        for value in [0, 1, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x7f, 0x80, 0xff] {
            let mut bytes = good.clone();
            bytes[at] = value;
            now += Duration::from_millis(700);
            listener.receive(PEERS, &bytes, u64::from(value) << 32 | at as u64, now, &mut Vec::new());
            listener.tick(now, &mut Vec::new());
        }
        assert_eq!(Mad::read(&good[..at]), None);
    }
    assert_eq!(Mad::read(&good).unwrap().packet(Psn::new(1)).dest_qp, QP1);
}
