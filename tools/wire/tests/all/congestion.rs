//! Congestion in a capture: marks, a CNP and a pause, as `wire explain` tells them and as tshark reads them.

use crate::files::{capture, file};
use roce::pause::Frame as Pause;
use run::capture::Reader;
use std::process::Command;
use testkit::frames::*;
use wire::explain::{explain, Cause};

/// DSCP 26, and what a switch has made of ECT(0).
const MARKED: u8 = 26 << 2 | 3;
const CAPABLE: u8 = 26 << 2 | 2;

/// A frame in this traffic class.
fn classed(mut frame: Vec<u8>, class: u8) -> Vec<u8> {
    roce::link::set_traffic_class(&mut frame[14..], class);
    frame
}

fn write(psn: u32, class: u8) -> Vec<u8> {
    classed(frame(CLIENT, SERVER, 0x0a, SERVER_QP, psn, &reth(1 << 30, 7, 4), b"data"), class)
}

fn ack(psn: u32) -> Vec<u8> {
    classed(frame(SERVER, CLIENT, 0x11, CLIENT_QP, psn, &aeth(0x1f, 1), &[]), CAPABLE)
}

/// Annex A17.9.3: opcode 0x81, BECN, a PSN of zero, no answer wanted, and 16 bytes of zeroes.
fn cnp() -> Vec<u8> {
    let mut transport = transport(0x81, CLIENT_QP | 1 << 30, 0, &[0; 16], &[]);
    transport[8] = 0;
    classed(ethernet(&ip(SERVER, CLIENT, &transport)), 48 << 2)
}

fn pause(quanta: u16) -> Vec<u8> {
    Pause::about(3, quanta).encode([2, 0, 0, 0, 0, 0]).to_vec()
}

/// Three writes, two of them marked; the third is lost and sent again; a CNP comes, and a pause, which ends.
fn congested() -> Vec<Vec<u8>> {
    let nak = classed(frame(SERVER, CLIENT, 0x11, CLIENT_QP, 2, &aeth(0x60, 2), &[]), CAPABLE);
    vec![
        write(0, CAPABLE),
        write(1, MARKED),
        ack(1),
        cnp(),
        write(2, CAPABLE),
        write(3, MARKED),
        nak,
        pause(1000),
        pause(0),
        write(2, CAPABLE),
        write(3, CAPABLE),
        ack(3),
    ]
}

#[test]
fn congestion_is_named_with_its_signs() {
    let told = explain(&mut Reader::new(&*capture(congested())).unwrap()).unwrap();
    let found: Vec<_> = told.findings().filter(|finding| finding.cause == Cause::Congestion).collect();
    let [finding] = found[..] else { panic!("{told}") };
    assert_eq!(finding.frames, [2, 4, 6, 8], "{told}");
    for words in [
        "switches marked 2 of 10.0.0.2's packets (ECN 11)",
        "1 CNPs told it to slow down",
        "1 pause frames (PFC) stopped priority 3",
        "sent again",
    ] {
        assert!(finding.text.contains(words), "{words}: {told}");
    }
    // Of another priority, and with no marks, there is no sign of it.
    let calm = [write(0, 2), classed(ack(0), 2), pause(1000)];
    let told = explain(&mut Reader::new(&*capture(calm)).unwrap()).unwrap();
    assert!(told.findings().all(|finding| finding.cause != Cause::Congestion), "{told}");
}

/// An independent decoder reads the same: class, operation code, queue pair and PSN, and for how many quanta which priority is
/// silent; and to it the checksum of a marked packet is right. BECN is no field of tshark's.
#[test]
fn tshark_reads_marks_notifications_and_pauses_as_we_do() {
    const FIELDS: [&str; 8] = [
        "ip.dsfield.dscp",
        "ip.dsfield.ecn",
        "ip.checksum.status",
        "infiniband.bth.opcode",
        "infiniband.bth.destqp",
        "infiniband.bth.psn",
        "macc.cbfc.enbv.c3",
        "macc.cbfc.pause_time.c3",
    ];
    let frames: Vec<Vec<u8>> = congested().into_iter().map(with_checksum).collect();
    let path = file("congestion.pcapng", &capture(&frames));
    let mut command = Command::new("tshark");
    command.args(["-n", "-o", "ip.check_checksum:TRUE", "-r"]).arg(&path).args(["-T", "fields", "-E", "occurrence=f"]);
    command.args(FIELDS.iter().flat_map(|field| ["-e", field]));
    let output = command.output().expect("tshark is installed: `make test` gets it, and so does `apt install tshark`");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // From 4.4 on it says True of a flag.
    let theirs = String::from_utf8(output.stdout).unwrap().replace("True", "1");
    let ours: Vec<String> = frames.iter().map(|frame| read(frame)).collect();
    assert_eq!(theirs.lines().collect::<Vec<_>>(), ours);
    for words in ["26\t3\t1\t10\t", "48\t0\t1\t129\t", "\t1\t1000", "\t1\t0"] {
        assert!(theirs.contains(words), "{words:?}: {theirs}");
    }
}

/// The same packet with the IP checksum that it must have, so that the one of a marked packet is looked at, too.
fn with_checksum(mut frame: Vec<u8>) -> Vec<u8> {
    if frame[12..14] == [8, 0] {
        let class = frame[15];
        roce::link::set_traffic_class(&mut frame[14..], 0);
        frame[24..26].fill(0);
        let sum: u32 = frame[14..34].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
        frame[24..26].copy_from_slice(&(!((sum >> 16) + (sum & 0xffff)) as u16).to_be_bytes());
        roce::link::set_traffic_class(&mut frame[14..], class);
    }
    frame
}

/// Our reading of a frame, in the fields that tshark is asked for.
fn read(frame: &[u8]) -> String {
    match roce::Frame::ethernet(frame) {
        roce::Frame::Roce(packet) => {
            let (class, bth) = (packet.datagram.traffic_class(), packet.bth);
            format!("{}\t{}\t1\t{}\t{:#08x}\t{}\t\t", class >> 2, class & 3, bth.opcode, bth.dest_qp, bth.psn)
        }
        roce::Frame::Other(other) => {
            assert_eq!(other, roce::Other::Pause);
            let quanta = Pause::decode(frame).unwrap().quanta;
            assert_eq!(quanta.iter().flatten().count(), 1, "only priority 3 is spoken of");
            format!("\t\t\t\t\t\t1\t{}", quanta[3].unwrap())
        }
    }
}
