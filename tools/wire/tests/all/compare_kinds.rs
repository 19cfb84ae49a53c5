//! What a comparison says about packets of every kind: those of newer devices, of datagrams, those it does not know, and
//! very many.

use crate::edit::Frames;
use testkit::frames::*;
use wire::compare::{Report, Verdict};

/// The three packets of a handshake, then these.
fn connection(rest: Vec<Vec<u8>>) -> Frames {
    Frames::of([conversation()[..3].to_vec(), rest].concat())
}

fn same(mine: &Frames, reference: &Frames) {
    let report = mine.against(reference);
    assert_eq!((report.verdict(), report.notes.as_slice()), (Verdict::Same, &[][..]), "{report}");
}

#[track_caller]
fn differs(mine: &Frames, reference: &Frames, field: &str, part: &str) -> Report {
    let report = mine.against(reference);
    let cause = report.cause.as_ref().unwrap_or_else(|| panic!("{report}"));
    assert!(cause.field == field && cause.sentence.contains(part), "{report}");
    report
}

#[test]
fn flush_and_atomic_write_take_numbers() {
    let write = |placement: u8| {
        let flush = [vec![0, 0, 0, placement], reth(0x1000, 5, 64)].concat();
        connection(vec![
            frame(CLIENT, SERVER, 0x1d, SERVER_QP, CLIENT_PSN, &reth(0x1000, 5, 8), &[1; 8]),
            frame(SERVER, CLIENT, 0x10, CLIENT_QP, CLIENT_PSN, &aeth(0x1f, 1), &[]),
            frame(CLIENT, SERVER, 0x1c, SERVER_QP, 0, &flush, &[]),
            frame(SERVER, CLIENT, 0x10, CLIENT_QP, 0, &aeth(0x1f, 2), &[]),
            frame(CLIENT, SERVER, 0x04, SERVER_QP, 1, &[], b"done"),
            frame(SERVER, CLIENT, 0x11, CLIENT_QP, 1, &aeth(0x1f, 3), &[]),
        ])
    };
    same(&write(1), &write(1));
    differs(&write(1), &write(2), "operands", "FLUSH works with 0x0 and 0x1");
    differs(&write(1).before("RC Flush"), &write(1), "missing", "never posts the FLUSH");
}

#[test]
fn extended_reliable_connections_are_compared() {
    let send = |text: &[u8]| {
        connection(vec![
            frame(CLIENT, SERVER, 0xa4, SERVER_QP, CLIENT_PSN, &[0, 0, 0, 1], text),
            frame(SERVER, CLIENT, 0xb1, CLIENT_QP, CLIENT_PSN, &aeth(0x1f, 1), &[]),
        ])
    };
    same(&send(b"one"), &send(b"one"));
    differs(&send(b"one"), &send(b"two"), "payload", "SEND says 6f 6e 65");
    let silent = send(b"one").without("XRC Acknowledge");
    differs(&silent, &send(b"one"), "outcome", "gets no answer");
}

/// A client asks for a datagram service, and sends a datagram to it.
fn datagrams(status: u8) -> Frames {
    let service = 0x0111_1d2fu64.to_be_bytes();
    Frames::of(vec![
        cm_frame(CLIENT, SERVER, 0x17, &[(0, &CLIENT_ID), (8, &service)]),
        cm_frame(SERVER, CLIENT, 0x18, &[(0, &CLIENT_ID), (4, &[status]), (8, &[0, 0, 0x22])]),
        frame(CLIENT, SERVER, 0x64, SERVER_QP, 9, &[0, 0, 0, 1, 0, 0, 0, 0x11], b"hello"),
        frame(SERVER, CLIENT, 0x64, CLIENT_QP, 9, &[0, 0, 0, 1, 0, 0, 0, 0x22], b"welcome"),
    ])
}

#[test]
fn a_service_for_datagrams_is_a_connection_of_its_own() {
    same(&datagrams(0), &datagrams(0));
    let summary = datagrams(0).against(&datagrams(0)).summary;
    assert_eq!(summary, "1 connection, 2 messages of the connection manager, 2 requests with their outcomes");
    differs(&datagrams(1), &datagrams(0), "answer", "answers \"service ID not supported\"");
    differs(&datagrams(0).before("UD Send Only #2"), &datagrams(0), "missing", "Your server never posts the SEND");
    differs(&datagrams(0), &connection(vec![]), "service", "begins with a SIDR_REQ");
}

#[test]
fn datagrams_of_two_clients_that_take_turns_are_two_connections() {
    let send = |from: &str| frame(from, SERVER, 0x64, SERVER_QP, 9, &[0, 0, 0, 1, 0, 0, 0, 0x11], b"hello");
    let answer = |to: &str| frame(SERVER, to, 0x64, CLIENT_QP, 9, &[0, 0, 0, 1, 0, 0, 0, 0x22], b"welcome");
    let turn = || vec![send(CLIENT), send("10.0.0.9"), answer("10.0.0.9"), answer(CLIENT)];
    let frames = Frames::of([turn(), turn()].concat());
    let summary = frames.against(&frames).summary;
    assert_eq!(summary, "2 connections, 0 messages of the connection manager, 8 requests with their outcomes");
}

#[test]
fn what_cannot_be_decoded_is_named_and_never_the_same() {
    let good = Frames::of(conversation());
    for (packet, what) in [
        (frame(CLIENT, SERVER, 0x15, SERVER_QP, 4, &[], &[]), "frame 14 with the operation code 0x15"),
        (frame(CLIENT, SERVER, 0x44, SERVER_QP, 4, &[], &[]), "frame 14 with the operation code 0x44"),
        (cm_frame(CLIENT, SERVER, 0x1b, &[]), "frame 14 with a CM message with the attribute 0x001b"),
    ] {
        let mine = good.clone().insert(13, vec![packet]);
        let report = mine.against(&mine);
        assert_eq!(report.verdict(), Verdict::Unreadable, "{report}");
        assert!(report.problems[0].contains(what), "{report}");
    }
}

/// So many WRITEs of one packet each, the one at `odd` with another length.
fn writes(count: u32, odd: u32) -> Frames {
    let psn = |i: u32| CLIENT_PSN.wrapping_add(i) & 0xff_ffff;
    let write = |i: u32| {
        let data: &[u8] = if i == odd { b"longer" } else { b"long" };
        let reth = reth(0x1000 + u64::from(i % 7), 5, data.len() as u32);
        let request = frame(CLIENT, SERVER, 0x0a, SERVER_QP, psn(i), &reth, data);
        [request, frame(SERVER, CLIENT, 0x11, CLIENT_QP, psn(i), &aeth(0x1f, i), &[])]
    };
    connection((0..count).flat_map(write).collect())
}

#[test]
fn very_many_requests_are_all_compared() {
    let reference = writes(10_000, u32::MAX);
    same(&reference, &reference);
    differs(
        &writes(10_000, 9_000),
        &reference,
        "operation",
        "Your client posts 5904 requests after the first 4096; the reference's begins the same way",
    );
    differs(&writes(9_999, u32::MAX), &reference, "operation", "Your client posts 5903 requests after");
}
