//! The sentences of `wire compare`, on the bundled captures with one thing changed, as a learner's mistake would.

use crate::edit;
use crate::edit::{put, Frames, CM, EXTENDED};
use crate::frames;
use wire::compare::{Field, Report, Verdict};

const WRITE: &str = "04_rdma_write";
const READ: &str = "05_rdma_read";
const MACHINE: &str = "06_send_recv_state_machine";
const PRIVATE: &str = "03_metadata_exchange-private-data";

/// The report of a bundled capture that was changed.
fn changed(name: &str, change: impl FnOnce(Frames) -> Frames) -> Report {
    let reference = Frames::bundled(name);
    change(reference.clone()).against(&reference)
}

/// It is different, for this reason and in these words.
#[track_caller]
fn says(report: &Report, field: Field, parts: &[&str]) {
    assert_eq!(report.verdict(), Verdict::Different, "{report}");
    let cause = report.cause.as_ref().unwrap();
    assert_eq!(cause.field, field, "{report}");
    for part in parts {
        assert!(cause.sentence.contains(part), "no {part:?} in: {report}");
    }
}

/// A NAK of the server to the client's request: the next packet's ACK is turned into it, and what follows is cut.
fn refused(frames: Frames, request: &str, answer: &str, nth: usize, syndrome: u8) -> Frames {
    assert!(frames.find(request, 0) < frames.find(answer, nth));
    frames.edit(answer, nth, |frame| frame[EXTENDED] = syndrome)
}

#[test]
fn every_bundled_capture_is_like_itself_and_unlike_the_others() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let pcapng = files.filter(|path| path.extension().is_some_and(|extension| extension == "pcapng"));
    let names: Vec<String> = pcapng.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    assert!(names.len() >= 7, "{names:?}");
    for mine in &names {
        for reference in &names {
            let report = Frames::bundled(mine).against(&Frames::bundled(reference));
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
}

#[test]
fn a_wrong_key_that_is_refused() {
    let report = changed(WRITE, |frames| {
        let frames = frames.edit("RC RDMA Write Only", 0, |frame| put(frame, EXTENDED + 8, &[0, 0, 0xde, 0xad]));
        refused(frames, "RC RDMA Write Only", "RC Acknowledge", 2, 0x62)
    });
    let parts = [
        "Your server refused your client's WRITE with \"remote access error\"",
        "the key in its packet (0xdead) is not the one that the server announced in frame 8",
    ];
    says(&report, Field::Outcome, &parts);
    let cause = report.cause.as_ref().unwrap();
    assert_eq!((cause.mine.as_slice(), cause.reference.as_slice()), (&[8, 10, 11][..], &[10, 11][..]));
    assert!(cause.step.as_ref().unwrap().contains("The client writes"), "{report}");
    assert!(report.also.is_empty(), "{report}");
}

#[test]
fn a_wrong_key_that_nobody_refused() {
    let change = |frame: &mut Vec<u8>| put(frame, EXTENDED + 8, &[0, 0, 0xde, 0xad]);
    let report = changed(WRITE, |frames| frames.edit("RC RDMA Write Only", 0, change));
    says(&report, Field::Key, &["uses the key 0xdead, which is not the one that the server announced in frame 8"]);
}

/// Moves the VirtualAddress of a RETH.
fn farther(frame: &mut [u8], bytes: u64) {
    let address = u64::from_be_bytes(frame[EXTENDED..EXTENDED + 8].try_into().unwrap());
    put(frame, EXTENDED, &(address + bytes).to_be_bytes());
}

#[test]
fn too_far_and_without_permission() {
    let write = |frames: Frames, change: fn(&mut Vec<u8>)| {
        refused(frames.edit("RC RDMA Write Only", 0, change), "RC RDMA Write Only", "RC Acknowledge", 2, 0x62)
    };
    let report = changed(WRITE, |frames| write(frames, |frame| farther(frame, 16_384)));
    says(&report, Field::Outcome, &["it ends 16384 bytes behind the buffer announced in frame 8"]);
    let report = changed(WRITE, |frames| write(frames, |_| {}));
    says(&report, Field::Outcome, &["so the server has not given the permission", "IBV_ACCESS_REMOTE_WRITE"]);
}

#[test]
fn the_read_is_missing() {
    let report =
        changed(READ, |frames| frames.without("RC RDMA Read Response Only", 0).without("RC RDMA Read Request", 0));
    let sentence =
        "Your client never posts the READ that is the lesson's 3rd request of the client; the client hangs up \
                    without it";
    says(&report, Field::Missing, &[sentence]);
}

#[test]
fn no_ready_to_use() {
    let report = changed(READ, |frames| frames.without("ReadyToUse", 0));
    says(
        &report,
        Field::ReadyToUse,
        &["In your capture the client never sends the ReadyToUse (RTU)", "does not learn"],
    );
}

#[test]
fn rejected_by_the_program_and_because_nobody_listens() {
    for (reason, part) in [(28, "the program itself said no: \"come back\""), (8, "nobody listens on port 7471")] {
        let report = changed(WRITE, |frames| {
            let frames = frames.edit("ConnectReply", 0, |frame| {
                put(frame, EXTENDED + 8 + 16, &[0, 0x12]);
                put(frame, CM + 8, &[0; 224]);
                put(frame, CM + 10, &[0, reason]);
                put(frame, CM + 84, b"come back");
            });
            frames.before("ReadyToUse", 0)
        });
        says(&report, Field::Answer, &["Your server rejects the connection: reason", part]);
        assert!(report.also.is_empty(), "{report}");
    }
}

#[test]
fn a_reject_with_another_reason_or_text() {
    let report =
        changed("01_cm_listen", |frames| frames.edit("ConnectReject", 0, |frame| put(frame, CM + 10, &[0, 8])));
    says(
        &report,
        Field::RejectReason,
        &["nobody listens on port 7471", "the lesson's rejects the connection: reason 28"],
    );
    let report = changed("01_cm_listen", |frames| frames.edit("ConnectReject", 0, |frame| put(frame, CM + 84, b"L")));
    assert_eq!(report.verdict(), Verdict::Same, "{report}");
    assert!(report.to_string().contains("rejects in other words"), "{report}");
}

#[test]
fn the_request_is_never_answered() {
    let report = changed(WRITE, |frames| {
        let request = frames.0[frames.find("ConnectRequest", 0)].0.clone();
        frames.before("ConnectReply", 0).insert(3, vec![request.clone(), request])
    });
    let parts = ["Nobody answered your client's connection request, though it was sent 3 times", "firewall"];
    says(&report, Field::Answer, &parts);
}

#[test]
fn what_the_metadata_says() {
    // Another length, in the server's SEND and in the ConnectReply.
    let report = changed(WRITE, |frames| frames.edit("RC Send Only", 1, |frame| frame[EXTENDED + 15] ^= 1));
    says(&report, Field::Length, &["Your server announces a buffer of "]);
    let report = changed(PRIVATE, |frames| frames.edit("ConnectReply", 0, |frame| frame[CM + 36 + 13] ^= 1));
    says(&report, Field::Length, &["Your server announces a buffer of "]);
    let report = changed(PRIVATE, |frames| frames.edit("ConnectReply", 0, |frame| put(frame, CM + 36, &[0; 16])));
    says(&report, Field::PrivateData, &["carries no private data", "address, key and length of its memory"]);
    let report = changed(WRITE, |frames| frames.edit("RC Send Only", 1, |frame| put(frame, EXTENDED, &[0; 16])));
    says(&report, Field::Payload, &["Your server refuses"]);
    let report = changed(MACHINE, |frames| frames.edit("RC Send Only", 0, |frame| frame[EXTENDED] = 9));
    says(&report, Field::Payload, &["SEND says 09 00 "]);
}

#[test]
fn a_text_is_told_by_its_words_and_not_by_its_numbers() {
    // "message from passive/server side with pid 0000128": a letter, and the last digit.
    let report = changed(MACHINE, |frames| frames.edit("RC Send Only", 3, |frame| frame[EXTENDED + 3] ^= 1));
    says(&report, Field::Payload, &["SEND says 6d 65 73 72 "]);
    let report = changed(MACHINE, |frames| {
        let end = frames.0[frames.find("RC Send Only", 3)].0.len() - 8;
        frames.edit("RC Send Only", 3, |frame| frame[end] ^= 1)
    });
    assert_eq!(report.verdict(), Verdict::Same, "{report}");
}

#[test]
fn the_read_brings_other_bytes_than_were_written() {
    let report = changed(READ, |frames| frames.edit("RC RDMA Read Response Only", 0, |frame| frame[EXTENDED + 4] ^= 1));
    says(&report, Field::Payload, &["Your client's READ brings other bytes than its WRITE (frame 10) put there"]);
}

#[test]
fn no_receive_was_posted() {
    let round = |frames: &Frames| {
        let (send, ack) = (frames.find("RC Send Only", 0), frames.find("RC Acknowledge", 0));
        let mut refusal = frames.0[ack].0.clone();
        refusal[EXTENDED] = 0x2c;
        edit::seal(&mut refusal);
        vec![frames.0[send].0.clone(), refusal]
    };
    let report = changed(WRITE, |frames| {
        let (round, send) = (round(&frames), frames.find("RC Send Only", 0));
        frames.insert(send, round)
    });
    assert_eq!(report.verdict(), Verdict::Same, "{report}");
    assert!(
        report.to_string().contains("was not ready for the client's SEND (frame 6) 1 time, then it worked"),
        "{report}"
    );
    let report = changed(WRITE, |frames| {
        let round = round(&frames);
        frames.before("RC Send Only", 0).insert(5, [round.clone(), round].concat())
    });
    let parts = ["Your server had no receive posted for your client's SEND: it said so 2 times (RNR NAK)"];
    says(&report, Field::Outcome, &parts);
}

#[test]
fn silence() {
    let report = changed(WRITE, |frames| frames.without("RC Acknowledge", 2));
    says(&report, Field::Outcome, &["Your client's WRITE gets no answer", "stopped too early"]);
    let report = changed(WRITE, |frames| {
        let (write, frames) = (frames.find("RC RDMA Write Only", 0), frames.without("RC Acknowledge", 2));
        let again = frames.0[write].0.clone();
        frames.insert(write, vec![again.clone(), again])
    });
    says(&report, Field::Outcome, &["gets no answer, though it was sent 3 times: the server's queue pair is gone"]);
}

#[test]
fn who_hangs_up() {
    let report = changed(WRITE, |frames| frames.before("DisconnectRequest", 0));
    says(&report, Field::Disconnect, &["In your capture nobody hangs up", "rdma_disconnect"]);
    let report = changed(WRITE, |frames| frames.without("DisconnectReply", 0));
    says(&report, Field::Disconnect, &["In your capture the client hangs up (DREQ), and is not answered"]);
    let report = Frames::bundled("07_disconnect_flush").against(&Frames::bundled("07_disconnect_flush-closer-server"));
    says(&report, Field::PrivateData, &["Your client's REQ carries the private data"]);
}

#[test]
fn what_the_connection_request_asks_for() {
    let request = |change: fn(&mut Vec<u8>)| changed(WRITE, |frames| frames.edit("ConnectRequest", 0, change));
    let report = changed(WRITE, |frames| {
        frames.edit("ConnectRequest", 0, |frame| put(frame, CM + 32, &[0; 3])).before("ConnectReply", 0)
    });
    says(&report, Field::QueuePair, &["without a queue pair"]);
    let report = request(|frame| frame[CM + 39] = 0);
    says(&report, Field::ReadDepth, &["Your client cannot send READs (its initiator_depth is 0); the lesson's can"]);
    let report = changed(WRITE, |frames| frames.edit("ConnectReply", 0, |frame| frame[CM + 24] = 0));
    says(
        &report,
        Field::ReadDepth,
        &["Your server cannot answer READs (its responder_resources is 0); the lesson's can"],
    );
    let report = request(|frame| frame[CM + 13] = 0x11);
    says(&report, Field::Service, &["RDMA_PS_UDP", "RDMA_PS_TCP"]);
    let report = request(|frame| frame[CM + 43] |= 2);
    says(&report, Field::Service, &["a connection of type UC; the lesson's asks for a connection of type RC"]);
    let report = request(|frame| put(frame, CM + 176, b"hi"));
    says(&report, Field::PrivateData, &["carries the private data 68 69"]);
    // A port, a retry count: worth a word, no more.
    let report = request(|frame| {
        put(frame, CM + 14, &[0x12, 0x67]);
        frame[CM + 47] ^= 2;
    });
    assert_eq!(report.verdict(), Verdict::Same, "{report}");
    let text = report.to_string();
    assert!(
        text.contains("your port is 4711 instead of 7471") && text.contains("your client's retry_count is "),
        "{text}"
    );
}

#[test]
fn an_immediate_that_is_missing() {
    let reference = Frames::of(vec![
        frames::frame(
            "10.0.0.2",
            "10.0.0.1",
            0x0b,
            7,
            1,
            &[frames::reth(0x1000, 5, 4), vec![0, 0, 0, 9]].concat(),
            b"data",
        ),
        frames::frame("10.0.0.1", "10.0.0.2", 0x11, 8, 1, &frames::aeth(0x1f, 1), &[]),
    ]);
    let mut mine = reference.clone();
    mine.0[0].0 = frames::frame("10.0.0.2", "10.0.0.1", 0x0a, 7, 1, &frames::reth(0x1000, 5, 4), b"data");
    let sentence =
        "Your client's 1st request is a WRITE; the reference's is a WRITE with immediate, so the server never gets \
                    a completion";
    says(&mine.against(&reference), Field::Operation, &[sentence]);
}
