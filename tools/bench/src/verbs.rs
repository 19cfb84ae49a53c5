//! `common`, as lesson 10 uses it, beside perftest: the same sizes, depths and counts, in the same machines, by turns.

use crate::row::{Row, Wanted};
use crate::tools::{field, numbers, optimized, take_turns, Contender, Effort};
use anyhow::Result;

struct Match {
    what: &'static str,
    /// Options of our program: of `pingpong` on both sides if it goes there and back, else of lesson 10's client.
    ours: &'static str,
    /// The program of perftest, and what it needs to do the same.
    other: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// The median, in µs.
    Latency,
    /// The same of a program that sleeps. Two wakings of emulated machines are in it.
    Sleeping,
    /// MB/s.
    Bandwidth,
}

use Kind::{Bandwidth, Latency, Sleeping};

const MATCHES: [Match; 9] = [
    Match {
        what: "WRITE, 64 bytes, there and back / 2",
        ours: "--op write",
        other: "ib_write_lat -s 64 -I 64",
        kind: Latency,
    },
    Match { what: "READ, 64 bytes", ours: "--op read", other: "ib_read_lat -s 64", kind: Latency },
    Match {
        what: "SEND, 64 bytes, there and back / 2",
        ours: "--op send --signal-every 50",
        other: "ib_send_lat -s 64 -I 64",
        kind: Latency,
    },
    Match { what: "FETCH_ADD", ours: "--op fetch-add", other: "ib_atomic_lat -A FETCH_AND_ADD", kind: Latency },
    Match {
        what: "SEND, asleep, there and back / 2",
        ours: "--op send --signal-every 50 --wait sleep",
        other: "ib_send_lat -e -s 64 -I 64",
        kind: Sleeping,
    },
    Match { what: "READ, asleep", ours: "--op read --wait sleep", other: "ib_read_lat -e -s 64", kind: Sleeping },
    Match {
        what: "WRITE, 64 KiB, depth 16",
        ours: "--op write --size 65536 --depth 16",
        other: "ib_write_bw -s 65536 -t 16 -Q 1",
        kind: Bandwidth,
    },
    Match {
        what: "READ, 64 KiB, depth 16",
        ours: "--op read --size 65536 --depth 16",
        other: "ib_read_bw -s 65536 -t 16 -Q 1",
        kind: Bandwidth,
    },
    Match {
        what: "SEND, 4 KiB, depth 16",
        ours: "--op send --size 4096 --depth 16 --receives 512",
        other: "ib_send_bw -s 4096 -t 16 -r 512 -Q 1",
        kind: Bandwidth,
    },
];

impl Match {
    fn is_pingpong(&self) -> bool {
        self.what.ends_with("there and back / 2")
    }
}

pub fn figures(effort: Effort) -> Result<Vec<Row>> {
    // Many rounds: five per cent are to be seen, and a single one is off by twenty. Three turns in each where both sides poll,
    // for these two are off by more. In a turn the first moments, while the machine tidies up, must not count much.
    let effort = Effort { rounds: if effort.smoke { effort.rounds } else { 12 }, ..effort };
    let noisy = |one: &&Match| !effort.smoke && one.kind == Latency && one.is_pingpong();
    let both_poll = MATCHES.iter().filter(noisy);
    let turns: Vec<&Match> = MATCHES.iter().chain(both_poll.clone()).chain(both_poll).collect();
    let (lesson, pingpong) = (optimized("lesson-10", effort)?, optimized("pingpong", effort)?);
    let mut contenders = Vec::new();
    for one in &turns {
        let Match { what, ours, other, kind } = one;
        let count = if *kind == Bandwidth && what.contains("64 KiB") { 120 } else { 1000 };
        let count = effort.count(count);
        // A server for each client, as perftest has.
        let program = format!("env RUST_LOG=off {}", if one.is_pingpong() { &pingpong } else { &lesson });
        let often = if one.is_pingpong() { "turns" } else { "count" };
        let options = format!("-p {{port}} --{often} {count} {ours}");
        let server = if one.is_pingpong() { &options } else { "-p {port}" };
        contenders.push(Contender {
            name: (*what).into(),
            server: Some(format!("{program} server {server} -n 1")),
            client: format!("{program} client -a server {options}"),
        });
        let other = format!("{other} -x 1 -F -n {count} -p {{port}}");
        contenders.push(Contender {
            name: format!("{what}, perftest"),
            server: Some(other.clone()),
            client: format!("{other} server"),
        });
    }
    let said = take_turns("bench-verbs", |_| "wait $ours".into(), &contenders, effort)?;
    let row = |Match { what, other, kind, .. }: &Match| {
        let other = other.split(' ').next().unwrap_or_default();
        let (unit, wanted) = match kind {
            Latency | Sleeping => ("µs", Wanted::AtMost(1.05)),
            Bandwidth => ("MB/s", Wanted::AtLeast(0.95)),
        };
        let ours = numbers(&said, what, |text| match kind {
            Bandwidth => field(text, "bytes_per_s").map(|bytes| bytes / 1e6),
            _ => field(text, "median_us"),
        })?;
        let reference = numbers(&said, &format!("{what}, perftest"), |text| perftest(text, *kind))?;
        Ok(Row::beside(what, unit, &ours, other, &reference).wanted(wanted))
    };
    MATCHES.iter().map(row).collect()
}

/// The row of numbers at the end: bytes, iterations, and then minimum, maximum and median of latencies, or peak and mean of
/// MiB in a second.
fn perftest(text: &str, kind: Kind) -> Option<f64> {
    let row = |line: &str| line.split_whitespace().map(|word| word.parse().ok()).collect::<Option<Vec<f64>>>();
    let numbers = text.lines().filter_map(row).find(|numbers| numbers.len() >= 5)?;
    Some(if kind == Bandwidth { numbers[3] * 1.048_576 } else { numbers[4] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn perftests_rows_are_read() {
        let text = " #bytes #iterations\n 64      1000          300.10         900.20       394.05     \t 400.1  20.0  600.0 900.0\n";
        assert_eq!(perftest(text, Kind::Latency), Some(394.05));
        assert_eq!(
            perftest(" 65536      100              8.00               7.00   \t\t   0.000112\n", Kind::Bandwidth),
            Some(7.0 * 1.048_576)
        );
        assert_eq!(perftest("Couldn't connect to server:18600\n", Kind::Latency), None);
    }
}
