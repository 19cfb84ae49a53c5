//! READs of many packets, as many under way as agreed, over a wire with one fault; and responses that are none.

use crate::pair;
use crate::pair::{attributes, request, Fault, Pair, Side, MTU};
use nic::completion::Status;
use nic::packet::{Aeth, Packet};
use nic::psn::Psn;
use nic::qp::Qp;
use nic::work::{Remote, Work};
use std::time::Instant;

const READS: usize = 4;

/// READs of so many packets each, of which two are under way at a time, and a fault at one packet of all. How they ended.
fn ended(packets: usize, at: usize, fault: Fault) -> Vec<Status> {
    let length = packets * MTU as usize;
    let size = READS * length;
    let [client, server] = [(17, 18), (18, 17)].map(|(own, peer)| Side::new(own, peer, size, attributes(0, 0, 7, 7)));
    let mut faults = vec![Fault::Pass; at];
    faults.push(fault);
    let mut pair = Pair::new(client, server, faults);
    let bytes: Vec<u8> = (0..size).map(|at| (at / 7) as u8).collect();
    pair.server.fill(0, &bytes);
    for number in 0..READS {
        let remote = Remote { address: pair.server.address(number * length), rkey: pair.server.key };
        let piece = pair.client.piece(number * length, length);
        pair.client.post_send(pair.now, request(number as u64, Work::Read(remote), piece));
    }
    assert!(pair.run(|_| ()));
    let ended: Vec<_> = pair.client.sent.iter().map(|wc| wc.status).collect();
    assert!(ended.iter().any(|status| *status != Status::Success) || pair.client.bytes(0, size) == bytes);
    ended
}

/// A READ that is asked for again stands in the queue of responses already, if it is longer than a batch of these.
#[test]
fn one_fault_at_any_packet_of_pipelined_reads_is_mended() {
    for packets in [8, 33, 40, 60] {
        for fault in [Fault::Drop, Fault::Duplicate, Fault::Late(3)] {
            for at in 0..READS * (packets + 1) {
                assert_eq!(ended(packets, at, fault), [Status::Success; READS], "{packets} packets, {fault:?} at {at}");
            }
        }
    }
}

/// Responses to a READ of so many bytes: operation code, syndrome, and how many bytes each brings. How the READ ended.
fn answered(length: usize, responses: &[(u8, u8, usize)]) -> Option<Status> {
    let (mut side, now) = (Side::new(17, 18, 4096, attributes(0, 0, 7, 7)), Instant::now());
    side.post_send(now, request(1, Work::Read(Remote { address: 1, rkey: 1 }), side.piece(0, length)));
    side.act(now, Qp::tick);
    for (psn, (opcode, syndrome, length)) in responses.iter().enumerate() {
        let (opcode, syndrome, psn, payload) = (*opcode, *syndrome, Psn::new(psn as u32), vec![9; *length]);
        let aeth = Aeth { syndrome, msn: 0 };
        side.receive(now, Packet { opcode, aeth, dest_qp: 17, psn, payload, ..Packet::default() });
    }
    side.sent.first().map(|wc| wc.status)
}

/// Which part of a message a response may be, its place says; and those with an AETH are ACKs (9.7.5).
#[test]
fn a_read_is_answered_by_the_responses_of_its_packets_alone() {
    const ACK: u8 = 0x1f;
    const MTU: usize = pair::MTU as usize;
    let [first, middle, last, only] = [0x0d, 0x0e, 0x0f, 0x10];
    let (whole, rest) = ((first, ACK, MTU), (middle, 0, MTU));
    for (length, responses, expected) in [
        (8, vec![(only, ACK, 8)], Status::Success),
        (600, vec![whole, rest, (last, ACK, 88)], Status::Success),
        // A requester that had asked again, from the second packet on, gets two messages.
        (600, vec![whole, whole, (last, ACK, 88)], Status::Success),
        (600, vec![whole, rest, (only, ACK, 88)], Status::Success),
        (8, vec![(first, ACK, 8)], Status::BadRespErr),
        (8, vec![(middle, 0, 8)], Status::BadRespErr),
        (8, vec![(last, ACK, 8)], Status::BadRespErr),
        (8, vec![(only, 0x62, 8)], Status::BadRespErr),
        (8, vec![(only, 0x20, 8)], Status::BadRespErr),
        (600, vec![rest], Status::BadRespErr),
        (600, vec![(only, ACK, MTU)], Status::BadRespErr),
        (600, vec![(first, 0x61, MTU)], Status::BadRespErr),
        (600, vec![whole, (last, ACK, MTU)], Status::BadRespErr),
        (600, vec![whole, rest, (middle, 0, 88)], Status::BadRespErr),
        (600, vec![whole, rest, (first, ACK, 88)], Status::BadRespErr),
        (600, vec![whole, rest, (last, 0x63, 88)], Status::BadRespErr),
    ] {
        assert_eq!(answered(length, &responses), Some(expected), "{responses:?}");
    }
}
