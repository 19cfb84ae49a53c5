//! An address that cannot be had: the program that wants it is told why, and what helps.

#![allow(clippy::unwrap_used)] // A test may end with a panic.

use device::nic::port::NoPort;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{id, Command};

/// What cures that rdma_rxe has the port on all addresses.
const CURES: [&str; 2] = ["sudo rmmod rdma_rxe", "unshare -rn sh -c 'ip link set lo up; exec sh'"];

#[test]
fn two_devices_that_want_one_address_are_told() {
    // None that a device would take by itself.
    let address = format!("127.0.1.{}", 1 + id() % 250);
    let _first = UdpSocket::bind((address.as_str(), 4791)).unwrap();
    let device = Command::new(env!("CARGO_BIN_EXE_device")).arg("library").output().unwrap();
    let output = Command::new(Path::new(env!("CARGO_BIN_EXE_device")).with_file_name("lesson-01"))
        .arg("server")
        .env("LD_LIBRARY_PATH", String::from_utf8(device.stdout).unwrap().trim())
        .env("NIC_ADDRESS", &address)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    let told = format!("port 4791 of {address} is taken: another program's device has this address.");
    for wanted in [told.as_str(), CURES[0], CURES[1], "ENODEV"] {
        assert!(text.contains(wanted), "no {wanted}: {text}");
    }
}

#[test]
fn who_finds_no_address_at_all_is_told_of_the_kernels_driver() {
    let text = NoPort::AllTaken.to_string();
    assert!(text.contains("127.0.0.2 to 127.0.0.254") && CURES.iter().all(|cure| text.contains(cure)), "{text}");
}
