//! Lessons meet a peer without manners (common/examples/odd_peer.rs): it sends messages that are too short, too long, of
//! a wrong kind or out of order, gives wrong keys, or goes away. The lesson ends with a clear error, in time, with nothing
//! left open: it does not panic, hang, or take a byte that is not there.

#![allow(clippy::unwrap_used)] // A test may end with a panic.

mod support;

use lab::{Run, CLIENT, SERVER};
use support::{odd_peer, Check};

/// What a program returns that panicked.
const PANICKED: i32 = 101;

const SHOW: &str = "/usr/bin/rdma resource show";

/// The lesson's server against an odd client: how it ends, and what it says.
fn server_meets(number: &str, options: &str, steps: &str, says: &str) {
    let server = format!("lesson-{number} server --timeout 5 {options}");
    let client = format!("{} client 10.47.91.1 {steps}", odd_peer());
    judge(Run::programs().server(&server).client(&client), SERVER, says);
}

/// The lesson's client against an odd server.
fn client_meets(number: &str, options: &str, steps: &str, says: &str) {
    let server = format!("{} server {steps}", odd_peer());
    let client = format!("lesson-{number} client -a 10.47.91.1 --timeout 5 {options}");
    judge(Run::programs().server(&server).client(&client), CLIENT, says);
}

fn judge(run: Run, lesson: &str, says: &str) {
    let check = Check::of(run.inspect(SHOW));
    let ended = check.outcome.node(lesson);
    assert_ne!(ended.exit, Some(PANICKED), "{}", ended.log.join("\n"));
    assert_eq!(ended.exit, Some(1), "{}", ended.log.join("\n"));
    assert_eq!(check.count(lesson, "panicked"), 0);
    check.logs_in_order(lesson, &["] ERR  ", "the stages so far: main → "]);
    assert!(check.line(lesson, "] ERR  ").contains(says), "not {says:?}: {}", check.line(lesson, "] ERR  "));
    support::assert_nothing_left_open(ended, &ended.log.join("\n"));
}

#[test]
fn metadata_that_is_none() {
    for number in ["03", "05"] {
        server_meets(number, "", "send=0102 sleep=1000", "the peer's metadata has 2 bytes, not 16");
    }
    server_meets("04", "", "send= sleep=1000", "the peer's metadata has 0 bytes, not 16");
    server_meets("04", "", "send=ff*16 sleep=1000", "the peer's metadata makes no sense");
    server_meets("04", "", "send=ff*500 sleep=1000", "completed with IBV_WC_LOC_");
    client_meets("03", "", "send=0102 sleep=1000", "the peer's metadata has 2 bytes, not 16");
    client_meets("05", "", "send=00*16 sleep=1000", "our 60 bytes do not fit into the other side's 0");
    let option = "--metadata private-data";
    client_meets("04", option, "sleep=1000", "our 60 bytes do not fit into the other side's 0");
    client_meets("04", option, "data=ff*16 sleep=1000", "the peer's metadata makes no sense");
    client_meets(
        "04",
        option,
        "data=0000000000001000000003e800000008 sleep=1000",
        "do not fit into the other side's 8",
    );
}

#[test]
fn a_buffer_that_is_too_long_is_refused() {
    // Address 0x1000, rkey 0x3e8, length 0x00200000: 2 MiB.
    let wanted = "send=0000000000001000000003e800200000";
    server_meets("04", "", &format!("{wanted} sleep=1000"), "asked for a buffer of 2097152 bytes: 1 to 1048576");
    let check = support::lesson("04", "", "--len 1048577").exits(1, 1);
    check.logs(CLIENT, "our 1048577 bytes do not fit into the other side's 0");
    support::lesson("04", "", "--len 1048576").exits(0, 0);
}

#[test]
fn a_wrong_key_is_told_from_a_wrong_program() {
    let metadata = "send=00005555555550000000dead00001000";
    client_meets("04", "", &format!("{metadata} sleep=1500"), "IBV_WC_REM_ACCESS_ERR");
    client_meets("06", "", &format!("{metadata} sleep=1500"), "IBV_WC_REM_ACCESS_ERR");
    client_meets("06", "-m read", &format!("{metadata} sleep=1500"), "IBV_WC_REM_ACCESS_ERR");
    client_meets("07", "", &format!("{metadata} sleep=1500"), "IBV_WC_REM_ACCESS_ERR");
    // A WRITE that the server's device turns away moves the server's QP to ERR: its receive never completes.
    server_meets("04", "", "write=555555555000,dead,00*8 sleep=1000", "last stage wait_for: ");
}

#[test]
fn messages_of_a_wrong_kind_or_out_of_order() {
    // In 07 the terms come first: "write client".
    for (number, terms) in [("06", ""), ("07", "data=777269746520636c69656e74")] {
        server_meets(
            number,
            "",
            &format!("{terms} send=09000000 sleep=1000"),
            "the peer's metadata has 4 bytes, not 16",
        );
        server_meets(number, "", &format!("{terms} send=ff*16 sleep=1000"), "the peer's metadata makes no sense");
        server_meets(number, "", &format!("{terms} send=ff*400 sleep=1000"), "completed with IBV_WC_LOC_");
    }
    let metadata = "send=00005555555550000000dead00000008";
    client_meets("06", "", &format!("{metadata} sleep=1000"), "our 60 bytes do not fit into the other side's 8");
    server_meets("07", "", "sleep=1000", "client and server differ in -m or --closer");
    server_meets("07", "", "data=0201 sleep=1000", "client and server differ in -m or --closer");
}

#[test]
fn peers_that_go_away() {
    server_meets("03", "", "close", "RDMA_CM_EVENT_DISCONNECTED instead of a RECV with the peer's metadata");
    server_meets("06", "", "close", "the connection ended in the state SS_INIT RS_INIT");
    server_meets("07", "", "data=777269746520636c69656e74 close", "the connection ended in the state SS_INIT RS_INIT");
    client_meets("05", "", "close", "");
    client_meets("07", "", "close", "the connection ended in the state");
    client_meets("06", "", "sleep=1", "the connection ended in the state");
}
