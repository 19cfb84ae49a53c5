//! Memory windows, and the messages and requests that make keys invalid, one rule of 10.6.7 a test.

use crate::pair::{attributes, end, request, End, Faults, Pair, PD};
use nic::completion::{Status, WcOpcode};
use nic::memory::{Access, Bind, Refusal, WindowKind};
use nic::packet::{opcode_of, Packet};
use nic::psn::Psn;
use nic::qp::{Qp, Service, State};
use nic::work::{Remote, SendRequest, Work};
use roce::aeth::Syndrome;
use roce::opcode::{Operation, Part};

const SIZE: usize = 1024;
/// The part of the buffer that the window opens.
const OFFSET: usize = 256;
const LENGTH: usize = 64;
const ALL: Access = Access(2 | 4 | 8);

/// A server and a client; the server's buffer may have windows.
fn pair() -> Pair {
    let side = |number, peer| {
        let mut side = end(number, peer, SIZE, attributes(5, 5, 3, 3));
        let whole = side.buffer.region(SIZE as u64, Access(15 | Access::MW_BIND.0), PD);
        side.buffer.key = side.memory.register(whole, 9);
        side
    };
    Pair::new(side(17, 18), side(18, 17), Faults::new())
}

fn bind(side: &End, window: u32, next: u8) -> Bind {
    let (address, length) = (side.address(OFFSET), LENGTH as u64);
    Bind { window, next, region: side.buffer.key, address, length, access: ALL }
}

/// Posts a request that needs no memory at the server.
fn does(pair: &mut Pair, work: Work) -> Status {
    pair.server.post(1, work, 0, 0).unwrap();
    pair.server.act(Qp::tick);
    pair.server.sent.last().unwrap().status
}

/// How the client's WRITE of so many bytes to an address ends.
fn writes(pair: &mut Pair, address: u64, length: usize, rkey: u32) -> Status {
    pair.client.post(2, Work::Write(Remote { address, rkey }), 0, length).unwrap();
    assert!(pair.run(|_| {}));
    pair.client.sent.last().unwrap().status
}

/// The two, and the key of a window of this kind that the server has bound.
fn opened(kind: WindowKind, access: Access) -> (Pair, u32) {
    let mut pair = pair();
    let window = pair.server.memory.allocate_window(kind, PD, 3);
    let bound = Bind { access, ..bind(&pair.server, window, 4) };
    assert_eq!(does(&mut pair, Work::Bind(bound)), Status::Success);
    assert_eq!(pair.server.sent[0].opcode, WcOpcode::BindMw);
    (pair, window & !0xff | 4)
}

#[test]
fn a_window_opens_its_part_to_peers() {
    use WindowKind::{One, Two};
    const LAST: i64 = LENGTH as i64 - 1;
    let zero_based = Access(ALL.0 | Access::ZERO_BASED.0);
    for (kind, access, away, length, is_open) in [
        (One, ALL, 0, LENGTH, true),
        (One, ALL, 1, LENGTH, false),
        (One, ALL, -1, 1, false),
        (Two, ALL, 0, LENGTH, true),
        (Two, ALL, 1, LENGTH, false),
        (Two, ALL, -1, 1, false),
        // It counts from its first byte.
        (Two, zero_based, LAST, 1, true),
        (Two, zero_based, LAST + 1, 1, false),
    ] {
        let (mut pair, key) = opened(kind, access);
        pair.client.fill(0, &[7; LENGTH]);
        let start = if access == ALL { pair.server.address(OFFSET) } else { 0 };
        let ended = writes(&mut pair, start.wrapping_add_signed(away), length, key);
        let mut written = [0; LENGTH + 1];
        if is_open {
            written[away as usize..][..length].fill(7);
        }
        assert_eq!(ended, if is_open { Status::Success } else { Status::RemAccessErr }, "{kind:?} {away}");
        assert_eq!(pair.server.bytes(OFFSET, LENGTH + 1), written, "{kind:?} {away}");
    }
}

/// The key changes with each bind; the old one opens nothing.
#[test]
fn a_window_that_is_not_bound_and_its_old_key_open_nothing() {
    let mut fresh = pair();
    let window = fresh.server.memory.allocate_window(WindowKind::One, PD, 3);
    let address = fresh.server.address(OFFSET);
    assert_eq!(writes(&mut fresh, address, 1, window), Status::RemAccessErr);
    for (again, length, key, expected) in [
        (5, LENGTH as u64, 4, Status::RemAccessErr),
        (5, LENGTH as u64, 5, Status::Success),
        (0, 0, 0, Status::RemAccessErr),
    ] {
        let (mut pair, first) = opened(WindowKind::One, ALL);
        let second = Bind { length, ..bind(&pair.server, first, again) };
        assert_eq!(does(&mut pair, Work::Bind(second)), Status::Success);
        assert_eq!(writes(&mut pair, address, 1, first & !0xff | key), expected, "{again} {key}");
    }
}

/// C10-72 to C10-75, and what each type asks for.
#[test]
fn what_must_not_be_bound_is_refused() {
    let side = pair().server;
    let with = |access| side.buffer.region(SIZE as u64, Access(access), PD);
    type Change = fn(Bind) -> Bind;
    let same: Change = |bind| bind;
    let zero_based: Change = |bind| Bind { access: Access::ZERO_BASED, ..bind };
    let empty: Change = |bind| Bind { length: 0, ..bind };
    for (kind, region, change, pd, expected) in [
        (WindowKind::One, with(31), same, PD, None),
        (WindowKind::Two, with(31), zero_based, PD, None),
        (WindowKind::One, with(31), zero_based, PD, Some(Refusal::Window)),
        (WindowKind::One, with(31), empty, PD, None),
        (WindowKind::Two, with(31), empty, PD, Some(Refusal::Window)),
        (WindowKind::Two, with(15), same, PD, Some(Refusal::Access)),
        (WindowKind::Two, with(16), same, PD, Some(Refusal::Access)),
        (WindowKind::Two, with(16), |bind| Bind { access: Access::REMOTE_READ, ..bind }, PD, None),
        (WindowKind::Two, with(31), same, PD + 1, Some(Refusal::Pd)),
        (WindowKind::Two, side.buffer.region(SIZE as u64, Access(31), PD + 1), same, PD, Some(Refusal::Pd)),
        (WindowKind::Two, with(31), |bind| Bind { length: SIZE as u64, ..bind }, PD, Some(Refusal::Bounds)),
        (WindowKind::Two, with(31), |bind| Bind { length: u64::MAX, ..bind }, PD, Some(Refusal::Bounds)),
        (WindowKind::Two, with(31), |bind| Bind { address: 0, ..bind }, PD, Some(Refusal::Bounds)),
        (WindowKind::Two, with(31), |bind| Bind { region: bind.region ^ 1, ..bind }, PD, Some(Refusal::Key)),
        (WindowKind::Two, with(31), |bind| Bind { region: bind.window, ..bind }, PD, Some(Refusal::Key)),
        (WindowKind::Two, with(31), |bind| Bind { window: bind.window ^ 1, ..bind }, PD, Some(Refusal::Key)),
    ] {
        let mut memory = nic::memory::Memory::default();
        let region = memory.register(region, 1);
        let window = memory.allocate_window(kind, PD, 2);
        let asked = change(Bind { region, ..bind(&side, window, 3) });
        let bound = memory.bind(asked, 17, pd);
        assert_eq!(bound.err(), expected, "{kind:?} {asked:?}");
        // As long as a window lies on it, a region stays.
        let is_bare = expected.is_some() || asked.length == 0;
        assert_eq!(memory.deregister(region), is_bare, "{asked:?}");
        assert!(memory.is_used(PD) && memory.deallocate_window(window) && !memory.deallocate_window(window));
        assert_eq!(memory.deregister(region), !is_bare);
    }
}

/// Type 2B: one queue pair uses it, and only when it is invalid may it be bound again.
#[test]
fn a_window_of_type_two_is_for_one_queue_pair() {
    let mut pair = pair();
    let window = pair.server.memory.allocate_window(WindowKind::Two, PD, 3);
    let other = bind(&pair.server, window, 4);
    pair.server.memory.bind(other, 99, PD).unwrap();
    let again = bind(&pair.server, window & !0xff | 4, 5);
    assert_eq!(pair.server.memory.bind(again, 18, PD), Err(Refusal::Window));
    assert_eq!(pair.server.memory.invalidate(window & !0xff | 4, 18), Err(Refusal::Window));
    let address = pair.server.address(OFFSET);
    assert_eq!(writes(&mut pair, address, 1, window & !0xff | 4), Status::RemAccessErr);
    // Nor is it memory of the program's own requests.
    let mut side = self::pair().server;
    let window = side.memory.allocate_window(WindowKind::One, PD, 3);
    side.memory.bind(bind(&side, window, 4), 18, PD).unwrap();
    let mut piece = side.piece(OFFSET, 1);
    piece.lkey = window & !0xff | 4;
    side.post_send(request(1, Work::Send, piece)).unwrap();
    side.act(Qp::tick);
    assert_eq!(side.sent[0].status, Status::LocProtErr);
}

#[test]
fn a_request_that_cannot_be_done_breaks_the_queue_pair() {
    for (work, expected) in [
        (Work::LocalInvalidate(0x1234), Status::LocQpOpErr),
        (Work::Bind(bind(&pair().server, 0x1234, 1)), Status::MwBindErr),
    ] {
        let mut pair = pair();
        assert_eq!(does(&mut pair, work), expected);
        assert_eq!(pair.server.qp.state(), State::Err);
    }
}

/// What needs no packet is done when all before it is answered, and completes in its place.
#[test]
fn local_requests_keep_the_order() {
    let mut pair = pair();
    let window = pair.client.memory.allocate_window(WindowKind::Two, PD, 3);
    let key = window & !0xff | 4;
    let bound = bind(&pair.client, window, 4);
    let write = Work::Write(pair.server.remote(0));
    for (wr_id, work) in [write, Work::Bind(bound), write, Work::LocalInvalidate(key), write].into_iter().enumerate() {
        let length = if work.is_local() { 0 } else { 600 };
        pair.client.post(wr_id as u64, work, 0, length).unwrap();
    }
    pair.client.act(Qp::tick);
    assert!(pair.client.sent.is_empty(), "the WRITE before is not answered");
    assert!(pair.run(|_| {}));
    let told: Vec<_> = pair.client.sent.iter().map(|wc| (wc.wr_id, wc.status, wc.opcode as u32)).collect();
    let expected = [(0, 1), (1, 5), (2, 1), (3, 6), (4, 1)];
    assert_eq!(told, expected.map(|(wr_id, opcode)| (wr_id, Status::Success, opcode)));
    // It was valid in between, and may be bound again.
    assert_eq!(pair.client.memory.bind(Bind { window: key, ..bound }, 17, PD), Ok(()));
}

/// 9.4: the message arrives, its completion says which key, and the key opens nothing any more. A lost ACK changes nothing.
#[test]
fn a_send_with_invalidate_makes_the_key_invalid() {
    for length in [10, 600] {
        let (mut pair, key) = opened(WindowKind::Two, ALL);
        let address = pair.server.address(OFFSET);
        assert_eq!(writes(&mut pair, address, 1, key), Status::Success);
        pair.server.post_receive(6, 0, SIZE).unwrap();
        let message = request(3, Work::SendInvalidate(key), pair.client.piece(0, length));
        pair.client.post_send(SendRequest { solicited: true, ..message }).unwrap();
        // The first answers are lost: it comes again.
        for _ in 0..2 {
            pair.client.sends().into_iter().for_each(|packet| pair.server.receive(packet));
            pair.server.take_out();
            pair.goes_on(pair.client.qp.deadline().unwrap());
        }
        assert!(pair.run(|_| {}));
        let received = pair.server.received.last().unwrap();
        assert_eq!((received.wr_id, received.status, received.invalidated), (6, Status::Success, Some(key)));
        assert!(received.solicited && received.immediate.is_none() && pair.server.received.len() == 1);
        assert_eq!(pair.client.sent.last().unwrap().status, Status::Success);
        assert_eq!(writes(&mut pair, address, 1, key), Status::RemAccessErr);
    }
}

/// Class J in 9.9.3: the bytes are placed and acknowledged; then the receive fails, and the queue pair with it. So does rdma_rxe
/// (Linux 6.12) with the key of a registered region, too, which only a program can take back.
#[test]
fn a_key_that_cannot_be_made_invalid_breaks_the_receiver() {
    let mut side = pair().server;
    side.post_receive(6, 0, 100).unwrap();
    let opcode = opcode_of(Service::Rc, Operation::Send, Part::Only, Some(&roce::headers::ieth::HEADER));
    assert_eq!(opcode, 0x17);
    let (psn, invalidate) = (Psn::new(5), side.buffer.key);
    side.receive(Packet { opcode, psn, invalidate, ack_request: true, payload: vec![8; 9], ..Packet::default() });
    assert!(matches!(side.take_out()[0].aeth.verdict(), Syndrome::Ack { .. }));
    assert_eq!((side.received[0].wr_id, side.received[0].status), (6, Status::RemInvReqErr));
    assert_eq!((side.bytes(0, 9), side.qp.state()), (vec![8; 9], State::Err));
}
