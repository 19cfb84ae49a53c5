//! Lesson 17: memory that a peer writes and reads without its owner's program. Who may reach what is asked of claims on memory; then
//! packets come, and the recorded conversations are played.

use crate::came;
use crate::doorbell::{self, replay};
use crate::end::{self, attributes, listed, shown, End, MTU, NUMBER, PD_OF_SHARED, SIZE};
use crate::program::{Buffer, PD};
use crate::recorded::Recorded;
use crate::situation::{answer_to_read, ended, request, requester, ANYWHERE};
use crate::strangers::NO_KEY;
use crate::Verdict;
use nic::completion::Status;
use nic::memory::{Access, Bind, Claim, Memory, Refusal, Region, Sge, WindowKind};
use nic::packet::{opcode_of, Aeth, Packet, Reth};
use nic::psn::Psn;
use nic::qp::Qp;
use nic::work::{Local, ReceiveRequest, SendRequest, Work};
use roce::aeth::Syndrome;
use roce::opcode::{Operation, Part, Service};

/// The region that claims are about: so many bytes, by these addresses.
const LENGTH: u64 = 100;
const VA: u64 = 1 << 40;
/// The queue pair that its window is bound for.
const QP: u32 = 17;

const READ: Access = Access::REMOTE_READ;
const WRITE: Access = Access::REMOTE_WRITE;

/// Who reaches what.
pub fn gates() -> Verdict {
    let mut memory = Memory::default();
    let rights = Access(Access::LOCAL_WRITE.0 | READ.0 | Access::MW_BIND.0);
    let buffer = Buffer::new(&mut memory, 1, LENGTH as usize, rights);
    // Requests call its bytes by other addresses than its program.
    let region = memory.get(buffer.key).cloned();
    region.map(|region| memory.replace(buffer.key, Region { va: VA, ..region }));
    let window = memory.allocate_window(WindowKind::Two, PD, 1);
    let bind = Bind { window, next: 2, region: buffer.key, address: VA, length: LENGTH, access: READ };
    memory.bind(bind, QP, PD).map_err(|refusal| format!("a window cannot be bound: {refusal}"))?;
    // Zero based: requests call its first byte 0.
    let zero = Buffer::new(&mut memory, 2, LENGTH as usize, rights);
    let region = memory.get(zero.key).cloned();
    region.map(|region| memory.replace(zero.key, Region { va: 0, ..region }));
    let claims = claims(buffer.key, window & !0xff | 2, zero.key);
    for (what, claim, wanted) in &claims {
        let word = |answer: &Result<(), Refusal>| answer.map_or_else(|refusal| refusal.to_string(), |()| "yes".into());
        came::now(*what);
        let yours = memory.check(*claim);
        if yours != *wanted {
            return Err(format!("{what}: the answer is \"{}\". Yours: \"{}\".", word(wanted), word(&yours)));
        }
    }
    // What it grants is where it has to be, and nothing else changes.
    let claim = Claim { pd: PD, qp: None, key: buffer.key, address: VA + 90, length: 10, needed: Access::LOCAL_WRITE };
    let there = memory.write(claim, &[7; 10]).is_ok() && buffer.bytes(buffer.address + 90, 10) == [7; 10];
    if !there || buffer.bytes(buffer.address, 90) != [0; 90] || !buffer.guards_stand() {
        return Err(format!(
            "10 bytes are written at address {:#x}, and the region begins with {VA:#x}: they are its last ones. In the program's \
             memory it begins elsewhere. Yours puts them somewhere else.",
            claim.address
        ));
    }
    shared_receive()?;
    Ok(format!("{} claims: each gets the answer that it has to get.", claims.len()))
}

/// A receive of a shared queue is in that queue's domain.
fn shared_receive() -> Result<(), String> {
    for (pd, wanted) in [(PD_OF_SHARED, "ACK"), (end::PD, "NAK")] {
        let mut side = End::ready(Service::Rc, attributes(0, 0, 7, 7), true);
        let lkey = side.register(end::ALL, SIZE as u64, pd);
        let sge = vec![Sge { lkey, ..side.piece(0, 8) }];
        // A new queue has room.
        if let Some(shared) = &mut side.shared {
            shared.post(ReceiveRequest { wr_id: 1, sge });
        }
        let send = request(Operation::Send, Part::Only, 0, Reth::default());
        side.receive(Packet { payload: vec![7; 8], ..send });
        let answer = side.out.iter().map(shown).next_back().unwrap_or_default();
        if !answer.starts_with(wanted) {
            let whose =
                if wanted == "ACK" { "that queue's domain" } else { "the queue pair's domain, which is another" };
            return Err(format!(
                "A SEND came for a receive of a shared queue, whose memory is in {whose}: wanted is {wanted}. Yours: {answer}."
            ));
        }
    }
    Ok(())
}

/// Claims in words, and their answers.
fn claims(key: u32, window: u32, zero: u32) -> Vec<(&'static str, Claim, Result<(), Refusal>)> {
    let whole = Claim { pd: PD, qp: Some(QP), key, address: VA, length: LENGTH as u32, needed: READ };
    let last = Claim { address: VA + LENGTH - 1, length: 1, ..whole };
    vec![
        ("A READ of the whole region", whole, Ok(())),
        ("A READ of its last byte", last, Ok(())),
        ("A key that is one bit off", Claim { key: key ^ 1, ..whole }, Err(Refusal::Key)),
        ("A key of nothing", Claim { key: NO_KEY, ..whole }, Err(Refusal::Key)),
        ("A queue pair of another domain", Claim { pd: PD + 1, ..whole }, Err(Refusal::Pd)),
        ("A WRITE, and the region allows READs", Claim { needed: WRITE, ..whole }, Err(Refusal::Access)),
        ("A byte in front of it", Claim { address: VA - 1, length: 1, ..whole }, Err(Refusal::Bounds)),
        ("A byte behind it", Claim { address: VA + LENGTH, length: 1, ..whole }, Err(Refusal::Bounds)),
        ("One byte more than it has", Claim { length: LENGTH as u32 + 1, ..whole }, Err(Refusal::Bounds)),
        ("Two bytes from its last one on", Claim { length: 2, ..last }, Err(Refusal::Bounds)),
        ("An address at the end of all", Claim { address: u64::MAX, length: 2, ..whole }, Err(Refusal::Bounds)),
        (
            "An address so far up that address and length together are more than 2^64, of a region that begins with 0",
            Claim { key: zero, address: u64::MAX, length: 2, ..whole },
            Err(Refusal::Bounds),
        ),
        ("As many bytes as can be named", Claim { length: u32::MAX, ..last }, Err(Refusal::Bounds)),
        ("No byte at all, with a key of nothing", Claim { key: NO_KEY, length: 0, ..whole }, Ok(())),
        ("A window's own queue pair", Claim { key: window, ..whole }, Ok(())),
        (
            "Another queue pair, with a window's key",
            Claim { key: window, qp: Some(QP + 1), ..whole },
            Err(Refusal::Window),
        ),
        ("The program itself, with a window's key", Claim { key: window, qp: None, ..whole }, Err(Refusal::Window)),
    ]
}

/// A packet of a message, and its bytes.
type Piece = (Part, usize);

/// How long the packets of a message are.
pub fn length() -> Verdict {
    let full = MTU as usize;
    let messages: [(&str, &[Piece], bool); 9] = [
        ("an Only without bytes", &[(Part::Only, 0)], true),
        ("a full Only", &[(Part::Only, full)], true),
        ("a Last of one byte", &[(Part::First, full), (Part::Last, 1)], true),
        ("a full Last", &[(Part::First, full), (Part::Middle, full), (Part::Last, full)], true),
        ("an Only that is longer than the MTU", &[(Part::Only, full + 1)], false),
        ("a First that is not full", &[(Part::First, full - 1)], false),
        ("a Middle that is not full", &[(Part::First, full), (Part::Middle, full - 4)], false),
        ("a Last without bytes", &[(Part::First, full), (Part::Last, 0)], false),
        ("a Last that is longer than the MTU", &[(Part::First, full), (Part::Last, full + 1)], false),
    ];
    for (what, packets, is_right) in messages {
        let mut side = End::new(attributes(0, 0, 7, 7));
        side.post_receive(1, 0, 8 * full);
        for (psn, (part, length)) in (0..).zip(packets) {
            let packet = request(Operation::Send, *part, psn, Reth::default());
            side.receive(Packet { payload: vec![7; *length], ack_request: true, ..packet });
        }
        let answer = side.out.iter().map(shown).next_back().unwrap_or_default();
        if answer.starts_with("NAK") == is_right {
            let verb = if is_right { "is accepted" } else { "is refused" };
            let yours = if answer.is_empty() { "nothing" } else { &answer };
            return Err(format!("The MTU is {MTU}, and {what} comes: it {verb}. Yours: {yours}.{}", side.decided()));
        }
    }
    Ok(format!("{} messages: all packets but the last are full.", messages.len()))
}

/// The packets of a WRITE of so many bytes to this place, as a peer sends them.
fn write(side: &End, offset: usize, announced: u32, lengths: &[usize]) -> Vec<Packet> {
    let remote = side.remote(offset);
    let reth = Reth { va: remote.address, rkey: remote.rkey, length: announced };
    let packet = |(at, length): (usize, &usize)| {
        let part = match (at, lengths.len() - 1 - at) {
            (0, 0) => Part::Only,
            (0, _) => Part::First,
            (_, 0) => Part::Last,
            _ => Part::Middle,
        };
        // Only the first packet has a RETH.
        let reth = if at == 0 { reth } else { Reth::default() };
        Packet { payload: vec![at as u8 + 1; *length], ..request(Operation::Write, part, at as u32, reth) }
    };
    lengths.iter().enumerate().map(packet).collect()
}

/// Bytes go where the first packet has said, or none do.
pub fn place_write(frames: &[Recorded]) -> Verdict {
    let (full, size) = (MTU as usize, SIZE);
    // Which one, lesson 19 says.
    let refused = "NAK";
    let writes: [(&str, usize, u32, &[usize], &str); 7] = [
        ("600 bytes in three packets", 40, 600, &[full, full, 88], "ACK"),
        ("the last bytes of the region", size - 300, 300, &[full, 44], "ACK"),
        ("no bytes", 0, 0, &[0], "ACK"),
        ("a WRITE of which the second packet does not fit the region", size - full, 300, &[full, 44], refused),
        ("more bytes than its RETH has announced", 0, 300, &[full, 45], refused),
        ("fewer bytes than its RETH has announced", 0, 300, &[full, 43], refused),
        ("a WRITE whose RETH announces more than 2^31 bytes", 0, u32::MAX, &[full], refused),
    ];
    for (what, offset, announced, lengths, wanted) in writes {
        let mut side = End::new(attributes(0, 0, 7, 7));
        let packets = write(&side, offset, announced, lengths);
        let bytes: Vec<u8> = packets.iter().flat_map(|packet| packet.payload.clone()).collect();
        packets.into_iter().for_each(|packet| side.receive(packet));
        answered(&side, &format!("There comes {what}"), wanted)?;
        let room = bytes.len().min(size - offset);
        if wanted == "ACK" && side.bytes(offset, room) != bytes {
            return Err(format!("There comes {what}: other bytes stand in memory then than it has brought."));
        }
        if offset + announced as usize > size && side.bytes(offset, room).iter().any(|byte| *byte != 0) {
            return Err(format!("There comes {what}: nothing may change. Yours has written its first packet."));
        }
    }
    keys_of_writes()?;
    replay(frames, doorbell::WRITE)
}

/// The key of a WRITE decides what it may do, its first packet how long it is, and the specification how long it may be.
fn keys_of_writes() -> Result<(), String> {
    let mut side = End::new(attributes(0, 0, 7, 7));
    let full = MTU as usize;
    let packets = write(&side, 0, MTU + 44, &[full, full, 1]);
    packets.into_iter().take(2).for_each(|packet| side.receive(packet));
    answered(
        &side,
        "A WRITE has announced 300 bytes, and its second packet, of 256, comes, which is not the last",
        "NAK",
    )?;
    let longest = Qp::LONGEST;
    for (what, access, announced, wanted) in [
        ("a WRITE with a key that allows READs only", READ, MTU, "NAK"),
        (
            "the first packet of a WRITE of 2^30 bytes, the longest there is, to a region that is longer",
            WRITE,
            longest,
            "ACK",
        ),
        ("the first packet of a WRITE of 2^30 + 1 bytes, to a region that is longer", WRITE, longest + 1, "NAK"),
    ] {
        let mut side = End::new(attributes(0, 0, 7, 7));
        let rkey = side.register(access, 1 << 40, end::PD);
        let lengths = if announced == MTU { &[MTU as usize][..] } else { &[MTU as usize, 1] };
        let first = write(&side, 0, announced, lengths).swap_remove(0);
        side.receive(Packet { reth: Reth { rkey, ..first.reth }, ..first });
        answered(&side, &format!("There comes {what}"), wanted)?;
    }
    Ok(())
}

/// Looks at the last answer. Which NAK it is, lesson 19 says.
fn answered(side: &End, when: &str, wanted: &str) -> Result<(), String> {
    let answer = side.out.iter().map(shown).next_back().unwrap_or_default();
    if answer.starts_with(wanted) {
        return Ok(());
    }
    let yours = if answer.is_empty() { "nothing" } else { &answer };
    Err(format!("{when}: the answer is {wanted}. Yours: {yours}.{}", side.decided()))
}

/// What answers a READ.
pub fn read_response(frames: &[Recorded]) -> Verdict {
    let full = MTU as usize;
    for (length, lengths) in
        [(0, vec![0]), (1, vec![1]), (full, vec![full]), (full + 1, vec![full, 1]), (3 * full, vec![full; 3])]
    {
        let mut side = End::new(attributes(0, 0, 7, 7));
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
            return Err(format!("{when}: wanted is {}. Yours: {}.", listed(&wanted), listed(&yours)));
        }
        let carried: Vec<usize> = answers.iter().map(|packet| packet.payload.len()).collect();
        if carried != lengths {
            return Err(format!("{when}: its packets carry {lengths:?} bytes. Yours: {carried:?}."));
        }
        if answers.iter().flat_map(|packet| packet.payload.clone()).ne(bytes) {
            return Err(format!("{when}: its packets carry the bytes that stand in memory. Yours are others."));
        }
    }
    let mut side = End::new(attributes(0, 0, 7, 7));
    side.receive(read(&side, SIZE - full, 2 * MTU));
    let answers = side.sends();
    if answers.len() != 1 || !answers[0].starts_with("NAK") {
        return Err(format!("A READ came that ends outside the region: wanted is a NAK. Yours: {}.", listed(&answers)));
    }
    let mut side = End::new(attributes(0, 0, 7, 7));
    let rkey = side.register(WRITE, SIZE as u64, end::PD);
    let asks = read(&side, 0, 8);
    side.receive(Packet { reth: Reth { rkey, ..asks.reth }, ..asks });
    answered(&side, "A READ came with a key that allows WRITEs only", "NAK")?;
    message_of_read()?;
    replay(frames, doorbell::READ)
}

/// A response has the MSN that its READ has made, whatever has come since.
fn message_of_read() -> Result<(), String> {
    const PACKETS: u32 = 40;
    let mut side = End::new(attributes(0, 0, 7, 7));
    side.post_receive(1, 0, 8);
    side.receive(read(&side, 0, PACKETS * MTU));
    let begun = side.out.len();
    side.receive(request(Operation::Send, Part::Only, PACKETS, Reth::default()));
    (0..PACKETS).for_each(|_| side.act(Qp::tick));
    let msn = |packet: &Packet| packet.aeth.msn;
    let (last, ack) = (side.out.iter().rev().nth(1).map(msn), side.out.back().map(msn));
    if (last, ack) == (Some(1), Some(2)) {
        return Ok(());
    }
    Err(format!(
        "A READ of {PACKETS} packets came; when {begun} of them were sent a SEND came. The READ is message 1: its last response has \
         MSN 1, and the ACK of the SEND has MSN 2. Yours: {last:?} and {ack:?}."
    ))
}

fn read(side: &End, offset: usize, length: u32) -> Packet {
    let remote = side.remote(offset);
    request(Operation::ReadRequest, Part::Only, 0, Reth { va: remote.address, rkey: remote.rkey, length })
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
        ended(&side, &format!("There comes {what}"), Some(Status::BadRespErr))?;
        if side.bytes(512, 600).iter().any(|byte| *byte != 0) {
            return Err(format!("There comes {what}: nothing of it is placed. Yours has written bytes."));
        }
    }
    behind_others()?;
    out_of_reach()?;
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
    let mut side = End::new(attributes(0, 0, 7, 7));
    let (work, local) = (Work::Read(side.remote(0)), Local::SgList(vec![Sge { lkey: NO_KEY, ..side.piece(0, 8) }]));
    let (wr_id, immediate, signaled, solicited) = (0, None, true, false);
    side.post_request(SendRequest { wr_id, work, local, length: 8, immediate, signaled, solicited, fence: false });
    side.sends();
    side.receive(answer_to_read(0));
    ended(
        &side,
        "The response to a READ came, and the key of the program's own buffer opens nothing",
        Some(Status::LocProtErr),
    )
}

/// It has posted a READ, which is sent.
fn reader(length: usize) -> End {
    let mut side = End::new(attributes(0, 0, 7, 7));
    let remote = side.remote(0);
    side.post(0, Work::Read(remote), 512, length);
    side.sends();
    side
}

/// One packet of a READ's response.
fn answer(part: Part, psn: usize, length: usize) -> Packet {
    let opcode = opcode_of(Service::Rc, Operation::ReadResponse, part, None);
    let aeth = Aeth { syndrome: Syndrome::ACK.byte(), msn: 1 };
    let (dest_qp, psn, payload) = (NUMBER, Psn::new(psn as u32), vec![psn as u8 + 1; length]);
    Packet { opcode, dest_qp, psn, aeth, payload, ..Packet::default() }
}
