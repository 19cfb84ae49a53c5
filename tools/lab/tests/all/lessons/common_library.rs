//! The library `common` by itself, before any lesson, on the kernel's driver: every function in every state. The programs are
//! in common/examples. What each call returns there is compared with the device's (tools/device/tests/all/kernel.rs).

use crate::support::{assert_nothing_left_open, example, Run, CLIENT, SERVER};

/// The roles of server and client; who makes the calls, and how many at least. Destroying an id that has just answered a knock can
/// take the kernel (6.1) 70 s: until it has sent its ConnectReply for the last time.
const ROLES: [(&str, &str, &str, usize); 4] = [
    ("host", "client 10.47.91.1", CLIENT, 800),
    ("server", "guest 10.47.91.1", SERVER, 400),
    ("queues", "", SERVER, 2000),
    ("forgotten 20000 100", "", SERVER, 0),
];

/// Every call has returned, and nothing is left open: in the process itself, and after it.
#[test]
#[ignore = "takes long: make test-long"]
fn every_function_returns_in_every_state_and_leaves_nothing_open() {
    for (server, client, side, at_least) in ROLES {
        // Without their logs, which would be long; what the calls return is on standard output.
        let states = |role: &str| format!("RUST_LOG=error {} {role}", example("states"));
        let run = Run::programs().server(&states(server)).with("inspect", "/usr/bin/rdma resource show");
        let run = if client.is_empty() { run } else { run.client(&states(client)) };
        let check = run.with("deadline", "900").check();
        assert_eq!((check.node(side).exit, check.count(side, "panicked")), (Some(0), 0), "{}", check.all());
        assert_nothing_left_open(&check, side);
        let calls = check.count(side, " | ");
        assert!(calls >= at_least, "only {calls} calls of {server}");
        match at_least {
            0 => check.logs(side, "100 RESETs leave nothing: yes"),
            _ => [&format!("{calls} calls returned"), "nothing is left open"]
                .iter()
                .for_each(|text| check.logs(side, text)),
        }
    }
}
