//! READs of many packets, as many under way as agreed, over a wire with one fault; and responses that are none.

use crate::pair;
use crate::pair::{attributes, end, Attributes, Fault, Pair, MTU};
use nic::completion::Status;
use nic::memory::Access;
use nic::packet::{code, Aeth, Feth, Packet, Reth};
use nic::psn::Psn;
use nic::qp::{mask, State};
use nic::work::{Remote, Work};
use roce::aeth::{Nak, Syndrome};

const READS: usize = 4;

/// READs of this many packets each, of which two are under way at a time, and a fault at one packet of all. How they ended.
fn ended(packets: usize, at: usize, fault: Fault) -> Vec<Status> {
    let length = packets * MTU as usize;
    let size = READS * length;
    let [client, server] = [(17, 18), (18, 17)].map(|(own, peer)| end(own, peer, size, attributes(0, 0, 7, 7)));
    let mut pair = Pair::new(client, server, [(at, fault)].into());
    let bytes: Vec<u8> = (0..size).map(|at| (at / 7) as u8).collect();
    pair.server.fill(0, &bytes);
    for number in 0..READS {
        let remote = pair.server.remote(number * length);
        pair.client.post(number as u64, Work::Read(remote), number * length, length).unwrap();
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
        for fault in [Fault::Lose, Fault::Double, Fault::Delay(3)] {
            for at in 0..READS * (packets + 1) {
                assert_eq!(ended(packets, at, fault), [Status::Success; READS], "{packets} packets, {fault:?} at {at}");
            }
        }
    }
}

/// Responses to a READ of this many bytes: operation code, syndrome, and how many bytes each brings. How the READ ended.
fn answered(length: usize, responses: &[(u8, u8, usize)]) -> Option<Status> {
    let mut side = end(17, 18, 4096, attributes(0, 0, 7, 7));
    side.post(1, Work::Read(Remote { address: 1, rkey: 1 }), 0, length).unwrap();
    side.sends();
    for (psn, (opcode, syndrome, length)) in responses.iter().enumerate() {
        let (opcode, syndrome, psn, payload) = (*opcode, *syndrome, Psn::new(psn as u32), vec![9; *length]);
        let aeth = Aeth { syndrome, msn: 0 };
        side.receive(Packet { opcode, aeth, dest_qp: 17, psn, payload, ..Packet::default() });
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

/// What asks for an answer of its own must be allowed it, and be whole (annex A19).
#[test]
fn an_atomic_write_or_flush_is_answered_by_a_response_without_bytes_or_refused() {
    const SIZE: u64 = 64;
    let (write, flush) = (Access::REMOTE_WRITE.0, Access::FLUSH_GLOBAL.0);
    let range = Feth { placement: 1, level: 0 };
    let whole = Feth { placement: 1, level: 1 };
    let persistent = Feth { placement: 2, level: 0 };
    let none = Feth::default();
    for (opcode, allowed, va, length, payload, feth, expected) in [
        (code::ATOMIC_WRITE, write, 8, 8, 8, none, None),
        (code::ATOMIC_WRITE, flush, 8, 8, 8, none, Some(Nak::InvalidRequest)),
        (code::ATOMIC_WRITE, write, 4, 8, 8, none, Some(Nak::InvalidRequest)),
        (code::ATOMIC_WRITE, write, 8, 4, 4, none, Some(Nak::InvalidRequest)),
        (code::ATOMIC_WRITE, write, 8, 8, 4, none, Some(Nak::InvalidRequest)),
        (code::ATOMIC_WRITE, write, SIZE, 8, 8, none, Some(Nak::RemoteAccess)),
        (code::FLUSH, flush, 0, SIZE as u32, 0, range, None),
        (code::FLUSH, flush, 0, SIZE as u32 + 1, 0, range, Some(Nak::RemoteAccess)),
        (code::FLUSH, flush, SIZE, SIZE as u32, 0, whole, None),
        (code::FLUSH, write, 0, SIZE as u32, 0, range, Some(Nak::InvalidRequest)),
        // The queue pair would allow it; no region does.
        (code::FLUSH, flush << 1, 0, SIZE as u32, 0, persistent, Some(Nak::RemoteAccess)),
    ] {
        let attributes = Attributes { access: Access(allowed), ..attributes(0, 0, 7, 7) };
        let mut side = end(17, 18, SIZE as usize, attributes);
        side.act(|qp, out| qp.modify(mask::ACCESS_FLAGS, State::Rts, &attributes, out)).unwrap();
        let reth = Reth { va: side.address(0) + va, rkey: side.buffer.key, length };
        side.receive(Packet { opcode, dest_qp: 17, reth, feth, payload: vec![9; payload], ..Packet::default() });
        let [answer] = &side.take_out()[..] else { panic!("{:?}", side.said) };
        let (answers, verdict) = match expected {
            Some(nak) => (code::ACKNOWLEDGE, Syndrome::Nak(nak)),
            None => (code::READ_RESPONSE_ONLY, Syndrome::ACK),
        };
        assert_eq!(
            (answer.opcode, answer.aeth.verdict(), answer.payload.len()),
            (answers, verdict, 0),
            "{:?}",
            side.said
        );
        let is_written = opcode == code::ATOMIC_WRITE && expected.is_none();
        assert_eq!(side.bytes(8, 8), vec![if is_written { 9 } else { 0 }; 8]);
    }
}
