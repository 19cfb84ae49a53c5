//! Lesson 18: what the network loses comes all the same, and nothing is done twice. First single situations: one queue pair, and
//! packets that the judge gives it. Then two of them, and a wire.

use crate::contract::{holds, Case, Op, Random};
use crate::end::{in_rts, ALL, SIZE, TIME};
use crate::situation::{answer_to_read, due, ended, expect, fetch_add, post, request, requester, ANYWHERE};
use crate::Verdict;
use nic::completion::Status;
use nic::memory::Sge;
use nic::packet::{Packet, Reth};
use nic::work::Work;
use pair::{attributes, End, MTU, PD};
use roce::aeth::{Nak, Syndrome};
use roce::opcode::{Operation, Part};
use std::time::Duration;

const GAP: Syndrome = Syndrome::Nak(Nak::PsnSequence);
/// The code of 81.92 ms, and that: longer than the time-out.
const NOT_READY: u8 = 26;
const WAIT: Duration = Duration::from_micros(81_920);
/// The same, shorter than the time-out.
const SOON: u8 = 12;
const SHORTER: Duration = Duration::from_micros(640);
/// The number of RNR retries that means "for ever".
const FOR_EVER: u8 = 7;
/// So many wires are tried.
const WIRES: u64 = 1_000;
/// Packets of a READ that is not answered at once: others may wait behind it.
const LONG: u32 = 200;

/// Sends from the oldest unanswered packet on: once for all signs of one loss.
pub fn go_back() -> Verdict {
    let works = [Work::Read(ANYWHERE), Work::Write(ANYWHERE), Work::Write(ANYWHERE)];
    let all = ["RDMA Read Request, PSN 0", "RDMA Write Only, PSN 1", "RDMA Write Only, PSN 2"];
    let mut side = requester(&works, 7, 7);
    side.acknowledge(1, Syndrome::ACK);
    expect(&mut side, "The WRITE of PSN 1 is acknowledged, the READ before it is not answered", &all)?;
    side.acknowledge(2, Syndrome::ACK);
    expect(&mut side, "The ACK of PSN 2 is a sign of the same loss", &[])?;
    let mut side = requester(&[Work::Send, Work::Read(ANYWHERE)], 7, 7);
    side.acknowledge(0, Syndrome::ACK);
    let when = "A SEND has PSN 0, a READ PSN 1. The ACK of PSN 0 came: it says nothing of the READ, which is under way";
    expect(&mut side, when, &[])?;
    let mut side = requester(&[Work::Send, Work::Read(ANYWHERE), Work::Send], 7, 7);
    side.receive(answer_to_read(1));
    expect(&mut side, "A SEND has PSN 0, a READ PSN 1, and the READ's response came: nothing is lost", &[])?;
    in_the_middle()?;
    part_of_the_way()?;
    Ok("What was lost is sent again, with everything after it, and once.".to_owned())
}

/// A part of a message was answered: it goes back to the packet that was not.
fn in_the_middle() -> Result<(), String> {
    let mut side = in_rts(attributes(0, 0, 7, 7));
    let _ = side.post(0, Work::Send, 0, 600);
    side.shows();
    side.acknowledge(1, GAP);
    let when = "A SEND has the PSNs 0 to 2, and a NAK of PSN 1 came: PSN 0 has arrived";
    expect(&mut side, when, &["Send Middle, PSN 1", "Send Last, PSN 2"])
}

/// It goes back, and doesn't get as far as it was: the memory of the second SEND has gone. An answer to what was sent before counts.
fn part_of_the_way() -> Result<(), String> {
    let mut side = requester(&[Work::Send], 7, 7);
    let lkey = side.register(ALL, SIZE as u64, PD);
    let _ = side.post_send(pair::end::request(1, Work::Send, Sge { lkey, ..side.piece(0, 8) }));
    side.shows();
    side.memory.deregister(lkey);
    side.acknowledge(0, GAP);
    let when = "Two SENDs are sent, the program deregisters the second one's memory, and a NAK of PSN 0 came";
    expect(&mut side, when, &["Send Only, PSN 0"])?;
    side.acknowledge(1, Syndrome::ACK);
    match side.sent.len() {
        2 => Ok(()),
        yours => Err(format!(
            "{when}. Then comes a late ACK of PSN 1, which was sent before: both are done. Yours: {yours}. Did `next` go back with \
             the packet that was sent again?{}",
            side.decided()
        )),
    }
}

/// Goes back as often as was agreed on, and no more.
pub fn try_again() -> Verdict {
    for retries in [3, 1, 0] {
        let mut side = requester(&[Work::Send, Work::Send], retries, 7);
        for attempt in 1..=retries {
            side.acknowledge(0, GAP);
            let when = format!("retry_cnt is {retries}; NAK {attempt} of PSN 0 came");
            expect(&mut side, &when, &["Send Only, PSN 0", "Send Only, PSN 1"])?;
            ended(&side, &when, None)?;
        }
        side.acknowledge(0, GAP);
        let when = format!("retry_cnt is {retries}; NAK {} of PSN 0 came", retries + 1);
        ended(&side, &when, Some(Status::RetryExcErr))?;
        expect(&mut side, &when, &[])?;
    }
    Ok("It tries again as often as was agreed on; then the request fails.".to_owned())
}

/// No answer comes.
pub fn timers() -> Verdict {
    let moment = Duration::from_nanos(1);
    let mut side = requester(&[Work::Send, Work::Send], 2, 7);
    due(&side, "Two SENDs are sent", Some(TIME))?;
    side.wait(TIME - moment);
    expect(&mut side, "The time is not up", &[])?;
    side.wait(moment);
    expect(&mut side, "No answer came in time", &["Send Only, PSN 0", "Send Only, PSN 1"])?;
    due(&side, "They are sent again", Some(TIME))?;
    side.wait(TIME);
    expect(&mut side, "No answer came to the second attempt", &["Send Only, PSN 0", "Send Only, PSN 1"])?;
    ended(&side, "One attempt is left", None)?;
    side.wait(TIME);
    ended(&side, "No attempt is left, and the time is up", Some(Status::RetryExcErr))?;

    peer_not_ready()?;
    Ok("What is not answered in time is sent again, and at last it fails.".to_owned())
}

/// The peer has no receive: nothing is sent before the wait is over, and then something is. What that is, hole 5 says.
fn peer_not_ready() -> Result<(), String> {
    let moment = Duration::from_nanos(1);
    let mut side = requester(&[Work::Send], 7, 7);
    side.acknowledge(0, Syndrome::rnr_nak(SOON));
    post(&mut side, &[Work::Send], 1);
    let when = format!("An RNR NAK of PSN 0 came, wait {SHORTER:?}, and one more SEND is posted");
    expect(&mut side, &format!("{when}. No time has passed"), &[])?;
    side.wait(SHORTER - moment);
    expect(&mut side, &format!("{when}. The wait is not over"), &[])?;
    side.wait(moment);
    if side.shows().is_empty() {
        return Err(format!("{when}. The wait is over: it sends. Yours: nothing.{}", side.decided()));
    }
    Ok(())
}

/// Something was answered.
pub fn progress() -> Verdict {
    let half = TIME / 2;
    let mut side = requester(&[Work::Send, Work::Send], 2, 7);
    side.wait(half);
    side.acknowledge(0, Syndrome::ACK);
    due(&side, "PSN 0 is acknowledged, PSN 1 is not", Some(TIME))?;
    side.wait(half);
    side.acknowledge(1, Syndrome::ACK);
    due(&side, "All is acknowledged", None)?;

    let mut side = requester(&[Work::Read(ANYWHERE), Work::Write(ANYWHERE)], 7, 7);
    side.acknowledge(1, Syndrome::ACK);
    side.shows();
    side.receive(answer_to_read(0));
    post(&mut side, &[Work::Read(ANYWHERE), Work::Write(ANYWHERE)], 2);
    side.shows();
    side.acknowledge(3, Syndrome::ACK);
    let again = ["RDMA Read Request, PSN 2", "RDMA Write Only, PSN 3"];
    expect(&mut side, "One loss was mended; the ACK of PSN 3 is a sign of another one, PSN 2", &again)?;

    let mut side = requester(&[Work::Send, Work::Send], 1, 7);
    for (psn, again) in [(0, &["Send Only, PSN 0", "Send Only, PSN 1"][..]), (1, &["Send Only, PSN 1"])] {
        side.acknowledge(psn, GAP);
        expect(&mut side, &format!("retry_cnt is 1; the first NAK of PSN {psn} came"), again)?;
        side.acknowledge(psn, Syndrome::ACK);
    }
    not_before_unacked()?;
    rnr_attempts()?;
    Ok("Every answer starts attempts and timer afresh.".to_owned())
}

/// It has gone back, and before it may send again what it wants to send is answered.
fn not_before_unacked() -> Result<(), String> {
    let mut side = requester(&[Work::Send, Work::Send], 7, 7);
    side.acknowledge(0, Syndrome::rnr_nak(SOON));
    side.acknowledge(0, GAP);
    side.acknowledge(0, Syndrome::ACK);
    side.wait(SHORTER);
    let when = "An RNR NAK of PSN 0 came, a NAK of PSN 0, and during the wait a late ACK of PSN 0. The wait is over";
    expect(&mut side, when, &["Send Only, PSN 1"])
}

/// Attempts are counted from the last answer on: the second of two SENDs has as many as the first one. While `not_ready` is still a hole,
/// it says how many are left.
fn rnr_attempts() -> Result<(), String> {
    for rnr_retries in [1, 2] {
        let mut side = requester(&[Work::Send, Work::Send], 7, rnr_retries);
        let mut left = Vec::new();
        for psn in [0, 1] {
            side.acknowledge(psn, Syndrome::rnr_nak(SOON));
            let said = side.said.iter().rev().find_map(|said| said.rsplit_once("; ")).map(|(_, left)| left.to_owned());
            left.push(said.filter(|left| left.ends_with("attempts left")));
            side.wait(SHORTER);
            side.shows();
            side.acknowledge(psn, Syndrome::ACK);
        }
        let is_whole = side.sent.iter().all(|completion| completion.status == Status::Success);
        if !is_whole || left[0] != left[1] {
            return Err(format!(
                "rnr_retry is {rnr_retries}. An RNR NAK of PSN 0 came, then its ACK, then an RNR NAK of PSN 1: that has {rnr_retries} of its \
                 own. Yours has fewer."
            ));
        }
    }
    Ok(())
}

/// The peer had no receive.
pub fn not_ready() -> Verdict {
    let moment = Duration::from_nanos(1);
    let (sends, both) = ([Work::Send, Work::Send], ["Send Only, PSN 0", "Send Only, PSN 1"]);
    let nak = Syndrome::rnr_nak(NOT_READY);
    for rnr_retries in [0, 2, FOR_EVER] {
        let mut side = requester(&sends, 7, rnr_retries);
        let attempts = if rnr_retries == FOR_EVER { 20 } else { rnr_retries };
        for attempt in 1..=attempts {
            let when = format!("rnr_retry is {rnr_retries}; RNR NAK {attempt} of PSN 0 came, wait {WAIT:?}");
            side.acknowledge(0, nak);
            ended(&side, &when, None)?;
            expect(&mut side, &format!("{when}; no time has passed"), &[])?;
            due(&side, &when, Some(WAIT))?;
            side.wait(WAIT - moment);
            expect(&mut side, &format!("{when}; the wait is not over"), &[])?;
            side.wait(moment);
            expect(&mut side, &format!("{when}; the wait is over"), &both)?;
        }
        if rnr_retries < FOR_EVER {
            side.acknowledge(0, nak);
            let when = format!("rnr_retry is {rnr_retries}; RNR NAK {} of PSN 0 came", rnr_retries + 1);
            ended(&side, &when, Some(Status::RnrRetryExcErr))?;
        }
    }
    let mut side = requester(&[Work::Read(ANYWHERE), Work::Send], 7, 7);
    side.acknowledge(1, nak);
    let all = ["RDMA Read Request, PSN 0", "Send Only, PSN 1"];
    expect(&mut side, "An RNR NAK of PSN 1 came, and PSN 0 is not answered: that comes first, at once", &all)?;

    let soon = Syndrome::rnr_nak(SOON);
    let mut side = requester(&sends, 7, 1);
    side.acknowledge(0, soon);
    side.acknowledge(0, Syndrome::ACK);
    side.wait(SHORTER);
    expect(&mut side, "During the wait a late ACK of PSN 0 came; the wait is over", &both[1..])?;
    side.acknowledge(1, soon);
    side.wait(SHORTER);
    expect(&mut side, "rnr_retry is 1, the first RNR NAK of PSN 1 came; the wait is over", &both[1..])?;
    Ok("It waits as long as the peer asks for, and tries again as often as was agreed on.".to_owned())
}

/// A packet is missing.
pub fn gap() -> Verdict {
    let mut side = in_rts(attributes(0, 0, 7, 7));
    for number in 0..4 {
        let _ = side.post_receive(number, 0, 8);
    }
    let come = |side: &mut End, psn: u32, what: &str, wanted: &[&str]| {
        side.receive(request(Operation::Send, Part::Only, psn, Reth::default()));
        expect(side, &format!("PSN {psn} came; {what}"), wanted)
    };
    come(&mut side, 0, "it is the first", &["ACK, PSN 0"])?;
    come(&mut side, 2, "PSN 1 is missing", &["NAK, PSN sequence error, PSN 1"])?;
    come(&mut side, 3, "that PSN 1 is missing has been reported", &[])?;
    come(&mut side, 1, "the gap is closed", &["ACK, PSN 1"])?;
    come(&mut side, 3, "PSN 2 is missing now: it was dropped before", &["NAK, PSN sequence error, PSN 2"])?;
    Ok("A gap is told once, with the PSN that is missing.".to_owned())
}

/// A request comes again.
pub fn duplicate() -> Verdict {
    let seen = holds((0..WIRES).map(|seed| {
        let mut random = Random(seed);
        let ops = (0..1 + random.below(4)).map(|_| short(&mut random)).collect();
        let (faults, psn) = (random.faults(4, 16), 0xff_fff8 + random.below(16) as u32);
        Case { ops, faults, psn, retries: 7, early: random.below(5) }
    }))?;
    up_to_the_last()?;
    Ok(seen)
}

/// Single situations: an old SEND, and an old atomic operation, whose answer is no ACK.
fn up_to_the_last() -> Result<(), String> {
    let mut side = in_rts(attributes(0, 0, 7, 7));
    for psn in 0..3 {
        let _ = side.post_receive(psn.into(), 0, 8);
        side.receive(request(Operation::Send, Part::Only, psn, Reth::default()));
    }
    side.shows();
    side.receive(request(Operation::Send, Part::Only, 0, Reth::default()));
    let when = "Three SENDs came, PSNs 0 to 2, and PSN 0 came again: all up to PSN 2 is done, and the ACK says so";
    expect(&mut side, when, &["ACK, PSN 2"])?;
    let mut side = in_rts(attributes(0, 0, 7, 7));
    let reth = side.reth(0, 8);
    let add = fetch_add(0, side.remote(0));
    let write = Packet { payload: vec![1; 8], ..request(Operation::AtomicWrite, Part::Only, 1, reth) };
    [&add, &write].into_iter().for_each(|packet| side.receive(packet.clone()));
    side.shows();
    for packet in [add, write] {
        let when = format!("A {} came again", packet.row().name);
        side.receive(Packet { ack_request: true, ..packet });
        // What answers it, lesson 19 says.
        if side.shows().iter().any(|sent| sent.starts_with("ACK")) {
            return Err(format!(
                "{when}: an ACK is no answer to it, so `atomic_again` has one. Yours: an ACK.{}",
                side.decided()
            ));
        }
    }
    Ok(())
}

fn short(random: &mut Random) -> Op {
    let length = [0, 8, 256, 300, 700][random.below(5)];
    match random.below(3) {
        0 => Op::Send(length),
        1 => Op::Write(length),
        _ => Op::Read(length),
    }
}

/// A READ comes again whose responses are not all sent.
pub fn read_again() -> Verdict {
    let seen = holds((0..WIRES / 7).map(|seed| {
        let mut random = Random(seed);
        let ops = (0..4).map(|_| Op::Read((30 + random.below(15)) * MTU as usize)).collect();
        Case { ops, faults: random.faults(1, 160), psn: 0, retries: 7, early: 0 }
    }))?;
    rest_of_read()?;
    behind_an_ack()?;
    behind_another()?;
    no_room()?;
    Ok(seen)
}

/// A READ of so many packets, as a peer asks for it.
fn read(side: &End, psn: u32, packets: u32) -> Packet {
    request(Operation::ReadRequest, Part::Only, psn, side.reth(0, packets * MTU))
}

/// All that is left to be sent: PSNs.
fn drained(side: &mut End) -> Vec<u32> {
    let mut psns = Vec::new();
    while side.qp.is_busy() || !side.out.is_empty() {
        psns.extend(side.out.drain(..).map(|packet| packet.psn.get()));
        side.wait(Duration::ZERO);
    }
    psns
}

/// What waits in the queue, and is no READ, stays there.
fn behind_an_ack() -> Result<(), String> {
    let mut side = in_rts(attributes(0, 0, 7, 7));
    let _ = side.post_receive(1, 0, 8);
    side.receive(read(&side, 0, LONG));
    side.receive(request(Operation::Send, Part::Only, LONG, Reth::default()));
    for _ in ["came", "came again"] {
        side.receive(read(&side, LONG + 1, 2));
    }
    let what = format!(
        "A READ came, PSNs 0 to {}, a SEND, PSN {LONG}, and a READ, PSNs {} and {}; and that one again, before it was answered",
        LONG - 1,
        LONG + 1,
        LONG + 2
    );
    answers_once(&mut side, &what, LONG + 3)
}

/// The READ right behind another one is not that one's.
fn behind_another() -> Result<(), String> {
    let mut side = in_rts(attributes(0, 0, 7, 7));
    for (psn, packets) in [(0, LONG), (LONG, 2), (LONG, 2)] {
        side.receive(read(&side, psn, packets));
    }
    let what = format!(
        "Two READs came, PSNs 0 to {}, and {LONG} and {}; and the second one again, before it was answered",
        LONG - 1,
        LONG + 1
    );
    answers_once(&mut side, &what, LONG + 2)
}

/// As many READs as agreed on wait: one more that is asked for again is not answered.
fn no_room() -> Result<(), String> {
    let mut side = in_rts(attributes(0, 0, 7, 7));
    for (psn, packets) in [(0, 1), (1, LONG), (LONG + 1, 1), (0, 1)] {
        side.receive(read(&side, psn, packets));
    }
    let what = format!(
        "Two READs may be under way, and two are, PSNs 1 to {}. One of before, PSN 0, comes again: there is no room for it",
        LONG + 1
    );
    answers_once(&mut side, &what, LONG + 2)
}

/// Looks whether it sends what answers PSNs 0 to this one, each once.
fn answers_once(side: &mut End, what: &str, end: u32) -> Result<(), String> {
    let yours = drained(side);
    if yours == Vec::from_iter(0..end) {
        return Ok(());
    }
    let (count, last) = (yours.len(), yours.last());
    Err(format!(
        "{what}. Wanted are the answers to PSNs 0 to {}, once. Yours: {count} packets, the last {last:?}.",
        end - 1
    ))
}

/// The rest of a READ is asked for while it waits in the queue.
fn rest_of_read() -> Result<(), String> {
    const PACKETS: u32 = 120;
    const REST: u32 = 5;
    let mut side = in_rts(attributes(0, 0, 7, 7));
    let read = |side: &End, index: u32| side.reth((index * MTU) as usize, (PACKETS - index) * MTU);
    side.receive(request(Operation::ReadRequest, Part::Only, 0, read(&side, 0)));
    side.receive(self::read(&side, PACKETS, 2));
    let begun = side.out.drain(..).count();
    side.receive(request(Operation::ReadRequest, Part::Only, REST, read(&side, REST)));
    let yours = drained(&mut side);
    if yours == Vec::from_iter(REST..PACKETS + 2) {
        return Ok(());
    }
    let (count, first) = (yours.len(), yours.first());
    Err(format!(
        "{begun} of {PACKETS} responses are sent, and a READ of two waits behind them; then the first READ comes again, from PSN {REST} \
         on. Wanted are the responses from PSN {REST} to {}, once and in order. Yours: {count} packets, the first {first:?}.{}",
        PACKETS + 1,
        side.decided()
    ))
}
