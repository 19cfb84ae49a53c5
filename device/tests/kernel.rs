//! The device against the kernel's rdma_rxe, in the lab: one of the two machines takes its driver away and runs our libraries
//! instead. Every lesson and variant in both roles, and rping. Needs what the lab needs, and `cargo build --workspace`.

#![allow(clippy::unwrap_used)] // A test may end with a panic.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use wire::capture::Reader;
use wire::compare::{compare, Capture, Verdict};
use wire::run::Event;
use wire::story;

const ADDRESSES: [&str; 2] = ["10.47.91.1", "10.47.91.2"];

fn target() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_device")).ancestors().nth(2).unwrap().to_owned()
}

/// What makes a command run on our device: without the driver, whose port it needs.
fn ours(command: &str, node: usize) -> String {
    let address = ADDRESSES[node];
    format!(
        "rdma link delete rxe0; rmmod rdma_rxe; LD_LIBRARY_PATH=/tmp/nic NIC_NAME=rxe0 NIC_ADDRESS={address} {command}"
    )
}

/// Runs two programs in the lab, the one with this index on our device. Gives the run file, and whether both ended with 0.
fn run(name: &str, mut commands: [String; 2], our: usize) -> (PathBuf, bool) {
    let device = Command::new(env!("CARGO_BIN_EXE_device")).arg("library").output().unwrap();
    let library = String::from_utf8(device.stdout).unwrap();
    commands[our] = ours(&commands[our], our);
    let output = Command::new(target().join("debug/lab"))
        .args(["exec", "--name", name, "--bring", &format!("{}:/tmp/nic", library.trim())])
        .args(["--server", &commands[0], "--client", &commands[1]])
        .output()
        .unwrap();
    (target().join("lab/runs").join(name).join("wire.pcapng"), output.status.code() == Some(0))
}

fn capture(file: &Path) -> Capture {
    Capture::read(&mut Reader::new(File::open(file).unwrap()).unwrap()).unwrap()
}

#[test]
#[ignore = "some minutes: cargo test -p device --test kernel -- --ignored --nocapture"]
fn every_lesson_between_the_device_and_the_kernel() {
    // Several clients would need several machines without the driver; one is the same conversation.
    for story in story::bundled().unwrap().into_iter().filter(|story| story.clients == 1) {
        for our in [0, 1] {
            let lesson = format!("lesson-{}", story.number());
            let server = format!("{lesson} server {}", story.server);
            let client = format!("{lesson} client -a {} {}", ADDRESSES[0], story.client);
            let (file, is_good) = run("device-and-kernel", [server, client], our);
            let name = format!("{}, ours is the {}", story.file_name(), ["server", "client"][our]);
            assert_eq!(is_good, story.exit == 0, "{name}");
            let bundled = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures").join(story.file_name() + ".pcapng");
            let report = compare(&capture(&file), &capture(&bundled));
            assert_eq!(report.verdict(), Verdict::Same, "{name}: {report}");
            println!("{name}: the same story");
        }
    }
}

#[test]
#[ignore = "a minute: cargo test -p device --test kernel -- --ignored --nocapture"]
fn rping_between_the_device_and_the_kernel() {
    for our in [0, 1] {
        let server = "rping -s -C 5 -S 5000 -v".to_owned();
        let client = format!("rping -c -a {} -C 5 -S 5000 -v", ADDRESSES[0]);
        assert!(run("device-and-kernel-rping", [server, client], our).1, "ours is the {}", ["server", "client"][our]);
    }
}

/// What each call returns in each state of a queue pair, without numbers that differ from run to run.
fn returned(file: &Path) -> BTreeMap<String, Vec<String>> {
    let mut reader = Reader::new(File::open(file).unwrap()).unwrap();
    let mut returned: BTreeMap<String, Vec<String>> = BTreeMap::new();
    while let Some(event) = reader.event().unwrap() {
        let Event::Line(line) = event else { continue };
        let mut parts = line.text.splitn(3, " | ");
        let (Some(state), Some(call), Some(result)) = (parts.next(), parts.next(), parts.next()) else { continue };
        // Other kinds of queue pairs this device does not have.
        if state.starts_with("RC") {
            let words =
                result.split(' ').map(|word| if word.contains(|c: char| c.is_ascii_digit()) { "N" } else { word });
            returned.entry(format!("{state} | {call}")).or_default().push(words.collect::<Vec<_>>().join(" "));
        }
    }
    returned
}

/// docs/device.md has a table of them. Where one is missing here or there, it is to be changed.
#[test]
#[ignore = "a minute: cargo test -p device --test kernel -- --ignored --nocapture"]
fn every_call_in_every_state_returns_what_it_returns_on_the_kernels_but_for_known_differences() {
    let queues = format!("RUST_LOG=error {} queues", target().join("debug/examples/states").display());
    let lab = Command::new(target().join("debug/lab")).args(["exec", "--name=states", "--server", &queues]).output();
    assert_eq!(lab.unwrap().status.code(), Some(0));
    let device = Command::new(env!("CARGO_BIN_EXE_device"))
        .args(["exec", "--name=test-states", "--quiet", "--server", &format!("env {queues}"), "--client=true"])
        .env("NIC_NAME", "rxe0")
        .output();
    device.unwrap();
    let theirs = returned(&target().join("lab/runs/states/wire.pcapng"));
    let ours = returned(&target().join("device/runs/test-states/wire.pcapng"));
    assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>());
    assert!(ours.len() > 600, "{}", ours.len());
    let differ = ours.iter().filter(|(call, results)| theirs[*call] != **results).map(|(call, _)| call.as_str());
    let differ: BTreeSet<&str> = differ.collect();
    println!("{} of {} calls differ", differ.len(), ours.len());
    let known = [
        // It is the responder that refuses it here.
        "RC ERR | post CMP_SWAP unaligned",
        "RC RTS | post CMP_SWAP unaligned",
        "RC with SRQ ERR | post CMP_SWAP unaligned",
        "RC with SRQ RTS | post CMP_SWAP unaligned",
        // In ERR a request comes back at once here: the queue never fills.
        "RC ERR | post_recv until full",
        "RC ERR | post_send_all of too many",
        "RC with SRQ ERR | post_send_all of too many",
        // The last request of a shared receive queue is told here.
        "RC with SRQ ERR | async events",
    ];
    assert_eq!(differ, known.into_iter().collect());
}
