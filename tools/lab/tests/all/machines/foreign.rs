//! Programs that were not written here, recorded in the lab: our decoder and tshark read the same in every packet, and
//! every recording tells its own story.

use crate::support::{self, each};
use testkit::tshark;

use lab::{Lab, Outcome, Run};
use run::capture::Reader;
use std::collections::BTreeMap;
use std::fs::File;
use wire::compare::{compare, Capture, Verdict};

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

/// Server, client, and packets that they exchange. `-x 1` and `-g 1` choose the GID of RoCEv2 over IPv4.
const PROGRAMS: [(&str, &str, &[&str]); 9] = [
    ("ucmatose -c 3 -C 4 -S 3000", "ucmatose -c 3 -C 4 -S 3000 -s 10.47.91.1", &["ConnectRequest", "DisconnectReply"]),
    (
        "rping -s -C 3 -S 2500",
        "rping -c -a server -C 3 -S 2500",
        &["ConnectRequest", "RC RDMA Read Response Middle", "RC RDMA Write First", "RC Send Only"],
    ),
    (
        "rping -s -C 3 -S 2500 -a fd47:91::1",
        "busybox ping6 -c 1 fd47:91::1; exec rping -c -a fd47:91::1 -C 3 -S 2500",
        &["ConnectRequest", "RC RDMA Write Last", "DisconnectReply"],
    ),
    (
        "ib_atomic_lat -x 1 -n 5 -A CMP_AND_SWAP",
        "ib_atomic_lat -x 1 -n 5 -A CMP_AND_SWAP server",
        &["RC Compare Swap", "RC Atomic Acknowledge"],
    ),
    (
        "ib_atomic_lat -x 1 -n 5 -A FETCH_AND_ADD",
        "ib_atomic_lat -x 1 -n 5 -A FETCH_AND_ADD server",
        &["RC Fetch Add", "RC Atomic Acknowledge"],
    ),
    (
        "ib_read_bw -x 1 -n 10 -s 5000",
        "ib_read_bw -x 1 -n 10 -s 5000 server",
        &["RC RDMA Read Request", "RC RDMA Read Response Last"],
    ),
    ("ib_send_lat -c UD -x 1 -n 5 -s 100", "ib_send_lat -c UD -x 1 -n 5 -s 100 server", &["UD Send Only"]),
    ("ibv_uc_pingpong -g 1 -n 10", "ibv_uc_pingpong -g 1 -n 10 server", &["UC Send First", "UC Send Last"]),
    ("ibv_srq_pingpong -g 1 -n 20", "ibv_srq_pingpong -g 1 -n 20 server", &["RC Send First", "RC Acknowledge"]),
];

#[test]
#[ignore = "takes long: make test-long"]
fn other_peoples_programs_end_well_and_are_read_alike() {
    each(&PROGRAMS, |(server, client, names)| {
        let (outcome, counts) = recorded(Run::programs().server(server).client(client));
        assert!(support::ended_well(&outcome), "{server}: {outcome:?}");
        has(&counts, names);
        let is_ipv6 = server.contains("fd47:");
        outcome.each_packet(|_, packet| assert_eq!(packet.datagram.src.is_ipv6(), is_ipv6, "{server}")).unwrap();
    });
}

/// What the wire loses is asked for with a NAK, and sent again from there on.
#[test]
#[ignore = "takes long: make test-long"]
fn a_link_that_loses_packets() {
    let rules = "drop 9th \"RC RDMA Write Middle\"; drop 9th \"RC RDMA Read Response Middle\"";
    let run = Run::programs().server("rping -s -C 2 -S 60000").client("rping -c -a server -C 2 -S 60000");
    let (_, counts) = recorded(run.wire(rules));
    has(&counts, &["RC Acknowledge"]);
    // Without a loss, each of the two WRITEs and two READs would take 59 packets.
    assert!(counts["RC RDMA Write Middle"] > 2 * 57 && counts["RC RDMA Read Response Middle"] > 2 * 57, "{counts:?}");
}
