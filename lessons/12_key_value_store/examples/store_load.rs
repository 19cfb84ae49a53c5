//! A load for the key-value store: many operations at random, some keys liked more than others. What they cost is
//! counted; and each operation can be noted with its times, for a check. Client and server are the lesson's own.
//!
//! ```sh
//! store_load server                       # then, on another machine:
//! store_load client -a server
//! ```

#[path = "../src/client.rs"]
#[allow(dead_code)] // A load takes no lock.
mod client;
#[path = "../src/house.rs"]
mod house;
#[path = "../plain/mod.rs"]
#[allow(dead_code)] // Nor does it follow a script.
mod plain;
#[path = "../src/record.rs"]
mod record;
#[path = "../src/server.rs"]
mod server;
#[path = "../src/table.rs"]
mod table;

use std::{fs::File, io::Write, process::ExitCode, time::Instant, time::SystemTime, time::UNIX_EPOCH};

use common::args::{run, Args, Opt, Side::Client};
use common::{say, Error, Result};

use client::Desk;
use plain::{layout::key, options::FILE, options::SLOWLY};

const OPERATIONS: Opt = Opt::number_or(Client, "operations", "1000", "So many GETs and PUTs, one after the other");
const PUTS: Opt = Opt::number_or(Client, "puts", "10", "How many in a hundred of them are PUTs");
const KEYS: Opt = Opt::number_or(Client, "keys", "100", "How many keys there are, at most 500");
const SKEW: Opt = Opt::choice(Client, "skew", &["zipf", "even"], "Some keys are liked more (Zipf), or none");
const GET: Opt = Opt::choice(Client, "get", &["read", "request"], "GET by READs, or by a request");
const HISTORY: Opt = Opt::text(Client, "history", "none", "Append each operation, with its times, to a file");

fn main() -> ExitCode {
    let about = "Many operations on the key-value store of lesson 12, and what they cost";
    run("store_load", about, &[FILE, SLOWLY, OPERATIONS, PUTS, KEYS, SKEW, GET, HISTORY], server, client)
}

/// The lesson's server, and what the scheduler has counted for it, in nanoseconds: proc(5), schedstat.
fn server(args: &Args) -> Result<()> {
    server::run(args)?;
    let counted = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos: u64 = counted.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0);
    say!("processor_us={}", nanos / 1000);
    Ok(())
}

fn client(args: &Args) -> Result<()> {
    let mut desk = Desk::create(args)?;
    desk.connect()?;
    let (count, started) = (args.number(&OPERATIONS).unwrap_or(0), Instant::now());
    let gets = load(&mut desk, args, count)?;
    let rate = count as f64 / started.elapsed().as_secs_f64();
    let (reads, each) = (desk.reads, desk.reads as f64 / gets.max(1) as f64);
    say!("gets={gets} reads={reads} reads_per_get={each:.2} operations_per_s={rate:.0}");
    desk.disconnect()
}

/// Does so many operations, and returns how many of them were GETs.
fn load(desk: &mut Desk, args: &Args, count: usize) -> Result<u64> {
    let (keys, puts) = (args.number(&KEYS).unwrap_or(1).clamp(1, 500), args.number(&PUTS).unwrap_or(0) as u64);
    let mut history = History::open(args.text(&HISTORY))?;
    let (me, mut gets) = (std::process::id(), 0);
    let mut random = u64::from(me) << 32 | 1;
    let likes = likes(keys, args.text(&SKEW) == "zipf");
    for at in 0..count {
        let wanted = (next(&mut random) >> 11) as f64 / (1u64 << 53) as f64;
        let name = format!("key-{}", likes.partition_point(|sum| *sum <= wanted).min(keys - 1));
        let key = key(&name)?;
        if next(&mut random) % 100 < puts {
            // Each value is another one. One in eight is long, and so its record moves.
            let value = format!("{me}.{at};").repeat(if at % 8 == 7 { 30 } else { 3 });
            history.begins("put", &name, &value)?;
            desk.put(&key, &value)?;
            history.ends("done")?;
        } else {
            history.begins("get", &name, "")?;
            let found = if args.text(&GET) == "request" { desk.ask(&key) } else { desk.get(&key) }?;
            history.ends(found.as_ref().map_or("nothing", |record| &record.value))?;
            gets += 1;
        }
    }
    Ok(gets)
}

/// Up to which of all numbers below 1 each key is meant. Zipf: the second is liked half as much as the first, the third
/// a third.
fn likes(keys: usize, zipf: bool) -> Vec<f64> {
    let weights: Vec<f64> = (1..=keys).map(|rank| if zipf { 1.0 / rank as f64 } else { 1.0 }).collect();
    let (all, mut sum) = (weights.iter().sum::<f64>(), 0.0);
    let add = |weight: &f64| {
        sum += weight / all;
        sum
    };
    weights.iter().map(add).collect()
}

/// Marsaglia's xorshift: random enough for a load.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    state.wrapping_mul(0x2545_f491_4f6c_dd1d)
}

/// A line for each operation: `begin what key value end result`. It is written in two parts: who is killed in between
/// leaves an operation of which nobody knows whether it was done.
struct History(Option<File>);

impl History {
    fn open(path: &str) -> Result<Self> {
        if path == "none" {
            return Ok(Self(None));
        }
        let file = File::options().append(true).create(true).open(path);
        // Who was killed before us has left a line without an end.
        file.and_then(|mut file| file.write_all(b"\n").map(|()| Self(Some(file)))).map_err(failed)
    }

    fn begins(&mut self, what: &str, key: &str, value: &str) -> Result<()> {
        self.write(|now| format!("{now} {what} {key} {value}"))
    }

    fn ends(&mut self, result: &str) -> Result<()> {
        self.write(|now| format!(" {now} {result}\n"))
    }

    fn write(&mut self, text: impl Fn(u128) -> String) -> Result<()> {
        let Some(file) = &mut self.0 else { return Ok(()) };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        file.write_all(text(now).as_bytes()).map_err(failed)
    }
}

fn failed(error: std::io::Error) -> Error {
    Error::content(format!("the history: {error}"), "May we write there?")
}
