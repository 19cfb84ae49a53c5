//! Programs that were not written here, recorded in the lab: our decoder and tshark read the same in every packet, and
//! every recording tells its own story.

use crate::support::{each, position, said, Check, Run, CLIENT, SERVER};
use roce::Frame;
use run::capture::Reader;
use run::file::Event;
use std::fs::File;
use testkit::tshark;
use wire::compare::{compare, Capture, Verdict};

/// Runs two programs, and has both decoders read what they said.
fn recorded(run: Run) -> Check {
    let check = run.check();
    let packets = tshark::agree(&check.file);
    assert!(packets >= 8, "{packets} packets");
    let capture = || Capture::read(&mut Reader::new(File::open(&check.file).unwrap()).unwrap()).unwrap();
    let report = compare(&capture(), &capture());
    assert_eq!(report.verdict(), Verdict::Same, "{report}");
    check
}

/// Both programs ended with 0; or it was rping, whose main thread destroys the event channel while another one waits on it: that
/// one says so then, and ends with 255.
fn ended_well(check: &Check) -> bool {
    let last = "rdma_get_cm_event: Bad file descriptor";
    let ended = [SERVER, CLIENT].map(|node| check.node(node));
    ended.iter().all(|node| {
        node.exit == Some(0) || (node.exit == Some(255) && node.log.last().map(String::as_str) == Some(last))
    })
}

/// Server, client if it is not the same with the server's name behind, and packets that they exchange. `-x 1` and `-g 1` choose the
/// GID of RoCEv2 over IPv4.
#[rustfmt::skip] // A table.
const PROGRAMS: [(&str, &str, &[&str]); 9] = [
    ("ucmatose -c 3 -C 4 -S 3000", "ucmatose -c 3 -C 4 -S 3000 -s 10.47.91.1", &["ConnectRequest", "DisconnectReply"]),
    ("rping -s -C 3 -S 2500", "rping -c -a server -C 3 -S 2500",
        &["ConnectRequest", "RC RDMA Read Response Middle", "RC RDMA Write First", "RC Send Only"]),
    ("rping -s -C 3 -S 2500 -a fd47:91::1", "busybox ping6 -c 1 fd47:91::1; exec rping -c -a fd47:91::1 -C 3 -S 2500",
        &["ConnectRequest", "RC RDMA Write Last", "DisconnectReply"]),
    ("ib_atomic_lat -x 1 -n 5 -A CMP_AND_SWAP", "", &["RC Compare Swap", "RC Atomic Acknowledge"]),
    ("ib_atomic_lat -x 1 -n 5 -A FETCH_AND_ADD", "", &["RC Fetch Add", "RC Atomic Acknowledge"]),
    ("ib_read_bw -x 1 -n 10 -s 5000", "", &["RC RDMA Read Request", "RC RDMA Read Response Last"]),
    ("ib_send_lat -c UD -x 1 -n 5 -s 100", "", &["UD Send Only"]),
    ("ibv_uc_pingpong -g 1 -n 10", "", &["UC Send First", "UC Send Last"]),
    ("ibv_srq_pingpong -g 1 -n 20", "", &["RC Send First", "RC Acknowledge"]),
];

#[test]
#[ignore = "takes long: make test-long"]
fn other_peoples_programs_end_well_and_are_read_alike() {
    each(&PROGRAMS, |(server, client, names)| {
        let client = if client.is_empty() { format!("{server} server") } else { (*client).to_owned() };
        let check = recorded(Run::programs().server(server).client(&client));
        assert!(ended_well(&check), "{server}: {}", check.all());
        for name in *names {
            assert!(check.packets_named(name) > 0, "no {name}: {}", check.all());
        }
        let is_ipv6 = server.contains("fd47:");
        check.each_packet(|_, packet| assert_eq!(packet.datagram.src.is_ipv6(), is_ipv6, "{server}"));
    });
}

/// What the wire loses is asked for with a NAK, and sent again from there on.
#[test]
#[ignore = "takes long: make test-long"]
fn a_link_that_loses_packets() {
    let rules = "drop 9th \"RC RDMA Write Middle\"; drop 9th \"RC RDMA Read Response Middle\"";
    let run = Run::programs().server("rping -s -C 2 -S 60000").client("rping -c -a server -C 2 -S 60000");
    let check = recorded(run.with("wire", rules));
    // Without a loss, each of the two WRITEs and two READs would take 59 packets.
    for name in ["RC RDMA Write Middle", "RC RDMA Read Response Middle"] {
        assert!(check.packets_named(name) > 2 * 57, "{name}: {}", check.all());
    }
}

/// The order of cause and effect, and nothing else on the wire.
#[test]
fn rping_over_ipv4() {
    let check = recorded(Run::programs().server("rping -s -C 1 -v").client("rping -c -a server -C 1 -v"));
    assert!(ended_well(&check), "{}", check.all());
    let packets = check.packets();
    assert_eq!(packets[..3], ["C ConnectRequest", "S ConnectReply", "C ReadyToUse"]);
    // Nothing but the two machines' own ARP, which a kernel repeats if the run takes its time: no IPv6 chatter, no announcements.
    check.each_event(|event| {
        if let Event::Packet(record) = event {
            let is_arp = record.data.get(12..14) == Some(&[0x08, 0x06]);
            assert!(is_arp || matches!(Frame::ethernet(record.data), Frame::Roce(_)), "{:02x?}", record.data);
        }
    });
    // The effect stands after its cause: the server prints the data after the packet that brought it.
    let is_data = |event: &Event<'_>| {
        let Event::Packet(record) = event else { return false };
        matches!(Frame::ethernet(record.data), Frame::Roce(packet) if packet.name() == "RC RDMA Read Response Only")
    };
    let (data, line) = (position(&check, is_data), said(&check, "server ping data: rdma-ping-0"));
    assert!(data < line, "packet at {data}, line at {line}");
}
