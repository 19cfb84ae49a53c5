//! `common`, as lesson 10 uses it, beside perftest: the same sizes, depths and counts, in the same machines, in turn.

use crate::row::Row;
use crate::tools::{optimized, take_turns, Contender, Effort};
use anyhow::Result;

/// What; options of our program, `pingpong` on both sides if it goes there and back, else lesson 10's client; and the program of
/// perftest with what it needs to do the same. A bandwidth, `_bw`, is in MB/s; the others are medians of latencies. Who is asleep is
/// woken twice in emulated machines.
const MATCHES: [(&str, &str, &str); 9] = [
    ("WRITE, 64 bytes, there and back / 2", "--op write", "ib_write_lat -s 64 -I 64"),
    ("READ, 64 bytes", "--op read", "ib_read_lat -s 64"),
    ("SEND, 64 bytes, there and back / 2", "--op send --signal-every 50", "ib_send_lat -s 64 -I 64"),
    ("FETCH_ADD", "--op fetch-add", "ib_atomic_lat -A FETCH_AND_ADD"),
    ("SEND, asleep, there and back / 2", "--op send --signal-every 50 --wait sleep", "ib_send_lat -e -s 64 -I 64"),
    ("READ, asleep", "--op read --wait sleep", "ib_read_lat -e -s 64"),
    ("WRITE, 64 KiB, depth 16", "--op write --size 65536 --depth 16", "ib_write_bw -s 65536 -t 16 -Q 1"),
    ("READ, 64 KiB, depth 16", "--op read --size 65536 --depth 16", "ib_read_bw -s 65536 -t 16 -Q 1"),
    (
        "SEND, 4 KiB, depth 16",
        "--op send --size 4096 --depth 16 --receives 512",
        "ib_send_bw -s 4096 -t 16 -r 512 -Q 1",
    ),
];

pub fn figures(effort: Effort) -> Result<Vec<Row>> {
    // Many rounds: five per cent are to be seen, and a single one is off by twenty. Three turns in each where both sides poll,
    // for these two are off by more. In a turn the first moments, while the machine tidies up, must not count much.
    let effort = Effort { rounds: if effort.smoke { effort.rounds } else { 12 }, ..effort };
    let both_poll = MATCHES.iter().filter(|(what, ..)| !effort.smoke && what.ends_with("64 bytes, there and back / 2"));
    let (lesson, pingpong) = (optimized("lesson-10", effort)?, optimized("pingpong", effort)?);
    let mut contenders = Vec::new();
    for (what, ours, other) in MATCHES.iter().chain(both_poll.clone()).chain(both_poll) {
        let count = effort.count(if what.contains("64 KiB") { 120 } else { 1000 });
        contenders.push(match what.ends_with("there and back / 2") {
            true => {
                let options = format!("--turns {count} {ours}");
                Contender::ours(what, &pingpong, &options, &options, "off")
            }
            false => Contender::ours(what, &lesson, "", &format!("--count {count} {ours}"), "off"),
        });
        let (name, other) = (format!("{what}, perftest"), format!("{other} -x 1 -F -n {count} -p {{port}}"));
        contenders.push(Contender { name, client: format!("{other} server"), server: other });
    }
    let told = take_turns("bench-verbs", &contenders, effort)?;
    let row = |(what, _, other): &(&str, &str, &str)| {
        let (other, _) = other.split_once(' ').unwrap_or((other, ""));
        let perftests = |column| told.find(&format!("{what}, perftest"), move |text| perftest(text, column));
        Ok(match other.ends_with("_bw") {
            true => {
                let others: Vec<f64> = perftests(MEAN)?.iter().map(|mebibytes| mebibytes * MEBIBYTE).collect();
                Row::beside(what, "MB/s", &told.rate(what)?, other, &others).limit(0.95)
            }
            false => Row::beside(what, "µs", &told.number(what, "median_us")?, other, &perftests(MEDIAN)?).limit(1.05),
        })
    };
    MATCHES.iter().map(row).collect()
}

/// Columns of the row of numbers with which perftest ends: bytes, iterations, and then minimum, maximum and median of latencies, or
/// peak and mean of MiB in a second.
const MEAN: usize = 3;
const MEDIAN: usize = 4;
/// In MB: perftest counts in MiB.
pub const MEBIBYTE: f64 = 1.048_576;

/// The mean of a bandwidth, in MiB in a second.
pub fn mean_bandwidth(text: &str) -> Option<f64> {
    perftest(text, MEAN)
}

fn perftest(text: &str, column: usize) -> Option<f64> {
    let row = |line: &str| line.split_whitespace().map(|word| word.parse().ok()).collect::<Option<Vec<f64>>>();
    text.lines().filter_map(row).find(|numbers| numbers.len() >= 5).map(|numbers| numbers[column])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn perftests_rows_are_read() {
        let text = " #bytes #iterations\n 64      1000          300.10         900.20       394.05     \t 400.1  20.0  600.0 900.0\n";
        assert_eq!(perftest(text, MEDIAN), Some(394.05));
        assert_eq!(perftest(" 65536      100         8.00          7.00   \t\t   0.000112\n", MEAN), Some(7.0));
        assert_eq!(perftest("Couldn't connect to server:18600\n", MEAN), None);
    }
}
