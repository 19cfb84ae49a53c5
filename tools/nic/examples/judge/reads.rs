//! Lesson 17: memory that a peer reads without its owner's program, and what a response brings. Packets come, and the recorded
//! conversations are played.

use crate::doorbell::{self, replay};
use crate::end::{in_rts, listed, NUMBER, SIZE, TIME};
use crate::recorded::Recorded;
use crate::situation::{answer_to_read, answered, ended, goes_on, request, requester, ANYWHERE};
use crate::strangers::NO_KEY;
use crate::Verdict;
use nic::completion::Status;
use nic::memory::{Access, Sge};
use nic::packet::{code, opcode_of, Aeth, Packet, Reth};
use nic::psn::Psn;
use nic::qp::Qp;
use nic::work::{Local, SendRequest, Work};
use pair::end::shown;
use pair::{attributes, End, MTU, PD};
use roce::aeth::Syndrome;
use roce::opcode::{Operation, Part, Service};

/// What answers a READ.
pub fn read_response(frames: &[Recorded]) -> Verdict {
    let full = MTU as usize;
    for (length, lengths) in
        [(0, vec![0]), (1, vec![1]), (full, vec![full]), (full + 1, vec![full, 1]), (3 * full, vec![full; 3])]
    {
        let mut side = in_rts(attributes(0, 0, 7, 7));
        let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
        side.fill(64, &bytes);
        side.receive(read(&side, 64, length as u32));
        let parts: &[&str] = match lengths.len() {
            1 => &["Only"],
            2 => &["First", "Last"],
            _ => &["First", "Middle", "Last"],
        };
        let wanted: Vec<String> =
            parts.iter().zip(0..).map(|(part, psn)| format!("RDMA Read Response {part}, PSN {psn}")).collect();
        let answers: Vec<Packet> = side.out.drain(..).collect();
        let yours: Vec<String> = answers.iter().map(shown).collect();
        let when = format!("A READ of {length} bytes came, and the MTU is {MTU}");
        if yours != wanted {
            return Err(format!("{when}: expected {}. Yours: {}.", listed(&wanted), listed(&yours)));
        }
        let carried: Vec<usize> = answers.iter().map(|packet| packet.payload.len()).collect();
        if carried != lengths {
            return Err(format!("{when}: its packets carry {lengths:?} bytes. Yours: {carried:?}."));
        }
        if answers.iter().flat_map(|packet| packet.payload.clone()).ne(bytes) {
            return Err(format!("{when}: its packets carry the bytes that are in memory. Yours carry others."));
        }
    }
    let mut side = in_rts(attributes(0, 0, 7, 7));
    side.receive(read(&side, SIZE - full, 2 * MTU));
    let answers = side.shows();
    if answers.len() != 1 || !answers[0].starts_with("NAK") {
        return Err(format!("A READ came that ends outside the region: expected a NAK. Yours: {}.", listed(&answers)));
    }
    let mut side = in_rts(attributes(0, 0, 7, 7));
    let rkey = side.register(Access::REMOTE_WRITE, SIZE as u64, PD);
    let asks = read(&side, 0, 8);
    side.receive(Packet { reth: Reth { rkey, ..asks.reth }, ..asks });
    answered(&side, "A READ came with a key that allows WRITEs only", "NAK")?;
    taken_away()?;
    message_of_read()?;
    replay(frames, doorbell::READ)
}

/// The program deregisters its memory while the responses go out.
fn taken_away() -> Result<(), String> {
    const PACKETS: u32 = 40;
    let mut side = in_rts(attributes(0, 0, 7, 7));
    let asks = read(&side, 0, PACKETS * MTU);
    let key = asks.reth.rkey;
    side.receive(asks);
    let sent = side.out.drain(..).count();
    side.memory.deregister(key);
    side.act(Qp::tick);
    let yours = side.shows();
    if yours.len() == 1 && yours[0].starts_with("NAK") && yours[0].ends_with(&format!("PSN {sent}")) {
        return Ok(());
    }
    Err(format!(
        "A READ of {PACKETS} packets came; when {sent} of them were sent the program deregistered its memory: expected a NAK of PSN \
         {sent}, and nothing else. Yours: {}.",
        listed(&yours)
    ))
}

/// A response has the MSN that its READ has made, whatever has come since.
fn message_of_read() -> Result<(), String> {
    const PACKETS: u32 = 40;
    let mut side = in_rts(attributes(0, 0, 7, 7));
    let _ = side.post_receive(1, 0, 8);
    side.receive(read(&side, 0, PACKETS * MTU));
    let begun = side.out.len();
    side.receive(request(Operation::Send, Part::Only, PACKETS, Reth::default()));
    (0..PACKETS).for_each(|_| side.act(Qp::tick));
    let msn = |packet: &Packet| packet.aeth.msn;
    let (last, ack) = (side.out.iter().rev().nth(1).map(msn), side.out.last().map(msn));
    if (last, ack) == (Some(1), Some(2)) {
        return Ok(());
    }
    Err(format!(
        "A READ of {PACKETS} packets came; when {begun} of them were sent a SEND came. The READ is message 1: its last response has \
         MSN 1, and the ACK of the SEND has MSN 2. Yours: {last:?} and {ack:?}."
    ))
}

fn read(side: &End, offset: usize, length: u32) -> Packet {
    request(Operation::ReadRequest, Part::Only, 0, side.reth(offset, length))
}

/// What a response brings.
pub fn bytes_received(frames: &[Recorded]) -> Verdict {
    let full = MTU as usize;
    let parts = [(Part::First, full), (Part::Middle, full), (Part::Last, 88)];
    let mut side = reader(600);
    for (psn, (part, length)) in (0..).zip(parts) {
        ended(&side, &format!("{psn} of three responses to a READ came"), None)?;
        side.receive(answer(part, psn, length));
    }
    ended(&side, "The last of three responses to a READ came", Some(Status::Success))?;
    let wanted: Vec<u8> = (0..3).flat_map(|psn| vec![psn as u8 + 1; parts[psn].1]).collect();
    if side.bytes(512, 600) != wanted {
        return Err(
            "Three responses to a READ came, of 256, 256 and 88 bytes: they stand one behind the other in the \
                    program's buffer. Yours are elsewhere."
                .into(),
        );
    }
    for (what, part, length) in [
        ("a First that is not full", Part::First, full - 1),
        ("an Only, and the READ is of 600 bytes", Part::Only, full),
    ] {
        let mut side = reader(600);
        side.receive(answer(part, 0, length));
        ended(&side, &format!("A peer sends {what}"), Some(Status::BadRespErr))?;
        if side.bytes(512, 600).iter().any(|byte| *byte != 0) {
            return Err(format!("A peer sends {what}: nothing of it is placed. Yours has written bytes."));
        }
    }
    behind_others()?;
    out_of_reach()?;
    of_eight_bytes()?;
    timer_of_before()?;
    replay(frames, doorbell::BYTES)
}

/// Responses answer for what was asked before, and come in their order.
fn behind_others() -> Result<(), String> {
    let mut side = requester(&[Work::Send, Work::Read(ANYWHERE)], 7, 7);
    side.receive(answer_to_read(1));
    let yours = side.sent.len();
    if yours != 2 {
        return Err(format!(
            "A SEND has PSN 0, a READ PSN 1. The response of PSN 1 came, and no ACK: both are done. Yours: {yours}.{}",
            side.decided()
        ));
    }
    let mut side = requester(&[Work::Read(ANYWHERE), Work::Read(ANYWHERE)], 7, 7);
    side.receive(answer_to_read(0));
    let yours: Vec<(u64, Status)> = side.sent.iter().map(|completion| (completion.wr_id, completion.status)).collect();
    if yours != [(0, Status::Success)] {
        return Err(format!(
            "Two READs have PSN 0 and 1, and the response of PSN 0 came: wr_id 0 is done. Yours: {yours:?}."
        ));
    }
    let mut side = reader(600);
    side.receive(answer(Part::Last, 2, 88));
    let when = "A READ has the PSNs 0 to 2, and the response of PSN 2 came first";
    ended(&side, when, None)?;
    if side.bytes(512, 600).iter().any(|byte| *byte != 0) {
        return Err(format!("{when}: nothing of it is placed, for PSN 0 is missing. Yours has written bytes."));
    }
    Ok(())
}

/// The program's own memory is not there.
fn out_of_reach() -> Result<(), String> {
    let mut side = in_rts(attributes(0, 0, 7, 7));
    let nowhere = Sge { lkey: NO_KEY, ..side.piece(0, 8) };
    let _ = side.post_send(pair::end::request(0, Work::Read(side.remote(0)), nowhere));
    side.shows();
    side.receive(answer_to_read(0));
    ended(
        &side,
        "The response to a READ came, and the key of the program's own buffer opens nothing",
        Some(Status::LocProtErr),
    )
}

/// An atomic operation brings a number, in the program's byte order. An ATOMIC WRITE brings nothing, and has no buffer for it.
fn of_eight_bytes() -> Result<(), String> {
    const NUMBER_THERE: u64 = 0x0102_0304_0506_0708;
    let mut side = requester(&[Work::FetchAdd { remote: ANYWHERE, add: 1 }], 7, 7);
    side.receive(Packet {
        opcode: code::ATOMIC_ACKNOWLEDGE,
        original: NUMBER_THERE,
        payload: vec![],
        ..answer_to_read(0)
    });
    let when = "The answer to a FETCH ADD came, and brings 0x102030405060708";
    ended(&side, when, Some(Status::Success))?;
    let yours = side.bytes(0, 8).try_into().map_or(0, u64::from_ne_bytes);
    if yours != NUMBER_THERE {
        return Err(format!("{when}: the program finds that number in its buffer. Yours: {yours:#x}."));
    }
    let mut side = in_rts(attributes(0, 0, 7, 7));
    let local = Local::Inline(vec![1; 8]);
    let _ =
        side.post_send(SendRequest { local, ..pair::end::request(0, Work::AtomicWrite(ANYWHERE), side.piece(0, 8)) });
    side.shows();
    side.receive(Packet { payload: vec![], ..answer_to_read(0) });
    ended(&side, "The answer to an ATOMIC WRITE came, whose bytes were inline", Some(Status::Success))
}

/// Something was answered. The timer begins anew, or with `progress` still a hole it stops.
fn timer_of_before() -> Result<(), String> {
    let mut side = reader(600);
    side.wait(TIME / 2);
    side.receive(answer(Part::First, 0, MTU as usize));
    goes_on(&side, "Half of the time-out after a READ the first of its three responses came")
}

/// It has posted a READ, which is sent.
fn reader(length: usize) -> End {
    let mut side = in_rts(attributes(0, 0, 7, 7));
    let remote = side.remote(0);
    let _ = side.post(0, Work::Read(remote), 512, length);
    side.shows();
    side
}

/// One packet of a READ's response.
fn answer(part: Part, psn: usize, length: usize) -> Packet {
    let opcode = opcode_of(Service::Rc, Operation::ReadResponse, part, None);
    let aeth = Aeth { syndrome: Syndrome::ACK.byte(), msn: 1 };
    let (dest_qp, psn, payload) = (NUMBER, Psn::new(psn as u32), vec![psn as u8 + 1; length]);
    Packet { opcode, dest_qp, psn, aeth, payload, ..Packet::default() }
}
