//! Every lesson ends well on a link that loses one packet in a hundred, both ways (netem on both machines): requests and
//! ACKs, the handshake and the goodbye. What is lost is sent again, so a run may take seconds longer.

#![allow(clippy::unwrap_used)] // A test may end with a panic.

mod support;

use lab::{Run, CLIENT, SERVER};
use std::time::Duration;
use support::Check;

/// A run of lesson 05 has 20 packets: so about one run in five loses one.
const LOSS: &str = "1%";

/// A machine whose outgoing packets are lost now and then. Each knows the other's address beforehand: an ARP packet that is
/// lost several times would end the run before RDMA has begun.
fn lossy(peer: u8, loss: &str, program: &str) -> String {
    let known =
        format!("/usr/bin/ip neigh replace 10.47.91.{peer} lladdr 02:00:00:00:00:0{peer} dev eth0 nud permanent");
    let rule = format!("/usr/bin/tc qdisc add dev eth0 root netem loss {loss}");
    let count = "/usr/bin/tc -s qdisc show dev eth0";
    format!("{known}; modprobe sch_netem; {rule} || exit 99; ({program}); status=$?; {count}; exit $status")
}

/// So many clients of a lesson, one after the other, against one server.
fn lossy_run(number: &str, options: &str, loss: &str, clients: usize) -> Check {
    let server = format!("lesson-{number} server -n {clients} --timeout 60 {options}");
    let client = format!("lesson-{number} client -a 10.47.91.1 --timeout 60 {options}");
    let all = format!("n=0; while [ $n -lt {clients} ]; do {client} || exit 1; n=$((n + 1)); done");
    let run = Run::programs().server(&lossy(2, loss, &server)).client(&lossy(1, loss, &all));
    Check::of(run.deadline(Duration::from_secs(300 + 20 * clients as u64)))
}

/// All of them end well, and the server, too.
fn ends_well(number: &str, options: &str, loss: &str, clients: usize) {
    lossy_run(number, options, loss, clients).exits(0, 0);
}

const RUNS: [(&str, &str); 9] = [
    ("02", ""),
    ("03", ""),
    ("03", "--metadata private-data"),
    ("04", ""),
    ("04", "--metadata private-data"),
    ("05", ""),
    ("06", ""),
    ("06", "-m read"),
    ("07", ""),
];

#[test]
fn every_lesson_ends_well_on_a_lossy_link() {
    for (number, options) in RUNS {
        ends_well(number, options, LOSS, 2);
    }
}

/// With this loss some packets are sure to be lost: as netem counts them. In one of a hundred connections they are the
/// client's ACK of the server's SEND, and its DisconnectRequest just after it. The client's QP answers no more then, and the
/// server sends in vain until the goodbye is repeated, or its retries are over, which comes first.
#[test]
fn what_is_lost_is_sent_again() {
    let check = lossy_run("05", "", "10%", 4);
    assert_eq!(check.outcome.node(CLIENT).exit, Some(0), "{:#?}", check.outcome.node(CLIENT).log);
    let in_vain = check.count(SERVER, "completed with IBV_WC_RETRY_EXC_ERR");
    assert_eq!(check.count(SERVER, "] ERR   client "), in_vain, "{:#?}", check.outcome.node(SERVER).log);
    assert_eq!(check.outcome.node(SERVER).exit, Some(i32::from(in_vain > 0)));
    let dropped = |side: &str| -> u32 {
        let line = check.line(side, "(dropped ");
        let number = line.split("(dropped ").nth(1).and_then(|rest| rest.split(',').next());
        number.and_then(|number| number.parse().ok()).unwrap_or_default()
    };
    assert!(dropped(SERVER) + dropped(CLIENT) > 0, "nothing was lost");
    assert_eq!(check.count(CLIENT, "SUCCESS, source and destination buffers match"), 4);
}

/// The client's ReadyToUse is lost in about one of three: a client of lesson 02, which wants nothing of the server, hangs up
/// before the handshake is repeated, and the server must take its goodbye for the proof that it was connected.
#[test]
fn a_lost_ready_to_use_is_no_failure() {
    let server = "lesson-02 server -n 6 --timeout 60";
    let client = "for n in 1 2 3 4 5 6; do lesson-02 client -a 10.47.91.1 --timeout 60 || exit 1; done";
    let run = Run::programs().server(server).client(&lossy(1, "30%", client)).deadline(Duration::from_secs(400));
    Check::of(run).exits(0, 0).logs(SERVER, "waiting for ESTABLISHED or DISCONNECTED");
}

#[test]
#[ignore = "takes many minutes: cargo test -p lab --test lossy -- --ignored --nocapture"]
fn every_lesson_ends_well_fifty_times() {
    for (number, options) in RUNS {
        ends_well(number, options, LOSS, 50);
        println!("lesson {number} {options}: 50 runs ended well");
    }
}
