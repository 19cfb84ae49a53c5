//! What `wire compare` says, on the bundled captures with one thing changed, as a learner's mistake would.

use crate::edit::{put, seal, Frames, BTH, CM, EXTENDED};
use crate::{files, frames};
use wire::compare::Verdict;

const WRITE: &str = "04_rdma_write";
const READ: &str = "05_rdma_read";
const MACHINE: &str = "06_send_recv_state_machine";
const PRIVATE: &str = "03_metadata_exchange-private-data";
const WRITE_ONLY: &str = "RC RDMA Write Only";
const MIDDLE: &str = "RC RDMA Write Middle";
const SEND: &str = "RC Send Only";
const ACK: &str = "RC Acknowledge";
const RESPONSE: &str = "RC RDMA Read Response Only";

/// A bundled capture with this change is told as this: the field, and words that stand in the report, "…" between them.
#[track_caller]
fn says(name: &str, field: &str, words: &str, change: impl FnOnce(Frames) -> Frames) {
    let reference = Frames::bundled(name);
    let report = change(reference.clone()).against(&reference);
    let text = report.to_string();
    assert_eq!(report.cause.as_ref().map_or("the same story", |cause| cause.field), field, "{text}");
    let mut rest = text.as_str();
    for part in words.split('…') {
        rest = rest.split_once(part).unwrap_or_else(|| panic!("no {part:?} there in: {text}")).1;
    }
    // What follows from being refused or not getting connected is not told.
    assert!(!["outcome", "answer"].contains(&field) || report.also.is_empty(), "{text}");
}

#[test]
fn every_bundled_capture_is_like_itself_and_unlike_the_others() {
    let names = files::all_bundled().into_iter().map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned());
    let names: Vec<String> = names.collect();
    assert!(names.len() >= 7, "{names:?}");
    let captures: Vec<_> = names.iter().map(|name| (name, Frames::bundled(name).capture())).collect();
    for ((mine, my), (reference, its)) in captures.iter().flat_map(|one| captures.iter().map(move |other| (one, other)))
    {
        let report = wire::compare::compare(my, its);
        // A capture without connection management cannot be told from one that began too late.
        let by_hand = |name: &str| name.starts_with("08_");
        // The same requests, only sooner after each other: the pace is no part of a story.
        let paces = ["10_going_fast", "10_going_fast-depth-16"];
        let is_alike = mine == reference || [mine, reference].iter().all(|name| paces.contains(&name.as_str()));
        let expected = match is_alike {
            true => Verdict::Same,
            false if by_hand(mine) && !by_hand(reference) => Verdict::Unreadable,
            false => Verdict::Different,
        };
        assert_eq!(report.verdict(), expected, "{mine} and {reference}: {report}");
    }
}

/// The server's third ACK answers the WRITE: it becomes a NAK remote access error.
fn refused(frames: Frames, change: fn(&mut [u8])) -> Frames {
    frames.edit(WRITE_ONLY, 0, change).edit(ACK, 2, |frame| frame[EXTENDED] = 0x62)
}

fn wrong_key(frame: &mut [u8]) {
    put(frame, EXTENDED + 8, &[0, 0, 0xde, 0xad]);
}

/// Moves the VirtualAddress of a RETH.
fn moved(frame: &mut [u8], bytes: i64) {
    let address = i64::from_be_bytes(frame[EXTENDED..EXTENDED + 8].try_into().unwrap());
    put(frame, EXTENDED, &(address + bytes).to_be_bytes());
}

#[test]
fn a_request_that_fails() {
    let words = "Your client's WRITE is refused with \"remote access error\"; the lesson's goes through.…the key in its packet \
                 is 0xdead; the server announced another in frame 8…  the step      Step 8: The client writes…  yours         \
                 frames 8, 10, 11 …  the reference frame 10 ";
    says(WRITE, "outcome", words, |frames| refused(frames, wrong_key));
    says(WRITE, "outcome", "it ends 16384 bytes behind the buffer announced in frame 8", |frames| {
        refused(frames, |frame| moved(frame, 16_384))
    });
    says(WRITE, "outcome", "it begins 8 bytes before the buffer announced in frame 8", |frames| {
        refused(frames, |frame| moved(frame, -8))
    });
    says(WRITE, "outcome", "so the server has not given the permission…IBV_ACCESS_REMOTE_WRITE", |frames| {
        refused(frames, |_| {})
    });
    says(WRITE, "outcome", "Your client's WRITE gets no answer…stopped too early", |frames| frames.without(ACK, 2));
    says(WRITE, "outcome", "gets no answer…it was sent 3 times: the server's queue pair is gone", |frames| {
        again(frames.without(ACK, 2), WRITE_ONLY, 2)
    });
    says(
        WRITE,
        "outcome",
        "Your client's SEND gets no answer…the server had no receive posted: it said so 2 times (RNR NAK)",
        |frames| not_ready(frames, 2).before(SEND, 2),
    );
    says(WRITE, "the same story", "was not ready for the client's SEND (frame 6) 1 time, then it worked", |frames| {
        not_ready(frames, 1)
    });
}

#[test]
fn an_ack_that_comes_late_takes_nothing_back() {
    says(WRITE, "the same story", "", |frames| {
        let (ack, end) = (frames.0[frames.find(ACK, 0)].data.clone(), frames.find("DisconnectRequest", 0));
        frames.insert(end, vec![ack])
    });
}

/// The first packet of this name comes so many times more.
fn again(frames: Frames, name: &str, times: usize) -> Frames {
    let at = frames.find(name, 0);
    let copy = frames.0[at].data.clone();
    frames.insert(at, vec![copy; times])
}

/// Before the client's first SEND that works, so many to which the server says that it has no receive.
fn not_ready(frames: Frames, times: usize) -> Frames {
    let (send, mut refusal) = (frames.find(SEND, 0), frames.0[frames.find(ACK, 0)].data.clone());
    refusal[EXTENDED] = 0x2c;
    seal(&mut refusal);
    let round = vec![frames.0[send].data.clone(), refusal];
    frames.insert(send, vec![round; times].concat())
}

/// The server's REP becomes a REJ, and there is no more.
fn rejected(frames: Frames, reason: u8) -> Frames {
    let frames = frames.edit("ConnectReply", 0, |frame| {
        put(frame, EXTENDED + 8 + 16, &[0, 0x12]);
        put(frame, CM + 8, &[0; 224]);
        put(frame, CM + 10, &[0, reason]);
        put(frame, CM + 84, b"come back");
    });
    frames.before("ReadyToUse", 0)
}

fn request(frames: Frames, change: fn(&mut [u8])) -> Frames {
    frames.edit("ConnectRequest", 0, change)
}

fn reject(frames: Frames, change: fn(&mut [u8])) -> Frames {
    frames.edit("ConnectReject", 0, change)
}

#[test]
fn getting_connected() {
    let words = "Your server rejects the connection; the lesson's accepts the connection.…reason 28 (consumer \
                 reject): the program itself said no: \"come back\"";
    says(WRITE, "answer", words, |frames| rejected(frames, 28));
    says(WRITE, "answer", "nobody listens on port 7471, so start the server first", |frames| rejected(frames, 8));
    says("01_cm_listen", "reject-reason", "the lesson's gives the reason 28…nobody listens on port 7471", |frames| {
        reject(frames, |frame| put(frame, CM + 10, &[0, 8]))
    });
    says("01_cm_listen", "the same story", "the server rejects in other words: L", |frames| {
        reject(frames, |frame| put(frame, CM + 84, b"L"))
    });
    let words = "Your server gives no answer to the connection request…the request was sent 3 times: look whether the \
                 server's machine is reachable, and whether a firewall";
    says(WRITE, "answer", words, |frames| again(frames.before("ConnectReply", 0), "ConnectRequest", 2));
    says(
        READ,
        "ready-to-use",
        "Your client never sends the ReadyToUse (RTU)…does not learn that it is connected",
        |frames| frames.without("ReadyToUse", 0),
    );
    says(
        WRITE,
        "queue-pair",
        "Your client asks for a connection without a queue pair; the lesson's creates a queue pair",
        |frames| request(frames, |frame| put(frame, CM + 32, &[0; 3])).before("ConnectReply", 0),
    );
    says(WRITE, "read-depth", "Your client cannot send READs (its initiator_depth is 0); the lesson's can", |frames| {
        request(frames, |frame| frame[CM + 39] = 0)
    });
    says(
        WRITE,
        "read-depth",
        "Your server cannot answer READs (its responder_resources is 0); the lesson's can",
        |frames| frames.edit("ConnectReply", 0, |frame| frame[CM + 24] = 0),
    );
    says(WRITE, "service", "RDMA_PS_UDP…RDMA_PS_TCP", |frames| request(frames, |frame| frame[CM + 13] = 0x11));
    says(WRITE, "service", "a connection of type UC; the lesson's asks for a connection of type RC", |frames| {
        request(frames, |frame| frame[CM + 43] |= 2)
    });
    says(
        WRITE,
        "private-data",
        "carries the private data 68 69 in its REQ; the lesson's carries no private data",
        |frames| request(frames, |frame| put(frame, CM + 176, b"hi")),
    );
    // A repetition, a port, a retry count: worth a word, no more.
    says(WRITE, "the same story", "your client sent its REQ 2 times", |frames| again(frames, "ConnectRequest", 1));
    says(WRITE, "the same story", "your port is 4711 instead of 7471", |frames| {
        request(frames, |frame| put(frame, CM + 14, &[0x12, 0x67]))
    });
    says(WRITE, "the same story", "client's retry_count is ", |frames| request(frames, |frame| frame[CM + 47] ^= 2));
    says(
        WRITE,
        "disconnect",
        "Your connection has no end: nobody hangs up…rdma_disconnect is never called",
        |frames| frames.before("DisconnectRequest", 0),
    );
    says(WRITE, "disconnect", "ends when the client hangs up (DREQ), and is not answered", |frames| {
        frames.without("DisconnectReply", 0)
    });
}

#[test]
fn what_is_said_and_moved() {
    let words = "Your client never posts the READ that is the lesson's 3rd request of the client…the client hangs \
                 up without it";
    says(READ, "missing", words, |frames| frames.without(RESPONSE, 0).without("RC RDMA Read Request", 0));
    let words = "uses the 1st key that the server never announced; the lesson's uses the server's 1st key…the key \
                 in its packet is 0xdead; the server announced another in frame 8";
    says(WRITE, "key", words, |frames| frames.edit(WRITE_ONLY, 0, wrong_key));
    says(WRITE, "address", "goes to byte 8 of", |frames| frames.edit(WRITE_ONLY, 0, |frame| moved(frame, 8)));
    // Another length, in the server's SEND and in the ConnectReply.
    says(WRITE, "length", "Your server's SEND announces a buffer of ", |frames| {
        frames.edit(SEND, 1, |frame| frame[EXTENDED + 15] ^= 1)
    });
    says(PRIVATE, "length", "Your server announces a buffer of ", |frames| {
        frames.edit("ConnectReply", 0, |frame| frame[CM + 36 + 13] ^= 1)
    });
    says(
        PRIVATE,
        "private-data",
        "Your server carries no private data in its REP; the lesson's carries address, key and length of 1 buffer",
        |frames| frames.edit("ConnectReply", 0, |frame| put(frame, CM + 36, &[0; 16])),
    );
    says(WRITE, "payload", "your server refuses: zeroes", |frames| {
        frames.edit(SEND, 1, |frame| put(frame, EXTENDED, &[0; 16]))
    });
    says(MACHINE, "payload", "SEND says 09 00 ", |frames| frames.edit(SEND, 0, |frame| frame[EXTENDED] = 9));
    // "message from passive/server side with pid 0000128": a letter, and the last digit.
    says(MACHINE, "payload", "SEND says 6d 65 73 72 ", |frames| frames.edit(SEND, 3, |frame| frame[EXTENDED + 3] ^= 1));
    says(MACHINE, "the same story", "", |frames| {
        let last_digit = frames.0[frames.find(SEND, 3)].data.len() - 8;
        frames.edit(SEND, 3, |frame| frame[last_digit] ^= 1)
    });
    says(
        READ,
        "payload",
        "Your client's READ brings other bytes than its WRITE put there; the lesson's brings back what its WRITE",
        |frames| frames.edit(RESPONSE, 0, |frame| frame[EXTENDED + 4] ^= 1),
    );
    says(WRITE, "the same story", "your WRITE moves other bytes of the same length", |frames| {
        frames.edit(WRITE_ONLY, 0, |frame| frame[EXTENDED + 16] ^= 1)
    });
}

/// What the receiver asks for again was lost on the wire, and not by whoever recorded.
#[test]
fn a_packet_that_the_receiver_missed_too() {
    says("04_rdma_write-multi-packet", "outcome", "Your client's WRITE gets no answer", |frames| {
        let psn = frames.0[frames.find(MIDDLE, 0)].data[BTH + 9..BTH + 12].to_vec();
        frames.without(MIDDLE, 0).before("DisconnectRequest", 0).edit(ACK, 2, |frame| {
            frame[EXTENDED] = 0x60;
            put(frame, BTH + 9, &psn);
        })
    });
}

#[test]
fn an_immediate_that_is_missing() {
    let write = |opcode: u8, immediate: &[u8]| {
        let headers = [frames::reth(0x1000, 5, 4), immediate.to_vec()].concat();
        Frames::of(vec![
            frames::frame("10.0.0.2", "10.0.0.1", opcode, 7, 1, &headers, b"data"),
            frames::frame("10.0.0.1", "10.0.0.2", 0x11, 8, 1, &frames::aeth(0x1f, 1), &[]),
        ])
    };
    let text = write(0x0a, &[]).against(&write(0x0b, &[0, 0, 0, 9])).to_string();
    assert!(
        text.contains("Your client's 1st request is a WRITE; the reference's is a WRITE with immediate."),
        "{text}"
    );
    assert!(text.contains("so the server never gets a completion"), "{text}");
}
