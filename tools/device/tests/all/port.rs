//! An address that cannot be had: whoever wants it is told why, in a sentence, and what helps. Needs what the lab needs, and
//! `cargo build --workspace`.

use crate::kernel::{run, LAB};
use crate::programs::support::{DEVICE, SERVER};
use std::net::UdpSocket;
use std::process::{id, Command};

#[test]
fn the_second_device_that_wants_an_address_is_told() {
    // None that a device would take by itself.
    let address = format!("127.0.1.{}", 1 + id() % 250);
    let _taken = UdpSocket::bind((address.as_str(), 4791)).unwrap();
    let output = Command::new(DEVICE).args(["run", "--address", &address, "--", "true"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{text}");
    let told = format!(
        "device: the device of another program has UDP port 4791 of {address}: end that program, or give this one another \
         address, for example --address 127.0.0.7\n"
    );
    assert_eq!(text, told);
}

/// A machine of the lab has the kernel's driver, and so nothing is left for our device there, on whatever address.
#[test]
fn where_rdma_rxe_has_the_port_a_device_is_told() {
    for address in ["--address 10.47.91.1", ""] {
        let server = format!("device run {address} -- true");
        let check = run(LAB, "port", [&server, "true"], &[]).exits(3, 0);
        let told = "device: UDP port 4791 is taken on all addresses of this network namespace, as rdma_rxe takes it: `sudo rmmod \
                    rdma_rxe`, or run in a namespace of your own: `unshare -rn sh -c 'ip link set lo up; exec sh'`";
        assert!(check.node(SERVER).log.iter().any(|line| line == told), "{}", check.all());
    }
}
