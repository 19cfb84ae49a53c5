//! The library `common` by itself, before any lesson, on the kernel's driver: every function in every state. The programs are
//! in common/examples; more of them run on the device in user space (tools/device/tests/all/programs/common_library.rs).

use crate::support;

use crate::support::{check, example, Check};
use lab::{Run, CLIENT, SERVER};
use std::time::Duration;

const SHOW: &str = "/usr/bin/rdma resource show";

/// Without their logs, which would be long; what the calls return is on standard output.
fn states(role: &str) -> String {
    format!("RUST_LOG=error {} {role}", example("states"))
}

/// Every call has returned, and nothing is left open: in the process itself, and after it.
fn assert_all_returned(check: &Check, side: &str, at_least: usize) {
    let calls = check.count(side, " | ");
    assert!(calls >= at_least, "only {calls} calls");
    check.logs(side, &format!("{calls} calls returned"));
    check.logs(side, "nothing is left open");
    assert_eq!(check.count(side, "panicked"), 0);
    support::assert_nothing_left_open(check.outcome.node(side), "after every call in every state");
}

/// What a function returned in a state, the first time.
fn returned(check: &Check, side: &str, state: &str, function: &str) -> String {
    check.line(side, &format!("{state} | {function} | "))
}

#[test]
#[ignore = "takes long: make test-long"]
fn an_id_in_every_state_of_a_client() {
    let client = states(&format!("client {}", lab::address(0)));
    let run = Run::programs().server(&states("host")).client(&client).inspect(SHOW);
    let check = check(run.deadline(Duration::from_secs(300))).exits(0, 0);
    assert_all_returned(&check, CLIENT, 800);
    for state in ["fresh", "bound to all", "listening on all"] {
        for function in ["resolve_route", "connect", "accept", "disconnect", "verbs", "resources"] {
            let text = returned(&check, CLIENT, state, function);
            assert!(text.contains("this id has no device yet"), "{text}");
        }
    }
    let held = returned(&check, CLIENT, "connected, event not acknowledged", "migrate_id");
    assert!(held.contains("an event of this id is not acknowledged"), "{held}");
    let foreign = returned(&check, CLIENT, "connected", "a QP from another device's parts");
    assert!(foreign.contains("not all of the QP's own device"), "{foreign}");
}

/// Destroying an id that has just answered a knock can take the kernel (6.1) 70 s: until it has sent its ConnectReply for the
/// last time. Each of these waits is one of those.
#[test]
#[ignore = "takes long: make test-long"]
fn an_id_in_every_state_of_a_server() {
    let guest = states(&format!("guest {}", lab::address(0)));
    let run = Run::programs().server(&states("server")).client(&guest).inspect(SHOW);
    let check = check(run.deadline(Duration::from_secs(900))).exits(0, 0);
    assert_all_returned(&check, SERVER, 400);
    // The event of a knock is held by the listener (librdmacm counts it there), so the new id may move.
    let new_id = returned(&check, SERVER, "knocked, not acknowledged", "migrate_id");
    assert!(new_id.ends_with("| ok"), "{new_id}");
}

#[test]
#[ignore = "takes long: make test-long"]
fn a_queue_pair_in_every_state() {
    let check = check(Run::programs().server(&states("queues")).inspect(SHOW));
    assert_eq!(check.node(SERVER).exit, Some(0), "{}", check.all());
    assert_all_returned(&check, SERVER, 2000);
    for (state, function, says) in [
        ("RC RESET", "post SEND", "EINVAL"),
        ("RC RTS without a time-out", "post until full", "The queue is full"),
        ("RC RTS", "wait_for a SEND", "IBV_WC_RETRY_EXC_ERR"),
        ("RC RTS", "wait_for what is unsignaled", "no completion of work request"),
        ("RC ERR", "wait_for a SEND", "IBV_WC_WR_FLUSH_ERR"),
        ("RC RTS", "post three pieces", "3 pieces in one request, where this queue takes at most 2"),
        ("RC RTS", "post READ inline", "they need a region"),
        ("RC with SRQ RTS", "post_recv", "this QP receives from an SRQ"),
        ("RC INIT", "modify to RTS", "EINVAL"),
        ("UC RTS", "wait_for a SEND", "ok"),
    ] {
        let text = returned(&check, SERVER, state, function);
        assert!(text.contains(says), "not {says:?}: {text}");
    }
}

/// The kernel's driver holds nothing that it has refused, or that RESET has made it forget.
#[test]
#[ignore = "takes long: make test-long"]
fn what_is_refused_or_forgotten_is_held_no_longer() {
    let check = check(Run::programs().server(&states("forgotten 20000 100")).inspect(SHOW));
    assert_eq!(check.node(SERVER).exit, Some(0), "{}", check.all());
    check.logs(SERVER, "100 RESETs leave nothing: yes");
}
