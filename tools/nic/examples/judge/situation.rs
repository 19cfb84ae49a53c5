//! Situations: one queue pair, packets that the judge gives it, and what is wanted of it then.

use crate::end::{in_rts, listed, NUMBER, TIME};
use nic::completion::Status;
use nic::packet::{code, opcode_of, Aeth, AtomicEth, Packet, Reth};
use nic::psn::Psn;
use nic::work::{Remote, Work};
use pair::end::shown;
use pair::{attributes, End};
use roce::aeth::Syndrome;
use roce::opcode::{Operation, Part, Service};
use std::time::Duration;

/// Memory of a peer that is not there.
pub const ANYWHERE: Remote = Remote { address: 0, rkey: 1 };

/// A requester that has posted these, of one packet each, and has sent them: PSNs 0, 1, 2 …
pub fn requester(works: &[Work], retries: u8, rnr_retries: u8) -> End {
    let mut side = in_rts(attributes(0, 0, retries, rnr_retries));
    post(&mut side, works, 0);
    side.shows();
    side
}

pub fn post(side: &mut End, works: &[Work], first: u64) {
    for (number, work) in (first..).zip(works) {
        let _ = side.post(number, *work, 0, 8);
    }
}

/// Looks at what a side sends now.
pub fn expect(side: &mut End, when: &str, wanted: &[&str]) -> Result<(), String> {
    let yours = side.shows();
    if yours == wanted {
        return Ok(());
    }
    let wanted: Vec<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
    Err(format!("{when}: expected {}. Yours: {}.{}", listed(&wanted), listed(&yours), side.decided()))
}

/// Looks at the last answer. Which NAK it is, lesson 19 says.
pub fn answered(side: &End, when: &str, wanted: &str) -> Result<(), String> {
    let answer = side.out.iter().map(shown).next_back().unwrap_or_default();
    if answer.starts_with(wanted) {
        return Ok(());
    }
    let yours = if answer.is_empty() { "nothing" } else { &answer };
    Err(format!("{when}: the answer is {wanted}. Yours: {yours}.{}", side.decided()))
}

/// Looks how the first request has ended.
pub fn ended(side: &End, when: &str, wanted: Option<Status>) -> Result<(), String> {
    let yours = side.sent.first().map(|completion| completion.status);
    let name = |status: Option<Status>| status.map_or("nothing yet", Status::name);
    if yours == wanted {
        return Ok(());
    }
    Err(format!("{when}: expected {}. Yours: {}.{}", name(wanted), name(yours), side.decided()))
}

/// Looks when it wants to be called again.
pub fn due(side: &End, when: &str, wanted: Option<Duration>) -> Result<(), String> {
    let name = |due: Option<Duration>| due.map_or("never".to_owned(), |due| format!("in {due:?}"));
    let yours = side.due();
    if yours == wanted {
        return Ok(());
    }
    Err(format!("{when}: the next thing should be due {}. Yours: {}.", name(wanted), name(yours)))
}

/// One packet of a request without payload, as a peer sends it.
pub fn request(operation: Operation, part: Part, psn: u32, reth: Reth) -> Packet {
    let opcode = opcode_of(Service::Rc, operation, part, None);
    Packet { opcode, ack_request: true, dest_qp: NUMBER, psn: Psn::new(psn), reth, ..Packet::default() }
}

/// Which part of a message each of its packets is.
pub fn parts(packets: usize) -> impl Iterator<Item = Part> {
    (1..=packets).map(move |nth| match nth {
        1 if packets == 1 => Part::Only,
        1 => Part::First,
        _ if nth == packets => Part::Last,
        _ => Part::Middle,
    })
}

/// The response to a READ of eight bytes.
pub fn answer_to_read(psn: u32) -> Packet {
    let aeth = Aeth { syndrome: Syndrome::ACK.byte(), msn: 1 };
    let (opcode, psn) = (code::READ_RESPONSE_ONLY, Psn::new(psn));
    Packet { opcode, dest_qp: NUMBER, psn, aeth, payload: vec![0; 8], ..Packet::default() }
}

/// An atomic operation, as a peer asks for it.
pub fn atomic_request(
    opcode: u8,
    psn: u32,
    Remote { address: va, rkey }: Remote,
    swap_add: u64,
    compare: u64,
) -> Packet {
    let atomic = AtomicEth { va, rkey, swap_add, compare };
    Packet { opcode, dest_qp: NUMBER, psn: Psn::new(psn), atomic, ..Packet::default() }
}

pub fn fetch_add(psn: u32, remote: Remote) -> Packet {
    atomic_request(code::FETCH_ADD, psn, remote, 1, 0)
}

/// Looks whether the timer of before still runs, half of whose time is over. `progress` ends it, in whatever state that hole is.
pub fn goes_on(side: &End, when: &str) -> Result<(), String> {
    if side.due() != Some(TIME / 2) {
        return Ok(());
    }
    Err(format!(
        "{when}: that's `progress`, so the old timer means nothing any more. Yours goes on: due in {:?}.",
        TIME / 2
    ))
}
