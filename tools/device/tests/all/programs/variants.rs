//! Each lesson with its options: how it ends and what it says. That the recorded runs come with the same packets and log lines,
//! lessons.rs shows, here and in the lab.

use super::support::{each, lesson, programs, CLIENT, DEVICE, SERVER};
use std::process::Command;

/// A lesson, the server's and the client's options, with which status both end, and what each says, in this order.
type Case = (&'static str, [&'static str; 2], i32, &'static [&'static str], &'static [&'static str]);

const PRIVATE: &str = "--metadata private-data -p 4711";
const SAYS_SERVER: &str = "-s 'the server was here'";
const SAYS_CLIENT: &str = "-s 'the client was here'";
const CHECKED: &[&str] = &["last stage check_terms: client and server differ in -m or --closer"];
const TOLD: &[&str] = &["and the peer says \"client and server differ in -m or --closer\""];
const TEARDOWN: [&str; 9] = [
    "state=INIT",
    "state=RTS mtu=1024 B",
    "state=ERR",
    "rdma_destroy_qp",
    "ibv_destroy_cq",
    "ibv_destroy_comp_channel",
    "ibv_dealloc_pd",
    "rdma_destroy_id",
    "rdma_destroy_event_channel",
];
const MACHINE: [&str; 3] = ["SendCompleted → SS_MR_SENT", "→ SS_RDMA_SENT", "→ SS_DONE_SENT"];
const FLUSHED: [&str; 4] = ["rdma_disconnect", "state=ERR", "IBV_WC_WR_FLUSH_ERR", "4 receives came back flushed"];

const CASES: &[Case] = &[
    (
        "01",
        ["", ""],
        0,
        &["rdma_bind_addr [::]:7471", "SLOW  rdma_listen backlog=8", "listening on [::]:7471", "knocked"],
        &["rejected with status 28 (consumer reject", "the server says: \"lesson 01 has nothing to offer yet"],
    ),
    ("02", ["", ""], 0, &TEARDOWN, &TEARDOWN),
    (
        "02",
        ["", ""],
        0,
        &["listening on ", "a connection from 127.0.0.", "server shut-down is complete"],
        &["connected", "client clean-up is complete"],
    ),
    ("03", ["", ""], 0, &["ibv_post_recv", "rdma_accept"], &["ibv_post_recv", "rdma_connect"]),
    // The memory that is told of is registered before.
    ("03", [PRIVATE; 2], 0, &["access=LOCAL_WRITE|REMOTE_WRITE|REMOTE_READ", "private_data=16 bytes"], &["len=4096"]),
    (
        "04",
        ["", "-s 'two words'"],
        0,
        &["CM event: DISCONNECTED", "memory holds 9 bytes: \"two words\""],
        &["ibv_post_send RDMA_WRITE", "status=IBV_WC_SUCCESS opcode=IBV_WC_RDMA_WRITE"],
    ),
    ("04", ["", "--len 2500"], 0, &["memory holds 2500 bytes: 00 01 02 03"], &[]),
    ("05", [PRIVATE; 2], 0, &["rdma_bind_addr [::]:4711"], &["SUCCESS, source and destination buffers match"]),
    ("06", ["", ""], 0, &MACHINE, &MACHINE),
    ("06", ["-m read"; 2], 0, &["MrReceived → ", "DoneReceived → "], &["MrReceived → ", "DoneReceived → "]),
    (
        "06",
        [SAYS_SERVER, SAYS_CLIENT],
        0,
        &["message from active/client side with pid ", "the memory holds 4096 bytes: \"the client was here\""],
        &["message from passive/server side with pid ", "the memory holds 4096 bytes: \"the server was here\""],
    ),
    (
        "06",
        ["-m read -s 'the server was here'", "-m read -s 'the client was here'"],
        0,
        &["the memory holds 4096 bytes: \"the client was here\""],
        &["the memory holds 4096 bytes: \"the server was here\""],
    ),
    ("07", ["--closer client"; 2], 0, &FLUSHED, &FLUSHED),
    ("07", ["--closer server"; 2], 0, &FLUSHED, &FLUSHED),
    ("07", ["-m write", "-m read"], 1, CHECKED, TOLD),
    ("07", ["--closer server", ""], 1, CHECKED, TOLD),
];

#[test]
fn each_lesson_says_what_its_options_promise() {
    each(CASES, |(number, [server, client], status, server_says, client_says)| {
        let check = lesson(number, server, client).exits(*status, *status);
        check.logs_in_order(SERVER, server_says);
        check.logs_in_order(CLIENT, client_says);
    });
}

#[test]
fn what_is_counted_comes_as_often_as_it_happens() {
    for (number, text, times) in [
        ("02", " mtu=", 1),
        ("02", "timeout=536.9 ms", 1),
        ("06", "INFO  state: ", 5),
        ("07", "status=IBV_WC_WR_FLUSH_ERR", 4),
    ] {
        let check = lesson(number, "", "").exits(0, 0);
        assert_eq!([SERVER, CLIENT].map(|side| check.count(side, text)), [times; 2], "{number}: {text}");
    }
}

#[test]
fn stages_can_be_shown_alone() {
    let outcome = lesson("02", "--stages accept", "--stages connect,teardown").exits(0, 0);
    for (side, shown) in [(SERVER, vec![" accept]"]), (CLIENT, vec![" connect]", " teardown]"])] {
        let lines: Vec<_> = outcome.node(side).log.iter().filter(|line| line.starts_with('[')).collect();
        let is_shown = |line: &&String| shown.iter().any(|stage| line.contains(stage));
        assert!(lines.len() > 3 && lines.iter().all(is_shown), "{lines:?}");
    }
}

#[test]
fn both_sides_tell_each_other_the_same_metadata() {
    let outcome = lesson("03", "", "").exits(0, 0);
    assert_eq!(outcome.metadata(SERVER, "our"), outcome.metadata(CLIENT, "the peer's"));
    assert_eq!(outcome.metadata(CLIENT, "our"), outcome.metadata(SERVER, "the peer's"));
}

#[test]
fn lesson_05_sleeps_where_lesson_04_polls() {
    let (polls, sleeps) = (lesson("04", "", "").exits(0, 0), lesson("05", "", "").exits(0, 0));
    for side in [SERVER, CLIENT] {
        polls.logs(side, "ibv_poll_cq until");
        assert_eq!(polls.count(side, "ibv_req_notify_cq"), 0);
        sleeps.logs(side, "FAST  ibv_req_notify_cq");
    }
    // A completion that is there when the CQ has just been armed needs no sleep: that may be so each time on one side.
    let asleep = [SERVER, CLIENT].map(|side| sleeps.count(side, "FAST  ibv_get_cq_event: waiting for"));
    assert!(asleep.iter().sum::<usize>() > 0, "nobody slept");
}

/// Each side's region allows what its own mode needs of it: the device of the one or the other refuses.
#[test]
fn lesson_06_in_two_modes_fails_at_the_device() {
    let outcome = lesson("06", "-m write", "-m read").exits(1, 1);
    let refused = [SERVER, CLIENT].map(|side| outcome.count(side, "IBV_WC_REM_ACCESS_ERR"));
    assert!(refused[0] + refused[1] > 0, "{:?}", outcome.packets());
}

#[test]
fn mistakes_of_a_person_are_named_with_the_next_step() {
    // A filter does not hide a failure.
    for filter in ["", "RUST_LOG=DATA "] {
        let check = programs("true", &format!("{filter}lesson-02 client -a nowhere.invalid")).exits(0, 1);
        check.logs(CLIENT, "no address for the host \"nowhere.invalid\"");
        check.logs(CLIENT, "Check the spelling");
    }
}

#[test]
fn a_server_does_not_wait_for_a_client_that_does_not_understand_its_options() {
    let check = lesson("04", "", "--lne 5");
    assert_eq!(check.node(CLIENT).exit, Some(2), "{}", check.all());
    let told = "trouble:  the server had not ended when the client had not understood its options, and is ended";
    assert!(check.outcome.contains(told), "{}", check.outcome);
}

/// A program that prints its help ends at once. Nobody waits for it.
#[test]
fn a_side_that_is_only_asked_for_its_help_has_no_run() {
    for (option, other) in [("--client-args=--help", "The server"), ("--server-args=-h", "The client")] {
        let output = Command::new(DEVICE).args(["run", "lesson-04", option]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        assert!(said.contains("Usage: lesson-04") && said.contains(&format!("{other} would wait for it")), "{said}");
    }
}
