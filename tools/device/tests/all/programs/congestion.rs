//! Lesson 20: what a switch does to senders that know nothing of it. Each case is the same program with another wire.

use super::support::{Check, Run};

use roce::Frame;
use run::file::Event;

const LINK: &str = "link 1 Gbit/s 5 us";

/// WRITE packets that cross the switch, and packets that it loses.
fn counted(check: &Check) -> [usize; 2] {
    let mut counted = [0; 2];
    check.each_event(|event| {
        let Event::Packet(record) = event else { return };
        let Frame::Roce(packet) = Frame::decode(record.link, record.data) else { return };
        let is_lost = record.comment.is_some_and(|comment| comment.contains("lab: dropped"));
        let is = [packet.name().starts_with("RC RDMA Write"), is_lost];
        counted.iter_mut().zip(is).for_each(|(count, is)| *count += usize::from(is));
    });
    counted
}

/// One sender, alone on its way.
fn alone(server: &str, wire: &str) -> Check {
    Run::lesson("20", server, "").wire(wire).check().exits(0, 0)
}

/// Where in the run a node says this first.
fn place(check: &Check, node: &str, said: &str) -> usize {
    let (mut place, mut found) = (0, None);
    check.each_event(|event| {
        place += 1;
        if let Event::Line(line) = event {
            found = found.or((line.node == node && line.text.contains(said)).then_some(place));
        }
    });
    found.unwrap_or_else(|| panic!("{node} never says {said}: {}", check.all()))
}

#[test]
fn without_control_one_sender_waits_for_a_time_out() {
    let check = Run::lesson("20", "", "").clients(2).wire(&format!("{LINK}; queue 8 KB")).check();
    assert!(check.nodes.iter().all(|node| node.exit == Some(0)), "{}", check.all());
    let [sent, lost] = counted(&check);
    assert!(lost > 0 && sent > 64 + lost, "{sent} sent, {lost} lost: what was not lost comes again, too");
    check.logs("server", "when the first sender was done: [1, 8]");
}

#[test]
fn a_loss_costs_all_that_is_under_way_and_so_does_a_packet_that_is_overtaken() {
    let messages = "--len 16384 --messages 64";
    assert_eq!(counted(&alone(messages, "link 10 Gbit/s 50 us")), [1024, 0]);
    let [sent, lost] = counted(&alone(messages, "link 10 Gbit/s 50 us; lose 1 in 1000"));
    assert!(lost > 0 && sent > 1024 + 10 * lost, "{sent} sent, {lost} lost");
    let [sent, lost] = counted(&alone("--len 16384", &format!("{LINK}; paths 2 by 20 us")));
    assert!(lost == 0 && sent > 2 * 128, "{sent} sent, {lost} lost");
}

/// Three switches in a ring, and four nodes that WRITE to the server. Another one's way is free, but for a cable that it shares.
fn victim(options: &str, control: &str) -> Check {
    let sender = "lesson-20 client -a $SERVER";
    let nodes = [(1, sender), (3, sender), (5, sender), (6, sender)].map(|(node, line)| (node, line.to_owned()));
    let others = [(2, "lesson-20 server --len 16384".into()), (4, format!("lesson-20 client -a $NODE_2 {options}"))];
    let mut nodes = [&nodes[..], &others[..]].concat();
    nodes.sort();
    let nodes: String = nodes.iter().map(|(node, line)| format!(" --node 'node-{node}={line}'")).collect();
    let run = Run::typed(&format!("device exec --server 'lesson-20 server -n 4 --len 16384'{nodes}"));
    run.wire(&format!("{LINK}; ring 3; {control}")).check()
}

#[test]
fn a_pause_stops_who_has_no_part_in_the_congestion_unless_its_priority_is_another() {
    let is_last = |check: &Check| {
        assert_eq!(counted(check)[1], 0);
        place(check, "node-2", "8 of 8 messages") > place(check, "node-3", "SUCCESS: 8 messages")
    };
    assert!(!is_last(&victim("", "queue 1 MB")));
    assert!(is_last(&victim("", "queue 128 KB; pfc 32 KB")));
    assert!(!is_last(&victim("--tos 96", "queue 128 KB; pfc 32 KB")));
}

/// Each node sends to the one two switches on. The receivers end with their nodes.
fn round_the_ring(control: &str) -> Check {
    let node = |to: &str| format!("lesson-20 server --len 16384 --messages 16 & lesson-20 client -a ${to}");
    let (server, one, two) = (node("NODE_2"), node("SERVER"), node("NODE_1"));
    let run = format!("device exec --server '{server}' --node 'node-1={one}' --node 'node-2={two}'");
    Run::typed(&run).wire(&format!("{LINK}; ring 3; queue 64 KB{control}")).check()
}

#[test]
fn pauses_round_a_ring_are_a_deadlock_and_its_senders_give_up() {
    let lossy = round_the_ring("");
    assert!(lossy.nodes.iter().all(|node| node.exit == Some(0)) && counted(&lossy)[1] > 0, "{}", lossy.all());
    let paused = round_the_ring("; pfc 16 KB");
    assert!(paused.nodes.iter().all(|node| node.exit == Some(1)), "{}", paused.all());
    assert_eq!(counted(&paused)[1], 0);
    for node in ["server", "node-1", "node-2"] {
        place(&paused, node, "IBV_WC_RETRY_EXC_ERR");
    }
}
