//! `tools/lab/capture.sh` with invented commands: what it records, with what, and what it says when it cannot.

use crate::support;

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/capture.sh");
const LINK: &str = "echo 'link rxe0/1 state ACTIVE physical_state LINK_UP netdev enp1s0 '";
const ROUTE: &str = "echo 'default via 192.0.2.1 dev wlan0 proto dhcp metric 600'";
/// Leaves a file that tells how it was called, and "records" something.
const RECORD: &str = "echo \"$0 $*\" >called; echo packets";

/// A machine with commands of its own, and nothing else in its PATH.
struct Machine {
    folder: TempDir,
}

impl Machine {
    /// Root, with an RDMA device on enp1s0, and dumpcap, which finds three packets.
    fn new() -> Self {
        let machine = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(machine.path("bin")).unwrap();
        for name in ["sh", "sed", "head", "cut", "wc", "mkdir", "rm", "sleep"] {
            symlink(lab::program(name).unwrap(), machine.path("bin").join(name)).unwrap();
        }
        machine.command("id", "echo 0").command("rdma", LINK).command("ip", ROUTE);
        machine.command("dumpcap", RECORD).command("capinfos", "printf '%s\\t3\\n' \"$2\"");
        machine
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn command(&self, name: &str, script: &str) -> &Self {
        support::write_script(&self.path("bin").join(name), script);
        self
    }

    fn without(&self, name: &str) -> &Self {
        fs::remove_file(self.path("bin").join(name)).unwrap();
        self
    }

    fn capture(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("/bin/sh");
        command.arg(SCRIPT).args(arguments).current_dir(self.folder.path());
        command.env_clear().env("PATH", self.path("bin"));
        command
    }

    /// Runs it to its end and gives what it printed on both streams.
    fn run(&self, arguments: &[&str], status: i32) -> String {
        printed(&self.capture(arguments).output().unwrap(), status)
    }

    fn called(&self) -> String {
        fs::read_to_string(self.path("called")).unwrap()
    }
}

fn printed(output: &Output, status: i32) -> String {
    let text = String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned();
    assert_eq!(output.status.code(), Some(status), "{text}");
    text
}

fn assert_holds(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
}

#[test]
fn whole_roce_frames_of_the_rdma_devices_interface_are_recorded() {
    let machine = Machine::new();
    let text = machine.run(&["04"], 0);
    assert_holds(
        &text,
        &["3 packets in target/captures/04.pcapng", "wireshark target/captures/04.pcapng", "own address"],
    );
    let filter = "udp port 4791 or (vlan and udp port 4791)";
    assert_holds(&machine.called(), &[&format!("dumpcap -q -s 0 -i enp1s0 -f {filter} -w -")]);
    assert_eq!(fs::read_to_string(machine.path("target/captures/04.pcapng")).unwrap(), "packets\n");
}

#[test]
fn the_interface_is_the_named_one_or_that_of_the_default_route() {
    let machine = Machine::new();
    machine.run(&["04", "eth7"], 0);
    assert_holds(&machine.called(), &["-i eth7 "]);
    let text = machine.command("rdma", "").run(&["04"], 0);
    assert_holds(&text, &["No RDMA device here", "sudo tools/lab/softroce.sh up"]);
    assert_holds(&machine.called(), &["-i wlan0 "]);
    let text = machine.command("ip", "").run(&["04"], 1);
    assert_holds(&text, &["no RDMA device and no default route", "`ip link`"]);
}

#[test]
fn tcpdump_records_where_there_is_no_dumpcap() {
    let machine = Machine::new();
    let script = format!("case $1 in -r) echo one; echo two ;; *) {RECORD} ;; esac");
    machine.without("dumpcap").command("tcpdump", &script);
    let text = machine.run(&["04"], 0);
    assert_holds(&text, &["2 packets in target/captures/04.pcap."]);
    assert_holds(&machine.called(), &["tcpdump -s 0 -U -i enp1s0 -w - udp port 4791"]);
    let text = machine.without("tcpdump").run(&["04"], 1);
    assert_holds(&text, &["neither dumpcap nor tcpdump", "apt-get install tcpdump"]);
}

#[test]
fn an_ordinary_user_records_with_dumpcaps_own_right_or_with_sudo() {
    let machine = Machine::new();
    machine.command("id", "echo 1000");
    assert!(!machine.run(&["04"], 0).contains("+ sudo"));

    machine.command("dumpcap", &format!("case $1 in -L) exit 1 ;; *) {RECORD} ;; esac"));
    assert_holds(&machine.run(&["04"], 1), &["recording needs root", "make capture-04"]);
    machine.command("sudo", "exec \"$@\"");
    assert_holds(&machine.run(&["04"], 0), &["+ sudo dumpcap", "3 packets"]);
}

#[test]
fn an_empty_recording_is_explained_and_removed() {
    let machine = Machine::new();
    machine.command("capinfos", "printf '%s\\t0\\n' \"$2\"");
    assert_holds(
        &machine.run(&["04"], 1),
        &["no RoCE packet crossed enp1s0", "on two machines", "tools/lab/doctor.sh"],
    );
    assert!(!machine.path("target/captures/04.pcapng").exists());
    machine.command("dumpcap", "echo 'no such interface' >&2; exit 1");
    assert_holds(&machine.run(&["04"], 1), &["no such interface", "the recorder could not do its work"]);
}

#[test]
fn wrong_usage_is_told() {
    for arguments in [&[][..], &["04", "eth0", "more"]] {
        assert_holds(&Machine::new().run(arguments, 2), &["usage: capture.sh NN [NETDEV]"]);
    }
}

/// What a terminal does: the signal goes to the script and to the recorder.
#[test]
fn ctrl_c_ends_the_recording_with_a_summary() {
    let machine = Machine::new();
    machine.command("dumpcap", "trap 'exit 0' INT; echo recorded; : >called; while :; do sleep 0.1; done");
    // In a background job SIGINT is ignored, and a shell cannot undo that for itself, but `env` can.
    let mut capture = Command::new("/usr/bin/env");
    capture.args(["--default-signal=INT", "/bin/sh", SCRIPT, "04"]).current_dir(machine.folder.path());
    capture.env_clear().env("PATH", machine.path("bin"));
    let mut child = capture.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for(&machine.path("called"));
    let group = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process_group(group, rustix::process::Signal::INT).unwrap();
    let limit = Instant::now() + Duration::from_secs(30);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > limit {
            rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
            panic!("the recording does not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_holds(&printed(&child.wait_with_output().unwrap(), 0), &["3 packets in target/captures/04.pcapng"]);
}

fn wait_for(path: &Path) {
    let limit = Instant::now() + Duration::from_secs(30);
    while !path.exists() {
        assert!(Instant::now() < limit, "{} does not appear", path.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}
