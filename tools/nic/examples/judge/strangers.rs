//! Lesson 19: what others rely on when something goes wrong: who is told what, in which order.

use crate::end::{in_rts, listed, ready};
use crate::situation::{ended, expect, post, request, requester, ANYWHERE};
use crate::Verdict;
use nic::completion::{Completion, Status};
use nic::memory::Sge;
use nic::outside::AsyncEvent;
use nic::packet::{opcode_of, Packet, Reth};
use nic::qp::{mask, Attributes, State};
use nic::work::{ReceiveRequest, Work};
use pair::{attributes, End, MTU};
use roce::aeth::{Nak, Syndrome};
use roce::headers::ieth;
use roce::opcode::{Operation, Part, Service};
use std::ops::Range;

/// A key that opens nothing.
pub const NO_KEY: u32 = 0xffff_ff00;

/// What is wrong with a request, and how the NIC must answer it.
struct Wrong {
    what: &'static str,
    /// The receive that is posted: its room, and whether its key is good.
    receive: Option<(u32, bool)>,
    packet: Packet,
    answer: &'static str,
    event: Option<AsyncEvent>,
    completes: Option<Status>,
    state: State,
}

/// What the requester is told, and what the program.
pub fn verdict() -> Verdict {
    let all = wrong_requests();
    for wrong in &all {
        let mut side = in_rts(attributes(0, 0, 7, 7));
        if let Some((length, is_good)) = wrong.receive {
            let lkey = if is_good { side.remote(0).rkey } else { NO_KEY };
            let sge = vec![Sge { lkey, length, address: side.remote(0).address }];
            // It has room for one.
            let _ = side.act(|qp, ctx| qp.post_receive(ReceiveRequest { wr_id: 1, sge }, ctx));
        }
        side.receive(wrong.packet.clone());
        expect(&mut side, wrong.what, &[wrong.answer])?;
        told(wrong, "the program is told", wrong.event, side.raised.first().copied())?;
        let completes = side.received.first().map(|completion| completion.status);
        told(wrong, "the receive completes with", wrong.completes, completes)?;
        told(wrong, "the state is", Some(wrong.state), Some(side.qp.state()))?;
    }
    Ok(format!("{} faults: each gets its own answer, and the program that can mend it hears of it.", all.len()))
}

fn told<T: PartialEq + std::fmt::Debug>(
    wrong: &Wrong,
    what: &str,
    wanted: Option<T>,
    yours: Option<T>,
) -> Result<(), String> {
    let name = |told: &Option<T>| told.as_ref().map_or("nothing".to_owned(), |told| format!("{told:?}"));
    if wanted == yours {
        return Ok(());
    }
    Err(format!("{}: {what}: expected {}. Yours: {}.", wrong.what, name(&wanted), name(&yours)))
}

fn wrong_requests() -> Vec<Wrong> {
    let send = Packet { payload: vec![1; 8], ..request(Operation::Send, Part::Only, 0, Reth::default()) };
    let reth = Reth { va: 0, rkey: NO_KEY, length: 8 };
    let write = Packet { payload: vec![1; 8], ..request(Operation::Write, Part::Only, 0, reth) };
    let short = Packet { payload: vec![1; 7], ..request(Operation::Send, Part::First, 0, Reth::default()) };
    let longer = Packet { reth: Reth { length: 4, ..reth }, ..write.clone() };
    let middle = request(Operation::Send, Part::Middle, 0, Reth::default());
    let middle = Packet { payload: vec![1; MTU as usize], ..middle };
    let opcode = opcode_of(Service::Rc, Operation::Send, Part::Only, Some(&ieth::HEADER));
    let invalidates = Packet { opcode, invalidate: NO_KEY, ..send.clone() };
    let (answer, event, completes, state) = ("NAK, invalid request, PSN 0", None, None, State::Err);
    let of = |what, receive, packet| Wrong { what, receive, packet, answer, event, completes, state };
    vec![
        Wrong {
            answer: "RNR NAK, wait 0.64 ms, PSN 0",
            state: State::Rts,
            ..of("A SEND came, and no receive is posted", None, send.clone())
        },
        Wrong {
            answer: "NAK, remote access error, PSN 0",
            event: Some(AsyncEvent::QpAccessError),
            ..of("A WRITE came with a key that opens nothing", None, write)
        },
        Wrong {
            event: Some(AsyncEvent::QpRequestError),
            ..of("The middle of a SEND came, without its beginning", None, middle)
        },
        Wrong {
            event: Some(AsyncEvent::QpRequestError),
            ..of("The first packet of a SEND came, and it is not full", None, short)
        },
        Wrong {
            event: Some(AsyncEvent::QpRequestError),
            ..of("A WRITE came with more bytes than it has announced", None, longer)
        },
        Wrong {
            completes: Some(Status::LocLenErr),
            ..of("A SEND of 8 bytes came for a receive of 4", Some((4, true)), send.clone())
        },
        Wrong {
            answer: "NAK, remote operational error, PSN 0",
            completes: Some(Status::LocProtErr),
            ..of("A SEND came for a receive whose own key opens nothing", Some((8, false)), send)
        },
        Wrong {
            answer: "ACK, PSN 0",
            completes: Some(Status::RemInvReqErr),
            ..of("A SEND with invalidate came, and names a key that doesn't exist", Some((8, true)), invalidates)
        },
    ]
}

/// A request of ours is refused.
pub fn refused() -> Verdict {
    let writes = [Work::Write(ANYWHERE), Work::Write(ANYWHERE)];
    for (nak, status) in [
        (Nak::InvalidRequest, Status::RemInvReqErr),
        (Nak::RemoteAccess, Status::RemAccessErr),
        (Nak::RemoteOperational, Status::RemOpErr),
    ] {
        let mut side = requester(&writes, 7, 7);
        side.acknowledge(0, Syndrome::Nak(nak));
        let when = format!("PSN 0 is refused: {}", Syndrome::Nak(nak));
        ended(&side, &when, Some(status))?;
        expect(&mut side, &when, &[])?;
        let mut side = requester(&writes, 7, 7);
        side.acknowledge(1, Syndrome::Nak(nak));
        ended(&side, &format!("PSN 1 is refused: {}; PSN 0", Syndrome::Nak(nak)), Some(Status::Success))?;
    }
    let mut side = requester(&writes, 7, 7);
    side.acknowledge(0, Syndrome::Nak(Nak::PsnSequence));
    let all = ["RDMA Write Only, PSN 0", "RDMA Write Only, PSN 1"];
    expect(&mut side, "PSN 0 is missing, and nothing refused", &all)?;
    side.acknowledge(0, Syndrome::Nak(Nak::PsnSequence));
    expect(&mut side, "PSN 0 is missing still: it was lost again", &all)?;
    let mut side = requester(&writes, 1, 7);
    (0..2).for_each(|_| side.acknowledge(0, Syndrome::Nak(Nak::PsnSequence)));
    ended(&side, "retry_cnt is 1, and PSN 0 is missing for the second time", Some(Status::RetryExcErr))?;
    let mut side = requester(&[Work::Read(ANYWHERE), Work::Write(ANYWHERE)], 7, 7);
    side.acknowledge(1, Syndrome::Nak(Nak::RemoteAccess));
    let all = ["RDMA Read Request, PSN 0", "RDMA Write Only, PSN 1"];
    expect(&mut side, "PSN 1 is refused, and the READ of PSN 0 is not answered: that comes first", &all)?;
    Ok("Each refusal fails the request that it names, with its status.".to_owned())
}

/// Why a queue pair goes to ERR, and how its first send and its first receive end then. The others are flushed.
struct Cause {
    when: &'static str,
    act: fn(&mut End),
    first_send: Status,
    first_receive: Status,
}

/// The queue pair goes to ERR: everything comes back.
pub fn flush() -> Verdict {
    let flushed = Status::WrFlushErr;
    let when = "A WRITE is refused";
    comes_back(&Cause { when, act: refuse_first, first_send: Status::RemAccessErr, first_receive: flushed })?;
    let when = "A SEND came that is longer than its receive";
    comes_back(&Cause { when, act: bring_too_much, first_send: flushed, first_receive: Status::LocLenErr })?;
    let when = "The program moves the queue pair to ERR";
    comes_back(&Cause { when, act: move_to_err, first_send: flushed, first_receive: flushed })?;
    let mut side = ready(Service::Rc, attributes(0, 0, 7, 7), true);
    move_to_err(&mut side);
    if !side.raised.contains(&AsyncEvent::LastWqeReached) {
        let when = "A queue pair with a shared receive queue is in ERR";
        return Err(format!("{when}: expected {:?}. Yours: nothing.", AsyncEvent::LastWqeReached));
    }
    let mut side = in_rts(attributes(0, 0, 7, 7));
    move_to_err(&mut side);
    if let Some(event) = side.raised.first() {
        return Err(format!("A queue pair with receives of its own is in ERR: nothing is told. Yours: {event:?}."));
    }
    Ok("The cause comes first, then everything else comes back, in order.".to_owned())
}

/// Five sends wait, of which three have been sent; and three receives, of which one is half filled.
fn comes_back(cause: &Cause) -> Result<(), String> {
    let mut side = requester(&[Work::Write(ANYWHERE); 3], 7, 7);
    for wr_id in 10..13 {
        let _ = side.post_receive(wr_id, 0, MTU as usize);
    }
    let begins = request(Operation::Send, Part::First, 0, Reth::default());
    side.receive(Packet { payload: vec![1; MTU as usize], ..begins });
    post(&mut side, &[Work::Write(ANYWHERE); 2], 3);
    (cause.act)(&mut side);
    in_order(cause.when, "sends", &side.sent, 0..5, cause.first_send)?;
    in_order(cause.when, "receives", &side.received, 10..13, cause.first_receive)
}

fn refuse_first(side: &mut End) {
    side.acknowledge(0, Syndrome::Nak(Nak::RemoteAccess));
}

fn bring_too_much(side: &mut End) {
    let ends = request(Operation::Send, Part::Last, 1, Reth::default());
    side.receive(Packet { payload: vec![1; 8], ..ends });
}

fn move_to_err(side: &mut End) {
    // Every state may go to ERR.
    let _ = side.act(|qp, ctx| qp.modify(mask::STATE, State::Err, &Attributes::default(), ctx));
}

/// Whether all came back: the first one with its status, the others flushed.
fn in_order(when: &str, what: &str, came: &[Completion], wr_ids: Range<u64>, first: Status) -> Result<(), String> {
    let shown = |wr_id: u64, status: Status| format!("wr_id {wr_id} {}", status.name());
    let status = |wr_id: u64| if wr_id == wr_ids.start { first } else { Status::WrFlushErr };
    let wanted: Vec<String> = wr_ids.clone().map(|wr_id| shown(wr_id, status(wr_id))).collect();
    let yours: Vec<String> = came.iter().map(|completion| shown(completion.wr_id, completion.status)).collect();
    if yours == wanted {
        return Ok(());
    }
    Err(format!("{when}. The {what}: expected\n  {}. Yours:\n  {}.", listed(&wanted), listed(&yours)))
}
