//! What `wire compare` says, on the bundled captures with one thing changed, as a learner's mistake would; and about captures as a
//! whole: other machines, broken recordings, several attempts.

use crate::edit::{Frames, BTH, CM, EXTENDED};
use crate::files::all_bundled;
use testkit::frames::{aeth, cm_frame, conversation, frame, reth, CLIENT, CLIENT_ID, SERVER};
use wire::compare::{compare, Verdict};

const WRITE: &str = "04_rdma_write";
const READ: &str = "05_rdma_read";
const MACHINE: &str = "06_send_recv_state_machine";
const PRIVATE: &str = "03_metadata_exchange-private-data";
const KNOCK: &str = "01_cm_listen";
const WRITE_ONLY: &str = "RC RDMA Write Only";
const SEND: &str = "RC Send Only";
const ACK: &str = "RC Acknowledge";
const RESPONSE: &str = "RC RDMA Read Response Only";
const SAME: &str = "the same story";

#[test]
fn every_bundled_capture_is_like_itself_and_unlike_the_others() {
    let names = all_bundled().into_iter().map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned());
    let captures: Vec<_> = names.map(|name| (Frames::bundled(&name).capture(), name)).collect();
    assert!(captures.len() >= 7);
    for ((my, mine), (its, reference)) in captures.iter().flat_map(|one| captures.iter().map(move |other| (one, other)))
    {
        // A capture without connection management cannot be told from one that began too late.
        let by_hand = |name: &str| name.starts_with("08_");
        // The same requests, only sooner after each other, or behind another switch: the pace is no part of a story.
        let paces = [&["10_going_fast", "10_going_fast-depth-16"][..], &["20_congestion", "20_congestion-pfc"]];
        let are_of = |paces: &&[&str]| [mine, reference].iter().all(|name| paces.contains(&name.as_str()));
        let is_alike = mine == reference || paces.iter().any(are_of);
        let expected = match is_alike {
            true => Verdict::Same,
            false if by_hand(mine) && !by_hand(reference) => Verdict::Unreadable,
            false => Verdict::Different,
        };
        let report = compare(my, its);
        assert_eq!(report.verdict(), expected, "{mine} and {reference}: {report}");
    }
}

/// Eight clients send to one queue pair, and each has its own conversation. One asks twice, as its first request was lost: a
/// connection's device would have sent it again, and that is no other story either.
#[test]
fn datagrams_are_told_by_their_senders_and_asking_again_is_the_same_story() {
    for (name, words) in [
        ("11_datagrams-eight", "8 connections, 16 messages of the connection manager, 32 requests"),
        ("11_datagrams", "2 connections, 4 messages of the connection manager, 12 requests"),
    ] {
        let capture = Frames::bundled(name).capture();
        let report = compare(&capture, &capture);
        assert!(report.summary.contains(words), "{name}: {}", report.summary);
    }
}

/// What the report says of a bundled capture with a change: the field, and words from the report with "…" between them.
type Case = (&'static str, &'static str, &'static str, fn(Frames) -> Frames);

fn are_told(cases: &[Case]) {
    for (name, field, words, change) in cases {
        let reference = Frames::bundled(name);
        let report = change(reference.clone()).against(&reference);
        let text = report.to_string();
        assert_eq!(report.cause.as_ref().map_or(SAME, |cause| cause.field), *field, "{words}: {text}");
        let mut rest = text.as_str();
        for part in words.split('…') {
            rest = rest.split_once(part).unwrap_or_else(|| panic!("no {part:?} there in: {text}")).1;
        }
        // What follows from being refused or not getting connected is not told.
        assert!(!["outcome", "answer"].contains(field) || report.also.is_empty(), "{text}");
    }
}

/// The server's third ACK answers the WRITE: it becomes a NAK remote access error.
fn refused(frames: Frames) -> Frames {
    frames.put("RC Acknowledge #3", EXTENDED, &[0x62])
}

fn wrong_key(frames: Frames) -> Frames {
    frames.put(WRITE_ONLY, EXTENDED + 8, &[0, 0, 0xde, 0xad])
}

/// Moves the VirtualAddress of the WRITE.
fn moved(frames: Frames, bytes: i64) -> Frames {
    frames.edit(WRITE_ONLY, |frame| {
        let address = i64::from_be_bytes(frame[EXTENDED..EXTENDED + 8].try_into().unwrap());
        frame[EXTENDED..EXTENDED + 8].copy_from_slice(&(address + bytes).to_be_bytes());
    })
}

/// Before the client's first SEND that works, this many to which the server says that it has no receive.
fn not_ready(frames: Frames, times: usize) -> Frames {
    let refusal = frames.clone().put(ACK, EXTENDED, &[0x2c]).copy(ACK);
    let (at, round) = (frames.find(SEND), vec![frames.copy(SEND), refusal]);
    frames.insert(at, vec![round; times].concat())
}

#[rustfmt::skip] // A table.
const FAILURES: [Case; 10] = [
    (WRITE, "outcome", "Your client's WRITE is refused with \"remote access error\"; the lesson's goes through.…the key in its \
        packet is 0xdead; the server announced another one in frame 8…  the step      Step 8: The client writes…  yours         \
        frames 8, 10, 11 …  the reference frame 10 ", |frames| refused(wrong_key(frames))),
    (WRITE, "outcome", "it ends 16384 bytes after the end of the buffer announced in frame 8", |frames| refused(moved(frames, 16_384))),
    (WRITE, "outcome", "it begins 8 bytes before the buffer announced in frame 8", |frames| refused(moved(frames, -8))),
    (WRITE, "outcome", "so the server has not given the permission…IBV_ACCESS_REMOTE_WRITE", refused),
    (WRITE, "outcome", "Your client's WRITE gets no answer…stopped too early", |frames| frames.without("RC Acknowledge #3")),
    (WRITE, "outcome", "gets no answer…it was sent 3 times: the server's queue pair is gone",
        |frames| frames.without("RC Acknowledge #3").again(WRITE_ONLY, 2)),
    (WRITE, "outcome", "Your client's SEND gets no answer…the server had no receive posted: it said so 2 times (RNR NAK)",
        |frames| not_ready(frames, 2).before("RC Send Only #3")),
    (WRITE, SAME, "was not ready for the client's SEND (frame 6) 1 time, then it worked", |frames| not_ready(frames, 1)),
    // An ACK that comes late takes nothing back.
    (WRITE, SAME, "", |frames| {
        let (ack, end) = (frames.copy(ACK), frames.find("DisconnectRequest"));
        frames.insert(end, vec![ack])
    }),
    // What the receiver asks for again was lost on the wire, and not by whoever recorded.
    ("04_rdma_write-multi-packet", "outcome", "Your client's WRITE gets no answer", |frames| {
        let lost = frames.copy("RC RDMA Write Middle");
        let rest = frames.without("RC RDMA Write Middle").before("DisconnectRequest");
        rest.put("RC Acknowledge #3", EXTENDED, &[0x60]).put("RC Acknowledge #3", BTH + 9, &lost[BTH + 9..BTH + 12])
    }),
];

#[test]
fn a_request_that_fails() {
    are_told(&FAILURES);
}

/// The server's REP becomes a REJ, and there is no more.
fn rejected(frames: Frames, reason: u8) -> Frames {
    let reply = "ConnectReply";
    let frames =
        frames.put(reply, CM + 8, &[0; 224]).put(reply, CM + 10, &[0, reason]).put(reply, CM + 84, b"come back");
    frames.put(reply, EXTENDED + 8 + 16, &[0, 0x12]).before("ReadyToUse")
}

#[rustfmt::skip] // A table.
const CONNECTING: [Case; 17] = [
    (WRITE, "answer", "Your server rejects the connection; the lesson's accepts the connection.…reason 28 (consumer \
        reject): the program itself said no: \"come back\"", |frames| rejected(frames, 28)),
    (WRITE, "answer", "nobody listens on port 7471, so start the server first", |frames| rejected(frames, 8)),
    (KNOCK, "reject-reason", "the lesson's gives the reason 28…nobody listens on port 7471",
        |frames| frames.put("ConnectReject", CM + 10, &[0, 8])),
    (KNOCK, SAME, "the server rejects in other words: L", |frames| frames.put("ConnectReject", CM + 84, b"L")),
    (WRITE, "answer", "Your server gives no answer to the connection request…the request was sent 3 times: check that the \
        server's machine is reachable, and that no firewall",
        |frames| frames.before("ConnectReply").again("ConnectRequest", 2)),
    (READ, "ready-to-use", "Your client never sends the ReadyToUse (RTU)…does not learn that it is connected",
        |frames| frames.without("ReadyToUse")),
    (WRITE, "queue-pair", "Your client asks for a connection without a queue pair; the lesson's creates a queue pair",
        |frames| frames.put("ConnectRequest", CM + 32, &[0; 3]).before("ConnectReply")),
    (WRITE, "read-depth", "Your client cannot send READs (its initiator_depth is 0); the lesson's can",
        |frames| frames.put("ConnectRequest", CM + 39, &[0])),
    (WRITE, "read-depth", "Your server cannot answer READs (its responder_resources is 0); the lesson's can",
        |frames| frames.put("ConnectReply", CM + 24, &[0])),
    (WRITE, "service", "RDMA_PS_UDP…RDMA_PS_TCP", |frames| frames.put("ConnectRequest", CM + 13, &[0x11])),
    (WRITE, "service", "a connection of type UC; the lesson's asks for a connection of type RC",
        |frames| frames.flip("ConnectRequest", CM + 43, 2)),
    (WRITE, "private-data", "carries the private data 68 69 in its REQ; the lesson's carries no private data",
        |frames| frames.put("ConnectRequest", CM + 176, b"hi")),
    // A repetition, a port, a retry count: worth a word, no more.
    (WRITE, SAME, "your client sent its REQ 2 times", |frames| frames.again("ConnectRequest", 1)),
    (WRITE, SAME, "your port is 4711 instead of 7471", |frames| frames.put("ConnectRequest", CM + 14, &[0x12, 0x67])),
    (WRITE, SAME, "client's retry_count is ", |frames| frames.flip("ConnectRequest", CM + 47, 2)),
    (WRITE, "disconnect", "Your connection has no end: nobody hangs up…rdma_disconnect is never called",
        |frames| frames.before("DisconnectRequest")),
    (WRITE, "disconnect", "ends when the client hangs up (DREQ), and is not answered", |frames| frames.without("DisconnectReply")),
];

#[test]
fn getting_connected() {
    are_told(&CONNECTING);
}

#[rustfmt::skip] // A table.
const DATA: [Case; 12] = [
    (READ, "missing", "Your client never posts the READ that is the lesson's 3rd request of the client…the client hangs \
        up without it", |frames| frames.without(RESPONSE).without("RC RDMA Read Request")),
    (WRITE, "key", "uses the 1st key that the server never announced; the lesson's uses the server's 1st key…the key \
        in its packet is 0xdead; the server announced another one in frame 8", wrong_key),
    (WRITE, "address", "goes to byte 8 of", |frames| moved(frames, 8)),
    // Another length, in the server's SEND and in the ConnectReply.
    (WRITE, "length", "Your server's SEND announces a buffer of ", |frames| frames.flip("RC Send Only #2", EXTENDED + 15, 1)),
    (PRIVATE, "length", "Your server announces a buffer of ", |frames| frames.flip("ConnectReply", CM + 36 + 13, 1)),
    (PRIVATE, "private-data", "Your server carries no private data in its REP; the lesson's carries address, key and length of 1 \
        buffer", |frames| frames.put("ConnectReply", CM + 36, &[0; 16])),
    (WRITE, "payload", "your server refuses: it sends zeroes", |frames| frames.put("RC Send Only #2", EXTENDED, &[0; 16])),
    (MACHINE, "payload", "SEND says 09 00 ", |frames| frames.put(SEND, EXTENDED, &[9])),
    // "message from passive/server side with pid 0000128": a letter, and the last digit.
    (MACHINE, "payload", "SEND says 6d 65 73 72 ", |frames| frames.flip("RC Send Only #4", EXTENDED + 3, 1)),
    (MACHINE, SAME, "", |frames| {
        let last_digit = frames.copy("RC Send Only #4").len() - 8;
        frames.flip("RC Send Only #4", last_digit, 1)
    }),
    (READ, "payload", "Your client's READ brings other bytes than its WRITE put there; the lesson's brings back what its WRITE",
        |frames| frames.flip(RESPONSE, EXTENDED + 4, 1)),
    (WRITE, SAME, "your WRITE moves other bytes of the same length", |frames| frames.flip(WRITE_ONLY, EXTENDED + 16, 1)),
];

#[test]
fn what_is_said_and_moved() {
    are_told(&DATA);
}

#[test]
fn an_immediate_that_is_missing() {
    let write = |opcode: u8, immediate: &[u8]| {
        let headers = [reth(0x1000, 5, 4), immediate.to_vec()].concat();
        Frames::of(vec![
            frame(CLIENT, SERVER, opcode, 7, 1, &headers, b"data"),
            frame(SERVER, CLIENT, 0x11, 8, 1, &aeth(0x1f, 1), &[]),
        ])
    };
    let text = write(0x0a, &[]).against(&write(0x0b, &[0, 0, 0, 9])).to_string();
    let told = "Your client's 1st request is a WRITE; the reference's is a WRITE with immediate.";
    assert!(text.contains(told) && text.contains("so the server never gets a completion"), "{text}");
}

/// A broken recording is not judged, whatever the program did.
#[test]
fn problems_of_the_recording_come_first() {
    let good = || Frames::bundled(READ);
    let from = |sender: u8| Frames(good().0.into_iter().filter(|frame| frame.data[29] == sender).collect());
    let late = |name: &str| Frames(good().0.split_off(good().find(name)));
    let arp = good().0[0].data.clone();
    let [mut v1, mut damaged, mut cut] = [Frames::of(vec![arp.clone()]), good(), good()];
    v1.0[0].data[12..14].copy_from_slice(&[0x89, 0x15]);
    damaged.0[9].data[EXTENDED + 20] ^= 1;
    cut.0.iter_mut().for_each(|frame| frame.data.truncate(68));
    for (frames, part) in [
        (Frames::of(vec![]), "The capture is empty"),
        (Frames::of(vec![arp.clone(), arp]), "None of the 2 frames is RoCEv2 (2 ARP)"),
        (v1, "RoCEv1 (EtherType 0x8915), which has no IP"),
        (damaged, "A wrong ICRC in 1 packet, first in frame 10"),
        (from(2), "All packets come from 10.47.91.2"),
        (from(1), "All packets come from 10.47.91.1"),
        (late("ConnectReply"), "no connection request (REQ)"),
        (late(SEND), "no connection request (REQ)"),
        (late("DisconnectRequest"), "The capture begins in the middle: frame 1"),
        (good().without("ConnectReply"), "The recording has lost packets"),
        (good().without(WRITE_ONLY), "The recording has lost packets: frame"),
        (cut, "A snap length cut the end off"),
    ] {
        let report = frames.against(&good());
        assert_eq!(report.verdict(), Verdict::Unreadable, "{report}");
        assert!(report.problems[0].contains(part), "{report}");
        assert!(report.cause.is_none() && report.also.is_empty(), "{report}");
    }
    let report = good().against(&Frames::of(vec![]));
    assert!(report.problems[0].contains("the reference can't be used: The capture is empty"), "{report}");
}

#[test]
fn the_best_of_several_attempts_counts() {
    let reference = Frames::bundled(WRITE);
    // The server was not there yet, and the client was started again.
    let refusal = cm_frame(SERVER, CLIENT, 0x12, &[(4, &CLIENT_ID), (10, &[0, 8])]);
    let twice = reference.clone().insert(0, vec![conversation().swap_remove(0), refusal]);
    // What is left from the run before does not matter.
    let rest = Frames([reference.0[reference.0.len() - 2..].to_vec(), reference.0.clone()].concat());
    for (mine, told) in [
        (twice, "of your 2 connections, number 2 is compared"),
        (rest, "left out: 2 packets of connections that began before"),
    ] {
        let report = mine.against(&reference);
        assert!(report.verdict() == Verdict::Same && report.to_string().contains(told), "{report}");
    }
}
