//! Every packet of a lesson is lost, doubled or overtaken, one at a time: the lesson succeeds all the same, or each program
//! that fails says why. Build the lessons first: `cargo build --workspace`.

#![allow(clippy::unwrap_used)] // A test may end with a panic.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use wire::capture::Reader;
use wire::run::{Event, Line};
use wire::Frame;

struct Ran {
    exit: Option<i32>,
    file: PathBuf,
    text: String,
}

/// Runs a lesson with a rule, or without.
fn run(lesson: &str, rule: &str) -> Ran {
    let program = Path::new(env!("CARGO_BIN_EXE_device"));
    let name = format!("test-faults-{lesson}");
    let output = Command::new(program)
        .args(["run", &format!("lesson-{lesson}"), "--quiet", "--deadline=100"])
        .args([format!("--name={name}"), format!("--wire={rule}")])
        .output()
        .unwrap();
    let file = program.ancestors().nth(2).unwrap().join("device/runs").join(name).join("wire.pcapng");
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    Ran { exit: output.status.code(), file, text }
}

/// Packets of the client and of the server; and whether each program ended with 0, or has told why not.
fn look(file: &Path) -> ([usize; 2], bool) {
    let mut reader = Reader::new(File::open(file).unwrap()).unwrap();
    let (mut packets, mut explained) = ([0, 0], true);
    let mut told = [false, false];
    while let Some(event) = reader.event().unwrap() {
        match event {
            Event::Packet(record) => {
                if let Frame::Roce(_) = Frame::ethernet(record.data) {
                    packets[usize::from(record.node == Some("server"))] += 1;
                }
            }
            Event::Line(line) => {
                let side = usize::from(line.node == "server");
                told[side] |= line.tag() == Some("ERR");
                explained &= line.act != Line::EXIT || line.text == "exit status 0" || told[side];
            }
        }
    }
    (packets, explained)
}

/// One fault at each packet in turn. How many runs succeeded, and how many there were.
fn sweep(lesson: &str, act: &str, only_data: bool) -> (usize, usize) {
    let (packets, _) = look(&run(lesson, "").file);
    let (mut good, mut all) = (0, 0);
    for (side, count) in ["client", "server"].into_iter().zip(packets) {
        // The last one is the goodbye, and the handshake comes first.
        let (first, end) = if only_data { (if side == "client" { 3 } else { 2 }, count) } else { (1, count + 1) };
        for nth in first..end {
            let suffix = ["th", "st", "nd", "rd"].get(if nth % 100 / 10 == 1 { 0 } else { nth % 10 }).unwrap_or(&"th");
            let rule = format!("{act} {nth}{suffix} packet from {side}");
            let Ran { exit, file, text } = run(lesson, &rule);
            let (_, explained) = look(&file);
            assert!(exit == Some(0) || (exit == Some(1) && explained), "lesson {lesson}, {rule}: {exit:?} {text}");
            assert!(!text.contains("a program had not ended"), "lesson {lesson}, {rule}: {text}");
            good += usize::from(exit == Some(0));
            all += 1;
        }
    }
    (good, all)
}

#[test]
fn data_that_is_lost_doubled_or_overtaken_arrives_all_the_same() {
    for act in ["drop", "duplicate", "swap"] {
        let (good, all) = sweep("05", act, true);
        assert_eq!(good, all, "{act}");
        assert!(all > 6);
    }
}

#[test]
#[ignore = "some minutes: cargo test -p device --test faults -- --ignored --nocapture"]
fn every_packet_of_every_lesson() {
    for lesson in ["01", "02", "03", "04", "05", "06", "07"] {
        for act in ["drop", "duplicate", "swap", "corrupt"] {
            let (good, all) = sweep(lesson, act, false);
            println!("lesson {lesson}, {act}: {good} of {all} succeeded, the others said why not");
        }
    }
}
