//! An address that cannot be had: the program that wants it is told why, in a sentence, and what helps. Needs what the lab
//! needs, and `cargo build --workspace`.

use crate::kernel::{brought, run, LAB};
use crate::programs::support::{on_device, SERVER};
use std::io::{BufRead, BufReader};
use std::process::{id, Stdio};

#[test]
fn the_second_device_that_wants_an_address_is_told() {
    // None that a device would take by itself.
    let address = format!("127.0.1.{}", 1 + id() % 250);
    let server = || on_device("lesson-01", &address, &["server"]);
    let mut first = server().stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(first.stderr.take().unwrap()).lines().map_while(Result::ok);
    let listens = said.any(|line| line.contains("rdma_listen"));
    let second = server().output().unwrap();
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(listens);
    let text = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(1), "{text}");
    let told = format!(
        "device: the device of another program has UDP port 4791 of {address}: end that program, or give this one another \
         address, for example NIC_ADDRESS=127.0.0.7\n"
    );
    assert!(text.contains(&told) && text.contains("ENODEV") && !text.contains("rdma_rxe"), "{text}");
}

/// A machine of the lab has the kernel's driver, and so nothing is left for our device there, on whatever address.
#[test]
fn where_rdma_rxe_has_the_port_a_device_is_told() {
    for address in ["NIC_ADDRESS=10.47.91.1", ""] {
        let server = format!("env LD_LIBRARY_PATH=/tmp/nic NIC_NAME=rxe0 {address} lesson-01 server");
        let check = run(LAB, "port", [&server, "true"], &[&brought()]).exits(1, 0);
        let told = "device: UDP port 4791 is taken on all addresses of this network namespace, as rdma_rxe takes it: `sudo rmmod \
                    rdma_rxe`, or run in a namespace of your own: `unshare -rn sh -c 'ip link set lo up; exec sh'`";
        assert!(check.node(SERVER).log.iter().any(|line| line == told), "{}", check.all());
        check.logs(SERVER, "ENODEV");
    }
}
