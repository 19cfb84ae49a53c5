//! Causes that a capture contradicts, and captures that can't tell a cause: what `wire explain` says of them, and what it must not.

use crate::files::{text, wire, written, Piece, Recorded};
use run::capture::Reader;
use run::files::root;
use std::collections::BTreeSet;
use testkit::frames::*;
use wire::explain::{explain, Cause, Cause::*, Explanation};

/// What is said of a capture: the exit status, the causes, words that must be there, and words that must not.
type Said<'a> = (u8, &'a [Cause], &'a [&'a str], &'a [&'a str]);

fn check(name: &str, told: &Explanation, (status, causes, words, never): Said) {
    let text = told.text(usize::MAX);
    let found: BTreeSet<Cause> = told.findings().map(|finding| finding.cause).collect();
    assert_eq!(found, causes.iter().copied().collect(), "{name}: {text}");
    assert_eq!(told.status(), status, "{name}: {text}");
    words.iter().for_each(|words| assert!(text.contains(words), "{name} lacks \"{words}\": {text}"));
    never.iter().for_each(|words| assert!(!text.contains(words), "{name} says \"{words}\": {text}"));
}

fn told(file: &[u8]) -> Explanation {
    explain(&mut Reader::new(file).unwrap()).unwrap()
}

/// Explains frames that were recorded at these milliseconds.
fn at(frames: impl IntoIterator<Item = (f64, Vec<u8>)>) -> Explanation {
    let piece = |(ms, data): (f64, Vec<u8>)| {
        let time_ns = Some(1_700_000_000_000_000_000 + (ms * 1e6) as u64);
        Piece::Frame(Recorded { time_ns, ..Recorded::of(data) })
    };
    told(&written(frames.into_iter().map(piece)))
}

fn write(psn: u32, length: usize) -> Vec<u8> {
    frame(CLIENT, SERVER, 0x0a, SERVER_QP, psn, &reth(0x1000, 0x77, length as u32), &vec![9; length])
}

fn answer(psn: u32, syndrome: u8) -> Vec<u8> {
    frame(SERVER, CLIENT, 0x11, CLIENT_QP, psn, &aeth(syndrome, psn), &[])
}

const ACK: u8 = 0x1f;
const RNR: u8 = 0x2c;
const SEQUENCE: u8 = 0x60;
const ACCESS: u8 = 0x62;
const INVALID: u8 = 0x61;

/// A ConnectRequest, again and again the same; its transaction is that of [`cm_frame`].
fn request() -> Vec<u8> {
    cm_frame(CLIENT, SERVER, 0x10, &[(0, &CLIENT_ID), (8, &0x0106_1d2fu64.to_be_bytes()), (32, &[0, 0, 0x11])])
}

fn reply() -> Vec<u8> {
    cm_frame(SERVER, CLIENT, 0x13, &[(0, &SERVER_ID), (4, &CLIENT_ID), (12, &[0, 0, 0x22])])
}

fn ready() -> Vec<u8> {
    cm_frame(CLIENT, SERVER, 0x14, &[(0, &CLIENT_ID), (4, &SERVER_ID)])
}

fn reject(from_client: bool, reason: u16) -> Vec<u8> {
    let [src, dst, own, other] = if from_client { [CLIENT, SERVER, "c", "s"] } else { [SERVER, CLIENT, "s", "c"] };
    let id = |who: &str| if who == "c" { CLIENT_ID } else { SERVER_ID };
    cm_frame(src, dst, 0x12, &[(0, &id(own)), (4, &id(other)), (10, &reason.to_be_bytes())])
}

/// A TCP segment without data.
fn tcp(src: &str, dst: &str, ports: [u16; 2], flags: u8) -> Vec<u8> {
    let octets = |ip: &str| ip.parse::<std::net::Ipv4Addr>().unwrap().octets();
    let mut packet = ipv4_header(octets(src), octets(dst), &[], 20);
    packet[9] = 6;
    packet.extend(ports.into_iter().flat_map(u16::to_be_bytes));
    packet.extend([0, 0, 0, 1, 0, 0, 0, 0, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    ethernet(&packet)
}

/// Captures whose causes were once told wrongly.
const CASES: [(&str, Said); 8] = [
    (
        "behind_nak",
        (1, &[InvalidRequest], &["the 2 packets that were under way after it fail with it"], &["record longer"]),
    ),
    (
        "every_packet_twice",
        (0, &[], &["recorded twice", "2 WRITEs", "frames 1 and 2 are the same packet"], &["rdma_rxe", "came twice"]),
    ),
    ("icrc_zero_few", (0, &[], &["zeroes where the ICRC belongs"], &["drops"])),
    ("nak_cut_at_bth", (2, &[], &["can't be told apart"], &["Nothing that this capture shows"])),
    (
        "one_side_odd_other_damaged",
        (
            1,
            &[Damaged],
            &["The ICRC of 192.0.2.10's RC RDMA Write Only is wrong", "answered it all the same"],
            &["by itself"],
        ),
    ),
    (
        "only_naks",
        (1, &[RemoteAccess], &["192.0.2.20 refused a request: remote access error", "record both directions"], &[]),
    ),
    (
        "read_resp_lost_cm",
        (
            1,
            &[AnswersLost],
            &["the one that the server named when they connected", "lost after the recorder"],
            &["fault:   a program"],
        ),
    ),
    (
        "rejtimeout",
        (
            1,
            &[NoAnswer],
            &["The client gave up (a ConnectReject, reason 4, timeout)", "sent twice", "Nothing refused it either"],
            &["rejected", "by itself", "fault:   the"],
        ),
    ),
];

#[test]
fn each_case_is_explained_rightly() {
    let cases = root().unwrap().join("tools/wire/tests/all/cases");
    for (name, said) in CASES {
        let file = std::fs::read(cases.join(format!("{name}.pcap"))).unwrap();
        check(name, &told(&file), said);
    }
}

#[test]
fn a_connection_that_never_came_to_be_is_not_mended() {
    let nobody = at([(0.0, request()), (4000.0, request()), (12_000.0, ready())]);
    assert!(!nobody.findings().any(|finding| finding.cause == MessageLost), "{nobody}");

    let lost: Vec<_> = [0.0, 4000.0, 8000.0].iter().flat_map(|ms| [(*ms, request()), (ms + 1.0, reply())]).collect();
    let never: Said = (
        1,
        &[NeverThrough],
        &["the ConnectReply was lost after the recorder", "unclear from this capture"],
        &["by itself", "rejected the connection", "fault:   the"],
    );
    check("replies lost, the client gives up", &at(lost.iter().cloned().chain([(12_000.0, reject(true, 4))])), never);
    check("replies lost, the server gives up", &at(lost.iter().cloned().chain([(12_000.0, reject(false, 4))])), never);
    let on: Vec<_> = lost.into_iter().chain([12_000.0, 16_000.0].map(|ms| (ms, request()))).collect();
    check("replies lost, and nobody gives up yet", &at(on), never);

    let replies = [1.0, 4000.0, 8000.0, 12_000.0].map(|ms| (ms, reply()));
    let unheard = replies.iter().cloned().flat_map(|(ms, reply)| [(ms, reply), (ms + 1.0, ready())]);
    let heard =
        [(0.0, request())].into_iter().chain(unheard).chain([(16_000.0, reply()), (20_000.0, reject(false, 28))]);
    let said: Said = (1, &[NeverReady], &["then it gave the connection up"], &["by itself"]);
    check("ReadyToUse lost for good", &at(heard), said);
}

/// Each reason has its own meaning: nobody looks for a listener because of a stale queue pair.
#[test]
fn each_reason_of_a_reject_has_its_own_advice() {
    for (reason, words) in
        [(8, "is the server's program started"), (10, "connect again"), (3, "the limits of its device")]
    {
        let said = at([(0.0, request()), (1.0, reject(false, reason))]);
        let never: &[&str] = if reason == 8 { &[] } else { &["is the server's program started"] };
        check(&format!("reason {reason}"), &said, (1, &[Rejected], &[words], never));
    }
    let alone = at([(0.0, reject(false, 8))]);
    check("a reject alone", &alone, (1, &[Rejected], &["rejected a connection", "nobody listens"], &["Nothing that"]));
}

#[test]
fn a_message_that_buys_time_is_no_answer() {
    let longer = cm_frame(SERVER, CLIENT, 0x11, &[(0, &SERVER_ID), (4, &CLIENT_ID)]);
    let gave_up = at([(0.0, request()), (1.0, longer.clone()), (30_000.0, reject(true, 4))]);
    check(
        "MRA, then nothing",
        &gave_up,
        (1, &[NoAnswer], &["its answer takes longer (MsgRcptAck, frame 2)"], &["rejected"]),
    );
    let waits = at([(0.0, request()), (1.0, longer), (20_000.0, tcp(CLIENT, SERVER, [4000, 5000], 0x10))]);
    assert!(waits.status() != 1, "{waits}");
}

#[test]
fn the_same_capture_speaks_for_the_accused() {
    // Who answers what is sent to its queue pair has that number.
    let serving = [
        (0.0, frame(SERVER, CLIENT, 0x04, CLIENT_QP, 9, &[], b"hello")),
        (1.0, frame(CLIENT, SERVER, 0x11, SERVER_QP, 9, &aeth(ACK, 1), &[])),
    ];
    let again =
        [10.0, 500.0, 1000.0, 1500.0].into_iter().flat_map(|ms| [(ms, write(5, 8)), (ms + 1.0, answer(5, ACK))]);
    let said: Said = (1, &[AnswersLost], &["which answers other requests in this capture"], &["fault:   a program"]);
    check("the number is right", &at(serving.into_iter().chain(again.clone())), said);
    let said: Said = (1, &[AnswersNotTaken], &["that isn't", "or the answers were lost"], &["fault:   a program"]);
    check("the number may be wrong", &at(again.clone()), said);
    let went_on = again.chain([(1510.0, write(6, 8)), (1511.0, answer(6, ACK))]);
    check("it went on", &at(went_on), (1, &[AnswerLost], &["by itself"], &["again and again"]));

    let accepted = at([(0.0, write(5, 8)), (1.0, answer(5, ACK)), (2.0, write(6, 8)), (3.0, answer(6, ACCESS))]);
    check("the key was right", &accepted, (1, &[RemoteAccess], &["accepted in frame 1", "deregistered since"], &[]));
    let other = frame(CLIENT, SERVER, 0x17, SERVER_QP, 6, &0x77u32.to_be_bytes(), b"bye");
    let ended =
        at([(0.0, write(5, 8)), (1.0, other), (2.0, answer(6, ACK)), (3.0, write(7, 8)), (4.0, answer(7, ACCESS))]);
    check(
        "its owner was told to end it",
        &ended,
        (1, &[RemoteAccess], &["the SEND of frame 2 has invalidated that key"], &[]),
    );
}

#[test]
fn what_was_agreed_on_is_compared_with_the_packets() {
    let ids = [CLIENT_ID, SERVER_ID].map(u32::from_be_bytes);
    let (qps, psns) = ([CLIENT_QP, SERVER_QP], [CLIENT_PSN, SERVER_PSN]);
    let ends = Ends { addresses: [CLIENT, SERVER], ids, qps, psns, mtu_code: 3 };
    let refused = |between: Vec<Vec<u8>>| {
        let frames = ends.around(between);
        at(frames.into_iter().enumerate().map(|(i, frame)| (i as f64, frame)))
    };
    let long = frame(CLIENT, SERVER, 0x00, SERVER_QP, CLIENT_PSN, &[], &[5; 2048]);
    let said: Said = (1, &[InvalidRequest], &["it carries 2048 bytes", "a path MTU of 1024"], &[]);
    check("path MTU", &refused(vec![long, answer(CLIENT_PSN, INVALID)]), said);
    let read = |i: u32| frame(CLIENT, SERVER, 0x0c, SERVER_QP, (CLIENT_PSN + i) & 0xff_ffff, &reth(0, 7, 8), &[]);
    let reads = vec![read(0), read(1), read(2), read(3), answer(CLIENT_PSN.wrapping_add(3) & 0xff_ffff, INVALID)];
    let said: Said =
        (1, &[InvalidRequest], &["number 4 of the READs and atomics under way, and the server agreed to 3"], &[]);
    check("READs at a time", &refused(reads), said);
}

#[test]
fn one_direction_says_what_it_shows() {
    let again = at([(0.0, write(5, 8)), (500.0, write(5, 8)), (501.0, write(6, 8)), (502.0, write(7, 8))]);
    let said: Said = (
        1,
        &[SentAgain, Unfinished],
        &["of PSN +0 was sent again, after 500.000 ms", "one direction only"],
        &["had no answer;", "the network"],
    );
    check("requests, one sent again", &again, said);
    let first_is_fine = at([(0.0, write(5, 8)), (1.0, write(6, 8)), (501.0, write(6, 8)), (502.0, write(7, 8))]);
    check("not the oldest", &first_is_fine, (1, &[SentAgain, Unfinished], &["after 500.000 ms"], &[]));
    let soon = at([(0.0, write(5, 8)), (0.1, write(6, 8)), (0.5, write(5, 8)), (0.6, write(7, 8)), (0.7, write(8, 8))]);
    check(
        "soon again",
        &soon,
        (1, &[SentAgain, Unfinished], &["a NAK that can't be seen here"], &["by itself", "rdma_rxe"]),
    );
    check("RNR NAKs alone", &at([(0.0, answer(5, RNR))]), (1, &[NotReady], &["had no receive"], &["by itself"]));
    check("a NAK alone", &at([(0.0, answer(5, SEQUENCE))]), (1, &[Lost], &["asked for a packet"], &["by itself"]));
    check("ACKs alone", &at([(0.0, answer(5, ACK))]), (0, &[], &["1 answer is in the capture"], &[]));
}

/// One of the two directions of a connection whose ConnectRequest is there: who refuses something is heard.
#[test]
fn a_refusal_is_heard_in_one_direction() {
    let file = std::fs::read(root().unwrap().join("captures/changes/04-wrong-key.pcapng")).unwrap();
    let frames = crate::files::frames(&file).into_iter().filter(|frame| frame.node.as_deref() == Some("server"));
    let told = told(&written(frames.map(|frame| Piece::Frame(Recorded { node: None, ..frame }))));
    assert!(told.findings().any(|finding| finding.cause == RemoteAccess), "{told}");
}

#[test]
fn a_capture_of_two_places_counts_each_packet_once() {
    let routed = |frame: &[u8]| {
        let mut frame = frame.to_vec();
        frame[14 + 8] -= 1;
        frame
    };
    let frames = [write(0, 64), answer(0, ACK), write(1, 64), answer(1, ACCESS)];
    let twice = |frames: &[Vec<u8>]| -> Vec<(f64, Vec<u8>)> {
        let pairs = frames.iter().enumerate();
        pairs.flat_map(|(i, frame)| [(i as f64, frame.clone()), (i as f64 + 0.01, routed(frame))]).collect()
    };
    let said: Said = (
        1,
        &[RemoteAccess],
        &["recorded twice (before and after a router", "2 WRITEs"],
        &["rdma_rxe", "times in all", "came twice"],
    );
    check("before and after a router", &at(twice(&frames)), said);

    // What a NAK asked for, and one packet that came twice, are what they are.
    let again = at([
        (0.0, write(0, 64)),
        (0.1, write(1, 64)),
        (0.2, answer(0, SEQUENCE)),
        (0.3, write(0, 64)),
        (0.4, write(1, 64)),
        (0.5, answer(1, ACK)),
    ]);
    check("sent again on demand", &again, (1, &[Lost], &[], &["twice"]));
    let one = at([
        (0.0, write(0, 64)),
        (0.1, write(0, 64)),
        (0.2, answer(0, ACK)),
        (1.0, write(1, 64)),
        (1.2, answer(1, ACK)),
        (2.0, write(2, 64)),
        (2.2, answer(2, ACK)),
    ]);
    check("one of many", &one, (1, &[Doubled], &["came twice"], &["recorded twice"]));
}

#[test]
fn without_the_connection_manager_nobody_is_called_a_client_for_nothing() {
    let serves = || {
        vec![
            (5.0, frame(SERVER, CLIENT, 0x04, CLIENT_QP, 1, &[], b"hello")),
            (6.0, frame(CLIENT, SERVER, 0x11, SERVER_QP, 1, &aeth(ACK, 1), &[])),
        ]
    };
    let guessed = at(serves());
    check(
        "nothing says",
        &guessed,
        (
            0,
            &[],
            &["nothing in the capture says who is the client", "10.0.0.1 sends 1 SEND"],
            &["the client sends", "the server sends"],
        ),
    );
    let with = |segment: Vec<u8>| at([(0.0, segment)].into_iter().chain(serves()));
    let opened: Said = (
        0,
        &[],
        &["client 10.0.0.2", "server 10.0.0.1", "opened their TCP connection", "the server sends 1 SEND"],
        &[],
    );
    check("the SYN says", &with(tcp(CLIENT, SERVER, [40_000, 18_515], 0x02)), opened);
    check("the answer to it says", &with(tcp(SERVER, CLIENT, [18_515, 40_000], 0x12)), opened);
    let ports: Said = (0, &[], &["client 10.0.0.2", "server 10.0.0.1", "the higher port"], &[]);
    check("the ports say", &with(tcp(SERVER, CLIENT, [18_515, 40_000], 0x18)), ports);
    let ladder = |name: &str, file: &[u8]| {
        let shown = wire("show", &crate::files::file(name, file), &["--format", "ladder"]);
        text(&shown.stdout).to_owned()
    };
    let pieces = |frames: Vec<Vec<u8>>| written(frames.into_iter().map(|data| Piece::Frame(Recorded::of(data))));
    let frames = || serves().into_iter().map(|(_, frame)| frame);
    let shown = ladder("guessed.pcapng", &pieces(frames().collect()));
    assert!(!shown.contains("client") && !shown.contains("server"), "{shown}");
    let shown = ladder(
        "opened.pcapng",
        &pieces([tcp(CLIENT, SERVER, [40_000, 18_515], 0x02)].into_iter().chain(frames()).collect()),
    );
    assert!(shown.contains("client 10.0.0.2") && shown.contains("server 10.0.0.1"), "{shown}");
}

#[test]
fn what_cannot_be_judged_is_no_success() {
    check("no packets", &told(&written([])), (2, &[], &["There is no RoCEv2 packet"], &[]));
    let arp = vec![0; 60];
    check("no RoCE", &at([(0.0, arp)]), (2, &[], &["There is no RoCEv2 packet"], &[]));
    let noise = (0..64u32).map(|i| {
        let bytes: Vec<u8> = (0..64).map(|j| (i * 73 + j * 151 + i * j) as u8).collect();
        let mut frame = frame(CLIENT, SERVER, (i * 37) as u8, 7, i, &[], &bytes);
        let end = frame.len() - 1;
        frame[end] ^= 0x55;
        (f64::from(i), frame)
    });
    check(
        "noise",
        &at(noise),
        (2, &[], &["operation code that RoCE doesn't define", "something else than RoCE"], &["Nothing that"]),
    );
    let odd = frame(CLIENT, SERVER, 0x3f, SERVER_QP, 1, &[], b"what?");
    let mixed = at([(0.0, odd), (1.0, write(5, 8)), (2.0, answer(5, ACK))]);
    check("one of three", &mixed, (0, &[], &["1 of 3 packets", "0x3f in frame 1"], &[]));
}

#[test]
fn a_queue_pair_that_was_refused_answers_nobody() {
    let silent =
        [100.0, 600.0, 1100.0, 1600.0].map(|ms| (ms, frame(SERVER, CLIENT, 0x04, CLIENT_QP, 9, &[], b"hello?")));
    let frames = [(0.0, write(5, 8)), (1.0, answer(5, ACCESS))].into_iter().chain(silent);
    check(
        "after a NAK",
        &at(frames),
        (1, &[RemoteAccess, SilentPeer], &["since its request was refused in frame 2"], &[]),
    );
}

#[test]
fn who_waited_long_did_not_hang_up_too_early() {
    let ids = [CLIENT_ID, SERVER_ID].map(u32::from_be_bytes);
    let (qps, psns) = ([CLIENT_QP, SERVER_QP], [CLIENT_PSN, SERVER_PSN]);
    let ends = Ends { addresses: [CLIENT, SERVER], ids, qps, psns, mtu_code: 3 };
    let frames = ends.around(vec![write(CLIENT_PSN, 8)]);
    let late = |goodbye: f64| {
        at(frames.clone().into_iter().zip([0.0, 1.0, 2.0, 3.0, goodbye, goodbye + 1.0]).map(|(frame, ms)| (ms, frame)))
    };
    check("at once", &late(3.1), (1, &[HungUp], &["fault:   a program"], &[]));
    check("after a second", &late(1003.0), (1, &[HungUp], &["It had waited 1000.000 ms"], &["fault:   a program"]));
}

/// A ConnectReply without a queue pair: what is sent then goes nowhere.
#[test]
fn a_reply_without_a_queue_pair_is_the_reason_of_the_silence() {
    let file = std::fs::read(root().unwrap().join("captures/changes/03-late-queue-pair.pcapng")).unwrap();
    let text = told(&file).text(usize::MAX);
    assert!(text.contains("it goes to queue pair 0"), "{text}");
}

/// Nobody sends a datagram again.
#[test]
fn a_damaged_datagram_is_not_mended() {
    let mut damaged =
        frame(CLIENT, SERVER, 0x64, SERVER_QP, 5, &[&[0; 4][..], &CLIENT_QP.to_be_bytes()].concat(), &[7; 40]);
    let end = damaged.len() - 1;
    damaged[end] ^= 1;
    let good = frame(CLIENT, SERVER, 0x64, SERVER_QP, 6, &[&[0; 4][..], &CLIENT_QP.to_be_bytes()].concat(), &[8; 40]);
    check(
        "a datagram",
        &at([(0.0, good), (1.0, damaged)]),
        (1, &[Damaged], &["a receiver that checks it"], &["by itself"]),
    );
}
