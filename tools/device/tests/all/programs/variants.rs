//! Each lesson with its options: exit statuses, log lines and packets. That rdma_rxe does the same with the runs that were
//! recorded, the lab shows (tools/lab/tests/all/lessons/stories.rs).

use super::support;

use support::{lesson, programs, Check, CLIENT, SERVER};

const CONNECT: [&str; 3] = ["C ConnectRequest", "S ConnectReply", "C ReadyToUse"];
const DISCONNECT: [&str; 2] = ["C DisconnectRequest", "S DisconnectReply"];
const METADATA: [&str; 4] = ["C RC Send Only", "S RC Acknowledge", "S RC Send Only", "C RC Acknowledge"];

#[test]
fn lesson_01_knocks_and_is_rejected_with_a_reason() {
    let outcome = lesson("01", "", "").exits(0, 0);
    outcome.logs(SERVER, "knocked");
    outcome.logs(SERVER, "SLOW  rdma_listen backlog=8");
    outcome.logs(SERVER, "listening on [::]:7471");
    outcome.logs(CLIENT, "rejected with status 28 (consumer reject");
    outcome.logs(CLIENT, "the server says: \"lesson 01 has nothing to offer yet: come back in lesson 02\"");
    outcome.packets_are(&[&["C ConnectRequest", "S ConnectReject"]]);
}

#[test]
fn lesson_02_connects_and_disconnects() {
    let outcome = lesson("02", "", "").exits(0, 0);
    for side in [SERVER, CLIENT] {
        outcome.logs_in_order(side, &["state=INIT", "state=RTS mtu=1024 B", "state=ERR"]);
        let teardown = ["rdma_destroy_qp", "ibv_destroy_cq", "ibv_destroy_comp_channel", "ibv_dealloc_pd"];
        outcome.logs_in_order(side, &teardown);
        outcome.logs_in_order(side, &["ibv_dealloc_pd", "rdma_destroy_id", "rdma_destroy_event_channel"]);
        outcome.logs(side, "timeout=536.9 ms");
        assert_eq!(outcome.count(side, " mtu="), 1, "only what has changed is dumped");
    }
    outcome.logs_in_order(SERVER, &["listening on ", "a connection from 127.0.0.", "server shut-down is complete"]);
    outcome.logs_in_order(CLIENT, &["connected", "client clean-up is complete"]);
    outcome.packets_are(&[&CONNECT, &DISCONNECT]);
}

#[test]
fn stages_can_be_shown_alone() {
    let outcome = lesson("02", "--stages accept", "--stages connect,teardown").exits(0, 0);
    for (side, shown) in [(SERVER, vec![" accept]"]), (CLIENT, vec![" connect]", " teardown]"])] {
        let log = outcome.node(side).log.iter().filter(|line| line.starts_with('['));
        let lines: Vec<&String> = log.collect();
        assert!(
            lines.len() > 3 && lines.iter().all(|line| shown.iter().any(|stage| line.contains(stage))),
            "{lines:?}"
        );
    }
}

#[test]
fn lesson_03_exchanges_metadata_by_send() {
    let outcome = lesson("03", "", "").exits(0, 0);
    outcome.logs_in_order(CLIENT, &["ibv_post_recv", "rdma_connect"]);
    outcome.logs_in_order(SERVER, &["ibv_post_recv", "rdma_accept"]);
    assert_eq!(outcome.metadata(SERVER, "our"), outcome.metadata(CLIENT, "the peer's"));
    assert_eq!(outcome.metadata(CLIENT, "our"), outcome.metadata(SERVER, "the peer's"));
    outcome.packets_are(&[&CONNECT, &METADATA, &DISCONNECT]);
}

#[test]
fn lesson_03_exchanges_metadata_by_private_data() {
    let option = "--metadata private-data";
    let outcome = lesson("03", option, option).exits(0, 0);
    // The memory that is told of is registered before.
    let order = ["access=LOCAL_WRITE|REMOTE_WRITE|REMOTE_READ", "private_data=16 bytes"];
    outcome.logs_in_order(SERVER, &order);
    outcome.logs(CLIENT, "len=4096");
    outcome.packets_are(&[&CONNECT, &DISCONNECT]);
    let region = outcome.line(SERVER, "MR: addr=");
    let theirs = outcome.metadata(CLIENT, "the peer's");
    assert!(region.contains(theirs.split(' ').next().unwrap()), "{region} holds not {theirs}");
}

#[test]
fn lesson_04_writes_into_the_servers_memory() {
    let outcome = lesson("04", "", "-s 'two words'").exits(0, 0);
    outcome.logs_in_order(SERVER, &["CM event: DISCONNECTED", "memory holds 9 bytes: \"two words\""]);
    outcome.logs_in_order(CLIENT, &["ibv_post_send RDMA_WRITE", "status=IBV_WC_SUCCESS opcode=IBV_WC_RDMA_WRITE"]);
    outcome.packets_are(&[&CONNECT, &METADATA, &["C RC RDMA Write Only", "S RC Acknowledge"], &DISCONNECT]);
}

#[test]
fn lesson_04_needs_three_packets_for_2500_bytes() {
    let outcome = lesson("04", "", "--len 2500").exits(0, 0);
    outcome.logs(SERVER, "memory holds 2500 bytes: 00 01 02 03");
    let write = ["C RC RDMA Write First", "C RC RDMA Write Middle", "C RC RDMA Write Last", "S RC Acknowledge"];
    outcome.packets_are(&[&CONNECT, &METADATA, &write, &DISCONNECT]);
}

#[test]
fn lesson_05_needs_no_send_when_the_metadata_comes_in_private_data() {
    let option = "--metadata private-data -p 4711";
    let outcome = lesson("05", option, option).exits(0, 0);
    outcome.logs(SERVER, "rdma_bind_addr [::]:4711");
    outcome.logs(CLIENT, "SUCCESS, source and destination buffers match");
    outcome.only_these_packets(&[
        ("RC RDMA Write Only", 1),
        ("RC RDMA Read Request", 1),
        ("RC RDMA Read Response Only", 1),
        ("RC Acknowledge", 1),
    ]);
}

#[test]
fn lesson_05_sleeps_where_lesson_04_polls() {
    let (polls, sleeps) = (lesson("04", "", "").exits(0, 0), lesson("05", "", "").exits(0, 0));
    for side in [SERVER, CLIENT] {
        polls.logs(side, "ibv_poll_cq until");
        polls.does_not_log(side, "ibv_req_notify_cq");
        sleeps.logs(side, "FAST  ibv_req_notify_cq");
    }
    // A completion that is there when the CQ has just been armed needs no sleep: that may be so each time on one side.
    let asleep = [SERVER, CLIENT].map(|side| sleeps.count(side, "FAST  ibv_get_cq_event: waiting for"));
    assert!(asleep.iter().sum::<usize>() > 0, "nobody slept");
}

#[test]
fn lesson_06_writes_both_ways() {
    let outcome = lesson("06", "-s 'the server was here'", "-s 'the client was here'").exits(0, 0);
    both_sides_ran_the_machine(&outcome);
    outcome.only_these_packets(&[("RC Send Only", 4), ("RC RDMA Write Only", 2), ("RC Acknowledge", 6)]);
}

#[test]
fn lesson_06_reads_both_ways() {
    let outcome = lesson("06", "-m read -s 'the server was here'", "-m read -s 'the client was here'").exits(0, 0);
    both_sides_ran_the_machine(&outcome);
    outcome.only_these_packets(&[
        ("RC Send Only", 4),
        ("RC RDMA Read Request", 2),
        ("RC RDMA Read Response Only", 2),
        ("RC Acknowledge", 4),
    ]);
}

fn both_sides_ran_the_machine(outcome: &Check) {
    outcome.logs(SERVER, "the memory holds 4096 bytes: \"the client was here\"");
    outcome.logs(CLIENT, "the memory holds 4096 bytes: \"the server was here\"");
    outcome.logs(SERVER, "received message: \"message from active/client side with pid ");
    outcome.logs(CLIENT, "received message: \"message from passive/server side with pid ");
    for side in [SERVER, CLIENT] {
        outcome.logs_in_order(side, &["SendCompleted → SS_MR_SENT", "→ SS_RDMA_SENT", "→ SS_DONE_SENT"]);
        outcome.logs_in_order(side, &["MrReceived → ", "DoneReceived → "]);
        outcome.logs(side, "ibv_req_notify_cq");
        assert_eq!(outcome.count(side, "INFO  state: "), 5, "a log line for each transition");
    }
}

/// Each side's region allows what its own mode needs of it: the device of the one or the other refuses.
#[test]
fn lesson_06_in_two_modes_fails_at_the_device() {
    let outcome = lesson("06", "-m write", "-m read").exits(1, 1);
    let refused = [SERVER, CLIENT].map(|side| outcome.count(side, "IBV_WC_REM_ACCESS_ERR"));
    assert!(refused[0] + refused[1] > 0, "{:?}", outcome.packets());
}

#[test]
fn lesson_07_refuses_a_peer_with_other_terms() {
    for (server, client) in [("-m write", "-m read"), ("--closer server", "")] {
        let outcome = lesson("07", server, client).exits(1, 1);
        outcome.logs(SERVER, "last stage check_terms: client and server differ in -m or --closer");
        outcome.logs(CLIENT, "and the peer says \"client and server differ in -m or --closer\"");
        outcome.packets_are(&[&["C ConnectRequest", "S ConnectReject"]]);
    }
}

#[test]
fn lesson_07_flushes_whoever_closes() {
    for (option, goodbye) in
        [("--closer client", DISCONNECT), ("--closer server", ["S DisconnectRequest", "C DisconnectReply"])]
    {
        let outcome = lesson("07", option, option).exits(0, 0);
        for side in [SERVER, CLIENT] {
            outcome.logs_in_order(
                side,
                &["rdma_disconnect", "state=ERR", "IBV_WC_WR_FLUSH_ERR", "4 receives came back flushed"],
            );
            assert_eq!(outcome.count(side, "status=IBV_WC_WR_FLUSH_ERR"), 4);
        }
        let all = outcome.packets_once();
        assert!(all.ends_with(&goodbye.map(String::from)), "{all:?}");
        outcome.only_these_packets(&[("RC Send Only", 4), ("RC RDMA Write Only", 2), ("RC Acknowledge", 6)]);
    }
}

#[test]
fn mistakes_of_a_person_are_named_with_the_next_step() {
    let no_name = ["no address for the host \"nowhere.invalid\"", "Check the spelling"];
    // A filter does not hide a failure.
    for filter in ["", "RUST_LOG=DATA "] {
        let check = programs("true", &format!("{filter}lesson-02 client -a nowhere.invalid")).exits(0, 1);
        no_name.iter().for_each(|text| check.logs(CLIENT, text));
    }
}

#[test]
fn a_server_does_not_wait_for_a_client_that_does_not_understand_its_options() {
    let check = lesson("04", "", "--lne 5");
    assert_eq!(check.node(CLIENT).exit, Some(2), "{}", check.all());
    let told = "trouble:  the server had not ended when the client had not understood its options, and is ended";
    assert!(check.outcome.contains(told), "{}", check.outcome);
}
