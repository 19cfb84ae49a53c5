//! Whatever a peer sends, the device does not panic, writes nothing outside a region, and keeps its promises to the program:
//! every request completes once at most.

use crate::pair::{attributes, end, hold, of, End, MTU, OURS, PEERS};
use nic::cm::{Cm, Mad, Param, Space, QP1};
use nic::datagram::{self, Route};
use nic::memory::Access;
use nic::outside::Ctx;
use nic::packet::{code, Aeth, AtomicEth, Deth, Feth, Packet, Reth};
use nic::psn::Psn;
use nic::qp::{mask, Attributes, Qp, Service, State};
use nic::time::Time;
use nic::work::{Destination, Remote, Work};
use proptest::prelude::*;
use roce::link::ROCE_PORT;
use std::time::Duration;

const SIZE: usize = 4096;

/// Mostly what fits, sometimes anything: what is wrong everywhere is refused at the first gate.
fn mostly<T: Clone + std::fmt::Debug + 'static>(
    fits: impl Strategy<Value = T> + 'static,
    any: impl Strategy<Value = T> + 'static,
) -> BoxedStrategy<T> {
    prop_oneof![6 => fits, 1 => any].boxed()
}

/// A packet that nobody should send. Its PSN counts from the expected one, its address from the beginning of our buffer, and a
/// key of 1 stands for ours.
fn hostile() -> impl Strategy<Value = Packet> {
    let places = (mostly(0..SIZE as u64, any::<u64>()), mostly(0..600u32, any::<u32>()));
    let says = (prop_oneof![Just(0x1fu8), 0x60..0x65u8, any::<u8>()], any::<[bool; 3]>());
    let payload = prop_oneof![Just(MTU as usize), Just(0), 0..600usize];
    (mostly(0..0x1eu8, any::<u8>()), mostly(0..3u32, any::<u32>()), places, says, payload).prop_map(
        |(opcode, psn, (va, length), (syndrome, [ack_request, solicited, key_is_ours]), payload)| {
            let (dest_qp, rkey) = (17, if key_is_ours { 1 } else { length });
            let (reth, atomic) = (Reth { va, rkey, length }, AtomicEth { va, rkey, swap_add: 7, compare: 9 });
            let (psn, aeth, payload) = (Psn::new(psn), Aeth { syndrome, msn: 0 }, vec![0xee; payload]);
            let deth = Deth { qkey: u32::from(!key_is_ours), src_qp: 18 };
            let feth = Feth { placement: syndrome & 1, level: syndrome >> 1 & 1 };
            let asks = Packet { opcode, dest_qp, psn, ack_request, solicited, reth, atomic, ..Packet::default() };
            Packet { aeth, deth, feth, payload, ..asks }
        },
    )
}

/// Mostly an operation code of the service, where it was one of reliable connections.
fn opcode_of(service: Service, opcode: u8) -> u8 {
    match service {
        Service::Uc if opcode < 0x20 => 0x20 | opcode,
        Service::Ud if opcode < 0x20 => 0x64 | opcode & 1,
        _ => opcode,
    }
}

/// The same for this side, whose next request has the PSN `requests`.
fn aimed(mut packet: Packet, side: &End, requests: &mut u32) -> Packet {
    for (va, rkey) in [(&mut packet.reth.va, &mut packet.reth.rkey), (&mut packet.atomic.va, &mut packet.atomic.rkey)] {
        *va = side.address(0).wrapping_add(*va);
        *rkey = if *rkey == 1 { side.buffer.key } else { *rkey };
    }
    let (ahead, is_response) = (packet.psn.get(), packet.row().is_response());
    packet.psn = Psn::new(if is_response { 100 } else { *requests }.wrapping_add(ahead));
    // Requests move on, so that some are the expected one.
    *requests += u32::from(!is_response && ahead == 0);
    packet
}

fn endure((service, packets): (Service, Vec<(Packet, u64)>)) -> Result<(), TestCaseError> {
    let mut side = of(service, 17, 18, SIZE, attributes(100, 500, 2, 2));
    for wr_id in 0..4 {
        side.post_receive(wr_id, 0, 700).unwrap();
        let remote = Remote { address: 4096, rkey: 1 };
        let mut work =
            [Work::Write(remote), Work::Read(remote), Work::FetchAdd { remote, add: 1 }, Work::Send][wr_id as usize];
        if !work.is_offered_by(service) {
            let (address, qp, qkey) = (PEERS, 18, 1 << 31);
            work = if service == Service::Ud {
                Work::Datagram(Destination { address, class: 0, qp, qkey })
            } else {
                Work::Send
            };
        }
        let length = if work.is_atomic() { 8 } else { 600 };
        side.post(wr_id, work, 1024, length).unwrap();
    }
    let mut requests = 500;
    for (packet, wait) in packets {
        side.act(Qp::tick);
        let packet = Packet { opcode: opcode_of(service, packet.opcode), ..packet };
        // Through the network, as a peer would send it.
        let bytes = datagram::seal(PEERS, OURS, &aimed(packet, &side, &mut requests));
        if let Some(packet) = datagram::open(PEERS, OURS, ROCE_PORT, &bytes[datagram::payload_offset(OURS)..]) {
            side.receive(packet);
        }
        side.now += Duration::from_millis(wait);
    }
    prop_assert!(side.buffer.guards_stand());
    for told in [&side.sent, &side.received] {
        let mut numbers: Vec<u64> = told.iter().map(|wc| wc.wr_id).collect();
        prop_assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "out of order, or twice: {:?}", numbers);
        numbers.dedup();
        prop_assert!(numbers.len() <= 4);
    }
    Ok(())
}

fn endures(cases: u32) {
    let most = 40;
    let service = prop_oneof![2 => Just(Service::Rc), 1 => Just(Service::Uc), 1 => Just(Service::Ud)];
    hold(cases, (service, proptest::collection::vec((hostile(), 0..16u64), 1..most)), endure);
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

/// A packet of another service is not for this queue pair, however well it fits; and a connection takes none of a stranger.
#[test]
fn packets_of_other_services_and_of_strangers_are_dropped() {
    let own = [(Service::Rc, 0x04), (Service::Uc, 0x24), (Service::Ud, 0x64)];
    for (service, fits) in own {
        let mut side = of(service, 17, 18, SIZE, attributes(100, 500, 2, 2));
        side.post_receive(1, 0, 700).unwrap();
        let send =
            |opcode| Packet { opcode, dest_qp: 17, psn: Psn::new(500), payload: vec![1; 8], ..Packet::default() };
        for opcode in [0x04, 0x24, 0x64, 0xa4, 0xc4].into_iter().filter(|opcode| *opcode != fits) {
            side.receive(send(opcode));
            assert!(side.received.is_empty(), "{service:?} {opcode:#x}");
        }
        let stranger = Route { from: [127, 0, 0, 77].into(), to: OURS };
        side.act(|qp, out| qp.receive(stranger, send(fits), out));
        assert_eq!(side.received.len(), usize::from(service == Service::Ud), "{service:?}");
        side.receive(send(fits));
        assert_eq!(side.received.len(), 1, "{service:?}");
    }
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
        let mut side = end(17, 18, SIZE, attributes);
        let narrow = |qp: &mut Qp, out: &mut Ctx| qp.modify(mask::ACCESS_FLAGS, State::Rts, &attributes, out);
        side.act(narrow).unwrap();
        let reth = Reth { va: side.address(0), rkey: side.buffer.key, length };
        let read = Packet { opcode: code::READ_REQUEST, dest_qp: 17, psn: Psn::new(psn), reth, ..Packet::default() };
        side.receive(read);
        assert_eq!(side.take_out().len(), answers, "{access:?} {reads} {psn} {length}");
    }
}

/// Messages of the connection manager with a changed byte, and bytes that are none, to somebody who listens.
#[test]
fn damaged_messages_of_the_connection_manager_do_no_harm() {
    let (mut listener, mut now) = (Cm::new(OURS), Time::START);
    listener.listen(Space::Tcp, 7471, 1, 0).unwrap();
    listener.listen(Space::Udp, 7471, 1, 0).unwrap();
    for ask in [Cm::connect, Cm::resolve] {
        let (mut client, mut out) = (Cm::new(PEERS), Vec::new());
        let local = client.open(Some(2), OURS, 0x1234_5678_9abc_def0);
        client.get(local).unwrap().param = Param { retries: 7, ..Param::default() };
        ask(&mut client, local, 7471, 40_000, b"hello", now, &mut out);
        let nic::cm::CmEffect::Send(_, mad) = &out[0] else { panic!("{out:?}") };
        let good = mad.packet(Psn::new(1)).payload;
        for at in 0..good.len() {
            for value in [0, 1, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x7f, 0x80, 0xff] {
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
}
