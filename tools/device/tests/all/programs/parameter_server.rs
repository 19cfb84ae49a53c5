//! Lesson 09: workers come, go, fall silent and are refused at any moment, and what the others compute stays right. What a
//! kernel does for workers that are killed, the lab shows (tools/lab/tests/all/lessons/parameter_server.rs).

use super::support;

use support::{each, programs, Check, Run, CLIENT, SERVER};

/// The server has reached its goal with the right result.
fn assert_right(check: &Check) {
    assert_eq!(check.node(SERVER).exit, Some(0), "{}", check.all());
    check.logs(SERVER, "SUCCESS, the same to the bit as computed here alone");
}

/// How this many workers ended.
fn exits(check: &Check, count: usize) -> Vec<Option<i32>> {
    (1..=count).map(|number| check.node(&format!("client-{number}")).exit).collect()
}

/// A number in a line of the server: the first after `before`.
fn number(check: &Check, before: &str) -> u64 {
    let line = check.line(SERVER, before);
    let digits = line.split(before).nth(1).unwrap_or_default().chars().take_while(char::is_ascii_digit);
    digits.collect::<String>().parse().unwrap()
}

#[test]
fn four_workers_and_fifty_rounds_are_right_to_the_bit() {
    let server = "--timeout 40 --check --rounds 50 --loss 0";
    let check = Run::lesson("09", server, "--timeout 40").clients(4).check();
    assert_right(&check);
    assert_eq!(exits(&check, 4), [Some(0); 4]);
    check.logs(SERVER, "in all 50 rounds");
    assert_eq!(check.count(SERVER, "from workers 1 2 3 4;"), 50);
    // Each of them counted its examples in every round.
    assert_eq!(number(&check, "the workers have looked at "), 50 * 4 * 128);
    for (name, count) in [("RC Fetch Add", 200), ("RC RDMA Write Only Immediate", 200), ("RC Send Only Immediate", 204)]
    {
        // A loaded machine's answer may be late, and its request be sent again.
        assert!(check.packets_named(name) >= count, "{name}: {}", check.packets_named(name));
    }
}

/// Its machine is silent from one packet on. The others' result is right: for the rounds that it took part in, and for those
/// that it did not.
#[test]
fn a_worker_that_falls_silent_at_any_stage_is_left_out() {
    // The first round begins with this many workers: with all three, if it is in a round that the third falls silent.
    let stages = [
        (2, "1st REQ from client-3"),
        (2, "1st RTU from client-3"),
        (3, "1st \"RDMA Read Request\" from client-3"),
        (3, "3rd \"RDMA Write Only Immediate\" from client-3"),
        (3, "3rd \"Fetch Add\" from client-3"),
        (3, "1st DREQ from client-3"),
    ];
    each(&stages, |(workers, stage)| {
        let server = format!("--timeout 4 -n {workers} --check --rounds 20 --loss 0");
        // Its own patience is what such a run lasts; the others wait for the server, which waits 4 s.
        let check = Run::lesson("09", &server, "--timeout 10").clients(3).wire(&format!("cut {stage}")).check();
        assert_right(&check);
        assert_eq!(exits(&check, 2), [Some(0); 2], "{stage}: {}", check.all());
        check.logs("client-3", "] ERR  ");
    });
}

/// Workers of a shell, which starts them one after the other or all at once.
fn crowd(server: &str, client: &str) -> Check {
    let worker = |options: &str| format!("RUST_LOG=error lesson-09 client -a $SERVER --timeout 60 {options}");
    let client = client.replace("WORKER_SLOWLY", &worker("--pause 50")).replace("WORKER", &worker(""));
    programs(&format!("RUST_LOG=error lesson-09 server --timeout 60 {server}"), &client)
}

#[test]
fn at_their_own_pace_they_arrive_near_the_same_point() {
    let all = "WORKER & WORKER & all=$!; WORKER_SLOWLY; wait";
    let check = crowd("-n 3 --mode async --check --rounds 200", all).exits(0, 0);
    check.logs(SERVER, "is allowed");
    // Nobody waits for the slow one.
    let alone = |line: &&String| line.contains(" from workers ") && !line.contains(" 1 2 3;");
    assert!(check.node(SERVER).log.iter().filter(alone).count() > 5, "{}", check.all());
}

#[test]
fn eight_are_let_in_and_a_ninth_is_told_why_not() {
    // The ninth comes when eight are in, however long that takes them.
    let all = "said=$(mktemp); for n in 1 2 3 4 5 6 7 8; do WORKER_SLOWLY >>$said & all=\"$all $!\"; done; \
               until [ $(grep -c connected $said) = 8 ]; do sleep 0.05; done; WORKER; echo ninth $?; \
               for pid in $all; do wait $pid || echo failed; done; rm $said";
    let check = crowd("-n 8 --check --rounds 40 --loss 0", all);
    assert_right(&check);
    check.logs(CLIENT, "and the peer says \"the house is full: 8 workers are here");
    check.logs(CLIENT, "ninth 1");
    assert_eq!(check.count(CLIENT, "failed"), 0);
    assert_eq!(check.count(SERVER, "from workers 1 2 3 4 5 6 7 8;"), 40);
}

#[test]
fn who_joins_in_the_middle_takes_part_from_then_on() {
    let late = "WORKER_SLOWLY & first=$!; sleep 1; WORKER & wait $first && wait $! && echo both";
    let check = crowd("--check --rounds 60 --loss 0", late);
    assert_right(&check);
    check.logs(CLIENT, "both");
    check.logs_in_order(
        SERVER,
        &["round 1: ", "from workers 1;", "worker 2 has joined", "from workers 1 2;", "SUCCESS"],
    );
}

#[test]
fn wrong_options_are_named() {
    let wrong = [
        ("-n 9", "-n is at most 8. Next"),
        ("--loss x", "--loss is a number from 0 on. Next"),
        ("--loss=-1", "--loss is a number from 0 on. Next"),
    ];
    for (options, says) in wrong {
        let check = programs(&format!("lesson-09 server {options}"), "true").exits(1, 0);
        check.logs(SERVER, says);
    }
}
