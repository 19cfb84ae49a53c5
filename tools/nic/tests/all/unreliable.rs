//! The services that answer nothing. A message of an unreliable connection arrives whole or not at all; a datagram arrives with
//! the header of its packet in front, where somebody waits for it who knows its key.

use crate::pair::{
    attributes, end, ended, faults, hold, of, request, Attributes, End, Fault, Faults, Pair, MTU, OURS, PD, PEERS,
};
use nic::completion::{Completion, Status, WcOpcode};
use nic::datagram::Route;
use nic::packet::{Deth, Packet};
use nic::psn::Psn;
use nic::qp::{Qp, Service, State};
use nic::work::{Destination, ReceiveQueue, ReceiveRequest, Remote, SendRequest, Work};
use proptest::collection::vec;
use proptest::prelude::*;

/// The bytes of a message, and of the receive that it may fill.
const SLOT: usize = 1024;
const MESSAGES: usize = 12;
const RECEIVES: usize = MESSAGES * SLOT;

fn pattern(number: usize, length: usize) -> Vec<u8> {
    (0..length).map(|at| (number * 31 + at * 7) as u8).collect()
}

/// Posts messages of these lengths, in turn a SEND and a WRITE, which have their number as immediate, and a WRITE without one; and
/// lets the wire do its worst.
fn converse(lengths: &[usize], psn: u32, faults: Faults) -> Pair {
    let side = |number, peer, attributes| of(Service::Uc, number, peer, 2 * RECEIVES, attributes);
    let client = side(17, 18, attributes(psn, 0, 0, 0));
    let mut pair = Pair::new(client, side(18, 17, attributes(0, psn, 0, 0)), faults);
    for (number, length) in lengths.iter().enumerate() {
        let (at, remote) = (number * SLOT, pair.server.remote(number * SLOT));
        pair.server.post_receive(number as u64, RECEIVES + at, SLOT).unwrap();
        pair.client.fill(at, &pattern(number, *length));
        let work = if number % 3 == 0 { Work::Send } else { Work::Write(remote) };
        let message = request(number as u64, work, pair.client.piece(at, *length));
        pair.client.post_send(SendRequest { immediate: (number % 3 < 2).then_some(number as u32), ..message }).unwrap();
    }
    assert!(pair.run(|_| {}));
    pair
}

/// The numbers of the messages that have completed a receive, each of them whole.
fn arrived(pair: &Pair, lengths: &[usize]) -> Vec<usize> {
    let mut numbers = Vec::new();
    for Completion { wr_id, status, opcode, length, immediate, .. } in &pair.server.received {
        let number = immediate.unwrap() as usize;
        let (at, expected) = match opcode {
            WcOpcode::Recv => (RECEIVES + *wr_id as usize * SLOT, 0),
            _ => (number * SLOT, 1),
        };
        assert_eq!((*status, number % 3, *length as usize), (Status::Success, expected, lengths[number]));
        assert_eq!(pair.server.bytes(at, lengths[number]), pattern(number, lengths[number]), "message {number}");
        numbers.push(number);
    }
    numbers
}

fn lengths() -> impl Strategy<Value = Vec<usize>> {
    vec(prop_oneof![Just(0), Just(MTU as usize), 1..SLOT], 1..MESSAGES)
}

/// 9.8: a lost packet takes its message with it, and no other.
#[test]
fn of_an_unreliable_connection_arrives_what_has_lost_no_packet() {
    let faults = vec(prop_oneof![6 => Just(false), 1 => Just(true)], 0..40);
    let psn = prop_oneof![any::<u32>(), 0xff_ffe0..=0xff_ffffu32];
    hold(1_000, (lengths(), psn, faults), |(lengths, psn, lost)| {
        let faults = lost.iter().zip(0..).filter(|(is_lost, _)| **is_lost).map(|(_, at)| (at, Fault::Lose)).collect();
        let mut packets = lost.into_iter();
        let packets_of = |length: &usize| length.div_ceil(MTU as usize).max(1);
        let survives = |length| packets.by_ref().take(packets_of(length)).filter(|is_lost| *is_lost).count() == 0;
        let whole: Vec<bool> = lengths.iter().map(survives).collect();
        let expected: Vec<usize> = (0..lengths.len()).filter(|number| whole[*number] && number % 3 < 2).collect();
        let pair = converse(&lengths, psn, faults);
        for number in (2..lengths.len()).step_by(3).filter(|number| whole[*number]) {
            prop_assert_eq!(pair.server.bytes(number * SLOT, lengths[number]), pattern(number, lengths[number]));
        }
        prop_assert_eq!(arrived(&pair, &lengths), expected);
        let all: Vec<_> = (0..lengths.len() as u64).map(|number| (number, Status::Success)).collect();
        prop_assert_eq!(ended(&pair.client.sent), all);
        prop_assert!(pair.server.to.is_none(), "nobody answers");
        Ok(())
    });
}

#[test]
fn what_is_doubled_or_late_arrives_whole_or_not_at_all() {
    hold(1_000, (lengths(), faults(4, 40)), |(lengths, faults)| {
        let pair = converse(&lengths, 7, faults);
        arrived(&pair, &lengths);
        prop_assert!(pair.server.buffer.guards_stand());
        Ok(())
    });
}

/// Without answers no window holds a message back: it goes out in turns, so that others have theirs.
#[test]
fn a_long_message_goes_out_in_turns() {
    let mut side = of(Service::Uc, 17, 18, 256 * MTU as usize, attributes(0, 0, 0, 0));
    side.post(1, Work::Send, 0, 256 * MTU as usize).unwrap();
    let mut turns = Vec::new();
    while side.qp.is_busy() {
        let packets = side.sends();
        assert!(packets.iter().all(|packet| !packet.ack_request), "there are no ACKs to ask for");
        turns.push((packets.len(), side.sent.len()));
    }
    assert_eq!(turns, [(64, 0), (64, 0), (64, 0), (64, 1)]);
}

const QKEY: u32 = 0x1111_1111;

/// A queue pair for datagrams.
fn listener() -> End {
    of(Service::Ud, 17, 0, 4096, Attributes { qkey: QKEY, ..attributes(70, 0, 0, 0) })
}

fn to(qkey: u32) -> Work {
    Work::Datagram(Destination { address: PEERS, class: 0, qp: 18, qkey })
}

fn datagram(qkey: u32, payload: Vec<u8>) -> Packet {
    let deth = Deth { qkey, src_qp: 99 };
    Packet { opcode: 0x65, dest_qp: 17, immediate: 5, solicited: true, deth, payload, ..Packet::default() }
}

/// 9.8: who sent it, and how, stands in the packet. The highest bit of a key means the sender's own (3.5.3).
#[test]
fn a_datagram_goes_where_its_request_says_and_is_complete_when_it_went_out() {
    for (key, expected) in [(0x55, 0x55), (0x8000_0055, QKEY)] {
        let mut side = listener();
        side.fill(0, b"hello");
        side.post_send(SendRequest { immediate: Some(6), ..request(3, to(key), side.piece(0, 5)) }).unwrap();
        let packets = side.sends();
        let deth = Deth { qkey: expected, src_qp: 17 };
        let (opcode, psn, payload) = (0x65, Psn::new(70), b"hello".to_vec());
        let one = Packet { opcode, dest_qp: 18, psn, immediate: 6, deth, payload, ..Packet::default() };
        assert_eq!((packets, side.to), (vec![one], Some(PEERS)));
        assert_eq!(ended(&side.sent), [(3, Status::Success)]);
        assert!(side.qp.deadline().is_none() && !side.qp.is_busy(), "nothing is waited for");
    }
}

#[test]
fn a_received_datagram_has_forty_bytes_before_it() {
    let v6 = |last: u16| std::net::IpAddr::from([0xfd47, 0, 0, 0, 0, 0, 0, last]);
    for (from, to) in [(PEERS, OURS), (v6(3), v6(2))] {
        let mut side = listener();
        side.post_receive(9, 0, 48).unwrap();
        side.act(|qp, out| qp.receive(Route { from, to }, datagram(QKEY, b"8 bytes!".to_vec()), out));
        let [wc] = side.received[..] else { panic!("{:?}", side.said) };
        assert_eq!((wc.wr_id, wc.status, wc.opcode, wc.length), (9, Status::Success, WcOpcode::Recv, 48));
        assert_eq!((wc.src_qp, wc.grh, wc.immediate, wc.solicited), (99, true, Some(5), true));
        assert_eq!(side.bytes(40, 8), b"8 bytes!");
        // UDP 8, BTH 12, DETH 8, ImmDt 4, the payload 8, ICRC 4.
        let header = side.bytes(0, 40);
        if let (std::net::IpAddr::V4(from), std::net::IpAddr::V4(to)) = (from, to) {
            assert_eq!(header[..20], [0; 20]);
            assert_eq!((header[20], &header[22..24], header[29]), (0x45, &[0, 64][..], 17));
            assert_eq!((&header[32..36], &header[36..]), (&from.octets()[..], &to.octets()[..]));
        } else {
            assert_eq!((header[0] >> 4, &header[4..7]), (6, &[0, 44, 17][..]));
            assert_eq!((header[23], header[39]), (3, 2));
        }
        assert!(side.take_out().is_empty(), "nobody answers");
    }
}

#[test]
fn a_datagram_that_nobody_waits_for_or_with_another_key_is_dropped_in_silence() {
    let mut side = listener();
    side.receive(datagram(QKEY, vec![1; 8]));
    side.post_receive(1, 0, 100).unwrap();
    side.receive(datagram(QKEY + 1, vec![2; 8]));
    // With the header it is too long.
    side.receive(datagram(QKEY, vec![3; 61]));
    assert!(side.received.is_empty() && side.raised.is_empty() && side.take_out().is_empty());
    side.receive(datagram(QKEY, vec![4; 60]));
    assert_eq!((side.received.len(), side.bytes(40, 60), side.qp.state()), (1, vec![4; 60], State::Rts));
}

/// 9.9.3, class E: one of a shared queue comes back, for others may wait for it. The queue pair goes on.
#[test]
fn a_shared_receive_that_is_too_short_comes_back() {
    let mut side = listener();
    let mut shared = ReceiveQueue::new(4, PD);
    for room in [50, 100] {
        shared.post(ReceiveRequest { wr_id: room as u64, sge: vec![side.piece(0, room)] });
    }
    side.shared = Some(shared);
    for _ in 0..2 {
        side.receive(datagram(QKEY, vec![1; 60]));
    }
    assert_eq!(ended(&side.received), [(50, Status::RemInvReqErr), (100, Status::Success)]);
    assert_eq!(side.qp.state(), State::Rts);
}

/// C10-93.1.1: it is not sent, and that is no error.
#[test]
fn a_datagram_longer_than_a_packet_is_not_sent() {
    let mut side = listener();
    for (wr_id, length) in [(1, 1024), (2, 1025), (3, 8)] {
        side.post(wr_id, to(1), 0, length).unwrap();
    }
    assert_eq!(side.sends().iter().map(|packet| packet.payload.len()).collect::<Vec<_>>(), [1024, 8]);
    assert_eq!(ended(&side.sent), [1, 2, 3].map(|wr_id| (wr_id, Status::Success)));
}

/// What a service has no operation code for, fails when its turn comes, as with rdma_rxe (Linux 6.1).
#[test]
fn each_service_takes_its_own_requests() {
    let remote = Remote { address: 0, rkey: 0 };
    let add = Work::FetchAdd { remote, add: 1 };
    let works = [Work::Send, Work::Write(remote), Work::Read(remote), add, to(1)];
    for (service, takes) in [
        (Service::Rc, [true, true, true, true, false]),
        (Service::Uc, [true, true, false, false, false]),
        (Service::Ud, [false, false, false, false, true]),
    ] {
        for (work, takes) in works.into_iter().zip(takes) {
            let mut side = of(service, 17, 18, 64, attributes(0, 0, 0, 0));
            side.post(1, work, 0, 8).unwrap();
            side.act(Qp::tick);
            let failed = side.sent.iter().any(|wc| wc.status == Status::LocQpOpErr);
            assert_eq!((failed, side.qp.state() == State::Err), (!takes, !takes), "{service:?} {work}");
        }
    }
    // Its turn: what was posted before is answered first.
    let side = |number, peer| end(number, peer, 64, attributes(0, 0, 3, 3));
    let mut pair = Pair::new(side(17, 18), side(18, 17), Faults::new());
    let write = Work::Write(pair.server.remote(0));
    for (wr_id, work) in [(1, write), (2, to(1))] {
        pair.client.post(wr_id, work, 0, 8).unwrap();
    }
    assert!(pair.run(|_| {}));
    assert_eq!(ended(&pair.client.sent), [(1, Status::Success), (2, Status::LocQpOpErr)]);
}
