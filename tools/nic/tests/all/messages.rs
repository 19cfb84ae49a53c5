//! Messages as a responder takes them, one rule a test: how long they may be, whose memory a receive names, who is woken.

use crate::pair::{attributes, request, up, Side, PD};
use nic::memory::{Access, Memory, Sge};
use nic::outside::{AsyncEvent, Ctx, Effect};
use nic::packet::{Packet, Reth};
use nic::psn::Psn;
use nic::qp::{Attributes, Limits, Qp, Settings, State};
use nic::work::{ReceiveQueue, ReceiveRequest, Remote, SendRequest, Work};
use roce::aeth::{Nak, Syndrome};
use std::time::Instant;

const SEND_FIRST: u8 = 0x00;
const SEND_MIDDLE: u8 = 0x01;
const SEND_ONLY: u8 = 0x04;
const WRITE_FIRST: u8 = 0x06;
const MTU: u32 = 4096;

fn responder(memory: &Memory, uses_shared: bool) -> Qp {
    let limits = Limits { send: 4, receive: 4, send_sge: 4, receive_sge: 4, inline: 64 };
    let mut qp = Qp::new(Settings { number: 17, pd: PD, limits, signal_all: true, uses_shared });
    up(&mut qp, memory, Attributes { access: Access(15), dest_qp: 18, mtu: MTU, ..attributes(0, 0, 7, 7) });
    qp
}

/// More address space than a message may be long, every 2 MiB of it the same memory.
fn long_memory(length: usize) -> *mut u8 {
    const PART: usize = 2 << 20;
    // SAFETY: the parts are put into address space that was reserved for them, and nobody gives it back.
    unsafe {
        let file = libc::memfd_create(b"parts\0".as_ptr().cast(), 0);
        assert!(file >= 0 && libc::ftruncate(file, PART as i64) == 0);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let start = libc::mmap(std::ptr::null_mut(), length, libc::PROT_NONE, flags, -1, 0).cast::<u8>();
        for at in (0..length).step_by(PART) {
            let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_FIXED);
            assert_ne!(libc::mmap(start.add(at).cast(), PART, access, flags, file, 0), libc::MAP_FAILED);
        }
        start
    }
}

fn naks(effects: &[Effect]) -> Vec<u8> {
    let nak = |effect: &Effect| match effect {
        Effect::Send(packet) if packet.aeth.syndrome != Syndrome::ACK.byte() => Some(packet.aeth.syndrome),
        _ => None,
    };
    effects.iter().filter_map(nak).collect()
}

/// A WRITE says at its beginning how long it will be.
#[test]
fn a_write_longer_than_a_message_is_refused_at_once() {
    let mut memory = Memory::default();
    let length = (4 << 30) + (2 << 20);
    let start = long_memory(length);
    let rkey = memory.register(PD, start, length as u64, Access(15), 7);
    for (length, refused) in [(Qp::LONGEST, false), (Qp::LONGEST + 1, true), (u32::MAX, true)] {
        let mut qp = responder(&memory, false);
        let reth = Reth { va: start as u64, rkey, length };
        let payload = vec![1; MTU as usize];
        let mut out = Ctx::new(Instant::now(), &memory);
        qp.receive(Packet { opcode: WRITE_FIRST, dest_qp: 17, reth, payload, ..Packet::default() }, &mut out);
        assert_eq!(
            naks(&out.effects) == [Syndrome::Nak(Nak::InvalidRequest).byte()],
            refused,
            "{length}: {:?}",
            out.effects
        );
        assert_eq!(qp.state() == State::Err, refused, "{length}");
    }
}

/// A SEND does not; but there is an end, too, however much the receive has room for.
#[test]
fn a_send_longer_than_a_message_is_refused_where_it_becomes_too_long() {
    let mut memory = Memory::default();
    let length = Qp::LONGEST as usize + (2 << 20);
    let start = long_memory(length);
    let lkey = memory.register(PD, start, length as u64, Access(1), 7);
    let mut qp = responder(&memory, false);
    let piece = Sge { address: start as u64, length: length as u32, lkey };
    let mut out = Ctx::new(Instant::now(), &memory);
    qp.post_receive(ReceiveRequest { wr_id: 1, sge: vec![piece, piece] }, &mut out).unwrap();
    let count = Qp::LONGEST / MTU;
    for n in 0..=count {
        let opcode = if n == 0 { SEND_FIRST } else { SEND_MIDDLE };
        let payload = vec![1; MTU as usize];
        qp.receive(Packet { opcode, dest_qp: 17, psn: Psn::new(n), payload, ..Packet::default() }, &mut out);
        assert_eq!(qp.state() == State::Err, n == count, "packet {n} of {count}: {:?}", out.effects);
    }
    assert_eq!(naks(&out.effects), [Syndrome::Nak(Nak::InvalidRequest).byte()]);
    assert!(out.effects.contains(&Effect::Raise(AsyncEvent::QpRequestError)), "{:?}", out.effects);
}

/// A receive of a shared queue names memory of that queue's protection domain, not of the queue pair's (10.2.9).
#[test]
fn a_shared_receive_is_checked_against_its_own_domain() {
    const QUEUES: u32 = PD + 1;
    for (of_memory, arrives) in [(QUEUES, true), (PD, false)] {
        let mut memory = Memory::default();
        let mut buffer = [0u64; 8];
        let (start, length) = (buffer.as_mut_ptr().cast::<u8>(), 64);
        let lkey = memory.register(of_memory, start, 64, Access(1), 7);
        let mut qp = responder(&memory, true);
        let mut shared = ReceiveQueue::new(4, QUEUES);
        shared.post(ReceiveRequest { wr_id: 5, sge: vec![Sge { address: start as u64, length, lkey }] });
        let mut out = Ctx::new(Instant::now(), &memory);
        out.shared = Some(&mut shared);
        qp.receive(Packet { opcode: SEND_ONLY, dest_qp: 17, payload: vec![1; 8], ..Packet::default() }, &mut out);
        assert_eq!(qp.state() == State::Rts, arrives, "{:?}", out.effects);
    }
}

/// Whoever has nothing to complete is not woken: SE belongs to SENDs, and to WRITEs with immediate (9.2).
#[test]
fn a_plain_write_carries_no_solicited_event() {
    for (is_send, immediate, expected) in [(true, None, true), (false, Some(7), true), (false, None, false)] {
        let (mut side, now) = (Side::new(17, 18, 4096, attributes(0, 0, 7, 7)), Instant::now());
        let work = if is_send { Work::Send } else { Work::Write(Remote { address: 1, rkey: 1 }) };
        let request = SendRequest { immediate, solicited: true, ..request(1, work, side.piece(0, 8)) };
        side.post_send(now, request);
        side.act(now, Qp::tick);
        assert_eq!(side.take_out()[0].solicited, expected, "{work:?} {immediate:?}");
    }
}
