//! Wire rules: one packet is lost, doubled, late, out of order or damaged, and both sides and the run file tell what came of
//! it, as the standard promises.

use super::support;

use roce::icrc::Icrc;
use std::process::Command;
use support::{Run, CLIENT, SERVER};

type Ruled = support::Ruled<String>;

/// Both sides end with these statuses. Only who waits without success has a short deadline: a busy machine may be slow.
fn ruled(number: &str, client: &str, rules: &str, exits: [i32; 2]) -> Ruled {
    let (server, client) = match exits {
        [0, 0] => ("--timeout 60", format!("--timeout 60 {client}")),
        _ => ("--timeout 5", client.to_owned()),
    };
    Ruled::of(Run::lesson(number, server, &client).wire(rules).check().exits(exits[0], exits[1]))
}

const MEMORY: &str = "the memory holds 60 bytes: \"One side writes, and the other side's processor never knows.\"";

#[test]
fn a_lost_reply_and_a_doubled_request_are_one_connection() {
    let lost = ruled("02", "", "drop 1st REP", [0, 0]);
    assert!(lost.named(SERVER, "ConnectReply").len() > 1, "{:?}", lost.packets);
    let doubled = ruled("02", "", "duplicate every REQ from client to server", [0, 0]);
    let requests = doubled.named(CLIENT, "ConnectRequest");
    assert_eq!([requests[0].comment.is_empty(), requests[1].comment.is_empty()], [true, false]);
    for run in [lost, doubled] {
        assert_eq!(run.check.count(SERVER, "CM event: CONNECT_REQUEST"), 1);
        // A reply that comes again is answered again.
        let answers = run.check.packets_once().into_iter().filter(|packet| packet.ends_with("ReadyToUse"));
        assert_eq!(answers.count(), 1, "{}", run.check.all());
    }
}

/// The receiver drops it without a word, and the file has it as the receiver saw it: tshark reads the same.
#[test]
fn a_corrupted_write_is_sent_again() {
    let rule = "corrupt 1st \"RC RDMA Write Only\"";
    let run = ruled("04", "", rule, [0, 0]);
    run.is_sent_again(CLIENT, "RC RDMA Write Only", &format!("lab: corrupted by the rule: {rule}"));
    let writes = run.named(CLIENT, "RC RDMA Write Only");
    assert_eq!([writes[0].icrc, writes[1].icrc], [Icrc::Bad, Icrc::Ok]);
    run.check.logs(SERVER, MEMORY);

    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(&run.check.file).args(["-Y", "infiniband.bth.opcode == 10", "-T", "fields"]);
    let fields = ["frame.number", "infiniband.bth.psn", "frame.comment"];
    let output = tshark.args(fields.iter().flat_map(|field| ["-e", field])).output().unwrap();
    let expected: String =
        writes.iter().map(|write| format!("{}\t{}\t{}\n", write.number, write.psn, write.comment)).collect();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

#[test]
fn packets_that_change_places_are_refused_and_sent_again() {
    let run = ruled("04", "--len 2500", "swap 1st \"RC RDMA Write First\" from client", [0, 0]);
    let answers = run.named(SERVER, "RC Acknowledge");
    let first = run.named(CLIENT, "RC RDMA Write First");
    assert!(answers.iter().any(|answer| answer.psn == first[0].psn), "the NAK asks for the first: {:?}", run.packets);
    assert!(first.iter().all(|sent| sent.psn == first[0].psn), "{:?}", run.packets);
    run.check.logs(SERVER, "the memory holds 2500 bytes");
}

#[test]
fn what_is_sent_again_is_lost_again() {
    let rules = "drop 1st \"RC Send Only\" from client; drop every again-sent \"RC Send Only\" from client";
    let run = ruled("04", "--timeout 20", rules, [1, 1]);
    run.check.logs(CLIENT, "completed with IBV_WC_RETRY_EXC_ERR");
    assert!(run.named(CLIENT, "RC Send Only").iter().all(|sent| sent.comment.starts_with("lab: dropped")));
}

/// The client's ReadyToUse is lost: a client of lesson 02, which wants nothing of the server, hangs up before the handshake is
/// repeated, and the server must take its goodbye for the proof that it was connected.
#[test]
fn a_lost_ready_to_use_is_no_failure() {
    let run = ruled("02", "", "drop every RTU", [0, 0]);
    run.check.logs(SERVER, "waiting for ESTABLISHED or DISCONNECTED");
}
