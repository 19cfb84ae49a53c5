//! A link that loses packets by chance, both ways (netem on both machines): requests and ACKs, the handshake and the goodbye.
//! What is lost is sent again, so a run may take seconds longer. The loss of each packet in turn is tried on the device in user
//! space (tools/device/tests/all/programs/faults.rs).

use crate::support::{check, Check};
use lab::{Run, CLIENT, SERVER};
use std::time::Duration;

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
    check(run.deadline(Duration::from_secs(300 + 20 * clients as u64)))
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

/// With this loss some packets are sure to be lost: as netem counts them. In one of a hundred connections they are the
/// client's ACK of the server's SEND, and its DisconnectRequest just after it. The client's QP answers no more then, and the
/// server sends in vain until the goodbye is repeated, or its retries are over, which comes first.
#[test]
#[ignore = "takes long: make test-long"]
fn what_is_lost_is_sent_again() {
    let check = lossy_run("05", "", "10%", 4);
    assert_eq!(check.node(CLIENT).exit, Some(0), "{}", check.all());
    let in_vain = check.count(SERVER, "completed with IBV_WC_RETRY_EXC_ERR");
    assert_eq!(check.count(SERVER, "] ERR   client "), in_vain, "{}", check.all());
    assert_eq!(check.node(SERVER).exit, Some(i32::from(in_vain > 0)));
    let dropped = |side: &str| -> u32 {
        let line = check.line(side, "(dropped ");
        let number = line.split("(dropped ").nth(1).and_then(|rest| rest.split(',').next());
        number.and_then(|number| number.parse().ok()).unwrap_or_default()
    };
    assert!(dropped(SERVER) + dropped(CLIENT) > 0, "nothing was lost");
    assert_eq!(check.count(CLIENT, "SUCCESS, source and destination buffers match"), 4);
}

#[test]
#[ignore = "takes long: make test-long"]
fn every_lesson_ends_well_fifty_times() {
    for (number, options) in RUNS {
        lossy_run(number, options, LOSS, 50).exits(0, 0);
        println!("lesson {number} {options}: 50 runs ended well");
    }
}
