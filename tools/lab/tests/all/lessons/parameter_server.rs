//! Lesson 09 where only a kernel can be the other half: programs that are killed, and what is held. How workers come, go, are refused and fall silent is tried on the device in user space (tools/device/tests/all/programs/parameter_server.rs).

use crate::support::{assert_nothing_left_open, served, Run, SERVER};

/// What must be the same before and after.
const SHOW: &str = "/usr/bin/rdma resource show";

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
        let run = run.with("node", &format!("client-1={quiet}")).with("node", &format!("client-2={quiet}"));
        let run = run.with("node", "victim=lesson-09 client -a 10.47.91.1 --timeout 40 --worker 7");
        let run = run.with("fault", &format!("kill victim when {stage}")).with("inspect", SHOW);
        let check = run.with("deadline", "300").check();
        check.logs(SERVER, "SUCCESS, the same to the bit as computed here alone");
        check.outcome.inspected.keys().for_each(|node| assert_nothing_left_open(&check, node));
        // After the last stage it ends by itself, too.
        let victim = check.node("victim").exit;
        assert!(victim == Some(137) || (stage.contains("disconnect") && victim == Some(0)), "{stage}: {victim:?}");
        let exits = [SERVER, "client-1", "client-2"].map(|node| check.node(node).exit);
        assert_eq!(exits, [Some(0); 3], "{stage}: {}", check.all());
    }
}

#[test]
#[ignore = "takes long: make test-long"]
fn a_killed_server_ends_all_workers_with_a_word() {
    let run = Run::lesson("09", "--timeout 40 --rounds 1000 --loss 0", "--timeout 40").with("clients", "2");
    let run = run.with("fault", "kill server when round 5: loss").with("inspect", SHOW);
    let check = run.with("deadline", "300").check();
    for node in ["client-1", "client-2"] {
        assert_eq!(check.node(node).exit, Some(1), "{}", check.all());
        let told = ["RDMA_CM_EVENT_DISCONNECTED instead of", "completed with"];
        assert!(told.iter().any(|text| check.count(node, text) > 0), "{}", check.all());
        assert_nothing_left_open(&check, node);
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
    let check = served::run(server, rests, &clients).with("deadline", "300").check();
    served::assert_nothing_grows(&check, clients.len() + 1);
}
