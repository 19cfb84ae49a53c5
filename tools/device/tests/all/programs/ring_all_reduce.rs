//! Lesson 13: the sum is the same to the bit on all ranks, whatever their number and the vector's length; what crosses the wire is
//! counted there; a lost packet mends, and a rank that falls silent ends all others with an error that names a rank.

use super::support;

use std::collections::HashSet;

use roce::opcode::{Operation, Part};
use support::{each, programs, Check, Run, SERVER};

/// A ring of this many ranks.
fn ring(ranks: usize, server: &str, timeout: u32) -> Run {
    let timeout = format!("--timeout {timeout}");
    Run::lesson("13", &format!("{timeout} {server} -n {}", ranks - 1), &timeout).clients(ranks - 1)
}

/// The node of a rank. Addresses are given in the order of the nodes.
fn node(rank: usize, ranks: usize) -> String {
    match rank {
        0 => SERVER.into(),
        _ if ranks == 2 => "client".into(),
        _ => format!("client-{rank}"),
    }
}

/// All ranks have ended well, with the same sum, which each has compared with what one process gets alone.
fn assert_same(check: &Check, ranks: usize) {
    let seal = |rank| {
        let node = node(rank, ranks);
        assert_eq!(check.node(&node).exit, Some(0), "{}", check.all());
        check.logs(&node, "the same to the bit as one process gets in the ring's order");
        check.line(&node, "ends with seal ").split("seal ").nth(1).unwrap_or_default().to_owned()
    };
    let seals: HashSet<String> = (0..ranks).map(seal).collect();
    assert_eq!(seals.len(), 1, "{seals:?}");
}

#[test]
fn the_sum_is_the_same_to_the_bit_on_two_to_nine_ranks() {
    let cases: Vec<_> = (2..=9).flat_map(|ranks| [0, 1, 1001].map(|elements| (ranks, elements))).collect();
    each(&cases, |(ranks, elements)| {
        let check = ring(*ranks, &format!("--elements {elements}"), 60).check();
        assert_same(&check, *ranks);
    });
}

/// A vector of 1 MiB, in slices of 64 KiB: each rank's WRITEs as they cross the wire.
#[test]
fn each_rank_sends_twice_its_share_whatever_their_number() {
    const BYTES: usize = 1 << 20;
    for ranks in 2..=9 {
        let check = ring(ranks, &format!("--elements {}", BYTES / 4), 60).check();
        assert_same(&check, ranks);
        for rank in 0..ranks {
            let (mut sent, mut payload, mut frames) = (HashSet::new(), 0, 0);
            check.each_packet(|from, packet| {
                let mut is_new = || sent.insert((packet.bth.dest_qp, packet.bth.psn));
                if from == node(rank, ranks) && packet.opcode.operation == Operation::Write && is_new() {
                    payload += packet.payload_length();
                    // Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4; RETH 16 in the first of a message, ImmDt 4 in the last.
                    let ends = match packet.opcode.part {
                        Part::First => 16,
                        Part::Last => 4,
                        Part::Only => 20,
                        Part::Middle => 0,
                    };
                    frames += 58 + ends + packet.payload_length() + usize::from(packet.bth.pad_cnt);
                }
            });
            let share = 2 * (ranks - 1) * BYTES / ranks;
            let near = |found: usize, due: usize| found.abs_diff(due) * 50 < due;
            assert!(near(payload, share), "rank {rank} of {ranks}: {payload} bytes, {share} are its share");
            // A message is 64 KiB or what is left of a chunk; a packet 1024 bytes or what is left of a message.
            let slices = (BYTES / ranks).div_ceil(65536) * 2 * (ranks - 1);
            let headers = share.div_ceil(1024) * 58 + slices * 20;
            assert!(near(frames, share + headers), "rank {rank} of {ranks}: {frames} bytes, {} due", share + headers);
            check.logs(&node(rank, ranks), &format!("sent {payload} bytes in "));
        }
    }
}

/// What a rank waited for its left neighbour, and for room at its right one, in ms.
fn waited(check: &Check, rank: usize, ranks: usize) -> [f64; 2] {
    let line = check.line(&node(rank, ranks), " ms, waited ");
    let words: Vec<&str> = line.split_once("waited ").unwrap_or_default().1.split(' ').collect();
    [words[0], words[5]].map(|word| word.parse().unwrap_or_else(|_| panic!("{line}")))
}

/// A slow rank waits for nobody; its right neighbour waits for it, and its left one for room there.
#[test]
fn one_slow_rank_slows_all_and_each_says_whom_it_waited_for() {
    let check = ring(4, "--elements 4096 --slice 1024 --slow 2 --pause 30", 60).check();
    assert_same(&check, 4);
    let waits: Vec<[f64; 2]> = (0..4).map(|rank| waited(&check, rank, 4)).collect();
    // 24 slices of 30 ms.
    assert!(waits[3][0] > 400.0 && waits[1][1] > 200.0, "{waits:?}");
    assert!(waits[2][0] + waits[2][1] < waits[3][0], "{waits:?}");
    assert!(waits.iter().enumerate().all(|(rank, [left, right])| rank == 2 || left + right > 400.0), "{waits:?}");
}

#[test]
fn a_lost_packet_mends() {
    let lost = [
        "drop 1st REJ from server",
        "drop 2nd REJ from server",
        "drop 2nd REQ from client-1",
        "drop 1st REP from client-1",
        "drop 1st RTU from client-2",
        "drop 1st \"RDMA Write Only Immediate\" from client-1",
        "drop 3rd \"RDMA Write Only Immediate\" from client-2",
        "drop 1st \"Send Only Immediate\" from server",
        "drop 4th Acknowledge from client-1",
        "drop 1st DREQ from client-1",
        "duplicate 2nd \"RDMA Write Only Immediate\" from server",
        "corrupt 2nd \"RDMA Write Only Immediate\" from client-2",
    ];
    each(&lost, |rule| assert_same(&ring(3, "", 60).wire(rule).check(), 3));
    // Rank 2 of 5 is no neighbour of rank 0's, which is at work when it is asked again.
    assert_same(&ring(5, "", 60).wire("drop 2nd REJ from server").check(), 5);
}

/// Its cable is cut. It, and all others, end with an error that names a rank.
#[test]
fn a_rank_that_falls_silent_ends_all_with_an_error_that_names_a_rank() {
    let stages = [
        "1st REP from client-2",
        "1st \"RDMA Write Only Immediate\" from client-2",
        "2nd \"RDMA Write Only Immediate\" from client-2",
        "2nd \"Send Only Immediate\" from client-2",
        "5th \"RDMA Write Only Immediate\" from client-2",
    ];
    each(&stages, |stage| {
        let check = ring(4, "", 4).wire(&format!("cut {stage}")).check();
        for rank in 0..4 {
            let node = node(rank, 4);
            assert_eq!(check.node(&node).exit, Some(1), "{stage}: {}", check.all());
            let (left, right) = ((rank + 3) % 4, (rank + 1) % 4);
            let named = [left, right].map(|other| format!("] ERR   rank {other}: "));
            let waited = [left, right].map(|other| format!(" s for rank {other}: "));
            let is_named = named.iter().chain(&waited).any(|words| check.count(&node, words) > 0);
            assert!(is_named, "{stage}: {}", check.all());
        }
    });
}

#[test]
fn wrong_options_are_named() {
    for options in ["-n 0", "-n 9", "--slice 3", "--slice 0", "--elements 100000000"] {
        let check = programs(&format!("lesson-13 server {options}"), "true").exits(1, 0);
        check.logs(SERVER, "-n is 1 to 8, --elements at most 16 million, --slice a multiple of 4");
    }
}
