//! The techniques of lesson 10: what each brings, beside the plain way.

use crate::row::Row;
use crate::tools::{optimized, take_turns, Contender, Effort};
use anyhow::Result;

/// The one way whose program tells what it does: what the log costs.
const LOGGED: &str = "depth 1, and a log line for each step";

/// What, its options, how many requests, and the plain way that it stands beside.
const WAYS: [(&str, &str, usize, &str); 16] = [
    ("depth 1", "", 500, ""),
    ("depth 2", "--depth 2", 500, "depth 1"),
    ("depth 4", "--depth 4", 500, "depth 1"),
    ("depth 8", "--depth 8", 500, "depth 1"),
    ("depth 16", "--depth 16", 1000, "depth 1"),
    ("depth 64", "--depth 64", 1000, "depth 1"),
    ("depth 16, batches of 16", "--depth 16 --batch 16", 1000, "depth 16"),
    ("depth 16, one in 16 signaled", "--depth 16 --signal-every 16", 1000, "depth 16"),
    ("depth 16, both", "--depth 16 --batch 16 --signal-every 16", 1000, "depth 16"),
    ("depth 16, inline", "--depth 16 --inline", 1000, "depth 16"),
    ("depth 1, asleep", "--wait sleep", 500, "depth 1"),
    ("depth 1, hybrid", "--wait hybrid", 500, "depth 1"),
    ("depth 1, memory registered for each", "--mrs each", 500, "depth 1"),
    (LOGGED, "", 100, "depth 1"),
    ("SEND, depth 16, 64 receives with credits", "--op send --depth 16 --receives 64 --credits", 1000, "depth 16"),
    ("SEND, depth 16, 4 receives without credits", "--op send --depth 16 --receives 4", 12, "depth 16"),
];

pub fn figures(effort: Effort) -> Result<Vec<Row>> {
    let lesson = optimized("lesson-10", effort)?;
    let contender = |(what, options, count, _): &(&str, &str, usize, &str)| {
        let (log, count) = (if *what == LOGGED { "info" } else { "off" }, effort.count(*count));
        Contender::ours(what, &lesson, "", &format!("--count {count} {options}"), log)
    };
    let told = take_turns("bench-techniques", &WAYS.iter().map(contender).collect::<Vec<_>>(), effort)?;
    let rate = |what: &str| told.number(what, "requests_per_s");
    let row = |(what, .., plain): &(&str, &str, usize, &str)| {
        let unit = "requests/s";
        Ok(match *plain {
            "" => Row::new(what, unit, &rate(what)?),
            _ => Row::beside(what, unit, &rate(what)?, plain, &rate(plain)?),
        })
    };
    let mut rows = WAYS.iter().map(row).collect::<Result<Vec<_>>>()?;
    let latency = |what: &str| told.number(what, "median_us");
    let what = "median latency, depth 64";
    rows.push(Row::beside(what, "µs", &latency("depth 64")?, "depth 1", &latency("depth 1")?));
    Ok(rows)
}
