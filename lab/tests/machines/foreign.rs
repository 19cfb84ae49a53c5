//! Programs that were not written here, recorded in the lab: our decoder and tshark read the same in every packet, and
//! every recording tells its own story.

use crate::tshark;

use lab::{Lab, Outcome, Run};
use std::collections::BTreeMap;
use std::fs::File;
use wire::capture::Reader;
use wire::compare::{compare, Capture, Verdict};

/// Runs two programs to their good end and reads what they said.
fn agreed(server: &str, client: &str) -> BTreeMap<&'static str, usize> {
    let (outcome, counts) = recorded(Run::programs().server(server).client(client));
    let exits = [outcome.node("server").exit, outcome.node("client").exit];
    assert_eq!(
        exits,
        [Some(0), Some(0)],
        "{server}: {:?} {:?}",
        outcome.node("server").log,
        outcome.node("client").log
    );
    counts
}

/// Runs two programs, has both decoders read what they said, and counts packets by name.
fn recorded(run: Run) -> (Outcome, BTreeMap<&'static str, usize>) {
    let outcome = Lab::open().unwrap().run(&run).unwrap_or_else(|error| panic!("{error:#}"));
    let packets = tshark::agree(&outcome.file());
    assert!(packets >= 8, "{packets} packets");
    tells_its_own_story(&outcome.file());
    let counts = counts(&outcome);
    (outcome, counts)
}

fn tells_its_own_story(file: &std::path::Path) {
    let capture = || Capture::read(&mut Reader::new(File::open(file).unwrap()).unwrap()).unwrap();
    let report = compare(&capture(), &capture());
    assert_eq!(report.verdict(), Verdict::Same, "{report}");
}

fn counts(outcome: &Outcome) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    outcome.each_packet(|_, packet| *counts.entry(packet.name()).or_default() += 1).unwrap();
    counts
}

#[track_caller]
fn has(counts: &BTreeMap<&'static str, usize>, names: &[&str]) {
    for name in names {
        assert!(counts.contains_key(name), "no {name} in {counts:?}");
    }
}

#[test]
fn rping() {
    let counts = agreed("rping -s -C 3 -S 2500", "rping -c -a server -C 3 -S 2500");
    has(&counts, &["ConnectRequest", "RC RDMA Read Response Middle", "RC RDMA Write First", "RC Send Only"]);
}

#[test]
fn rping_over_ipv6() {
    let ping = "busybox ping6 -c 1 fd47:91::1; exec rping -c -a fd47:91::1 -C 3 -S 2500";
    let counts = agreed("rping -s -C 3 -S 2500 -a fd47:91::1", &format!("sh -c '{ping}'"));
    has(&counts, &["ConnectRequest", "RC RDMA Write Last", "DisconnectReply"]);
}

/// `-x 1` chooses the GID of RoCEv2 over IPv4.
#[test]
fn ib_atomic_lat() {
    for (operation, name) in [("CMP_AND_SWAP", "RC Compare Swap"), ("FETCH_AND_ADD", "RC Fetch Add")] {
        let program = format!("ib_atomic_lat -x 1 -n 5 -A {operation}");
        has(&agreed(&program, &format!("{program} server")), &[name, "RC Atomic Acknowledge"]);
    }
}

#[test]
fn ib_read_bw() {
    let program = "ib_read_bw -x 1 -n 10 -s 5000";
    has(&agreed(program, &format!("{program} server")), &["RC RDMA Read Request", "RC RDMA Read Response Last"]);
}

#[test]
fn ib_send_lat_with_datagrams() {
    let program = "ib_send_lat -c UD -x 1 -n 5 -s 100";
    has(&agreed(program, &format!("{program} server")), &["UD Send Only"]);
}

#[test]
fn ibv_uc_pingpong() {
    let program = "ibv_uc_pingpong -g 1 -n 10";
    has(&agreed(program, &format!("{program} server")), &["UC Send First", "UC Send Last"]);
}

#[test]
fn ibv_srq_pingpong() {
    let program = "ibv_srq_pingpong -g 1 -n 20";
    has(&agreed(program, &format!("{program} server")), &["RC Send First", "RC Acknowledge"]);
}

#[test]
fn ucmatose() {
    let program = "ucmatose -c 3 -C 4 -S 3000";
    let counts = agreed(program, &format!("{program} -s 10.47.91.1"));
    assert_eq!(counts["ConnectRequest"], 3);
}

/// What the wire loses is asked for with a NAK, and sent again from there on.
#[test]
fn a_link_that_loses_packets() {
    let rules = "drop 9th \"RC RDMA Write Middle\"; drop 9th \"RC RDMA Read Response Middle\"";
    let run = Run::programs().server("rping -s -C 2 -S 60000").client("rping -c -a server -C 2 -S 60000");
    let (_, counts) = recorded(run.wire(rules));
    has(&counts, &["RC Acknowledge"]);
    // Without a loss, each of the two WRITEs and two READs would take 59 packets.
    assert!(counts["RC RDMA Write Middle"] > 2 * 57 && counts["RC RDMA Read Response Middle"] > 2 * 57, "{counts:?}");
}
