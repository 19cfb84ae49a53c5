//! What a run brought. Each number comes with its name, for people and for programs.

use std::time::Duration;

use common::{say, stage};

use crate::flow::{device_counts, Flow};
use crate::plan::NAMES;

pub fn report(mut flow: Flow) {
    let _stage = stage("report");
    flow.latencies.sort_unstable();
    let Flow { desk, plan, waiter, latencies, .. } = flow;
    desk.qp.dump();
    let seconds = (flow.now - flow.started).as_secs_f64();
    say!("{}, {} bytes, {} times, in {seconds:.3} s", NAMES[plan.op as usize], plan.size, plan.count);
    let [min, median, p99, max] = [0, 500, 990, 1000].map(|share| per_mille(&latencies, share));
    say!("latency      min_us={min:.2} median_us={median:.2} p99_us={p99:.2} max_us={max:.2} (post to completion)");
    let rate = plan.count as f64 / seconds;
    say!("throughput   requests_per_s={rate:.2} bytes_per_s={:.0}", rate * plan.size as f64);
    let each = |count: u64| format!("{count} ({:.2} for each request)", count as f64 / plan.count as f64);
    say!("program      posts={} completions={}", each(flow.posts), each(waiter.completions));
    say!("waiting      polls={} sleeps={}", each(waiter.polls), each(waiter.sleeps));
    let after = device_counts(desk);
    let counted = |at: usize| Some(after[at]?.saturating_sub(flow.before[at]?));
    match [0, 1, 2, 3].map(counted) {
        [Some(sent), Some(received), Some(rnr), Some(again)] => {
            say!("packets      sent={} received={}", each(sent), each(received));
            say!("trouble      rnr_naks={rnr} sent_again={again}");
        }
        _ => say!("packets      this device has no such counters as SoftRoCE's: a capture shows them"),
    }
}

/// The latency in µs that `share` of a thousand requests don't exceed.
fn per_mille(sorted: &[Duration], share: usize) -> f64 {
    let at = sorted.len().saturating_sub(1) * share / 1000;
    sorted.get(at).map_or(0.0, |latency| latency.as_nanos() as f64 / 1000.0)
}
