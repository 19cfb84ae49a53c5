//! Lesson 17: memory that a peer writes without its owner's program. Packets come, and the recorded conversations are played.

use crate::doorbell::{self, replay};
use crate::end::{in_rts, SIZE};
use crate::recorded::Recorded;
use crate::situation::{answered, parts, request};
use crate::Verdict;
use nic::memory::Access;
use nic::packet::{Packet, Reth};
use nic::qp::Qp;
use pair::end::shown;
use pair::{attributes, End, MTU, PD};
use roce::opcode::{Operation, Part};

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
        let mut side = in_rts(attributes(0, 0, 7, 7));
        let _ = side.post_receive(1, 0, 8 * full);
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
    let reth = side.reth(offset, announced);
    let packet = |((at, length), part): ((usize, &usize), Part)| {
        // Only the first packet has a RETH.
        let reth = if at == 0 { reth } else { Reth::default() };
        Packet { payload: vec![at as u8 + 1; *length], ..request(Operation::Write, part, at as u32, reth) }
    };
    lengths.iter().enumerate().zip(parts(lengths.len())).map(packet).collect()
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
        let mut side = in_rts(attributes(0, 0, 7, 7));
        let packets = write(&side, offset, announced, lengths);
        let bytes: Vec<u8> = packets.iter().flat_map(|packet| packet.payload.clone()).collect();
        packets.into_iter().for_each(|packet| side.receive(packet));
        answered(&side, &format!("A peer sends {what}"), wanted)?;
        let room = bytes.len().min(size - offset);
        if wanted == "ACK" && side.bytes(offset, room) != bytes {
            return Err(format!("A peer sends {what}: memory then holds other bytes than it has brought."));
        }
        if offset + announced as usize > size && side.bytes(offset, room).iter().any(|byte| *byte != 0) {
            return Err(format!("A peer sends {what}: nothing may change. Yours has written its first packet."));
        }
    }
    keys_of_writes()?;
    replay(frames, doorbell::WRITE)
}

/// The key of a WRITE decides what it may do, its first packet how long it is, and the specification how long it may be.
fn keys_of_writes() -> Result<(), String> {
    let mut side = in_rts(attributes(0, 0, 7, 7));
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
        ("a WRITE with a key that allows READs only", Access::REMOTE_READ, MTU, "NAK"),
        (
            "the first packet of a WRITE of 2^30 bytes, the longest there is, to a region that is longer",
            Access::REMOTE_WRITE,
            longest,
            "ACK",
        ),
        (
            "the first packet of a WRITE of 2^30 + 1 bytes, to a region that is longer",
            Access::REMOTE_WRITE,
            longest + 1,
            "NAK",
        ),
    ] {
        let mut side = in_rts(attributes(0, 0, 7, 7));
        let rkey = side.register(access, 1 << 40, PD);
        let lengths = if announced == MTU { &[MTU as usize][..] } else { &[MTU as usize, 1] };
        let first = write(&side, 0, announced, lengths).swap_remove(0);
        side.receive(Packet { reth: Reth { rkey, ..first.reth }, ..first });
        answered(&side, &format!("A peer sends {what}"), wanted)?;
    }
    Ok(())
}
