//! A thousand connections against one server: nothing grows. It takes minutes, so `make soak` runs it, and `make test` does not.

#![allow(clippy::unwrap_used)] // A test may end with a panic.

mod support;

use lab::{Run, Side};
use std::time::Duration;
use support::Check;

const CONNECTIONS: usize = 1000;

/// How much the server may hold more at the end than after its first connections, in KiB. The allocator rounds up.
const SLACK: u64 = 256;

/// Every two seconds: descriptors, resident memory and RDMA resources of the server, while it serves.
const SERVER: &str = r#"RUST_LOG=error lesson-05 server -n COUNT >/dev/null & pid=$!
while [ -d /proc/$pid/fd ]; do
    fds=$(ls /proc/$pid/fd | wc -l)
    rss=$(sed -n 's/VmRSS:[^0-9]*\([0-9]*\).*/\1/p' /proc/$pid/status)
    [ -z "$rss" ] || echo "sample fds=$fds rss=$rss"
    sleep 2
done
wait $pid"#;

/// One process for each connection.
const CLIENT: &str = r#"export RUST_LOG=error; i=0
while [ $i -lt COUNT ]; do
    lesson-05 client -a 10.47.91.1 >/dev/null || exit 1
    i=$((i + 1))
done; echo "$i connections""#;

/// RDMA resources, and the memory that the kernel holds for itself in KiB.
const INSPECT: &str = "/usr/bin/rdma resource show; sed -n 's/SUnreclaim: *\\([0-9]*\\) kB/slab \\1/p' /proc/meminfo";

#[test]
#[ignore = "takes minutes: `make soak` runs it"]
fn a_thousand_connections_leave_nothing_behind() {
    let script = |text: &str| text.replace("COUNT", &CONNECTIONS.to_string());
    let run = Run::programs().server(&script(SERVER)).client(&script(CLIENT)).inspect(INSPECT);
    let check = Check::of(run.deadline(Duration::from_secs(3600))).exits(0, 0);
    check.logs(Side::Client, &format!("{CONNECTIONS} connections"));

    let samples: Vec<(u64, u64)> = check.outcome.server.log.iter().filter_map(|line| sample(line)).collect();
    assert!(samples.len() > 10, "too few samples to see growth: {samples:?}");
    let warm = &samples[samples.len() / 10..];
    println!("server (descriptors, KiB resident), every 2 s: {samples:?}");
    let (first, last) = (warm[0], warm[warm.len() - 1]);
    let most = |of: fn(&(u64, u64)) -> u64| warm.iter().map(of).max().unwrap_or_default();
    assert!(last.1 <= first.1 + SLACK, "memory grows from {} to {} KiB", first.1, last.1);
    // Between two clients a few descriptors fewer are open than while one is served: so the most counts.
    let half = |part: &[(u64, u64)]| part.iter().map(|sample| sample.0).max().unwrap_or_default();
    let (early, late) = warm.split_at(warm.len() / 2);
    assert!(half(late) <= half(early), "descriptors grow from {} to {}", half(early), half(late));
    println!("at most {} descriptors and {} KiB", most(|sample| sample.0), most(|sample| sample.1));

    for side in [Side::Server, Side::Client] {
        let ended = check.outcome.side(side);
        let (resources_before, slab_before) = split(&ended.before);
        let (resources_after, slab_after) = split(&ended.after);
        println!("{}: {resources_after:?}, kernel {slab_before} KiB before, {slab_after} KiB after", side.name());
        assert_eq!(resources_before, resources_after, "RDMA resources are left on the {}", side.name());
        // A connection's smallest kernel object is bigger than a kilobyte, so a leak of one each would exceed this.
        let growth = slab_after.saturating_sub(slab_before);
        assert!(growth < CONNECTIONS as u64 * 2, "the {}'s kernel holds {growth} KiB more", side.name());
    }
}

fn sample(line: &str) -> Option<(u64, u64)> {
    let (fds, rss) = line.strip_prefix("sample fds=")?.split_once(" rss=")?;
    Some((fds.parse().ok()?, rss.parse().ok()?))
}

fn split(lines: &[String]) -> (Vec<&String>, u64) {
    let slab = lines.iter().find_map(|line| line.strip_prefix("slab ")).and_then(|number| number.parse().ok());
    (lines.iter().filter(|line| !line.starts_with("slab ")).collect(), slab.unwrap_or_default())
}
