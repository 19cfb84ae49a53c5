//! What a run has brought, for people, and in one line for programs.

use std::time::Duration;

use common::{say, stage, QueuePair, Result};

use crate::count::Counts;
use crate::plan::{Op, Plan, OPS, WAITS};

pub fn report(plan: &Plan, counts: &Counts, qp: &QueuePair) -> Result<()> {
    let _stage = stage("report");
    qp.dump();
    let mtu = qp.query()?.path_mtu.bytes();
    let requests = counts.requests.max(1) as f64;
    let seconds = counts.took.as_secs_f64();
    let rate = requests / seconds;
    let bytes = rate * plan.size as f64;
    let (op, wait) = (OPS[plan.op as usize], WAITS[plan.wait as usize]);
    say!("{op}, {} bytes, {} times, in {seconds:.3} s", plan.size, counts.requests);
    let [min, median, p99, max] = [0, 500, 990, 1000].map(|share| counts.per_mille(share));
    say!(
        "latency      min {}  median {}  p99 {}  max {}  (from post to completion)",
        us(min),
        us(median),
        us(p99),
        us(max)
    );
    say!("throughput   {rate:.0} requests/s  {:.3} MB/s", bytes / 1e6);
    let each = |count: u64| format!("{count} ({:.2} for each request)", count as f64 / requests);
    say!("program      posts {}  completions {}", each(counts.posts), each(counts.completions));
    say!("waiting      polls {}  sleeps {}", each(counts.polls), each(counts.sleeps));
    let counter = |name| counts.after.since(&counts.before, name);
    match (counter("sent_pkts"), counter("rcvd_pkts")) {
        (Some(sent), Some(received)) => {
            say!("packets      sent {}  received {}", each(sent), each(received));
            let rnr = counter("rcvd_rnr_err").unwrap_or(0);
            let again = counter("completer_retry_err").unwrap_or(0);
            say!("trouble      RNR NAKs received {rnr}  sent again {again}");
        }
        // A READ's response is as long as what is read; all else that carries bytes carries them in the request.
        _ => say!(
            "packets      this device does not count them; by the standard {} {} for each request",
            plan.size.div_ceil(mtu.max(1)).max(1),
            if plan.op == Op::Read { "received" } else { "sent" },
        ),
    }
    let ns = |time: Duration| time.as_nanos();
    let known = |count: Option<u64>| count.map_or("?".into(), |count| count.to_string());
    say!(
        "bench op={op} size={} count={} depth={} batch={} signal_every={} wait={wait} inline={} min_ns={} median_ns={} \
         p99_ns={} max_ns={} seconds={seconds:.6} requests_per_s={rate:.3} bytes_per_s={bytes:.0} posts={} \
         completions={} polls={} sleeps={} sent={} received={} rnr={}",
        plan.size,
        counts.requests,
        plan.depth,
        plan.batch,
        plan.signal_every,
        u8::from(plan.inline),
        ns(min),
        ns(median),
        ns(p99),
        ns(max),
        counts.posts,
        counts.completions,
        counts.polls,
        counts.sleeps,
        known(counter("sent_pkts")),
        known(counter("rcvd_pkts")),
        known(counter("rcvd_rnr_err")),
    );
    Ok(())
}

fn us(time: Duration) -> String {
    format!("{:.1} µs", time.as_nanos() as f64 / 1000.0)
}
