//! The device against the kernel's rdma_rxe, in the lab: one of the two machines takes its driver away and runs our device
//! instead. Every lesson and variant in both roles, rping and perftest; and what `differences.toml` says. Needs what the lab needs, and `cargo build --workspace`.

use crate::calls;
use crate::commands::ON_KERNEL;
use crate::machine::ACTS;
use crate::programs::support::{target, CLIENT, SERVER};
use roce::cm::{req, Kind};
use run::file::Event;
use run::story;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use testkit::ran::{example, Check};
use wire::compare::Verdict;

pub const ADDRESSES: [&str; 2] = ["10.47.91.1", "10.47.91.2"];
/// Who runs programs: the kernel's devices in two machines of the lab, or ours.
pub const LAB: &str = "lab";
const DEVICE: &str = "device";
/// The exit status of a lab, or of our runner, that could not run the programs.
const RUNNER_FAILED: i32 = 3;

/// Runs a server and a client, in the lab perhaps without one: it does not wait for a server whose client has ended. The outcome
/// is whether all ended with 0.
pub fn run(runner: &str, name: &str, [server, client]: [&str; 2], options: &[&str]) -> Check<bool> {
    let mut command = Command::new(target().join("debug").join(runner));
    command.args(["exec", "--name", name, "--server", server]).args(options);
    if !client.is_empty() {
        command.args(["--client", client]);
    }
    let mut once = || {
        let output = command.output().unwrap();
        // Told if the test fails.
        println!("{runner} exec --name {name}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
        output
    };
    // A lab that could not do its work says nothing about the programs: it is asked once more.
    let output = Some(once()).filter(|output| output.status.code() != Some(RUNNER_FAILED)).unwrap_or_else(&mut once);
    let file = target().join(runner).join("runs").join(name).join("wire.pcapng");
    Check::read(&file, output.status.code() == Some(0))
}

/// Runs two programs in the lab, the one with this index on our device: without the driver, whose port it needs.
fn mixed(name: &str, mut commands: [String; 2], our: usize, wire: &str) -> Check<bool> {
    let address = ADDRESSES[our];
    let address = if commands[our].contains("fd47:") { format!("fd47:91::{}", our + 1) } else { address.into() };
    commands[our] = format!(
        "rdma link delete rxe0; rmmod rdma_rxe; NIC_NAME=rxe0 device run --address {address} -- {}",
        commands[our]
    );
    run(LAB, name, [&commands[0], &commands[1]], &["--wire", wire])
}

#[test]
#[ignore = "takes long: make test-long"]
fn every_lesson_between_the_device_and_the_kernel() {
    for story in story::bundled().unwrap().into_iter().filter(|story| !story.peers && !story.device) {
        let lesson = format!("lesson-{}", story.number());
        let server = format!("{lesson} server {}", story.server);
        let client = format!("{lesson} client -a {} {}", ADDRESSES[0], story.client);
        // Several clients would need several machines without the driver: one is compared with one between two kernels.
        let between_kernels = || run(LAB, "kernel-alone", [server.as_str(), client.as_str()], &["--wire", &story.wire]);
        let reference = (story.clients > 1).then(between_kernels);
        for our in [0, 1] {
            let check = mixed("device-and-kernel", [server.clone(), client.clone()], our, &story.wire);
            let name = format!("{}, ours is the {}", story.file_name(), [SERVER, CLIENT][our]);
            assert_eq!(check.outcome, story.exit == 0, "{name}");
            let report = match &reference {
                Some(reference) => check.compared_with(reference),
                None => check.compared(&story),
            };
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
            "rping -s -a fd47:91::1 -C 5".into(),
            "sh -c 'busybox ping6 -c 1 fd47:91::1; exec rping -c -a fd47:91::1 -C 5'".into(),
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
            let name = format!("{server}, ours is the {}", [SERVER, CLIENT][our]);
            assert!(mixed("device-and-kernel-strangers", commands, our, "").outcome, "{name}");
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

/// The calls that are known to return something else here than on the kernel's device.
pub fn known_calls() -> BTreeSet<String> {
    differences().into_iter().flat_map(|row| row.calls).collect()
}

/// What each call returns in each state of a queue pair, without numbers that differ from run to run; and the limits that the
/// first queue pair was given.
fn returned(check: &Check<bool>) -> (BTreeMap<String, Vec<String>>, String) {
    let (mut returned, mut limits): (BTreeMap<String, Vec<String>>, String) = Default::default();
    check.each_event(|event| {
        let Event::Line(line) = event else { return };
        if let (Some(at), true) = (line.text.find("QpCap"), limits.is_empty()) {
            limits = line.text[at..].to_owned();
        }
        // In front of the state stand time and stage, if a program says them.
        let text = line.text.rsplit("] ").next().unwrap();
        let mut parts = text.splitn(3, " | ");
        let (Some(state), Some(call), Some(result)) = (parts.next(), parts.next(), parts.next()) else { return };
        let words = result.split(' ').map(|word| if word.contains(|c: char| c.is_ascii_digit()) { "N" } else { word });
        returned.entry(format!("{state} | {call}")).or_default().push(words.collect::<Vec<_>>().join(" "));
    });
    (returned, limits)
}

/// The calls that return something else on the kernel's device than on ours: on queue pairs, and on ids.
fn differing() -> BTreeSet<String> {
    let states = |log: &str| format!("env NIC_NAME=rxe0 RUST_LOG={log} {}", example("states"));
    let queues = format!("{} queues", states("info"));
    let runs = [(LAB, "states", ""), (DEVICE, "test-states", "true")]
        .map(|(runner, name, client)| run(runner, name, [&queues, client], &[]));
    let [(mut theirs, their_limits), (ours, our_limits)] = [&runs[0], &runs[1]].map(returned);
    assert!(runs[0].outcome);
    assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>());
    assert!(ours.len() > 900, "{}", ours.len());
    println!("4, 4, 2, 2, 16 are asked for; theirs: {their_limits}; ours: {our_limits}");
    let places = |count| {
        format!("QpCap {{ max_send_wr: {count}, max_recv_wr: {count}, max_send_sge: 2, max_recv_sge: 2, max_inline_data: 32 }}")
    };
    assert!(their_limits == places(4) && our_limits == places(7), "sizes");
    let host = format!("{} host", states("error"));
    let ids = [(LAB, "states-of-ids", ADDRESSES[0]), (DEVICE, "test-states-of-ids", "$SERVER")];
    let [their_ids, our_ids] = ids.map(|(runner, name, address)| {
        let client = format!("{} client {address}", states("error"));
        let check = run(runner, name, [&host, &client], &["--deadline=280"]);
        assert!(check.outcome, "{}", check.all());
        returned(&check).0
    });
    assert_eq!(our_ids.keys().collect::<Vec<_>>(), their_ids.keys().collect::<Vec<_>>());
    assert!(our_ids.len() > 400, "{}", our_ids.len());
    let odd = calls::program("calls");
    let [their_odd, our_odd] = [LAB, DEVICE].map(|runner| {
        let check = run(runner, "odd-calls", [&odd, ""], &[]);
        assert!(check.outcome, "{}", check.all());
        returned(&check).0
    });
    assert_eq!(our_odd.keys().collect::<Vec<_>>(), their_odd.keys().collect::<Vec<_>>());
    theirs.extend(their_ids);
    theirs.extend(their_odd);
    let ours = ours.into_iter().chain(our_ids).chain(our_odd);
    let differ = ours.filter(|(call, results)| theirs[call] != *results);
    let told =
        differ.inspect(|(call, results)| println!("{call}\n  theirs: {:?}\n  ours:   {results:?}", theirs[call]));
    told.map(|(call, _)| call).collect()
}

/// A difference that `differences.toml` does not know, and one that is none any more: either is to be changed, here or there.
#[test]
#[ignore = "takes long: make test-long"]
fn every_call_in_every_state_returns_what_it_returns_on_the_kernels_but_for_known_differences() {
    let known = known_calls();
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
    /// Whether a region of its program has no rkey.
    lacks_rkey: bool,
}

/// The look of a client's long WRITE, and that of the server's answers.
fn look(check: &Check<bool>) -> [Look; 2] {
    let (mut looks, mut written): ([Look; 2], usize) = Default::default();
    check.each_packet(|node, packet| {
        let (ip, udp) = (packet.datagram.ip, packet.datagram.udp_offset);
        let from = usize::from(node == CLIENT);
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
    });
    check.each_event(|event| {
        let Event::Line(line) = event else { return };
        if line.text.contains("MR: addr=") && line.text.ends_with(" rkey=0x0") {
            looks[usize::from(line.node == CLIENT)].lacks_rkey = true;
        }
    });
    looks
}

#[test]
#[ignore = "takes long: make test-long"]
fn packets_differ_as_the_table_says() {
    let commands = || ["lesson-04 server".to_owned(), format!("lesson-04 client -a {} --len 150000", ADDRESSES[0])];
    // Ours is the client, and then the server.
    let runs = [1, 0].map(|our| mixed(&format!("device-and-kernel-look-{our}"), commands(), our, ""));
    assert!(runs.iter().all(|check| check.outcome));
    let [[their_server, our_client], [our_server, their_client]] = [look(&runs[0]), look(&runs[1])];
    let requests = [their_client.first_ack_request, our_client.first_ack_request];
    println!("an ACK is asked for first with packet {requests:?}");
    assert!(their_client.first_ack_request > 64 && our_client.first_ack_request == 16, "AckReq");
    assert!(their_server.number < 64 && their_client.number < 64, "queue pair numbers");
    assert!(our_server.number != our_client.number && our_server.number > 64, "queue pair numbers");
    for theirs in [their_server, their_client] {
        assert!(theirs.lacks_rkey, "rkey");
        assert!(!theirs.identifications.contains(&[0, 0]) && !theirs.ports.contains(&4791), "IP and UDP");
    }
    for ours in [our_server, our_client] {
        assert!(!ours.lacks_rkey, "rkey");
        assert!(ours.identifications.into_iter().eq([[0, 0]]) && ours.ports.into_iter().eq([4791]), "IP and UDP");
    }
}

/// What librdmacm does for a program that leaves it to the library (common/examples/defaults.rs): what the program says, and
/// RetryCount, RNRRetryCount and InitiatorDepth of its REQ.
fn defaults(runner: &str, address: &str) -> (Vec<String>, [u64; 3]) {
    let client = format!("{} {address}", example("defaults"));
    let check = run(runner, "defaults", ["lesson-01 server", &client], &[]);
    assert!(check.outcome, "{}", check.all());
    let mut said = check.node(CLIENT).log.clone();
    said.retain(|line| line.contains(": true") || line.contains(": false"));
    let mut asked = [u64::MAX; 3];
    check.each_packet(|_, packet| {
        if let Some(request) = packet.cm().filter(|message| message.kind == Kind::ConnectRequest) {
            let fields = [req::RETRY_COUNT, req::RNR_RETRY, req::INITIATOR_DEPTH];
            asked = fields.map(|field| field.read(request.body).unwrap());
        }
    });
    (said, asked)
}

#[test]
#[ignore = "takes long: make test-long"]
fn defaults_of_librdmacm_are_the_same_on_both() {
    let (said, asked) = defaults(LAB, ADDRESSES[0]);
    assert!(said.len() == 2 && said.iter().all(|line| line.ends_with(": true")), "{said:?}");
    assert!(asked[..2] == [7, 7] && asked[2] > 0, "{asked:?}");
    assert_eq!(defaults(DEVICE, "$SERVER"), (said, asked));
}

/// The values that `ibv_devinfo -v` prints, by their names.
fn limits(runner: &str) -> BTreeMap<String, String> {
    let check = run(runner, "limits", ["ibv_devinfo -v", ""], &[]);
    assert!(check.outcome, "{}", check.all());
    let values = check.node(SERVER).log.iter().filter_map(|line| line.split_once(':'));
    values.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect()
}

#[test]
#[ignore = "takes long: make test-long"]
fn limits_differ_as_the_table_says() {
    #[rustfmt::skip]
    const OTHER: [&str; 16] = [
        "device_cap_flags", "max_ah", "max_cq", "max_mcast_grp", "max_mr", "max_msg_sz", "max_mw", "max_pd", "max_pkeys", "max_qp",
        "max_qp_wr", "max_res_rd_atom", "max_srq", "max_srq_wr", "max_total_mcast_qp_attach", "num_comp_vectors",
    ];
    let (theirs, ours) = (limits(LAB), limits(DEVICE));
    println!("theirs: {theirs:#?}\nours: {ours:#?}");
    let is_limit = |name: &&String| name.starts_with("max_") || OTHER.contains(&name.as_str());
    let differ: BTreeSet<&str> =
        ours.keys().filter(is_limit).filter(|name| ours.get(*name) != theirs.get(*name)).map(String::as_str).collect();
    assert_eq!(differ, BTreeSet::from(OTHER), "limits");
}

/// What is asked of the device there, and the errno, is in commands.rs: XRC, on-demand paging, bits that nobody knows.
#[test]
#[ignore = "takes long: make test-long"]
fn what_is_not_there_is_refused_as_by_the_kernel() {
    let program = std::env::current_exe().unwrap();
    let asks = format!(
        "env {ACTS}=1 {ON_KERNEL}=1 {} --exact commands::what_is_not_there_is_refused --nocapture",
        program.display()
    );
    let check = run(LAB, "what-is-not-there", [&asks, ""], &[]);
    assert!(check.outcome && check.all().contains("1 passed"), "access bits: {}", check.all());
}

/// What a row says, one of the tests above looks for, or `course prove`: that makes the changes which a row names.
#[test]
fn every_row_of_the_table_is_looked_for() {
    let looked_for = ["AckReq", "access bits", "IP and UDP", "limits", "queue pair numbers", "rkey", "sizes"];
    let known = differences();
    let seen: BTreeSet<&str> = known.iter().filter_map(|row| row.seen.as_deref()).collect();
    assert_eq!(seen, looked_for.into_iter().collect());
    for row in known.iter() {
        let is_looked_for = row.seen.is_some() || !row.calls.is_empty() || !row.changes.is_empty();
        assert!(is_looked_for, "{}: nobody looks for it", row.what);
    }
}
