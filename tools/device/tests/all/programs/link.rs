//! A switch between the nodes, in virtual time: what crosses it, and when, is the same each time, and as fast as it says.

use super::support;

use run::file::Event;
use support::{Check, Run};

const LINK: &str = "link 1 Gbit/s 5 us; queue 64 KB; ecn 8..32 KB";
const MIB: u64 = 1 << 20;

/// Each packet: when it came, in nanoseconds since the run's begin, from whom, and its bytes.
fn crossed(check: &Check) -> Vec<(u64, String, Vec<u8>)> {
    let (mut begin, mut all) = (None, Vec::new());
    check.each_event(|event| {
        let time = event.time_ns().unwrap();
        let since = time - *begin.get_or_insert(time);
        if let Event::Packet(record) = event {
            all.push((since, record.node.unwrap_or_default().to_owned(), record.data.to_vec()));
        }
    });
    all
}

/// The ring of lesson 13, of two: with more of them a rank may knock in vain, and sleep before it knocks again; that sleep is by
/// this machine's clock. Addresses stand in the packets, so they are named: other runs may have the first ones.
fn ring() -> Check {
    let run = Run::lesson("13", &format!("--timeout 60 --elements {} -n 1", MIB / 4), "--timeout 60");
    run.addresses(&["127.47.2.1".into(), "127.47.2.2".into()]).wire(LINK).check()
}

#[test]
fn two_runs_are_the_same_to_the_packet_and_the_nanosecond() {
    let runs = [ring(), ring()];
    let [one, other] = [crossed(&runs[0]), crossed(&runs[1])];
    assert!(one.len() > 1000, "{} packets", one.len());
    assert!(runs.iter().flat_map(|run| &run.nodes).all(|node| node.exit == Some(0)));
    let differs = one.iter().zip(&other).position(|(one, other)| one != other);
    assert_eq!((differs, one.len()), (None, other.len()));
}

/// Perftest polls, and so its times are a matter of chance; that the link is no faster than it says is not.
#[test]
fn a_link_carries_what_its_rate_allows() {
    let check = Run::programs("ib_write_bw -p 18547 -n 20 -s 65536", "ib_write_bw -p 18547 -n 20 -s 65536 $SERVER");
    let check = check.wire("link 100 Mbit/s 5 us; queue 64 KB").check().exits(0, 0);
    let all = crossed(&check);
    let of_client: Vec<_> = all.iter().filter(|(_, node, _)| node == "client").collect();
    let bytes: u64 = of_client.iter().skip(1).map(|(.., data)| data.len() as u64 + 24).sum();
    assert!(bytes > 20 * 65536);
    assert!(of_client.last().unwrap().0 - of_client[0].0 >= bytes * 8 * 10, "100 Mbit/s are 10 ns for a bit");
}
