//! Messages as a responder takes them, one rule a test: how long they may be, who is woken.

use crate::pair::{attributes, end, request, Attributes, End, PD};
use nic::memory::Access;
use nic::outside::AsyncEvent;
use nic::packet::{Packet, Reth};
use nic::psn::Psn;
use nic::qp::{Qp, State};
use nic::work::{ReceiveRequest, Remote, SendRequest, Work};
use roce::aeth::{Nak, Syndrome};

const SEND_FIRST: u8 = 0x00;
const SEND_MIDDLE: u8 = 0x01;
const WRITE_FIRST: u8 = 0x06;
const MTU: u32 = 4096;

fn responder(size: u32) -> End {
    end(17, 18, size as usize, Attributes { mtu: MTU, ..attributes(0, 0, 7, 7) })
}

/// The PSNs and syndromes of what it has answered.
fn answers(side: &mut End) -> Vec<(u32, Syndrome)> {
    side.take_out().iter().map(|packet| (packet.psn.get(), packet.aeth.verdict())).collect()
}

/// A WRITE says at its beginning how long it will be. The region is longer than its memory: only the beginning is touched.
#[test]
fn a_write_longer_than_a_message_is_refused_at_once() {
    for (length, refused) in [(Qp::LONGEST, false), (Qp::LONGEST + 1, true), (u32::MAX, true)] {
        let mut side = responder(MTU);
        let va = side.address(0);
        let rkey = side.memory.register(side.buffer.region(5 << 30, Access(15), PD), 7);
        let (reth, payload) = (Reth { va, rkey, length }, vec![1; MTU as usize]);
        side.receive(Packet { opcode: WRITE_FIRST, reth, payload, ..Packet::default() });
        let expected = if refused { vec![(0, Syndrome::Nak(Nak::InvalidRequest))] } else { vec![] };
        assert_eq!((answers(&mut side), side.qp.state() == State::Err), (expected, refused), "{length}");
    }
}

/// A SEND does not; but there is an end, too, however much the receive has room for: here the same memory, again and again.
#[test]
fn a_send_longer_than_a_message_is_refused_where_it_becomes_too_long() {
    const PIECE: u32 = 16 << 20;
    let mut side = responder(PIECE);
    let sge = vec![side.piece(0, PIECE as usize); (Qp::LONGEST / PIECE) as usize + 1];
    side.act(|qp, out| qp.post_receive(ReceiveRequest { wr_id: 1, sge }, out)).unwrap();
    let count = Qp::LONGEST / MTU;
    for n in 0..=count {
        assert_eq!((side.qp.state(), answers(&mut side)), (State::Rts, vec![]), "packet {n} of {count}");
        let (opcode, psn) = (if n == 0 { SEND_FIRST } else { SEND_MIDDLE }, Psn::new(n));
        side.receive(Packet { opcode, psn, payload: vec![1; MTU as usize], ..Packet::default() });
    }
    assert_eq!(answers(&mut side), [(count, Syndrome::Nak(Nak::InvalidRequest))]);
    assert_eq!((side.qp.state(), side.raised), (State::Err, vec![AsyncEvent::QpRequestError]));
}

/// Whoever has nothing to complete is not woken: SE belongs to SENDs, and to WRITEs with immediate (9.2).
#[test]
fn a_plain_write_carries_no_solicited_event() {
    let write = Work::Write(Remote { address: 1, rkey: 1 });
    for (work, immediate, expected) in [(Work::Send, None, true), (write, Some(7), true), (write, None, false)] {
        let mut side = responder(MTU);
        side.post_send(SendRequest { immediate, solicited: true, ..request(1, work, side.piece(0, 8)) }).unwrap();
        assert_eq!(side.sends()[0].solicited, expected, "{work:?} {immediate:?}");
    }
}
