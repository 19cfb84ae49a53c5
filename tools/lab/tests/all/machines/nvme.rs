//! A real protocol between two machines: the kernel's NVMe over RDMA, as `make nvme` runs it.

use super::programs::example;
use crate::support::{Check, Run, CLIENT, SERVER};

/// Serves a disk, and uses it: two writes and reads, and as many random blocks.
fn uses_a_disk(blocks: u32) -> Run {
    let disk = "modprobe brd rd_nr=1 rd_size=1024; modprobe nvmet-rdma";
    let [target, host] = ["nvme_target.sh", "nvme_host.sh"].map(example);
    let run = Run::programs().server(&format!("{disk}; exec {target} /dev/ram0 10.47.91.1"));
    let run = run.client(&format!("modprobe nvme-rdma; exec {host} 10.47.91.1 {blocks}"));
    run.with("fault", "on server kill $(cat /run/program.pid) when the host has ended").with("deadline", "900")
}

fn log(check: &Check) -> String {
    check.node(CLIENT).log.join("\n")
}

#[test]
fn a_disk_of_the_other_machine_is_written_and_read() {
    let check = uses_a_disk(10).check().exits(0, 0);
    assert!(log(&check).contains("\n10 random blocks written and read back"), "{}", check.all());
    assert!(check.node(SERVER).log.iter().any(|line| line == "stopped"), "{}", check.all());
    // One queue for orders and one for blocks. The last thing on each is a goodbye.
    assert_eq!(check.packets_named("ConnectRequest"), 2);
    assert_eq!(check.packets_named("DisconnectReply"), 2);
    // What doesn't fit into its command is fetched by the server, and whatever is read comes as a WRITE whose key ends with the answer.
    assert_eq!(check.packets_named("RC RDMA Read Request"), 2, "Connect's data and the write of four blocks");
    let answers = check.packets_named("RC Send Only Invalidate");
    assert_eq!(check.packets_named("RC RDMA Write Last") + check.packets_named("RC RDMA Write Only") + 2, answers);
}

#[test]
#[ignore = "takes long: make test-long"]
fn a_thousand_random_blocks_come_back_as_they_were_written() {
    let check = uses_a_disk(1000).check().exits(0, 0);
    assert!(
        log(&check).contains("\n1000 random blocks written and read back, and the whole disk is as"),
        "{}",
        check.all()
    );
}

/// Nothing of what the client sends arrives for a while, long enough for both ends to give up their connections. (Not by
/// `ip link set eth0 down`: on rdma_rxe of Linux 6.1 the client never connected again after that. It kept sending ConnectRequests, the
/// server answered each one, and the client took none of the answers. We don't know why.)
#[test]
#[ignore = "takes long: make test-long"]
fn a_network_that_comes_back_only_delays() {
    let tc = "/usr/bin/tc qdisc";
    let away = format!("modprobe sch_netem; {tc} add dev eth0 root netem loss 100%; sleep 12; {tc} del dev eth0 root");
    let run = uses_a_disk(100).with("fault", &format!("on client {away} when written: block 100"));
    let check = run.check().exits(0, 0);
    assert!(log(&check).contains("\n100 random blocks written and read back"), "{}", check.all());
    // Both queues have been connected once more.
    assert!(check.packets_named("ConnectReply") >= 4, "{}", check.all());
}

#[test]
#[ignore = "takes long: make test-long"]
fn a_cable_that_stays_cut_is_told_to_whoever_waits() {
    let check = uses_a_disk(0).with("wire", "cut 2nd \"RC RDMA Read Request\" from server").check();
    let log = log(&check);
    assert_eq!(check.node(CLIENT).exit, Some(1), "{}", check.all());
    for words in ["FAILED: dd: ", "Input/output error", "no available path - failing I/O"] {
        assert!(log.contains(words), "no {words:?} in:\n{log}");
    }
}
