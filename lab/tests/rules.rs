//! Wire rules: one packet is lost, doubled, late, out of order or damaged, and both sides and the run file tell what came of
//! it, as the standard promises.

#![allow(clippy::unwrap_used)] // A test may end with a panic.

mod support;

use lab::{CLIENT, SERVER};
use std::process::Command;
use support::{run_of, Check};
use wire::icrc::Icrc;
use wire::run::{Event, Line};
use wire::{Frame, Packet};

/// A packet of the run file.
#[derive(Debug, Clone)]
struct Sent {
    number: u64,
    from: String,
    name: &'static str,
    psn: u32,
    icrc: Icrc,
    comment: String,
}

/// A lesson with rules, its packets, and what the lab says about its rules.
struct Ruled {
    check: Check,
    packets: Vec<Sent>,
    lines: Vec<Line>,
}

/// Both sides end with these statuses.
fn ruled(number: &str, client: &str, rules: &str, exits: [i32; 2]) -> Ruled {
    let check = Check::of(run_of(number, "--timeout 5", client).wire(rules)).exits(exits[0], exits[1]);
    let (mut packets, mut lines) = (Vec::new(), Vec::new());
    let look = |event: &Event<'_>| match event {
        Event::Line(line) if line.act == "rule" => lines.push(line.clone()),
        Event::Line(_) => {}
        Event::Packet(record) => {
            if let Frame::Roce(packet) = Frame::ethernet(record.data) {
                let comment = record.comment.unwrap_or_default().to_owned();
                let (from, name, psn) = (record.node.unwrap().to_owned(), packet.name(), packet.bth.psn);
                packets.push(Sent { number: record.number, from, name, psn, icrc: packet.icrc(), comment });
            }
        }
    };
    check.outcome.each_event(look).unwrap();
    Ruled { check, packets, lines }
}

impl Ruled {
    fn named(&self, from: &str, name: &str) -> Vec<&Sent> {
        self.packets.iter().filter(|packet| packet.from == from && packet.name == name).collect()
    }

    /// The first packet of this name did not do its work and says so, and its sender sent it again. With the same PSN.
    fn is_sent_again(&self, from: &str, name: &str, comment: &str) {
        let sent = self.named(from, name);
        assert!(sent.len() > 1 && sent[1..].iter().any(|again| again.psn == sent[0].psn), "{:?}", self.packets);
        assert_eq!(sent[0].comment, comment);
        assert!(sent[1].comment.is_empty());
    }

    /// What the lab did is said just behind the packet.
    fn says(&self, places: &[(&Sent, &str)]) {
        let said: Vec<(u64, &str)> = self.lines.iter().map(|line| (line.number, line.text.as_str())).collect();
        let expected: Vec<(u64, &str)> = places.iter().map(|(sent, text)| (sent.number + 1, *text)).collect();
        assert_eq!(said, expected);
    }
}

const MEMORY: &str = "the memory holds 60 bytes: \"One side writes, and the other side's processor never knows.\"";

#[test]
fn a_request_whose_acknowledgement_is_lost_is_sent_again() {
    let rule = "drop 1st \"RC Acknowledge\" from server";
    let run = ruled("04", "", rule, [0, 0]);
    let lost = run.named(SERVER, "RC Acknowledge")[0];
    let deed = format!("dropped by the rule: {rule}");
    assert_eq!(lost.comment, format!("lab: {deed}"));
    run.says(&[(lost, &format!("RC Acknowledge {deed}"))]);
    run.is_sent_again(CLIENT, "RC Send Only", "");
    assert_eq!(run.named(SERVER, "RC Acknowledge")[1].psn, lost.psn, "it is acknowledged again");
    // The server has it once all the same.
    assert_eq!(run.check.count(SERVER, "opcode=IBV_WC_RECV"), 1);
    run.check.logs(SERVER, MEMORY);
}

#[test]
fn a_lost_reply_and_a_doubled_request_are_one_connection() {
    let lost = ruled("02", "", "drop 1st REP", [0, 0]);
    assert!(lost.named(SERVER, "ConnectReply").len() > 1, "{:?}", lost.packets);
    let doubled = ruled("02", "", "duplicate every REQ from client to server", [0, 0]);
    let requests = doubled.named(CLIENT, "ConnectRequest");
    assert_eq!([requests[0].comment.is_empty(), requests[1].comment.is_empty()], [true, false]);
    for run in [lost, doubled] {
        assert_eq!(run.check.count(SERVER, "CM event: CONNECT_REQUEST"), 1);
        assert_eq!(run.named(CLIENT, "ReadyToUse").len(), 1);
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
    tshark.arg("-r").arg(run.check.outcome.file()).args(["-Y", "infiniband.bth.opcode == 10", "-T", "fields"]);
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

/// The answer comes, but later than the client waits for it.
#[test]
fn a_late_answer_is_asked_for_again() {
    let rule = "delay 1st \"Read Response Only\" by 900 ms";
    let wrong = support::run_of("05", "", "").wire(rule);
    let error = lab::Lab::open().unwrap().run(&wrong).unwrap_err();
    assert!(error.is::<lab::Stopped>() && error.to_string().contains("RDMA Read Response Only"), "{error}");

    let run = ruled("05", "", "delay 1st \"RDMA Read Response Only\" by 900 ms", [0, 0]);
    run.is_sent_again(CLIENT, "RC RDMA Read Request", "");
    assert!(run.named(SERVER, "RC RDMA Read Response Only").len() > 1);
    let late = &run.named(SERVER, "RC RDMA Read Response Only")[0];
    assert_eq!(late.number + 1, run.lines[0].number);
    let end = &run.lines[1].text;
    assert!(["goes on", "is still held back, and the run is over"].iter().any(|words| end.contains(words)), "{end}");
    run.check.logs(CLIENT, "SUCCESS, source and destination buffers match");
}

/// Both sides know after a while, each in its own way.
#[test]
fn a_cable_that_is_cut_ends_a_connection_in_words() {
    let run = ruled("04", "--timeout 20", "cut 1st \"RC RDMA Write Only\"", [1, 1]);
    run.check.logs(CLIENT, "completed with IBV_WC_RETRY_EXC_ERR");
    run.check.logs(SERVER, "waited 5 s for RDMA_CM_EVENT_DISCONNECTED");
    let writes = run.named(CLIENT, "RC RDMA Write Only");
    assert!(writes.len() > 6 && writes.iter().all(|sent| sent.psn == writes[0].psn), "{:?}", run.packets);
    assert!(writes[1..].iter().all(|sent| sent.comment == "lab: dropped, as the cable of client is cut"));
}

#[test]
fn what_is_sent_again_is_lost_again() {
    let rules = "drop 1st \"RC Send Only\" from client; drop every again-sent \"RC Send Only\" from client";
    let run = ruled("04", "--timeout 20", rules, [1, 1]);
    run.check.logs(CLIENT, "completed with IBV_WC_RETRY_EXC_ERR");
    assert!(run.named(CLIENT, "RC Send Only").iter().all(|sent| sent.comment.starts_with("lab: dropped")));
}

#[test]
fn a_rule_for_one_of_several_nodes_leaves_the_others_alone() {
    let check = Check::of(run_of("02", "-n 2", "").clients(2).wire("drop 1st REQ from client-2 to server"));
    assert!(check.outcome.succeeded(), "{:?}", check.outcome);
    let mut requests = Vec::new();
    let look =
        |node: &str, packet: &Packet<'_>| requests.extend((packet.name() == "ConnectRequest").then(|| node.to_owned()));
    check.outcome.each_packet(look).unwrap();
    requests.sort();
    assert_eq!(requests, ["client-1", "client-2", "client-2"]);
}

#[test]
fn a_rule_that_meets_no_packet_is_told_and_is_no_success() {
    let lab = |rules: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_lab")).args(["run", "02", "--wire", rules]).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (status, printed, errors) = lab("drop 2nd REQ");
    assert_eq!(status, Some(1), "{printed}{errors}");
    assert!(printed.contains("exit:     server 0, client 0\n"), "{printed}");
    assert!(printed.contains("trouble:  the rule `drop 2nd REQ` never met its packet\n"), "{printed}");
    let (status, printed, errors) = lab("drop 2nd REQ from sever");
    assert_eq!((status, printed.as_str()), (Some(2), ""), "{errors}");
    assert!(errors.contains("^^^^^\nthe nodes are: server, client"), "{errors}");
}
