//! `tools/lab/capture.sh` with invented commands: what it records, with what, and what it says when it cannot.

use crate::support;

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use tempfile::TempDir;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/capture.sh");
const BASICS: [&str; 8] = ["sh", "sed", "head", "cut", "wc", "mkdir", "rm", "sleep"];
/// Leaves a file that tells how it was called, and "records" something.
const RECORD: &str = "echo \"${0##*/} $*\" >called; echo packets";
/// Root, with an RDMA device on enp1s0, and dumpcap, which finds three packets.
const COMMANDS: [(&str, &str); 5] = [
    ("id", "echo 0"),
    ("rdma", "echo 'link rxe0/1 state ACTIVE physical_state LINK_UP netdev enp1s0 '"),
    ("ip", "echo 'default via 192.0.2.1 dev wlan0 proto dhcp metric 600'"),
    ("dumpcap", RECORD),
    ("capinfos", "printf '%s\\t3\\n' \"$2\""),
];
const FILTER: &str = "udp port 4791 or (vlan and udp port 4791)";

/// A machine with commands of its own, `NAME=SCRIPT` or `NAME` for none, and nothing else in its PATH.
fn machine(edits: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join("bin");
    fs::create_dir(&bin).unwrap();
    BASICS.iter().for_each(|name| symlink(support::program(name), bin.join(name)).unwrap());
    let write = |name: &str, script: &str| support::write_script(&bin.join(name), &script.replace("RECORD", RECORD));
    COMMANDS.iter().for_each(|(name, script)| write(name, script));
    for edit in edits {
        match edit.split_once('=') {
            Some((name, script)) => write(name, script),
            None => fs::remove_file(bin.join(edit)).unwrap(),
        }
    }
    folder
}

/// What is typed there. In a background job SIGINT is ignored, and a shell cannot undo that for itself, but `env` can.
fn capture(machine: &TempDir, arguments: &str) -> Command {
    let mut command = Command::new("/usr/bin/env");
    command.args(["--default-signal=INT", "/bin/sh", SCRIPT]).args(arguments.split_whitespace());
    command.env_clear().env("PATH", machine.path().join("bin")).current_dir(machine.path());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// What is other than usual, what is typed, the exit status, what is said, and how the recorder is called.
type Case = (&'static [&'static str], &'static str, i32, &'static [&'static str], &'static str);

#[rustfmt::skip] // A table.
const CASES: [Case; 13] = [
    (&[], "04", 0, &["3 packets in target/captures/04.pcapng", "wireshark target/captures/04.pcapng", "own address"], "dumpcap -q -s 0 -i enp1s0 -f FILTER -w -"),
    (&[], "04 eth7", 0, &[], "-i eth7 "),
    (&["rdma="], "04", 0, &["No RDMA device here", "sudo tools/lab/softroce.sh up"], "-i wlan0 "),
    (&["rdma=", "ip="], "04", 1, &["no RDMA device and no default route", "`ip link`"], ""),
    (&["dumpcap", "tcpdump=case $1 in -r) echo one; echo two ;; *) RECORD ;; esac"], "04", 0,
        &["2 packets in target/captures/04.pcap."], "tcpdump -s 0 -U -i enp1s0 -w - udp port 4791"),
    (&["dumpcap"], "04", 1, &["neither dumpcap nor tcpdump", "apt-get install tcpdump"], ""),
    // An ordinary user records with dumpcap's own right, or with sudo.
    (&["id=echo 1000", "sudo=exit 9"], "04", 0, &["3 packets"], "dumpcap "),
    (&["id=echo 1000", "dumpcap=case $1 in -L) exit 1 ;; *) RECORD ;; esac"], "04", 1, &["recording needs root", "make capture-04"], ""),
    (&["id=echo 1000", "dumpcap=case $1 in -L) exit 1 ;; *) RECORD ;; esac", "sudo=exec \"$@\""], "04", 0,
        &["+ sudo dumpcap", "3 packets"], "dumpcap "),
    (&["capinfos=printf '%s\\t0\\n' \"$2\""], "04", 1, &["no RoCE packet crossed enp1s0", "on two machines", "tools/lab/doctor.sh"], "dumpcap "),
    (&["dumpcap=echo 'no such interface' >&2; exit 1", "capinfos=printf '%s\\t0\\n' \"$2\""], "04", 1, &["no such interface", "the recorder could not do its work"], ""),
    (&[], "", 2, &["usage: capture.sh NN [NETDEV]"], ""),
    (&[], "04 eth0 more", 2, &["usage: capture.sh NN [NETDEV]"], ""),
];

#[test]
fn what_is_recorded_with_what_and_what_is_said() {
    for (edits, typed, status, says, called) in CASES {
        let machine = machine(edits);
        let output = capture(&machine, typed).output().unwrap();
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert_eq!(output.status.code(), Some(status), "{edits:?}: {text}");
        assert!(says.iter().all(|part| text.contains(part)), "not {says:?}: {text}");
        let recorder = fs::read_to_string(machine.path().join("called")).unwrap_or_default();
        assert!(recorder.contains(&called.replace("FILTER", FILTER)), "not {called:?}: {recorder}");
        // A file that holds nothing is removed.
        let files = fs::read_dir(machine.path().join("target/captures")).map_or(0, Iterator::count);
        assert_eq!(files, usize::from(status == 0), "{edits:?}");
    }
}

/// What a terminal does: the signal goes to the script and to the recorder.
#[test]
fn ctrl_c_ends_the_recording_with_a_summary() {
    let machine = machine(&["dumpcap=trap 'exit 0' INT; echo recorded; : >called; while :; do sleep 0.1; done"]);
    let child = capture(&machine, "04").process_group(0).spawn().unwrap();
    support::wait_for(&machine.path().join("called"));
    support::interrupt(&child);
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && text.contains("3 packets in target/captures/04.pcapng"), "{text}");
}
