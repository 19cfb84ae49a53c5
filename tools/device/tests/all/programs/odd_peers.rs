//! Lessons meet a peer without manners (common/examples/odd_peer.rs): it sends messages that are too short, too long, of
//! a wrong kind or out of order, gives wrong keys, or goes away. The lesson ends with a clear error, in time, with nothing
//! left open: it does not panic, hang, or take a byte that is not there.

use super::support;

use support::{each, example, lesson, programs, Check, CLIENT, SERVER};

/// What a program returns that panicked.
const PANICKED: i32 = 101;

/// A lesson's number, its side and options, what its odd peer does, and what the lesson says of it.
type Case<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str);

fn all_end_in_words(cases: &[Case<'_>]) {
    each(cases, |(number, side, options, steps, says)| {
        let peer = example("odd_peer");
        let check = match *side {
            SERVER => programs(
                &format!("lesson-{number} server --timeout 5 {options}"),
                &format!("{peer} client $SERVER {steps}"),
            ),
            _ => programs(
                &format!("{peer} server {steps}"),
                &format!("lesson-{number} client -a $SERVER --timeout 5 {options}"),
            ),
        };
        ends_in_words(&check, side, says);
    });
}

fn ends_in_words(check: &Check, side: &str, says: &str) {
    let ended = check.node(side);
    assert_ne!(ended.exit, Some(PANICKED), "{}", check.all());
    assert_eq!(ended.exit, Some(1), "{}", check.all());
    assert_eq!(check.count(side, "panicked"), 0);
    check.logs_in_order(side, &["] ERR  ", "the stages so far: main → "]);
    assert!(check.line(side, "] ERR  ").contains(says), "not {says:?}: {}", check.all());
}

#[test]
fn metadata_that_is_none() {
    let private = "--metadata private-data";
    all_end_in_words(&[
        ("03", SERVER, "", "send=0102 sleep=1000", "the peer's metadata has 2 bytes, not 16"),
        ("05", SERVER, "", "send=0102 sleep=1000", "the peer's metadata has 2 bytes, not 16"),
        ("04", SERVER, "", "send= sleep=1000", "the peer's metadata has 0 bytes, not 16"),
        ("04", SERVER, "", "send=ff*16 sleep=1000", "the peer's metadata makes no sense"),
        ("04", SERVER, "", "send=ff*500 sleep=1000", "completed with IBV_WC_LOC_"),
        ("03", CLIENT, "", "send=0102 sleep=1000", "the peer's metadata has 2 bytes, not 16"),
        ("05", CLIENT, "", "send=00*16 sleep=1000", "our 60 bytes do not fit into the other side's 0"),
        ("04", CLIENT, private, "sleep=1000", "our 60 bytes do not fit into the other side's 0"),
        ("04", CLIENT, private, "data=ff*16 sleep=1000", "the peer's metadata makes no sense"),
        (
            "04",
            CLIENT,
            private,
            "data=0000000000001000000003e800000008 sleep=1000",
            "do not fit into the other side's 8",
        ),
    ]);
}

#[test]
fn a_buffer_that_is_too_long_is_refused() {
    // Address 0x1000, rkey 0x3e8, length 0x00200000: 2 MiB.
    let wanted = "send=0000000000001000000003e800200000 sleep=1000";
    all_end_in_words(&[("04", SERVER, "", wanted, "asked for a buffer of 2097152 bytes: 1 to 1048576")]);
    let check = lesson("04", "", "--len 1048577").exits(1, 1);
    check.logs(CLIENT, "our 1048577 bytes do not fit into the other side's 0");
    lesson("04", "", "--len 1048576").exits(0, 0);
}

#[test]
fn a_wrong_key_is_told_from_a_wrong_program() {
    let metadata = "send=00005555555550000000dead00001000 sleep=1500";
    all_end_in_words(&[
        ("04", CLIENT, "", metadata, "IBV_WC_REM_ACCESS_ERR"),
        ("06", CLIENT, "", metadata, "IBV_WC_REM_ACCESS_ERR"),
        ("06", CLIENT, "-m read", metadata, "IBV_WC_REM_ACCESS_ERR"),
        ("07", CLIENT, "", metadata, "IBV_WC_REM_ACCESS_ERR"),
        // A WRITE that the server's device turns away moves the server's QP to ERR: its receive never completes.
        ("04", SERVER, "", "write=555555555000,dead,00*8 sleep=1000", "last stage wait_for: "),
    ]);
}

#[test]
fn messages_of_a_wrong_kind_or_out_of_order() {
    // In 07 the terms come first: "write client".
    for (number, terms) in [("06", ""), ("07", "data=777269746520636c69656e74")] {
        let messages = ["09000000", "ff*16", "ff*400"].map(|message| format!("{terms} send={message} sleep=1000"));
        all_end_in_words(&[
            (number, SERVER, "", &messages[0], "the peer's metadata has 4 bytes, not 16"),
            (number, SERVER, "", &messages[1], "the peer's metadata makes no sense"),
            (number, SERVER, "", &messages[2], "completed with IBV_WC_LOC_"),
        ]);
    }
    let metadata = "send=00005555555550000000dead00000008 sleep=1000";
    all_end_in_words(&[
        ("06", CLIENT, "", metadata, "our 60 bytes do not fit into the other side's 8"),
        ("07", SERVER, "", "sleep=1000", "client and server differ in -m or --closer"),
        ("07", SERVER, "", "data=0201 sleep=1000", "client and server differ in -m or --closer"),
    ]);
}

#[test]
fn peers_that_go_away() {
    let ended = "the connection ended in the state SS_INIT RS_INIT";
    all_end_in_words(&[
        ("03", SERVER, "", "close", "RDMA_CM_EVENT_DISCONNECTED instead of a RECV with the peer's metadata"),
        ("06", SERVER, "", "close", ended),
        ("07", SERVER, "", "data=777269746520636c69656e74 close", ended),
        ("05", CLIENT, "", "close", ""),
        ("07", CLIENT, "", "close", "the connection ended in the state"),
    ]);
}
