//! One fault at a time on every packet of a lesson: dropped, duplicated, delayed, swapped with the next, corrupted. Each
//! side must come to a right end, or say what is wrong, within its own deadline, and leave nothing open.
//!
//! `make test-long group=sweep` tries all of them and prints what came of each; the default tests do the same on the device in user space
//! (tools/device/tests/all/programs/faults.rs).

use crate::support::{assert_nothing_left_open, Run, CLIENT, SERVER};
use std::panic;

/// A lesson, the client's options, and what the log of a side says once the result is right.
const LESSONS: [(&str, &str, &str, &str); 5] = [
    ("02", "", CLIENT, "connected"),
    ("04", "", SERVER, "the memory holds 60 bytes: \"One side writes, and the other side's processor never knows.\""),
    ("04", "--len 2500", SERVER, "the memory holds 2500 bytes"),
    ("05", "", CLIENT, "SUCCESS, source and destination buffers match"),
    ("05", "--len 2500", CLIENT, "SUCCESS, source and destination buffers match"),
];
const ACTS: [&str; 5] = ["drop", "duplicate", "delay", "swap", "corrupt"];

/// All faults, one for each packet of an undisturbed run.
fn rules(number: &str, options: &str) -> Vec<String> {
    let packets = Run::lesson(number, "", options).check().exits(0, 0).packets();
    let rule = |(at, packet): (usize, &String)| {
        let (name, sender) = (&packet[2..], if packet.starts_with('C') { CLIENT } else { SERVER });
        let count = packets[..=at].iter().filter(|before| *before == packet).count();
        let suffix = ["th", "st", "nd", "rd"].get(count).unwrap_or(&"th");
        // Longer than a sender waits: 0.54 s for an ACK, 4.3 s for the answer to a CM message.
        let is_rc = name.starts_with("RC ");
        let time = |act| {
            if act != "delay" {
                ""
            } else if is_rc {
                " by 700 ms"
            } else {
                " by 5 s"
            }
        };
        ACTS.map(|act| format!("{act} {count}{suffix} \"{name}\" from {sender}{}", time(act)))
    };
    packets.iter().enumerate().flat_map(rule).collect()
}

/// A side that fails says why and what to do next; if none fails, the result is right; and nothing is left open.
fn ends_well(number: &str, options: &str, rule: &str, (side, text): (&str, &str)) {
    let run = Run::lesson(number, "", options).with("wire", rule).with("inspect", "/usr/bin/rdma resource show");
    let check = run.check();
    for node in [SERVER, CLIENT] {
        match check.node(node).exit {
            Some(0) => {}
            status => assert!(status == Some(1) && check.line(node, "] ERR  ").contains("Next: "), "{}", check.all()),
        }
        assert_nothing_left_open(&check, node);
    }
    if check.nodes.iter().all(|node| node.exit == Some(0)) {
        check.logs(side, text);
    }
    assert_eq!(check.outcome.trouble, None);
}

#[test]
#[ignore = "takes long: make test-long"]
fn sweep() {
    let mut bad = Vec::new();
    for (number, options, side, text) in LESSONS {
        for rule in rules(number, options) {
            let is_good = panic::catch_unwind(|| ends_well(number, options, &rule, (side, text))).is_ok();
            println!("{} {number} {options:<10}  {rule}", if is_good { ' ' } else { '!' });
            bad.extend((!is_good).then_some(rule));
        }
    }
    assert!(bad.is_empty(), "{bad:#?}");
}
