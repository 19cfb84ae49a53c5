//! A switch between the nodes, in virtual time: what crosses it, and when, is the same each time, and as fast as it says.

use super::support;

use roce::Frame;
use run::file::Event;
use support::{Check, Run};

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

/// Two senders on the way to one receiver, whose cable has room for one of them. Addresses are in the packets, so they are
/// named: other runs may have the first ones.
fn incast(control: &str, addresses: &[String]) -> Check {
    let run = Run::lesson("20", "--len 16384 --messages 16", "--timeout 60").clients(2);
    run.addresses(addresses).wire(&format!("link 1 Gbit/s 5 us; {control}")).check()
}

/// All nodes have ended well.
fn all_well(check: Check) -> Check {
    assert!(check.nodes.iter().all(|node| node.exit == Some(0)), "{}", check.all());
    check
}

/// So many runs are the same to the packet and the nanosecond; gives the packets of one.
fn is_the_same_each_time(count: usize, run: impl Fn() -> Check) -> Vec<(u64, String, Vec<u8>)> {
    let once = || crossed(&all_well(run()));
    let first = once();
    for _ in 1..count {
        let other = once();
        let differs = first.iter().zip(&other).find(|(one, other)| one != other);
        assert_eq!((differs, first.len()), (None, other.len()));
    }
    first
}

fn addresses<const N: usize>(net: u8) -> [String; N] {
    std::array::from_fn(|node| format!("127.47.{net}.{}", node + 1))
}

#[test]
fn runs_are_the_same_to_the_packet_and_the_nanosecond() {
    let run = || incast("queue 256 KB; ecn 8..64 KB; dcqcn", &addresses::<3>(2));
    let packets = is_the_same_each_time(4, run);
    assert!(packets.len() > 300, "{} packets", packets.len());
}

/// A thousand seconds are over in a moment. Who sleeps by itself in lesson 13 is rank 2, which is slow.
#[test]
fn a_program_sleeps_in_virtual_time() {
    let check = Run::programs("lesson-20 server", "sleep 1000; exec lesson-20 client -a $SERVER")
        .wire("link 1 Gbit/s 5 us")
        .check()
        .exits(0, 0);
    assert!(crossed(&check)[0].0 >= 1_000_000_000_000);
    let ring = || {
        let server = "--timeout 60 --elements 5000 -n 3 --slow 2 --pause 30";
        let run = Run::lesson("13", server, "--timeout 60").clients(3).addresses(&addresses::<4>(4));
        run.wire("link 1 Gbit/s 5 us; queue 64 KB").check()
    };
    let packets = is_the_same_each_time(3, ring);
    assert!(packets.last().unwrap().0 > 30_000_000, "it was slow");
}

/// Packets of a run that were lost, that were marked, CNPs, and pause frames.
fn seen(check: &Check) -> [usize; 4] {
    let mut seen = [0; 4];
    check.each_event(|event| {
        let Event::Packet(record) = event else { return };
        let told = record.comment.unwrap_or_default();
        let name = match Frame::decode(record.link, record.data) {
            Frame::Roce(packet) => packet.name(),
            Frame::Other(_) => "pause",
        };
        let is = [told.contains("dropped"), told.contains("marked"), name == "CNP", name == "pause"];
        seen.iter_mut().zip(is).for_each(|(count, is)| *count += usize::from(is));
    });
    seen
}

#[test]
fn a_full_queue_loses_pauses_lose_nothing_and_marks_slow_senders_down() {
    let [lost, others @ ..] = seen(&incast("queue 32 KB", &[]));
    assert!(lost > 0 && others == [0; 3], "{lost} lost, {others:?}");
    let paused = all_well(incast("queue 256 KB; pfc 64 KB", &[]));
    let [lost, marked, cnps, pauses] = seen(&paused);
    assert!(pauses > 0 && [lost, marked, cnps] == [0; 3], "{pauses} pauses, {lost}, {marked}, {cnps}");
    let marked = all_well(incast("queue 1 MB; ecn 8..64 KB; dcqcn", &[]));
    for told in ["\nover time: 0 to ", "\nwaits for server ", "\nrate of client-2 ", "\nmarked "] {
        assert!(marked.outcome.contains(told), "{told}: {}", marked.outcome);
    }
    let [lost, marked, cnps, pauses] = seen(&marked);
    assert!(marked > cnps && cnps > 0 && [lost, pauses] == [0; 2], "{marked} marked, {cnps} CNPs, {lost}, {pauses}");
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

/// Perftest knows nothing of congestion, and polls. Its device slows down. (Both servers listen when a client has slept.)
#[test]
fn perftest_meets_marks_as_any_program_does() {
    let server = "ib_write_bw -p 18561 -n 40 -s 65536 & ib_write_bw -p 18562 -n 40 -s 65536; wait";
    let client = |port: u16| format!("sleep 0.2; exec ib_write_bw -p {port} -n 40 -s 65536 $SERVER");
    let run = Run::programs(server, &client(18561)).node("two", &client(18562));
    let check = all_well(run.wire("link 1 Gbit/s 5 us; queue 1 MB; ecn 8..64 KB; dcqcn").check());
    let [lost, marked, cnps, pauses] = seen(&check);
    assert!(marked > cnps && cnps > 0 && [lost, pauses] == [0; 2], "{marked} marked, {cnps} CNPs, {lost}, {pauses}");
}
