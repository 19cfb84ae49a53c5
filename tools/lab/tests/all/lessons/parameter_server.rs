//! Lesson 09 where only a kernel can be the other half: programs that are killed, and what is held. How workers come, go, are refused and fall silent is tried on the device in user space (tools/device/tests/all/programs/parameter_server.rs).

use crate::support;

use crate::support::{check, served};
use lab::{Outcome, Run, SERVER};
use std::time::Duration;

/// What must be the same before and after.
const SHOW: &str = "/usr/bin/rdma resource show";

fn exits(outcome: &Outcome) -> Vec<Option<i32>> {
    outcome.nodes.iter().skip(1).map(|node| node.exit).collect()
}

/// How many workers the server waits for; when one is killed, as a line of its log says.
const STAGES: [(usize, &str); 6] = [
    (2, "SLOW  rdma_connect"),
    (2, "connected as worker 7"),
    (3, "round 3: version"),
    (3, "opcode=RDMA_WRITE_WITH_IMM signaled=0"),
    (3, "ibv_post_send ATOMIC_FETCH_AND_ADD"),
    (3, "SLOW  rdma_disconnect"),
];

/// The others' result is right: for the rounds that it took part in, and for those that it did not.
#[test]
#[ignore = "takes long: make test-long"]
fn a_worker_killed_at_any_stage_is_left_out() {
    for (wanted, stage) in STAGES {
        // The others say little, and other things: the line is the victim's.
        let quiet = "RUST_LOG=error lesson-09 client -a 10.47.91.1 --timeout 40 --pause 50";
        // Where the others may begin without it, they are not through before it comes.
        let rounds = if wanted == 2 { 100 } else { 20 };
        let server = format!("lesson-09 server -n {wanted} --timeout 40 --check --rounds {rounds} --loss 0");
        let run = Run::programs().server(&format!("RUST_LOG=error {server}"));
        let run = run.node("client-1", quiet).node("client-2", quiet);
        let run = run.node("victim", "lesson-09 client -a 10.47.91.1 --timeout 40 --worker 7");
        let run = run.kill_when("victim", stage).inspect(SHOW).deadline(Duration::from_secs(300));
        let check = check(run);
        let what = format!("{stage}:\n{}", check.outcome.node(SERVER).log.join("\n"));
        assert_eq!(check.outcome.node(SERVER).exit, Some(0), "{what}");
        check.logs(SERVER, "SUCCESS, the same to the bit as computed here alone");
        check.outcome.nodes.iter().for_each(|node| support::assert_nothing_left_open(node, &what));
        // After the last stage it ends by itself, too.
        let victim = check.outcome.node("victim").exit;
        assert!(victim == Some(137) || (stage.contains("disconnect") && victim == Some(0)), "{stage}: {victim:?}");
        assert_eq!(exits(&check.outcome)[..2], [Some(0), Some(0)], "{stage}");
    }
}

#[test]
#[ignore = "takes long: make test-long"]
fn a_killed_server_ends_all_workers_with_a_word() {
    let run = Run::lesson("09").unwrap().server_args("--timeout 40 --rounds 1000 --loss 0").client_args("--timeout 40");
    let check =
        check(run.clients(2).kill_when(SERVER, "round 5: loss").inspect(SHOW).deadline(Duration::from_secs(300)));
    assert_eq!(exits(&check.outcome), [Some(1); 2]);
    for node in &check.outcome.nodes[1..] {
        let told =
            |line: &String| line.contains("RDMA_CM_EVENT_DISCONNECTED instead of") || line.contains("completed with");
        assert!(node.log.iter().any(told), "{}", node.log.join("\n"));
        support::assert_nothing_left_open(node, "the server was killed");
    }
}

/// What the server holds is counted while it runs, before each worker: descriptors, RDMA resources, memory.
#[test]
#[ignore = "takes long: make test-long"]
fn workers_of_all_manners_leave_nothing_in_the_server() {
    let worker = "RUST_LOG=error lesson-09 client -a 10.47.91.1";
    let end = "kill -9 $victim; wait $victim; usleep 500000";
    let joined = format!("{worker} >/run/w & victim=$!; until grep -q connected /run/w; do usleep 9000; done; {end}");
    let killed = |after: u32| format!("{worker} & victim=$!; usleep {after}000; {end}");
    let strangers = ["odd_peer client 10.47.91.1 close", "lesson-05 client -a 10.47.91.1"].map(String::from);
    let some = [&joined, &strangers[0], &killed(60), &strangers[1], &killed(300), &joined];
    let clients = some.map(String::as_str);
    let server = "RUST_LOG=error lesson-09 server --loss 0 --rounds 1000000 -n 0";
    // One QP is the device's own.
    let rests = "/usr/bin/rdma resource show | grep -q ' qp 1 '";
    let check = check(served::run_with(server, rests, &clients).deadline(Duration::from_secs(300)));
    served::assert_nothing_grows(&served::samples(&check.outcome), clients.len() + 1);
}
