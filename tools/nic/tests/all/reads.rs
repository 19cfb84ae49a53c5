//! READs of many packets, as many under way as agreed, over a wire with one fault; and responses that are none.

use crate::pair;
use crate::pair::{attributes, Fault, Pair, Side, MTU};
use nic::completion::Status;
use nic::packet::{Aeth, Packet};
use nic::psn::Psn;
use nic::qp::Qp;
use nic::work::{Local, Remote, SendRequest, Work};

const READS: usize = 4;

fn read(wr_id: u64, piece: nic::memory::Sge, remote: Remote) -> SendRequest {
    let (work, local, length) = (Work::Read(remote), Local::SgList(vec![piece]), piece.length);
    SendRequest { wr_id, work, local, length, immediate: None, signaled: true, solicited: false, fence: false }
}

/// READs of so many packets each, of which two are under way at a time, and a fault at one packet of all. How they ended.
fn ended(packets: usize, at: usize, fault: Fault) -> Vec<Status> {
    let length = packets * MTU as usize;
    let size = READS * length;
    let client = Side::new(17, 18, size, attributes(0, 0, 7, 7));
    let server = Side::new(18, 17, size, attributes(0, 0, 7, 7));
    let mut faults = vec![Fault::Pass; at];
    faults.push(fault);
    let mut pair = Pair::new(client, server, faults);
    let bytes: Vec<u8> = (0..size).map(|at| (at / 7) as u8).collect();
    pair.server.fill(0, &bytes);
    for number in 0..READS {
        let remote = Remote { address: pair.server.address(number * length), rkey: pair.server.key };
        let request = read(number as u64, pair.client.piece(number * length, length), remote);
        let now = pair.now;
        pair.client.act(now, |qp, out| qp.post_send(request, out)).unwrap();
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
fn answered(length: u32, responses: &[(u8, u8, usize)]) -> Option<Status> {
    let mut side = Side::new(17, 18, 4096, attributes(0, 0, 7, 7));
    let request = read(1, side.piece(0, length as usize), Remote { address: 1, rkey: 1 });
    let now = pair::now();
    side.act(now, |qp, out| qp.post_send(request, out)).unwrap();
    side.act(now, Qp::tick);
    for (psn, (opcode, syndrome, length)) in responses.iter().enumerate() {
        let (opcode, syndrome, psn, payload) = (*opcode, *syndrome, Psn::new(psn as u32), vec![9; *length]);
        let packet = Packet { opcode, aeth: Aeth { syndrome, msn: 0 }, dest_qp: 17, psn, payload, ..Packet::default() };
        side.act(now, |qp, out| qp.receive(packet, out));
    }
    side.sent.first().map(|wc| wc.status)
}

/// Which part of a message a response may be, its place says; and those with an AETH are ACKs (9.7.5).
#[test]
fn a_read_is_answered_by_the_responses_of_its_packets_alone() {
    const ACK: u8 = 0x1f;
    const MTU: usize = pair::MTU as usize;
    let [first, middle, last, only] = [0x0d, 0x0e, 0x0f, 0x10];
    assert_eq!(answered(8, &[(only, ACK, 8)]), Some(Status::Success));
    assert_eq!(answered(600, &[(first, ACK, MTU), (middle, 0, MTU), (last, ACK, 88)]), Some(Status::Success));
    // A requester that had asked again, from the second packet on, gets two messages.
    assert_eq!(answered(600, &[(first, ACK, MTU), (first, ACK, MTU), (last, ACK, 88)]), Some(Status::Success));
    assert_eq!(answered(600, &[(first, ACK, MTU), (middle, 0, MTU), (only, ACK, 88)]), Some(Status::Success));
    let (whole, rest) = ((first, ACK, MTU), (middle, 0, MTU));
    for responses in [
        vec![(first, ACK, 8)],
        vec![(middle, 0, 8)],
        vec![(last, ACK, 8)],
        vec![(only, 0x62, 8)],
        vec![(only, 0x20, 8)],
    ] {
        assert_eq!(answered(8, &responses), Some(Status::BadRespErr), "{responses:?}");
    }
    for responses in [
        vec![(middle, 0, MTU)],
        vec![(only, ACK, MTU)],
        vec![(first, 0x61, MTU)],
        vec![whole, (last, ACK, MTU)],
        vec![whole, rest, (middle, 0, 88)],
        vec![whole, rest, (first, ACK, 88)],
        vec![whole, rest, (last, 0x63, 88)],
    ] {
        assert_eq!(answered(600, &responses), Some(Status::BadRespErr), "{responses:?}");
    }
}
