//! Other people's programs run on the device, unmodified: those of rdma-core and of perftest.

use super::support::programs;
use std::io::Write;
use std::process::{Command, Stdio};

fn both_end_well(server: &str, client: &str) {
    programs(server, client).exits(0, 0);
}

#[test]
fn rping_checks_its_data() {
    both_end_well("rping -s -C 5 -S 5000", "rping -c -a $SERVER -C 5 -S 5000 -v");
}

#[test]
fn ucmatose_connects_and_sends() {
    both_end_well("ucmatose", "ucmatose -s $SERVER");
}

#[test]
fn a_program_without_connection_manager_polls_or_sleeps() {
    both_end_well("ibv_rc_pingpong -p 18600 -g 0 -n 100", "ibv_rc_pingpong -p 18600 -g 0 -n 100 127.0.0.1");
    both_end_well("ibv_rc_pingpong -p 18600 -g 0 -n 100 -e", "ibv_rc_pingpong -p 18600 -g 0 -n 100 -e 127.0.0.1");
}

#[test]
fn sixteen_queue_pairs_share_their_receives() {
    both_end_well("ibv_srq_pingpong -p 18601 -g 0 -n 100", "ibv_srq_pingpong -p 18601 -g 0 -n 100 127.0.0.1");
}

/// What they measure says nothing: this device is read, not raced.
#[test]
fn perftest_runs() {
    for program in
        ["ib_send_lat", "ib_write_lat", "ib_read_lat", "ib_atomic_lat", "ib_send_bw", "ib_write_bw", "ib_read_bw"]
    {
        both_end_well(&format!("{program} -n 50"), &format!("{program} -n 50 127.0.0.1"));
    }
}

#[test]
fn programs_in_a_shell_use_the_device() {
    let mut shell = Command::new(env!("CARGO_BIN_EXE_device"))
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
