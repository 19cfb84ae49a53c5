//! The library `common` by itself, before any lesson: every function in every state, and every operation between two
//! machines. The programs are in common/examples.

#![allow(clippy::unwrap_used)] // A test may end with a panic.

mod support;

use lab::{Run, CLIENT, SERVER};
use std::time::Duration;
use support::Check;

const SHOW: &str = "/usr/bin/rdma resource show";

/// `target/debug/examples/NAME`, built by `cargo test --workspace` with all other examples.
fn example(name: &str) -> String {
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join("examples").join(name);
    assert!(program.exists(), "{} does not exist: `cargo build -p common --examples` builds it", program.display());
    program.display().to_string()
}

/// Without their logs, which would be long; what the calls return is on standard output.
fn states(role: &str) -> String {
    format!("RUST_LOG=error {} {role}", example("states"))
}

/// Every call has returned, and nothing is left open: in the process itself, and after it.
fn assert_all_returned(check: &Check, side: &str, at_least: usize) {
    let ended = check.outcome.node(side);
    let calls = check.count(side, " | ");
    assert!(calls >= at_least, "only {calls} calls");
    check.logs(side, &format!("{calls} calls returned"));
    check.logs(side, "nothing is left open");
    assert_eq!(check.count(side, "panicked"), 0);
    support::assert_nothing_left_open(ended, "after every call in every state");
}

/// What a function returned in a state, the first time.
fn returned(check: &Check, side: &str, state: &str, function: &str) -> String {
    check.line(side, &format!("{state} | {function} | "))
}

#[test]
fn an_id_in_every_state_of_a_client() {
    let client = states(&format!("client {}", lab::address(0)));
    let run = Run::programs().server(&states("host")).client(&client).inspect(SHOW);
    let check = Check::of(run.deadline(Duration::from_secs(300))).exits(0, 0);
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
#[ignore = "takes minutes: cargo test -p lab --test common_library -- --ignored"]
fn an_id_in_every_state_of_a_server() {
    let guest = states(&format!("guest {}", lab::address(0)));
    let run = Run::programs().server(&states("server")).client(&guest).inspect(SHOW);
    let check = Check::of(run.deadline(Duration::from_secs(900))).exits(0, 0);
    assert_all_returned(&check, SERVER, 400);
    // The event of a knock is held by the listener (librdmacm counts it there), so the new id may move.
    let new_id = returned(&check, SERVER, "knocked, not acknowledged", "migrate_id");
    assert!(new_id.ends_with("| ok"), "{new_id}");
}

#[test]
fn a_queue_pair_in_every_state() {
    let check = Check::of(Run::programs().server(&states("queues")).inspect(SHOW));
    assert_eq!(check.outcome.node("server").exit, Some(0));
    assert_all_returned(&check, SERVER, 2000);
    for (state, function, says) in [
        ("RC RESET", "post SEND", "EINVAL"),
        ("RC RTS", "post until full", "The queue is full"),
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

#[test]
fn every_operation_between_two_machines() {
    let program = example("operations");
    let client = format!("{program} client {}", lab::address(0));
    let check =
        Check::of(Run::programs().server(&format!("{program} server")).client(&client).inspect(SHOW)).exits(0, 0);
    check.logs(SERVER, "server done");
    // The unsignaled WRITE's region was dropped before its post could be done. A later request's completion releases it.
    check.logs_in_order(
        CLIENT,
        &["RDMA_WRITE signaled=0", "now the last of the batch", "ibv_dereg_mr", "released by now", "client done"],
    );
    // ACKs may be one for several requests, so they are not counted.
    for (name, count) in [
        ("RC Send Only", 6),
        ("RC Send Only Immediate", 1),
        ("RC RDMA Write Only", 2),
        ("RC RDMA Write Only Immediate", 1),
        ("RC RDMA Read Request", 2),
        ("RC RDMA Read Response Only", 2),
        ("RC Fetch Add", 1),
        ("RC Compare Swap", 1),
        ("RC Atomic Acknowledge", 2),
    ] {
        let counts = check.outcome.packets.clone();
        assert!(counts.contains(&(name, count)), "not {count} {name}: {counts:?}");
    }
    for side in [SERVER, CLIENT] {
        support::assert_nothing_left_open(check.outcome.node(side), "after every operation");
    }
}

#[test]
fn queue_pairs_connected_by_hand() {
    let program = example("operations");
    let client = format!("{program} by-hand client {}", lab::address(0));
    let server = format!("{program} by-hand server");
    let check = Check::of(Run::programs().server(&server).client(&client).inspect(SHOW)).exits(0, 0);
    for side in [SERVER, CLIENT] {
        check.logs(side, "RTS, as it was set: yes");
        check.logs(side, "by hand done");
        support::assert_nothing_left_open(check.outcome.node(side), "after a connection by hand");
    }
    // Not one packet of the connection manager's.
    check.packets_are(&[&["C RC RDMA Write Only", "S RC Acknowledge"]]);
}
