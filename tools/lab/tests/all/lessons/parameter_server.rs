//! Lesson 09 where only a kernel can be the other half: programs that are killed, a device that is taken away, and what is
//! held. How workers come, go, are refused and fall silent is tried on the device in user space (tools/device/tests/all/programs/parameter_server.rs).

use crate::support;

use crate::support::{check, served, Check};
use lab::{Outcome, Run, SERVER};
use std::time::Duration;

/// What must be the same before and after.
const SHOW: &str = "/usr/bin/rdma resource show";

/// A server, and so many workers on machines of their own.
fn training(server: &str, workers: usize) -> Run {
    let run = Run::lesson("09").unwrap().server_args(&format!("--timeout 40 {server}")).client_args("--timeout 40");
    run.clients(workers).inspect(SHOW).deadline(Duration::from_secs(300))
}

/// The server has reached its goal with the right result, and no machine holds anything any more.
fn assert_right(check: &Check, what: &str) {
    let server = check.outcome.node(SERVER);
    let what = format!("{what}:\n{}", server.log.join("\n"));
    assert_eq!(server.exit, Some(0), "{what}");
    check.logs(SERVER, "SUCCESS, the same to the bit as computed here alone");
    for node in &check.outcome.nodes {
        support::assert_nothing_left_open(node, &what);
    }
}

fn exits(outcome: &Outcome) -> Vec<Option<i32>> {
    outcome.nodes.iter().skip(1).map(|node| node.exit).collect()
}

/// A worker is killed when a line of its log says how far it is. The others' result is right: for the rounds that it took
/// part in, and for those that it did not.
fn a_worker_killed_at(stages: &[(usize, &str)]) {
    for &(wanted, stage) in stages {
        // The others say little, and other things: the line is the victim's.
        let quiet = "RUST_LOG=error lesson-09 client -a 10.47.91.1 --timeout 40 --pause 50";
        // Where the others may begin without it, they are not through before it comes.
        let rounds = if wanted == 2 { 100 } else { 20 };
        let server = format!("lesson-09 server -n {wanted} --timeout 40 --check --rounds {rounds} --loss 0");
        let run = Run::programs()
            .server(&format!("RUST_LOG=error {server}"))
            .node("client-1", quiet)
            .node("client-2", quiet)
            .node("victim", "lesson-09 client -a 10.47.91.1 --timeout 40 --worker 7")
            .kill_when("victim", stage)
            .inspect(SHOW)
            .deadline(Duration::from_secs(300));
        let check = check(run);
        assert_right(&check, stage);
        // After the last stage it ends by itself, too.
        let victim = check.outcome.node("victim").exit;
        assert!(victim == Some(137) || (stage.contains("disconnect") && victim == Some(0)), "{stage}: {victim:?}");
        assert_eq!(exits(&check.outcome)[..2], [Some(0), Some(0)], "{stage}");
    }
}

#[test]
#[ignore = "takes long: make test-long"]
fn a_killed_worker_is_left_out() {
    a_worker_killed_at(&[(3, "ibv_post_send ATOMIC_FETCH_AND_ADD")]);
}

#[test]
#[ignore = "takes long: make test-long"]
fn a_worker_killed_at_any_other_stage_is_left_out() {
    a_worker_killed_at(&[
        (2, "SLOW  rdma_connect"),
        (2, "connected as worker 7"),
        (3, "round 3: version"),
        (3, "opcode=RDMA_WRITE_WITH_IMM signaled=0"),
        (3, "SLOW  rdma_disconnect"),
    ]);
}

#[test]
#[ignore = "takes long: make test-long"]
fn a_killed_server_ends_all_workers_with_a_word() {
    let check = check(training("--rounds 1000 --loss 0", 2).kill_when(SERVER, "round 5: loss"));
    assert_eq!(exits(&check.outcome), [Some(1); 2]);
    for node in &check.outcome.nodes[1..] {
        let told =
            |line: &String| line.contains("RDMA_CM_EVENT_DISCONNECTED instead of") || line.contains("completed with");
        assert!(node.log.iter().any(told), "{}", node.log.join("\n"));
        support::assert_nothing_left_open(node, "the server was killed");
    }
}

/// Workers on one machine: a shell starts them, one after the other or all at once.
fn crowd(server: &str, client: &str) -> Check {
    let worker = |options: &str| format!("RUST_LOG=error lesson-09 client -a 10.47.91.1 --timeout 60 {options}");
    let client = client.replace("WORKER_SLOWLY", &worker("--pause 200")).replace("WORKER", &worker(""));
    let server = format!("RUST_LOG=error lesson-09 server --timeout 60 {server}");
    check(Run::programs().server(&server).client(&client).inspect(SHOW).deadline(Duration::from_secs(300)))
}

#[test]
#[ignore = "takes long: make test-long"]
fn of_two_that_want_the_same_number_one_is_refused_until_the_other_has_gone() {
    let two =
        "WORKER_SLOWLY --worker 5 & one=$!; sleep 2; WORKER --worker 5; echo second $?; kill -9 $one; wait $one; \
               WORKER --worker 5; echo third $?";
    let check = crowd("--check --rounds 30 --loss 0", two);
    assert_right(&check, "two of one number");
    check.logs(lab::CLIENT, "and the peer says \"worker 5 is here already");
    check.logs_in_order(lab::CLIENT, &["second 1", "third 0"]);
    check.logs(SERVER, "from workers 5;");
}

/// Without the device there is nothing to serve, and the kernel waits until everybody has let go of it.
#[test]
#[ignore = "takes long: make test-long"]
fn a_device_that_goes_away_ends_the_server_and_nothing_hangs() {
    let remove = "until grep -q 'round 20:' /run/log; do usleep 50000; done; /usr/bin/rdma link delete rxe0";
    let server = "RUST_LOG=error lesson-09 server --timeout 20 --loss 0 --rounds 1000000 >/run/log 2>&1";
    let worker = "RUST_LOG=error lesson-09 client -a 10.47.91.1 --timeout 20";
    let run =
        Run::programs().client(worker).server(&format!("({remove}) & {server}; status=$?; cat /run/log; exit $status"));
    let check = check(run);
    assert_eq!(exits(&check.outcome), [Some(1)]);
    assert_eq!(check.outcome.node(SERVER).exit, Some(1));
    // Linux 6.1 says so. Linux 7.2 lets the device wait for its users, until the worker gives up.
    let (told, waited) = (check.count(SERVER, "got RDMA_CM_EVENT_DEVICE_REMOVAL"), check.count(SERVER, "waited 20 s"));
    assert_eq!(told.max(waited), 1, "{}", check.outcome.node(SERVER).log.join("\n"));
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
