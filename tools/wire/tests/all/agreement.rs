//! Every column of the table agrees with tshark, an independent decoder. What other link layers put in front is in packets.rs.

use crate::files::{all_bundled, capture, file};
use roce::opcode::{Opcode, Operation, Service, TABLE};
use std::thread;
use testkit::frames::*;
use testkit::tshark::agree;

/// tshark 4.0 does not know FLUSH, ATOMIC WRITE, and XRC's operation codes.
fn tshark_knows(row: &Opcode) -> bool {
    row.name != "CNP" && row.service != Service::Xrc && !matches!(row.code, 0x1c | 0x1d)
}

/// Each operation code over both IP versions, with payloads that need every amount of padding.
fn every_opcode() -> Vec<Vec<u8>> {
    let mut frames = vec![];
    for row in TABLE.iter().filter(|row| tshark_knows(row)) {
        let length: usize = row.headers.iter().map(|header| header.length).sum();
        let headers: Vec<u8> = (1..=length as u8).collect();
        for payload in 0..if carries_data(row) { 5 } else { 1 } {
            let bytes = transport(row.code, 0x123456, 0xfedcba, &headers, &vec![0xee; payload]);
            // More machines than the table remembers.
            frames.push(ethernet(&ip(&format!("10.0.1.{}", frames.len() % 20), SERVER, &bytes)));
            frames.push(ethernet(&ip("fe80::2", "fe80::1", &bytes)));
        }
    }
    frames
}

fn carries_data(row: &Opcode) -> bool {
    matches!(row.operation, Operation::Send | Operation::Write | Operation::ReadResponse)
}

#[test]
fn every_column_of_every_capture_agrees_with_tshark() {
    assert_eq!(agree(&file("conversation.pcapng", &capture(conversation()))), 15);
    let frames = every_opcode();
    assert_eq!(agree(&file("opcodes.pcapng", &capture(&frames))), frames.len());
    // tshark needs most of its time to start, and one processor for that.
    let recorded = all_bundled();
    thread::scope(|scope| {
        for some in recorded.chunks(recorded.len().div_ceil(2)) {
            scope.spawn(move || {
                for path in some {
                    let packets = agree(path);
                    assert!(packets > 0, "{} has no RoCEv2 packet", path.display());
                    println!("{}: {packets} packets agree", path.display());
                }
            });
        }
    });
}
