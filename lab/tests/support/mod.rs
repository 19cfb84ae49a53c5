//! What the lab tests share: running, and asking what happened.

#![allow(clippy::unwrap_used)] // A test may end with a panic.
#![allow(dead_code)] // Every test file uses a part of it.

pub mod invented;
pub mod served;

use lab::{Ended, Lab, Outcome, Run, CLIENT, SERVER};
use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use wire::Packet;

/// A finished run, with questions to ask. Each answers with all that was printed if it is not met.
pub struct Check {
    pub outcome: Outcome,
}

/// Runs both sides of a lesson.
pub fn lesson(number: &str, server: &str, client: &str) -> Check {
    Check::of(run_of(number, server, client))
}

/// Both sides of a lesson, to be run.
pub fn run_of(number: &str, server: &str, client: &str) -> Run {
    Run::lesson(number).unwrap().server_args(server).client_args(client)
}

/// Any two programs, to be run.
pub fn programs(server: &str, client: &str) -> Run {
    Run::programs().server(server).client(client)
}

/// `target/debug/examples/odd_peer`, built by `cargo test --workspace` with all other examples.
pub fn odd_peer() -> String {
    let test = std::env::current_exe().unwrap();
    let peer = test.ancestors().nth(2).unwrap().join("examples/odd_peer");
    assert!(peer.exists(), "{} does not exist: `cargo build -p common --examples` builds it", peer.display());
    peer.display().to_string()
}

/// A file that no other test uses.
pub fn temporary_file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("lab-test-{}-{name}", std::process::id()))
}

/// `rdma resource show` said the same before and after; and it said something, for it was asked on a machine with rxe0.
pub fn assert_nothing_left_open(ended: &Ended, what: &str) {
    assert!(ended.before.join("").contains("rxe0"), "`rdma resource show` says {:?}: {what}", ended.before);
    assert_eq!(ended.before, ended.after, "something is left open: {what}");
}

/// A script that can be run at once. `install` writes it, and not this process: a program that another test starts at
/// the same moment would hold the open file until its exec, and the kernel runs no file that is open for writing.
pub fn write_script(path: &Path, text: &str) {
    let mut install = Command::new("install");
    let mut child = install.args(["-m", "755", "/dev/stdin"]).arg(path).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(format!("#!/bin/sh\n{text}\n").as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "install {}", path.display());
}

/// A file of this folder.
pub fn read_lab(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

impl Check {
    pub fn of(run: Run) -> Self {
        let outcome = Lab::open().unwrap().run(&run).unwrap_or_else(|error| panic!("{error:#}"));
        Self { outcome }
    }

    /// Both programs ended by themselves, with these exit statuses.
    pub fn exits(self, server: i32, client: i32) -> Self {
        let got = [self.outcome.node("server").exit, self.outcome.node("client").exit];
        assert_eq!(got, [Some(server), Some(client)], "{}", self.all());
        self
    }

    /// Some line of that side contains the text.
    pub fn logs(&self, side: &str, text: &str) {
        assert!(self.count(side, text) > 0, "the {} does not say {text:?}:\n{}", side, self.all());
    }

    /// No line of that side contains the text.
    pub fn does_not_log(&self, side: &str, text: &str) {
        assert_eq!(self.count(side, text), 0, "the {} says {text:?}:\n{}", side, self.all());
    }

    /// Lines that contain these texts come one after the other.
    pub fn logs_in_order(&self, side: &str, texts: &[&str]) {
        let mut lines = self.outcome.node(side).log.iter();
        for text in texts {
            assert!(lines.any(|line| line.contains(text)), "the {} does not say {text:?} there:\n{}", side, self.all());
        }
    }

    /// How many lines contain the text.
    pub fn count(&self, side: &str, text: &str) -> usize {
        self.outcome.node(side).log.iter().filter(|line| line.contains(text)).count()
    }

    /// The first line that contains the text.
    pub fn line(&self, side: &str, text: &str) -> String {
        self.logs(side, text);
        let log = &self.outcome.node(side).log;
        log.iter().find(|line| line.contains(text)).cloned().unwrap_or_default()
    }

    /// What follows `our metadata: ` or `the peer's metadata: ` in a side's log.
    pub fn metadata(&self, side: &str, whose: &str) -> String {
        let mark = format!("{whose} metadata: ");
        let line = self.line(side, &mark);
        line.split(&mark).nth(1).unwrap_or_default().to_string()
    }

    /// Exactly these RoCE packets crossed the wire: each with its sender, C or S. Where both sides send on their own, the
    /// order between them is not fixed by the protocol, so the order is checked for each sender.
    pub fn packets_are(&self, expected: &[&[&str]]) {
        let expected: Vec<String> = expected.concat().into_iter().map(String::from).collect();
        let got = packets_once(&self.outcome);
        for sender in ["C ", "S "] {
            let of = |all: &[String]| -> Vec<String> {
                all.iter().filter(|packet| packet.starts_with(sender)).cloned().collect()
            };
            assert_eq!(of(&got), of(&expected), "{}", self.all());
        }
    }

    /// Besides one connect and one disconnect, exactly so many packets of these kinds crossed the wire.
    pub fn only_these_packets(&self, expected: &[(&str, usize)]) {
        let cm = ["ConnectRequest", "ConnectReply", "ReadyToUse", "DisconnectRequest", "DisconnectReply"];
        let mut expected: Vec<&str> =
            expected.iter().flat_map(|(name, count)| std::iter::repeat(*name).take(*count)).chain(cm).collect();
        let once = packets_once(&self.outcome);
        let mut got: Vec<&str> = once.iter().map(|packet| &packet[2..]).collect();
        got.sort_unstable();
        expected.sort_unstable();
        assert_eq!(got, expected, "{}", self.all());
    }

    fn all(&self) -> String {
        let log = |side| self.outcome.node(side).log.join("\n");
        format!("server:\n{}\n\nclient:\n{}\n\npackets: {:?}", log(SERVER), log(CLIENT), packets(&self.outcome))
    }
}

/// The packets' names with their senders, C or S.
pub fn packets(outcome: &Outcome) -> Vec<String> {
    let mut packets = Vec::new();
    outcome.each_packet(|node, packet| packets.push(named(node, packet))).unwrap();
    packets
}

/// The same without repetitions: where the machines are slow, an answer may come too late for the one who waits for it.
pub fn packets_once(outcome: &Outcome) -> Vec<String> {
    let (mut packets, mut seen) = (Vec::new(), HashSet::new());
    let look = |node: &str, packet: &Packet<'_>| {
        let (name, number) = (named(node, packet), packet.cm().map(|message| message.transaction_id));
        if seen.insert((name.clone(), packet.bth.dest_qp, number.unwrap_or(packet.bth.psn.into()))) {
            packets.push(name);
        }
    };
    outcome.each_packet(look).unwrap();
    packets
}

fn named(node: &str, packet: &Packet<'_>) -> String {
    format!("{} {}", if node == CLIENT { 'C' } else { 'S' }, packet.name())
}

/// The same, as tshark reads them from a capture.
pub fn tshark_packets(capture: &Path) -> Vec<String> {
    let fields = ["ip.src", "infiniband.bth.opcode", "infiniband.mad.attributeid"];
    let mut command = Command::new("tshark");
    command.arg("-r").arg(capture).args(["-Y", "infiniband", "-T", "fields"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output().expect("tshark is installed (`make test` gets it)");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(tshark_line).collect()
}

fn tshark_line(line: &str) -> String {
    let fields: Vec<&str> = line.split('\t').collect();
    let sender = if fields[0] == lab::address(1) { 'C' } else { 'S' };
    let name = match (fields[1], fields[2]) {
        (_, "0x0010") => "ConnectRequest",
        (_, "0x0012") => "ConnectReject",
        (_, "0x0013") => "ConnectReply",
        (_, "0x0014") => "ReadyToUse",
        (_, "0x0015") => "DisconnectRequest",
        (_, "0x0016") => "DisconnectReply",
        ("4", "") => "RC Send Only",
        ("6", "") => "RC RDMA Write First",
        ("7", "") => "RC RDMA Write Middle",
        ("8", "") => "RC RDMA Write Last",
        ("10", "") => "RC RDMA Write Only",
        ("12", "") => "RC RDMA Read Request",
        ("13", "") => "RC RDMA Read Response First",
        ("14", "") => "RC RDMA Read Response Middle",
        ("15", "") => "RC RDMA Read Response Last",
        ("16", "") => "RC RDMA Read Response Only",
        ("17", "") => "RC Acknowledge",
        other => panic!("a packet that no lesson sends: {other:?}"),
    };
    format!("{sender} {name}")
}
