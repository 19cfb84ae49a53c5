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

/// Yours, the reference, options; the exit status, and what is said.
type Case<'a> = (&'a Path, &'a Path, &'a [&'a str], i32, &'a [&'a str]);

#[test]
fn the_exit_status_tells_the_verdict_and_the_words_why() {
    let good = bundled("05_rdma_read");
    let [write, read] = ["04_rdma_write", "05_rdma_read"].map(frames);
    let whole = std::fs::read(&good).unwrap();
    let (cut, none) = (file("compare-cut", &whole[..whole.len() - 9]), Path::new("/nonexistent"));
    let prose = file("compare-text", b"this is no capture");
    let nothing = file("compare-nothing", &Frames(Frames::bundled("05_rdma_read").0[..2].to_vec()).file());
    let same = "The same story: 1 connection, 5 messages of the connection manager, 4 requests with their outcomes.\n";
    let different = "  hint          the client hangs up without it\n  the step      Step 10: ";
    let place = "
  yours         frame 12           in Wireshark: frame.number == 12
  the reference frame 12           in Wireshark: frame.number == 12\n";
    let different = ["Different: Your client never posts the READ", different, place];
    let (main, many) = (bundled("04_rdma_write"), bundled("04_rdma_write-multi-packet"));
    let cases: [Case; 13] = [
        (&good, &good, &[], 0, &[same]),
        (&write, &read, &[], 0, &different),
        (&write, &read, &["--exit-code"], 1, &different),
        // The run tells its options; a capture without lines has none.
        (&many, &main, &["--variant", "--exit-code"], 0, &["The same", "run with the options of 04_rdma_write-multi"]),
        (&main, &main, &["--variant", "--exit-code"], 0, &["The same story"]),
        (&write, &main, &["--variant", "--exit-code"], 0, &["The same story"]),
        (&cut, &good, &[], 2, &["compare-cut: ", "begins at byte"]),
        (&good, &cut, &[], 2, &["compare-cut: ", "begins at byte"]),
        (&prose, &good, &[], 2, &["compare-text: not a pcap or pcapng file (byte 0)"]),
        (&good, &prose, &[], 2, &["compare-text: not a pcap or pcapng file (byte 0)"]),
        (none, &good, &[], 2, &["/nonexistent: ", "No such file"]),
        (&nothing, &good, &[], 2, &["Cannot be judged: None of the 2 frames is RoCEv2 (2 ARP)."]),
        (&nothing, &good, &["--json"], 2, &["\"verdict\": \"unreadable\""]),
    ];
    for (mine, reference, options, status, says) in cases {
        let output = compare(mine, reference, options);
        let told = [text(&output.stdout), text(&output.stderr)].concat();
        assert_eq!(output.status.code(), Some(status), "{told}");
        assert!(output.stdout.is_empty() || output.stderr.is_empty(), "{told}");
        assert!(says.iter().all(|part| told.contains(part)), "not {says:?}: {told}");
    }
}

#[test]
fn json_says_the_same() {
    let output = compare(&frames("04_rdma_write-multi-packet"), &bundled("04_rdma_write"), &["--json"]);
    assert_eq!(output.status.code(), Some(0));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(json["verdict"] == "different" && json["cause"]["field"] == "length", "{json}");
    assert_eq!(json["cause"]["mine"]["frames"], serde_json::json!([6, 8, 10]));
    assert_eq!(json["cause"]["mine"]["filter"], "frame.number == 6 || frame.number == 8 || frame.number == 10");
    assert!(json["cause"]["step"].as_str().unwrap().starts_with("Step 4: "), "{json}");
}
