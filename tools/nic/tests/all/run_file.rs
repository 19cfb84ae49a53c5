//! Two NICs, a wire, two programs and a recorder in one process, without a thread or a clock: what happens is a run file.

use crate::pair::{attributes, end, Pair, CLIENT};
use nic::work::Work;
use pair::recorded::Recorded;
use pair::script::{self, Call, Script};
use run::capture::Reader;
use std::process::Command;
use wire::explain::{explain, Cause, Explanation};

/// The client WRITEs 600 bytes, which are three packets, and waits; the server's program makes no call. The run file.
fn written(rules: &str) -> Vec<u8> {
    let mut file = Vec::new();
    let end = |number, peer| end(number, peer, 4096, attributes(7, 7, 7, 7));
    let pair = Pair::on(Recorded::begin(&mut file, rules).unwrap(), end(18, 17), end(17, 18));
    let mut pair = Pair { happened: Some(Vec::new()), ..pair };
    pair.client.fill(0, &[0x5a; 600]);
    let write = Work::Write(pair.server.remote(1000));
    let mut scripts: [Script; 2] = Default::default();
    scripts[CLIENT].extend([Call::PostSend(1, write, 0, 600), Call::Wait(1)]);
    assert!(script::run(&mut pair, &mut scripts));
    assert!(scripts.iter().all(Script::is_empty), "{scripts:?}");
    assert_eq!(pair.server.bytes(1000, 600), [0x5a; 600]);
    assert!(pair.server.received.is_empty(), "the server's program learns nothing");
    pair.wire.end().unwrap();
    file
}

fn explained(file: &[u8]) -> Explanation {
    explain(&mut Reader::new(file).unwrap()).unwrap()
}

#[test]
fn a_write_is_a_run_file_that_others_read_and_the_same_each_time() {
    let file = written("");
    assert_eq!(file, written(""));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.pcapng");
    std::fs::write(&path, &file).unwrap();
    let fields = ["-T", "fields", "-e", "frame.interface_name", "-e", "infiniband.bth.opcode"];
    let read = Command::new("tshark").arg("-r").arg(&path).args(["-Y", "infiniband"]).args(fields).output().unwrap();
    let read = String::from_utf8(read.stdout).unwrap();
    // First, middle and last packet of an RDMA WRITE, and what acknowledges them.
    assert_eq!(
        read.split_whitespace().collect::<Vec<_>>(),
        ["client", "6", "client", "7", "client", "8", "server", "17"]
    );
    let explanation = explained(&file);
    let text = explanation.text(100);
    assert!(!explanation.is_wrong() && !text.contains("without an end"), "{text}");
}

/// What was lost is sent again after the time-out, which nobody waits for.
#[test]
fn the_rules_of_a_run_hold_on_this_wire() {
    for (rule, wanted) in [
        ("drop 2nd packet from client", &[Cause::Lost][..]),
        ("drop 1st packet from server", &[Cause::AnswerLost]),
        ("corrupt 1st packet from client", &[Cause::Damaged]),
        // Each of the two is acknowledged.
        ("duplicate 3rd packet from client", &[Cause::Doubled; 2]),
    ] {
        let explanation = explained(&written(rule));
        let causes: Vec<Cause> = explanation.findings().map(|finding| finding.cause).collect();
        assert_eq!(causes, wanted, "{rule}: {}", explanation.text(100));
    }
    // It's held back, and the clock goes on to its time.
    written("delay 3rd packet from client by 5 ms");
}
