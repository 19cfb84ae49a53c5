//! The command `wire compare`: exit status, text and JSON.

use crate::edit::Frames;
use crate::files::{bundled, file, text, wire};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Output;

/// The frames of a bundled capture without the log lines between them, so that they have the same numbers in every recording.
fn frames(name: &str) -> PathBuf {
    file(&format!("compare-{name}.pcapng"), &Frames::bundled(name).file())
}

fn compare(mine: &Path, reference: &Path, options: &[&str]) -> Output {
    wire("compare", mine, &[&[reference.to_str().unwrap()], options].concat())
}

#[test]
fn exit_0_the_same_story() {
    let capture = bundled("05_rdma_read");
    let output = compare(&capture, &capture, &[]);
    assert_eq!(output.status.code(), Some(0));
    let expected =
        "The same story: 1 connection, 5 messages of the connection manager, 4 requests with what became of them.\n";
    assert_eq!(text(&output.stdout), expected);
}

#[test]
fn exit_1_a_different_story_with_step_and_frames() {
    let output = compare(&frames("04_rdma_write"), &frames("05_rdma_read"), &[]);
    assert_eq!(output.status.code(), Some(1));
    let lines: Vec<&str> = text(&output.stdout).lines().collect();
    assert!(lines[0].starts_with("Different: Your client never posts the READ"), "{lines:?}");
    assert_eq!(lines[1], "  hint          the client hangs up without it");
    assert!(lines[2].starts_with("  the step      Step 10: "), "{lines:?}");
    assert_eq!(lines[3], "  yours         frame 12           in Wireshark: frame.number == 12");
    assert_eq!(lines[4], "  the reference frame 12           in Wireshark: frame.number == 12");
}

#[test]
fn json_says_the_same() {
    let output = compare(&frames("04_rdma_write-multi-packet"), &bundled("04_rdma_write"), &["--json"]);
    assert_eq!(output.status.code(), Some(1));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["verdict"], "different");
    assert_eq!(json["cause"]["field"], "length");
    assert_eq!(json["cause"]["mine"]["frames"], serde_json::json!([6, 8, 10]));
    assert_eq!(json["cause"]["mine"]["filter"], "frame.number == 6 || frame.number == 8 || frame.number == 10");
    assert!(json["cause"]["step"].as_str().unwrap().starts_with("Step 4: "), "{json}");
}

#[test]
fn exit_2_a_file_that_cannot_be_read_or_judged() {
    let good = bundled("05_rdma_read");
    let whole = std::fs::read(&good).unwrap();
    for (name, bytes, part) in [
        ("cut", &whole[..whole.len() - 9], "begins at byte"),
        ("text", &b"this is no capture"[..], "not a pcap or pcapng file (byte 0)"),
    ] {
        let path = file(&format!("compare-{name}"), bytes);
        for (mine, reference) in [(&path, &good), (&good, &path)] {
            let output = compare(mine, reference, &[]);
            assert_eq!(output.status.code(), Some(2), "{name}");
            let message = text(&output.stderr);
            assert!(message.contains(part) && message.contains(path.to_str().unwrap()), "{message}");
            assert!(output.stdout.is_empty());
        }
    }
    let nothing = file("compare-nothing", &Frames(Frames::bundled("05_rdma_read").0[..2].to_vec()).file());
    let output = compare(&nothing, &good, &[]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stdout);
    assert!(said.starts_with("Cannot be judged: None of the 2 frames is RoCEv2 (2 ARP)."), "{said}");
    let output = compare(&nothing, &good, &["--json"]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &json["verdict"]), (Some(2), &Value::from("unreadable")));
    assert_eq!(compare(Path::new("/nonexistent"), &good, &[]).status.code(), Some(2));
}
