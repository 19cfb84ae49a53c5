//! What's run is a run file, which others read; and all that a script can say happens.

use crate::{explained, run};
use pair::{CLIENT, SERVER};
use std::process::Command;
use std::time::Duration;
use wire::explain::Cause;
use workbench::bench::Run;
use workbench::node::Connection;

/// How all that a node's program posted ended, as numbers of `ibv_wc_status`.
fn statuses(run: &Run, node: usize) -> Vec<u32> {
    run.nodes[node].completions.iter().map(|completed| completed.wc.status as u32).collect()
}

/// The client WRITEs 600 bytes, which are three packets, and waits; the server's program makes no call.
const WRITE: &str =
    "client ibv_create_qp mtu=256\nclient ibv_post_send WRITE 0..600 to server 1000\nclient ibv_poll_cq\n";

#[test]
fn a_write_is_a_run_file_that_others_read_and_the_same_each_time() {
    let first = run(WRITE);
    assert_eq!(first.record.file, run(WRITE).record.file);
    assert_eq!(first.nodes[SERVER].bytes(&(1000..1600)), first.nodes[CLIENT].bytes(&(0..600)));
    assert!(first.nodes[SERVER].completions.is_empty(), "the server's program learns nothing");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.pcapng");
    std::fs::write(&path, &first.record.file).unwrap();
    let fields = ["-T", "fields", "-e", "frame.interface_name", "-e", "infiniband.bth.opcode"];
    let read = Command::new("tshark").arg("-r").arg(&path).args(["-Y", "infiniband"]).args(fields).output().unwrap();
    let read = String::from_utf8(read.stdout).unwrap();
    // REQ, REP and RTU are datagrams; then first, middle and last packet of an RDMA WRITE, and what acknowledges them.
    let expected = "client 100 server 100 client 100 client 6 client 7 client 8 server 17";
    assert_eq!(read.split_whitespace().collect::<Vec<_>>().join(" "), expected);
    let explanation = explained(&first);
    let text = explanation.text(100);
    assert!(!explanation.is_wrong() && !text.contains("without an end"), "{text}");
}

/// What was lost is sent again after the time-out, which nobody waits for.
#[test]
fn the_rules_of_a_run_hold_on_this_wire() {
    for (rule, wanted) in [
        ("drop 2nd packet from client", &[Cause::MessageLost][..]),
        ("drop 1st RDMA Write Middle from client", &[Cause::Lost]),
        ("drop 1st Acknowledge from server", &[Cause::AnswerLost]),
        ("corrupt 1st RDMA Write First from client", &[Cause::Damaged]),
        ("duplicate 1st RDMA Write Last from client", &[Cause::Doubled]),
    ] {
        let run = run(&format!("{WRITE}wire {rule}\n"));
        let explanation = explained(&run);
        let causes: Vec<Cause> = explanation.findings().map(|finding| finding.cause).collect();
        assert_eq!(causes, wanted, "{rule}: {}", explanation.text(100));
        assert_eq!(statuses(&run, CLIENT), [0], "{rule}");
    }
    // It's held back, and the clock goes on to its time.
    let late = run(&format!("{WRITE}wire delay 1st RDMA Write Last from client by 5 ms\n"));
    assert!(late.nodes[CLIENT].completions[0].at > Duration::from_millis(5));
}

#[test]
fn every_call_does_what_it_says() {
    let both = run("server ibv_post_recv 0..64\n\
        client ibv_post_send SEND 0..60\n\
        server ibv_poll_cq\n\
        client ibv_poll_cq\n\
        client ibv_post_send WRITE 0..60 to server 1000\n\
        client ibv_post_send READ 2000..2060 from server 1000\n\
        client ibv_post_send FETCH_ADD 3000..3008 at server 4000 add=5\n\
        client ibv_post_send FETCH_ADD 3000..3008 at server 4000 add=5\n\
        client ibv_post_send CMP_SWP 3008..3016 at server 4000 compare=10 swap=77\n\
        server ibv_post_recv 100..100\n\
        client ibv_post_send WRITE_WITH_IMM 0..4 to server 1100 imm=7\n\
        client ibv_poll_cq 6\n\
        server ibv_poll_cq\n");
    let [server, client] = &both.nodes;
    assert_eq!((statuses(&both, CLIENT), statuses(&both, SERVER)), (vec![0; 7], vec![0; 2]));
    let text = client.bytes(&(0..60));
    for (node, bytes) in [(server, 0..60), (server, 1000..1060), (client, 2000..2060)] {
        assert_eq!(node.bytes(&bytes), text);
    }
    let numbers = |bytes: Vec<u8>| u64::from_le_bytes(bytes.try_into().unwrap());
    assert_eq!([numbers(client.bytes(&(3000..3008))), numbers(client.bytes(&(3008..3016)))], [5, 10]);
    assert_eq!(numbers(server.bytes(&(4000..4008))), 77);
    assert_eq!(server.completions[1].wc.immediate, Some(7));
    assert!(both.waiting.is_empty() && both.made.iter().all(Option::is_some));
}

#[test]
fn what_goes_wrong_ends_with_the_status_that_says_so() {
    for (what, script, status) in [
        ("a wrong key", "client ibv_post_send WRITE 0..60 to server 0 key=wrong", vec![10]),
        ("no right", "server ibv_reg_mr 0..4096 LOCAL_WRITE\nclient ibv_post_send WRITE 0..60 to server 0", vec![10]),
        (
            "out of bounds",
            "server ibv_reg_mr 0..50 LOCAL_WRITE|REMOTE_WRITE\nclient ibv_post_send WRITE 0..60 to server 0",
            vec![10],
        ),
        ("taken away", "server ibv_dereg_mr\nclient ibv_post_send READ 0..60 from server 0", vec![10]),
        ("not ours", "client ibv_reg_mr 0..8\nclient ibv_post_send WRITE 8..16 to server 0", vec![4]),
        ("a short receive", "server ibv_post_recv 0..10\nclient ibv_post_send SEND 0..60", vec![9]),
        ("no receive", "client ibv_create_qp rnr_retry=1\nclient ibv_post_send SEND 0..60", vec![13]),
        (
            "nobody there",
            "client ibv_create_qp retry_cnt=1\nclient ibv_post_send SEND 0..60\nat 8 us server dies",
            vec![12],
        ),
        (
            "flushed",
            "client ibv_post_send WRITE 0..60 to server 0 key=wrong\nclient ibv_post_send SEND 0..8",
            vec![10, 5],
        ),
        ("no READs", "client ibv_create_qp max_rd_atomic=0\nclient ibv_post_send READ 0..60 from server 0", vec![2]),
    ] {
        assert_eq!(statuses(&run(script), CLIENT), status, "{what}");
    }
}

#[test]
fn time_is_the_scripts() {
    // A receive that comes late costs one RNR NAK and its 0.64 ms.
    let late = run("client ibv_post_send SEND 0..60\nclient ibv_poll_cq\nat 150 us server ibv_post_recv 0..64\n");
    assert_eq!(statuses(&late, CLIENT), [0]);
    let at = late.nodes[CLIENT].completions[0].at;
    assert!(at > Duration::from_micros(640) && at < Duration::from_micros(700), "{at:?}");
    // A line with a time doesn't wait for the lines above it; those below it do.
    let strands = run("server ibv_poll_cq\nat 150 us server ibv_post_recv 0..64\nserver ibv_post_recv 64..128\n");
    assert_eq!(strands.nodes[SERVER].receives.len(), 2);
    assert_eq!(strands.waiting, [0]);
}

#[test]
fn a_connection_ends_with_a_goodbye_that_is_answered() {
    let over = run("client ibv_post_send WRITE 0..60 to server 0\nclient ibv_poll_cq\nclient rdma_disconnect\n");
    assert!(over.nodes.iter().all(|node| node.connection == Connection::Over));
    let names: Vec<&str> = over.record.flights.iter().map(|flight| flight.name).collect();
    let expected = [
        "ConnectRequest",
        "ConnectReply",
        "ReadyToUse",
        "RDMA Write Only",
        "Acknowledge",
        "DisconnectRequest",
        "DisconnectReply",
    ];
    assert_eq!(names, expected);
    // Who's dead answers nothing, and hears nothing.
    let dead = run("server dies\nclient ibv_post_send WRITE 0..60 to server 0\n");
    assert_eq!((dead.nodes[CLIENT].connection, dead.record.flights.len()), (Connection::Over, 16));
}

#[test]
fn what_would_go_on_for_ever_is_ended() {
    let ends = run("client ibv_post_send SEND 0..60\nclient ibv_poll_cq\n");
    assert!(ends.ended.is_some() && ends.record.flights.len() >= 500, "{:?}", ends.ended);
    let waits = run("client ibv_poll_cq\nclient ibv_post_send SEND 0..60\n");
    assert_eq!((waits.ended.is_none(), waits.waiting.len()), (true, 2));
}

#[test]
fn a_packet_in_flight_is_touched_by_its_rule() {
    let whole = run(WRITE);
    for (at, flight) in whole.record.flights.iter().enumerate() {
        assert_eq!(flight.arrives.len(), 1, "{}", flight.name);
        let rule = format!("{} {}", run::words::ordinal(flight.nth), flight.name);
        let from = workbench::script::NODES[flight.from];
        for (act, arrivals) in [("drop", 0), ("duplicate", 2), ("delay", 1), ("corrupt", 1), ("swap", 1)] {
            let by = if act == "delay" { " by 300 us" } else { "" };
            let touched = run(&format!("{WRITE}wire {act} {rule} from {from}{by}\n"));
            let same = &touched.record.flights[at];
            assert_eq!((same.name, same.arrives.len()), (flight.name, arrivals), "{act} {rule}");
            assert_eq!(same.sent, flight.sent, "{act} {rule}: nothing before it has changed");
        }
    }
}
