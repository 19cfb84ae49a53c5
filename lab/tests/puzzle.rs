//! The puzzle of lesson 07: each of its programs says what the page tells, and one line is the answer.

#![allow(clippy::unwrap_used)] // A test may end with a panic.

mod support;

use lab::{CLIENT, SERVER};
use support::{lesson, Check};

const CONNECT: [&str; 3] = ["C ConnectRequest", "S ConnectReply", "C ReadyToUse"];

fn puzzle(server: &str, client: &str) -> Check {
    lesson("07", &format!("--puzzle {server}"), &format!("--puzzle {client} --timeout 4 -s 'can you read this?'"))
}

const PUZZLING: [&str; 4] = [
    "wc->status = 0 (IBV_WC_SUCCESS)",
    "send completed successfully.",
    "wc->status = 5 (IBV_WC_WR_FLUSH_ERR)",
    "CM event: DISCONNECTED",
];

#[test]
fn it_is_one() {
    let outcome = puzzle("a", "a").exits(1, 1);
    outcome.logs_in_order(CLIENT, &PUZZLING);
    outcome.logs_in_order(CLIENT, &["CM event: DISCONNECTED", "disconnected.", "ERR   the server hung up before"]);
    outcome.logs(SERVER, "received message: \"can you read this?\"");
    outcome.logs(SERVER, "on_event: unknown event RDMA_CM_EVENT_ESTABLISHED");
    let send = ["C RC Send Only", "S RC Acknowledge"];
    outcome.packets_are(&[&CONNECT, &send, &["S DisconnectRequest", "C DisconnectReply"]]);
}

#[test]
fn client_b_returns_at_the_echo() {
    let outcome = puzzle("a", "b").exits(1, 1);
    outcome.logs_in_order(CLIENT, &PUZZLING[..3]);
    outcome.does_not_log(CLIENT, "CM event: DISCONNECTED");
    outcome.logs(CLIENT, "ERR   work request 1 of QP 17 completed with IBV_WC_WR_FLUSH_ERR");
}

/// Server b is content, and its client waits in vain.
#[test]
fn server_b_says_nothing() {
    let outcome = puzzle("b", "a").exits(0, 1);
    outcome.logs_in_order(SERVER, &["received message: ", "peer disconnected."]);
    outcome.does_not_log(SERVER, "connected. posting send...");
    outcome.logs(CLIENT, "(a RECV with the server's text)");
}

#[test]
fn server_c_answers() {
    for client in ["a", "b"] {
        let outcome = puzzle("c", client).exits(0, 0);
        outcome.logs(CLIENT, "received message: \"message from passive/server side with pid ");
        outcome.logs_in_order(
            SERVER,
            &["received message: ", "connected. posting send...", "send completed successfully.", "peer disconnected."],
        );
    }
}

/// Server a and the line that it lacks are server c.
#[test]
fn one_line_is_the_answer() {
    let source = |name: &str| {
        let file = format!("{}/../lessons/07_disconnect_flush/puzzle/{name}.rs", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(file).unwrap();
        text.lines().filter(|line| !line.starts_with("//!")).map(|line| format!("{line}\n")).collect::<String>()
    };
    let line = "        RDMA_CM_EVENT_ESTABLISHED => server.on_connection(),\n";
    let before = "        RDMA_CM_EVENT_DISCONNECTED =>";
    assert_eq!(source("server_a").replace(before, &format!("{line}{before}")), source("server_c"));
    assert!(!source("server_a").contains("ESTABLISHED") && !source("server_b").contains("ESTABLISHED"));
}
