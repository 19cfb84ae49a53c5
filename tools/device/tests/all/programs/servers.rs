//! One server and several clients, whatever they do. What a server holds meanwhile is counted in the lab (tools/lab/tests/all/lessons/servers.rs).

use super::support;

use support::{example, programs, Run, CLIENT, SERVER};

#[test]
fn a_server_without_an_end_serves_on_until_nobody_comes() {
    let odd = format!("{} client $SERVER close", example("odd_peer"));
    let clients = format!("{odd}; lesson-03 client -a $SERVER; {odd}; true");
    let check = programs("lesson-03 server -n 0 --timeout 3", &clients).exits(1, 0);
    assert_eq!(check.count(SERVER, "] ERR   client "), 2);
    let says =
        ["ERR   client 1 from 127.0.0.", "is accepted", "ERR   client 3 from 127.0.0.", "waited 3 s for a client's"];
    check.logs_in_order(SERVER, &says);
}

/// As on a busy machine, where a program needs long to begin.
#[test]
#[ignore = "takes long: make test-long"]
fn the_client_of_a_server_that_works_before_it_listens_waits_for_it() {
    let begins = "end=$(($(date +%s) + 15)); while [ $(date +%s) -lt $end ]; do :; done";
    programs(&format!("{begins}; lesson-03 server"), "lesson-03 client -a $SERVER").exits(0, 0);
}

/// The next client's knock comes between the events of the one that is served: each has a channel of its own.
#[test]
fn clients_that_knock_at_once_are_served_one_after_the_other() {
    let client = "for n in 1 2 3 4; do lesson-05 client -a $SERVER --timeout 40 & done; wait";
    let check = programs("lesson-05 server -n 4 --timeout 40", client).exits(0, 0);
    assert_eq!(check.count(CLIENT, "SUCCESS, source and destination buffers match"), 4);
}

/// Nothing of a client that only WRITEs needs a word of the server's. If its machine is gone, the server finds that out by
/// itself, and serves the next one; a client that works for long is not taken for one of these.
#[test]
fn a_client_that_vanished_is_told_from_one_at_work() {
    let run = Run::lesson("10", "-n 2 --timeout 10", "--count 3000 --timeout 90").clients(2);
    let check = run.wire("cut 300th \"RDMA Write Only\" from client-1").check();
    assert_eq!(
        [SERVER, "client-1", "client-2"].map(|node| check.node(node).exit),
        [Some(1), Some(1), Some(0)],
        "{}",
        check.all()
    );
    let told = check.line(SERVER, "] ERR   client ");
    assert!(told.contains("a sign of life of the client's device"), "{told}");
}
