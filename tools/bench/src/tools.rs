//! What all kinds of figures use: the folder, running programs, and machines in which contenders take turns.

use anyhow::{ensure, Context, Result};
use run::files::{output, read};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// How thoroughly to measure.
#[derive(Clone, Copy)]
pub struct Effort {
    /// Every figure is measured so often.
    pub rounds: usize,
    /// A smoke run: does it all still work? Its numbers mean nothing.
    pub smoke: bool,
}

impl Effort {
    /// A count, or next to nothing.
    pub fn count(self, count: usize) -> usize {
        if self.smoke {
            (count / 100).max(5)
        } else {
            count
        }
    }
}

/// The folder of the programs that cargo has built: this one's.
pub fn bin() -> Result<PathBuf> {
    Ok(std::env::current_exe()?.parent().context("this program is in no folder")?.to_owned())
}

/// A program of ours, such as `lesson-10`, `wire` or `pingpong`, optimized as its rivals are; a smoke run takes what is there.
pub fn optimized(program: &str, effort: Effort) -> Result<String> {
    let folder = bin()?;
    let program = if effort.smoke { folder.join(program) } else { folder.join("../release").join(program) };
    let build = || {
        format!(
            "{}: cargo build --release -p lesson-10 -p lesson-12 -p bench -p wire --bins --examples",
            program.display()
        )
    };
    Ok(program.canonicalize().with_context(build)?.display().to_string())
}

/// One run of the lab: what the program of one machine said. The packets are not kept: there are many.
pub fn lab(run: &str, machine: &str, arguments: &[&str]) -> Result<String> {
    output(
        Command::new(bin()?.join("lab")).args(["exec", "--json", "--name", run]).args(arguments).stdin(Stdio::null()),
    )?;
    let folder = bin()?.join("../lab/runs").join(run);
    let _ = std::fs::remove_file(folder.join("wire.pcapng"));
    read(folder.join(format!("{machine}.log")))
}

fn tail(text: &str) -> String {
    text.lines().rev().take(10).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n")
}

/// One who takes turns: what the server of each turn runs, and what its client runs. `{port}` is the port of the turn.
pub struct Contender {
    pub name: String,
    pub server: String,
    pub client: String,
}

impl Contender {
    /// A program of ours, with options of its two sides. Its client logs `log`.
    pub fn ours(name: &str, program: &str, server: &str, client: &str, log: &str) -> Self {
        let server = format!("env RUST_LOG=off {program} server -p {{port}} {server}");
        let client = format!("env RUST_LOG={log} {program} client -a server -p {{port}} {client}");
        Self { name: name.into(), server, client }
    }
}

/// What each contender printed, by its name: a text for each round.
#[derive(Default)]
pub struct Printed(BTreeMap<String, Vec<String>>);

/// The first port of the turns.
const PORT: usize = 18600;
/// No run of the machines has more rounds: the servers of all its turns are there from the beginning, and each has memory.
const ROUNDS: usize = 3;

/// Runs them in turn, round after round, every other one backwards, in two machines of the lab.
pub fn take_turns(run: &str, contenders: &[Contender], effort: Effort) -> Result<Printed> {
    let mut printed = Printed::default();
    for first in (0..effort.rounds).step_by(ROUNDS) {
        let rounds = ROUNDS.min(effort.rounds - first);
        let log = machines(run, contenders, rounds)?;
        let turns: Vec<&str> = log.split("@ ").skip(1).collect();
        let all = rounds * contenders.len();
        ensure!(turns.len() == all, "there were {} turns of {all}: {}", turns.len(), tail(&log));
        for (name, text) in turns.iter().filter_map(|turn| turn.split_once('\n')) {
            printed.add(name, text.to_owned());
        }
    }
    Ok(printed)
}

/// One run of the machines; gives the client's log.
///
/// All servers are there before the first turn: to start one costs time, which would be the next one's.
fn machines(run: &str, contenders: &[Contender], rounds: usize) -> Result<String> {
    let (mut serve, mut script, mut listeners) = (String::new(), include_str!("turns.sh").to_owned(), 0);
    for turn in 0..rounds * contenders.len() {
        let (round, at) = (turn / contenders.len(), turn % contenders.len());
        let at = if round % 2 == 0 { at } else { contenders.len() - 1 - at };
        let (Contender { name, server, client }, port) = (&contenders[at], (PORT + turn).to_string());
        script += &format!("turn '{name}' {}\n", client.replace("{port}", &port));
        serve += &format!("{} >/dev/null 2>&1 &\n", server.replace("{port}", &port));
        // A server of perftest listens on a TCP port, and never ends if its client was ended. Ours are waited for.
        if server.starts_with("ib_") {
            listeners += 1;
        } else {
            serve += "ours=\"$ours $!\"\n";
        }
    }
    // It says so if a client of its own was ended: that costs a round, and no more.
    serve += "wait $ours || true";
    // State 0A is LISTEN.
    let ready = format!("[ $(cat /proc/net/tcp /proc/net/tcp6 | grep -c ' 0A ') -ge {listeners} ]");
    lab(run, "client", &["--deadline", "600", "--ready", &ready, "--server", &serve, "--client", &script])
}

impl Printed {
    /// One more round of a contender.
    pub fn add(&mut self, name: &str, text: String) {
        self.0.entry(name.to_owned()).or_default().push(text);
    }

    /// A number out of each text of a contender; NaN where a turn brought none. Most have to.
    pub fn find(&self, name: &str, find: impl Fn(&str) -> Option<f64>) -> Result<Vec<f64>> {
        let texts = self.0.get(name).map(Vec::as_slice).unwrap_or_default();
        let numbers: Vec<f64> = texts.iter().map(|text| find(text).unwrap_or(f64::NAN)).collect();
        let without = numbers.iter().position(|number| number.is_nan()).map_or("", |at| texts[at].as_str());
        let most = numbers.iter().filter(|number| number.is_finite()).count() * 2 > numbers.len();
        ensure!(most, "{name} said no number in most of its turns: {}", tail(without));
        Ok(numbers)
    }

    /// That which a program of ours prints as `median_us=` and the like.
    pub fn number(&self, name: &str, key: &str) -> Result<Vec<f64>> {
        let number = |word: &str| word.strip_prefix(key)?.strip_prefix('=')?.parse().ok();
        self.find(name, |text| text.split_whitespace().find_map(number))
    }

    /// Of `bytes_per_s=`, in MB/s.
    pub fn rate(&self, name: &str) -> Result<Vec<f64>> {
        Ok(self.number(name, "bytes_per_s")?.into_iter().map(|bytes| bytes / 1e6).collect())
    }
}
