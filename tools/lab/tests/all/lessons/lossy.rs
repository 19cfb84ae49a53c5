//! A link that loses packets by chance, both ways (netem on both machines): requests and ACKs, the handshake and the goodbye.
//! What is lost is sent again, so a run may take seconds longer. The loss of each packet in turn is tried on the device in user
//! space (tools/device/tests/all/programs/faults.rs).

use crate::support::Run;

/// A run of lesson 05 has 20 packets: so about one run in five loses one.
const LOSS: &str = "1%";

/// A machine whose outgoing packets are lost now and then. Each knows the other's address beforehand: an ARP packet that is
/// lost several times would end the run before RDMA has begun.
fn lossy(peer: u8, program: &str) -> String {
    let ethernet = format!("02:00:00:00:00:0{peer}");
    let known = format!("/usr/bin/ip neigh replace 10.47.91.{peer} lladdr {ethernet} dev eth0 nud permanent");
    let rule = format!("/usr/bin/tc qdisc add dev eth0 root netem loss {LOSS}");
    format!("{known}; modprobe sch_netem; {rule} || exit 99; {program}")
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
#[ignore = "takes long: make test-long"]
fn every_lesson_ends_well_fifty_times() {
    for (number, options) in RUNS {
        let server = format!("lesson-{number} server -n 50 --timeout 60 {options}");
        let client = format!("lesson-{number} client -a 10.47.91.1 --timeout 60 {options}");
        let all = format!("n=0; while [ $n -lt 50 ]; do {client} || exit 1; n=$((n + 1)); done");
        let run = Run::programs().server(&lossy(2, &server)).client(&lossy(1, &all));
        run.with("deadline", "1300").check().exits(0, 0);
        println!("lesson {number} {options}: 50 runs ended well");
    }
}
