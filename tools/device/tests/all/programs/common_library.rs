//! The library `common` by itself, before any lesson: every operation, and every function of an id in every state. The programs
//! are in common/examples. What the kernel's driver says to the same: tools/lab/tests/all/lessons/common_library.rs.

use super::support::{each, example, free_port, programs, Run, CLIENT, SERVER};

#[test]
fn every_operation() {
    let program = example("operations");
    let check = programs(&format!("{program} server"), &format!("{program} client $SERVER")).exits(0, 0);
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
        assert_eq!(check.packets_named(name), count, "{name}: {}", check.all());
    }
}

#[test]
fn queue_pairs_connected_by_hand() {
    let (program, port) = (example("operations"), free_port());
    let client = format!("{program} by-hand client 127.0.0.1 {port}");
    let check = programs(&format!("{program} by-hand server {port}"), &client).exits(0, 0);
    for side in [SERVER, CLIENT] {
        check.logs(side, "RTS, as it was set: yes");
        check.logs(side, "by hand done");
    }
    // Not one packet of the connection manager's.
    check.packets_are(&[&["C RC RDMA Write Only", "S RC Acknowledge"]]);
}

/// An id's calls out of order end in words, as in order, and never in a wait without an end.
#[test]
fn an_id_in_every_state() {
    let states = |role: &str| format!("RUST_LOG=error {} {role}", example("states"));
    for (server, client, side, calls) in
        [("host", "client $SERVER", CLIENT, 832), ("server", "guest $SERVER", SERVER, 416)]
    {
        let check = programs(&states(server), &states(client)).exits(0, 0);
        check.logs(side, &format!("{calls} calls returned"));
        check.logs(side, "nothing is left open");
        assert_eq!(check.count(side, "panicked"), 0);
        let held = if side == CLIENT { "connected, event not acknowledged" } else { "knocked" };
        let says = if side == CLIENT { "an event of this id is not acknowledged" } else { "ok" };
        let moved = check.line(side, &format!("{held} | migrate_id | "));
        assert!(moved.contains(says), "{moved}");
    }
}

/// Memory stays open to the peer for as long as a ledger keeps it: so not longer than the device may use it.
fn forgotten(posts: usize) {
    let program = format!("RUST_LOG=error {} forgotten {posts} 1000", example("states"));
    // Each of them is a system call, and they are posted twice.
    let check = Run::programs(&program, "true").deadline(900).check().exits(0, 0);
    check.logs(SERVER, &format!("{posts} refused posts leave nothing: yes"));
    check.logs(SERVER, "1000 RESETs leave nothing: yes");
}

/// 32 bytes for each of them would show.
#[test]
fn what_is_refused_or_forgotten_is_held_no_longer() {
    forgotten(200_000);
}

#[test]
#[ignore = "takes long: make test-long"]
fn a_million_refused_posts_leave_nothing() {
    forgotten(1_000_000);
}

/// Random calls and drops, all of safe Rust, with these seeds: each call returns, nothing crashes and nothing is left open.
fn fuzz(first: usize, last: usize) {
    let program = format!("RUST_LOG=error {} {first} {last} 4000", example("fuzz"));
    let check = programs(&program, "true").exits(0, 0);
    check.logs(SERVER, "all seeds are done");
}

#[test]
fn random_calls_and_drops() {
    fuzz(1, 12);
}

#[test]
#[ignore = "takes long: make test-long"]
fn many_random_calls_and_drops() {
    let firsts: Vec<usize> = (1..800).step_by(10).collect();
    each(&firsts, |first| fuzz(*first, first + 9));
}
