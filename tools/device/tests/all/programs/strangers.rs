//! Other people's programs run on the device, unmodified: those of rdma-core and of perftest.

use super::support::{free_port, programs, Check, DEVICE};
use std::io::Write;
use std::process::{Command, Stdio};

/// Server and client. What perftest measures says nothing: this device is read, not raced.
const PROGRAMS: [(&str, &str); 5] = [
    ("rping -s -C 5 -S 5000", "rping -c -a $SERVER -C 5 -S 5000 -v"),
    ("ucmatose", "ucmatose -s $SERVER"),
    // Without a connection manager; the second sleeps.
    ("ibv_rc_pingpong -p PORT -g 0 -n 100", "ibv_rc_pingpong -p PORT -g 0 -n 100 127.0.0.1"),
    ("ibv_rc_pingpong -p PORT -g 0 -n 100 -e", "ibv_rc_pingpong -p PORT -g 0 -n 100 -e 127.0.0.1"),
    ("ibv_srq_pingpong -p PORT -g 0 -n 100", "ibv_srq_pingpong -p PORT -g 0 -n 100 127.0.0.1"),
];
/// Of perftest.
const TESTS: &str = "ib_send_lat ib_write_lat ib_read_lat ib_atomic_lat ib_send_bw ib_write_bw ib_read_bw";

#[test]
fn all_end_well() {
    // With -u 19 an ACK has 2.1 s: perftest's own 67 ms are for a NIC, and here a busy machine's processor is the NIC.
    let tests = TESTS.split(' ').map(|test| format!("{test} -p PORT -n 50 -u 19"));
    let tests = tests.map(|server| (server.clone(), server + " 127.0.0.1"));
    for (server, client) in PROGRAMS.map(|(server, client)| (server.into(), client.into())).into_iter().chain(tests) {
        // Perftest gives up if it cannot tell the processor's speed: its samples of it differ on a busy machine.
        let gave_up = |ran: &Check| ran.all().contains("Can't produce a report");
        let mut tries = (0..5).map(|_| {
            let port = free_port().to_string();
            programs(&server.replace("PORT", &port), &client.replace("PORT", &port))
        });
        tries.find(|ran| !gave_up(ran)).expect("perftest produces a report in one of five runs").exits(0, 0);
    }
}

#[test]
fn programs_in_a_shell_use_the_device() {
    let mut shell = Command::new(DEVICE)
        .args(["shell", "--name=test-shell"])
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    shell.stdin.take().unwrap().write_all(b"rping -c -a $SERVER -C 1 -v\nibv_devices\n").unwrap();
    let output = shell.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text}");
    for wanted in ["ping data: rdma-ping-0", "rxe0", "RDMA Read Request", "DREQ (DisconnectRequest)"] {
        assert!(text.contains(wanted), "no {wanted}: {text}");
    }
}
