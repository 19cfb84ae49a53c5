//! The device against the kernel's rdma_rxe, in the lab: one of the two machines takes its driver away and runs our libraries
//! instead. Every lesson and variant in both roles, rping and perftest; and what `differences.toml` says. Needs what the lab needs, and `cargo build --workspace`.

use roce::cm::{req, Kind};
use roce::field::Field;
use roce::Frame;
use run::capture::Reader;
use run::file::Event;
use run::story;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use wire::compare::{compare, Capture, Verdict};

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
#[ignore = "takes long: make test-long"]
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
            let bundled =
                Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures").join(story.file_name() + ".pcapng");
            let report = compare(&capture(&file), &capture(&bundled));
            assert_eq!(report.verdict(), Verdict::Same, "{name}: {report}");
            println!("{name}: the same story");
        }
    }
}

/// Programs of others, unmodified, in both roles. perftest talks over TCP before, and needs no connection manager.
#[test]
#[ignore = "takes long: make test-long"]
fn other_peoples_programs_between_the_device_and_the_kernel() {
    let mut programs = vec![
        ("rping -s -C 5 -S 5000 -v".into(), format!("rping -c -a {} -C 5 -S 5000 -v", ADDRESSES[0])),
        // The client finds the server's Ethernet address by a ping.
        (
            "env NIC_ADDRESS=fd47:91::1 rping -s -a fd47:91::1 -C 5".into(),
            "sh -c 'busybox ping6 -c 1 fd47:91::1; NIC_ADDRESS=fd47:91::2 exec rping -c -a fd47:91::1 -C 5'".into(),
        ),
        ("ucmatose -C 5 -S 3000".into(), format!("ucmatose -s {} -C 5 -S 3000", ADDRESSES[0])),
        ("ibv_rc_pingpong -g GID -n 100".into(), format!("ibv_rc_pingpong -g GID -n 100 {}", ADDRESSES[0])),
        ("ibv_srq_pingpong -g GID -n 100".into(), format!("ibv_srq_pingpong -g GID -n 100 {}", ADDRESSES[0])),
    ];
    for test in ["ib_write_lat", "ib_read_lat", "ib_send_lat", "ib_atomic_lat", "ib_write_bw"] {
        programs.push((format!("{test} -n 50"), format!("{test} -n 50 {}", ADDRESSES[0])));
    }
    for (server, client) in programs {
        for our in [0, 1] {
            // The kernel's GID of IPv4 is its second one; our device has no other.
            let mut commands = [server.replace("GID", "1"), client.replace("GID", "1")];
            commands[our] = commands[our].replace("-g 1", "-g 0");
            let good = run("device-and-kernel-strangers", commands, our).1;
            let name = format!("{server}, ours is the {}", ["server", "client"][our]);
            assert!(good, "{name}");
            println!("{name}: both ended with 0");
        }
    }
}

/// A row of `differences.toml`.
#[derive(serde::Deserialize)]
struct Difference {
    what: String,
    #[serde(default)]
    calls: Vec<String>,
    seen: Option<String>,
    #[serde(default)]
    changes: Vec<String>,
}

#[derive(serde::Deserialize)]
struct Differences {
    difference: Vec<Difference>,
}

fn differences() -> Vec<Difference> {
    basic_toml::from_str::<Differences>(include_str!("../../differences.toml")).unwrap().difference
}

/// What each call returns in each state of a queue pair, without numbers that differ from run to run; and the limits that the
/// first queue pair was given.
fn returned(file: &Path) -> (BTreeMap<String, Vec<String>>, String) {
    let mut reader = Reader::new(File::open(file).unwrap()).unwrap();
    let (mut returned, mut limits): (BTreeMap<String, Vec<String>>, String) = Default::default();
    while let Some(event) = reader.event().unwrap() {
        let Event::Line(line) = event else { continue };
        if let (Some(at), true) = (line.text.find("QpCap"), limits.is_empty()) {
            limits = line.text[at..].to_owned();
        }
        // In front of the state stand time and stage, if a program says them.
        let text = line.text.rsplit("] ").next().unwrap();
        let mut parts = text.splitn(3, " | ");
        let (Some(state), Some(call), Some(result)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let words = result.split(' ').map(|word| if word.contains(|c: char| c.is_ascii_digit()) { "N" } else { word });
        returned.entry(format!("{state} | {call}")).or_default().push(words.collect::<Vec<_>>().join(" "));
    }
    (returned, limits)
}

/// The calls that return something else on the kernel's device than on ours.
fn differing() -> BTreeSet<String> {
    let queues = format!("RUST_LOG=info {} queues", target().join("debug/examples/states").display());
    let lab = Command::new(target().join("debug/lab")).args(["exec", "--name=states", "--server", &queues]).output();
    assert_eq!(lab.unwrap().status.code(), Some(0));
    let device = Command::new(env!("CARGO_BIN_EXE_device"))
        .args(["exec", "--name=test-states", "--quiet", "--server", &format!("env {queues}"), "--client=true"])
        .env("NIC_NAME", "rxe0")
        .output();
    device.unwrap();
    let (mut theirs, their_limits) = returned(&target().join("lab/runs/states/wire.pcapng"));
    let (ours, our_limits) = returned(&target().join("device/runs/test-states/wire.pcapng"));
    let other_kinds = theirs.keys().filter(|call| call.starts_with("UC")).count();
    assert!(other_kinds > 300, "UC: {other_kinds}");
    theirs.retain(|call, _| !call.starts_with("UC"));
    assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>());
    assert!(ours.len() > 600, "{}", ours.len());
    println!("limits asked for: 4, 4, 2, 2, 16; theirs: {their_limits}; ours: {our_limits}");
    let asked = "QpCap { max_send_wr: 4, max_recv_wr: 4, max_send_sge: 2, max_recv_sge: 2, max_inline_data: 16 }";
    assert!(our_limits == asked && their_limits != asked, "sizes");
    let (their_ids, our_ids) = ids();
    assert_eq!(our_ids.keys().collect::<Vec<_>>(), their_ids.keys().collect::<Vec<_>>());
    assert!(our_ids.len() > 400, "{}", our_ids.len());
    theirs.extend(their_ids);
    let ours = ours.into_iter().chain(our_ids);
    ours.filter(|(call, results)| theirs[call] != *results).map(|(call, _)| call).collect()
}

/// What each call on an id returns in each state of a client, on the kernel's device and on ours.
fn ids() -> (BTreeMap<String, Vec<String>>, BTreeMap<String, Vec<String>>) {
    let states = format!("env RUST_LOG=error {}", target().join("debug/examples/states").display());
    let run = |runner: &Path, name: &str, address: &str| {
        let (host, client) = (format!("{states} host"), format!("{states} client {address}"));
        let arguments = ["exec", "--deadline=280", "--name", name, "--server", &host, "--client", &client];
        assert_eq!(Command::new(runner).args(arguments).output().unwrap().status.code(), Some(0));
    };
    run(&target().join("debug/lab"), "states-of-ids", ADDRESSES[0]);
    run(Path::new(env!("CARGO_BIN_EXE_device")), "test-states-of-ids", "$SERVER");
    let file = |folder: &str| returned(&target().join(folder).join("wire.pcapng")).0;
    (file("lab/runs/states-of-ids"), file("device/runs/test-states-of-ids"))
}

/// A difference that `differences.toml` does not know, and one that is none any more: either is to be changed, here or there.
#[test]
#[ignore = "takes long: make test-long"]
fn every_call_in_every_state_returns_what_it_returns_on_the_kernels_but_for_known_differences() {
    let known: BTreeSet<String> = differences().into_iter().flat_map(|row| row.calls).collect();
    // Whether a queue is full before its first request has failed time decides, on a loaded machine: what differs, differs again.
    let mut differ = differing();
    for _ in 0..2 {
        if differ != known {
            let again = differing();
            differ.retain(|call| again.contains(call));
        }
    }
    assert_eq!(differ, known);
}

/// What the packets of one side of a run look like.
#[derive(Debug, Default)]
struct Look {
    /// After how many packets of a message an ACK was first asked for.
    first_ack_request: usize,
    /// The queue pair that its packets come to.
    number: u32,
    identifications: BTreeSet<[u8; 2]>,
    ports: BTreeSet<u16>,
}

/// The look of a client's long WRITE, and that of the server's answers.
fn look(file: &Path) -> [Look; 2] {
    let mut reader = Reader::new(File::open(file).unwrap()).unwrap();
    let (mut looks, mut written): ([Look; 2], usize) = Default::default();
    while let Some(event) = reader.event().unwrap() {
        let Event::Packet(record) = event else { continue };
        let Frame::Roce(packet) = Frame::decode(record.link, record.data) else { continue };
        let (ip, udp) = (packet.datagram.ip, packet.datagram.udp_offset);
        let from = ADDRESSES.iter().position(|address| packet.datagram.src.to_string() == *address).unwrap();
        looks[from].identifications.insert([ip[4], ip[5]]);
        if packet.bth.dest_qp != 1 {
            looks[from].ports.insert(u16::from_be_bytes([ip[udp], ip[udp + 1]]));
            looks[1 - from].number = packet.bth.dest_qp;
        }
        if packet.name().starts_with("RC RDMA Write") {
            written += 1;
            if packet.bth.ack_req && looks[from].first_ack_request == 0 {
                looks[from].first_ack_request = written;
            }
        }
    }
    looks
}

#[test]
#[ignore = "takes long: make test-long"]
fn packets_differ_as_the_table_says() {
    let commands = || ["lesson-04 server".to_owned(), format!("lesson-04 client -a {} --len 150000", ADDRESSES[0])];
    // Ours is the client, and then the server.
    let (first, second) =
        (run("device-and-kernel-look", commands(), 1), run("device-and-kernel-look-2", commands(), 0));
    assert!(first.1 && second.1);
    let ([their_server, our_client], [our_server, their_client]) = (look(&first.0), look(&second.0));
    let requests = [their_client.first_ack_request, our_client.first_ack_request];
    println!("an ACK is asked for first with packet {requests:?}");
    assert!(their_client.first_ack_request > 64 && our_client.first_ack_request == 16, "AckReq");
    assert!(their_server.number < 64 && their_client.number < 64, "queue pair numbers");
    assert!(our_server.number != our_client.number && our_server.number > 64, "queue pair numbers");
    for theirs in [their_server, their_client] {
        assert!(!theirs.identifications.contains(&[0, 0]) && !theirs.ports.contains(&4791), "IP and UDP");
    }
    for ours in [our_server, our_client] {
        assert!(ours.identifications.into_iter().eq([[0, 0]]) && ours.ports.into_iter().eq([4791]), "IP and UDP");
    }
}

/// What librdmacm does for a program that leaves it to the library (common/examples/defaults.rs): what the program says, and
/// RetryCount, RNRRetryCount and InitiatorDepth of its REQ.
fn defaults(runner: &Path, runs: &Path, address: &str) -> (Vec<String>, [u64; 3]) {
    let client = format!("{} {address}", target().join("debug/examples/defaults").display());
    let arguments = ["exec", "--name=defaults", "--server=lesson-01 server", "--client", &client];
    assert_eq!(Command::new(runner).args(arguments).output().unwrap().status.code(), Some(0));
    let mut reader = Reader::new(File::open(runs.join("defaults/wire.pcapng")).unwrap()).unwrap();
    let (mut said, mut asked) = (Vec::new(), [u64::MAX; 3]);
    while let Some(event) = reader.event().unwrap() {
        match event {
            Event::Line(line) if line.text.contains(": true") || line.text.contains(": false") => said.push(line.text),
            Event::Line(_) => {}
            Event::Packet(record) => {
                let Frame::Roce(packet) = Frame::decode(record.link, record.data) else { continue };
                let Some(message) = packet.cm().filter(|message| message.kind == Kind::ConnectRequest) else {
                    continue;
                };
                let field = |field: &Field| field.read(message.body).unwrap();
                asked = [field(&req::RETRY_COUNT), field(&req::RNR_RETRY), field(&req::INITIATOR_DEPTH)];
            }
        }
    }
    (said, asked)
}

#[test]
#[ignore = "takes long: make test-long"]
fn defaults_of_librdmacm_differ_as_the_table_says() {
    let (said, asked) = defaults(&target().join("debug/lab"), &target().join("lab/runs"), ADDRESSES[0]);
    assert!(said.len() == 2 && said.iter().all(|line| line.ends_with(": true")), "{said:?}");
    assert!(asked[..2] == [7, 7] && asked[2] > 0, "{asked:?}");
    let device = Path::new(env!("CARGO_BIN_EXE_device"));
    let (said, asked) = defaults(device, &target().join("device/runs"), "$SERVER");
    assert!(said.len() == 2 && said.iter().all(|line| line.ends_with(": false")), "{said:?}");
    assert_eq!(asked, [0, 0, 0]);
}

/// What a row says, one of the tests above looks for, or `course prove`: that makes the changes which a row names.
#[test]
fn every_row_of_the_table_is_looked_for() {
    let looked_for = ["AckReq", "IP and UDP", "UC", "defaults", "queue pair numbers", "sizes"];
    let known = differences();
    let seen: BTreeSet<&str> = known.iter().filter_map(|row| row.seen.as_deref()).collect();
    assert_eq!(seen, looked_for.into_iter().collect());
    for row in known.iter() {
        let is_looked_for = row.seen.is_some() || !row.calls.is_empty() || !row.changes.is_empty();
        assert!(is_looked_for, "{}: nobody looks for it", row.what);
    }
}
