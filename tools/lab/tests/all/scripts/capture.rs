//! `tools/lab/capture.sh` with invented commands: what it records, with what, and what it says when it cannot.

use crate::support::invented::{ends, Machine};
use crate::support::{interrupt, wait_for};
use std::fs;

const BASICS: &str = "sh dirname sed head cut wc mkdir rm sleep";
/// Leaves a file that tells how it was called, and "records" something.
const RECORD: &str = "echo \"${0##*/} $*\" >called; echo packets";
/// Root, with an RDMA device on enp1s0, and dumpcap, which finds three packets.
const COMMANDS: [&str; 5] = [
    "$id=echo 0",
    "$rdma=echo 'link rxe0/1 state ACTIVE physical_state LINK_UP netdev enp1s0 '",
    "$ip=echo 'default via 192.0.2.1 dev wlan0 proto dhcp metric 600'",
    "$dumpcap=RECORD",
    "$capinfos=printf '%s\\t3\\n' \"$2\"",
];
const FILTER: &str = "udp port 4791 or (vlan and udp port 4791)";

fn machine(edits: &[&str]) -> Machine {
    let machine = Machine::with(BASICS);
    for edit in COMMANDS.iter().chain(edits) {
        machine.edit(&[&edit.replace("RECORD", RECORD)]);
    }
    machine
}

/// What is other than usual, what is typed, the exit status, what is said, and how the recorder is called.
type Case = (&'static [&'static str], &'static str, i32, &'static [&'static str], &'static str);

#[rustfmt::skip] // A table.
const CASES: [Case; 13] = [
    (&[], "04", 0, &["3 packets in target/captures/04.pcapng", "wireshark target/captures/04.pcapng", "own address"], "dumpcap -q -s 0 -i enp1s0 -f FILTER -w -"),
    (&[], "04 eth7", 0, &[], "-i eth7 "),
    (&["$rdma="], "04", 0, &["No RDMA device here", "sudo tools/lab/softroce.sh up"], "-i wlan0 "),
    (&["$rdma=", "$ip="], "04", 1, &["no RDMA device and no default route", "`ip link`"], ""),
    (&["-usr/bin/dumpcap", "$tcpdump=case $1 in -r) echo one; echo two ;; *) RECORD ;; esac"], "04", 0,
        &["2 packets in target/captures/04.pcap."], "tcpdump -s 0 -U -i enp1s0 -w - udp port 4791"),
    (&["-usr/bin/dumpcap"], "04", 1, &["neither dumpcap nor tcpdump", "apt-get install tcpdump"], ""),
    // An ordinary user records with dumpcap's own right, or with sudo.
    (&["$id=echo 1000", "$sudo=exit 9"], "04", 0, &["3 packets"], "dumpcap "),
    (&["$id=echo 1000", "$dumpcap=case $1 in -L) exit 1 ;; *) RECORD ;; esac"], "04", 1, &["recording needs root", "make capture-04"], ""),
    (&["$id=echo 1000", "$dumpcap=case $1 in -L) exit 1 ;; *) RECORD ;; esac", "$sudo=exec \"$@\""], "04", 0,
        &["+ sudo dumpcap", "3 packets"], "dumpcap "),
    (&["$capinfos=printf '%s\\t0\\n' \"$2\""], "04", 1, &["no RoCE packet crossed enp1s0", "on two machines", "tools/lab/doctor.sh"], "dumpcap "),
    (&["$dumpcap=echo 'no such interface' >&2; exit 1", "$capinfos=printf '%s\\t0\\n' \"$2\""], "04", 1, &["no such interface", "the recorder failed"], ""),
    (&[], "", 2, &["usage: capture.sh NN [NETDEV]"], ""),
    (&[], "04 eth0 more", 2, &["usage: capture.sh NN [NETDEV]"], ""),
];

#[test]
fn what_is_recorded_with_what_and_what_is_said() {
    for (edits, typed, status, says, called) in CASES {
        let machine = machine(edits);
        let text = ends(machine.script("capture.sh", typed).spawn().unwrap(), status);
        assert!(says.iter().all(|part| text.contains(part)), "not {says:?}: {text}");
        let recorder = fs::read_to_string(machine.path("called")).unwrap_or_default();
        assert!(recorder.contains(&called.replace("FILTER", FILTER)), "not {called:?}: {recorder}");
        // A file that holds nothing is removed.
        let files = fs::read_dir(machine.path("target/captures")).map_or(0, Iterator::count);
        assert_eq!(files, usize::from(status == 0), "{edits:?}");
    }
}

/// What a terminal does: the signal goes to the script and to the recorder.
#[test]
fn ctrl_c_ends_the_recording_with_a_summary() {
    let machine = machine(&["$dumpcap=trap 'exit 0' INT; echo recorded; : >called; while :; do sleep 0.1; done"]);
    let child = machine.script("capture.sh", "04").spawn().unwrap();
    wait_for(&machine.path("called"));
    interrupt(&child);
    assert!(ends(child, 0).contains("3 packets in target/captures/04.pcapng"));
}
