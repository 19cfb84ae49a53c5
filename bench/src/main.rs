//! `make bench`: everything that is called fast here, beside its reference, measured by turns and written to docs/benchmarks.md.
//!
//! ```text
//! bench [--page FILE] [KIND …]            all kinds, or these
//! bench --smoke [--page FILE] [KIND …]    one round with tiny counts: does it still work?
//! ```

mod builds;
mod captures;
mod figure;
mod machines;
mod others;
mod page;
mod techniques;
mod tools;
mod verbs;

use anyhow::{bail, Context, Result};
use figure::{Figure, HEAD};
use page::Section;
use std::process::ExitCode;
use std::time::Instant;
use tools::Effort;

type Kind = (&'static str, &'static str, &'static str, fn(Effort) -> Result<Vec<Figure>>);

/// Name, title, what it says, and what measures it.
const KINDS: [Kind; 7] = [
    ("verbs", "What `common` costs", "Lesson 10 beside perftest: the same operations, sizes, depths and counts. Latencies are medians.", verbs::figures),
    ("techniques", "What each technique of lesson 10 brings", "WRITEs of 64 bytes, unless something else is said. A ratio above 1 is faster than what it stands beside.\n\n![Throughput and median latency over the depth, each as a multiple of what it is at depth 1](images/10_depth.svg)", techniques::figures),
    ("tcp", "RDMA beside TCP", "In the same machines. SoftRoCE does in software what a NIC does in hardware: it is for learning, and not for speed.", others::tcp),
    ("connections", "Connections", "Five in a row, each with a program of its own.", others::connections),
    ("lab", "The lab", "Whole runs, from the command to its end. And the device in user space, which is read and not raced.", machines::figures),
    ("wire", "Reading captures", "`wire` beside tshark with fields of the same kind. Built with `--release`, as tshark is.", captures::figures),
    ("builds", "Building", "From nothing, on this machine, with what cargo has downloaded before; and what `make site` builds.", builds::figures),
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["tcp-server", clients] => clients.parse().map_err(Into::into).and_then(others::tcp_server),
        ["tcp-client", host, small, large] => tcp_client(host, small, large),
        ["--smoke", "--page", page, ref kinds @ ..] => measure(kinds, Effort { rounds: 1, smoke: true }, Some(page)),
        ["--smoke", ref kinds @ ..] => measure(kinds, Effort { rounds: 1, smoke: true }, None),
        ["--page", page, ref kinds @ ..] => measure(kinds, Effort { rounds: 5, smoke: false }, Some(page)),
        ref kinds => measure(kinds, Effort { rounds: 5, smoke: false }, None),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn tcp_client(host: &str, small: &str, large: &str) -> Result<()> {
    others::tcp_client(host, small.parse()?, large.parse()?)
}

fn measure(kinds: &[&str], effort: Effort, file: Option<&str>) -> Result<()> {
    if let Some(unknown) = kinds.iter().find(|kind| KINDS.iter().all(|(name, ..)| name != *kind)) {
        bail!("there is no {unknown}; there are: {}", KINDS.map(|(name, ..)| name).join(" "));
    }
    let (mut sections, mut failed) = (Vec::new(), Vec::new());
    for (name, title, about, figures) in KINDS.iter().filter(|(name, ..)| kinds.is_empty() || kinds.contains(name)) {
        let started = Instant::now();
        // One that cannot be measured does not keep the others from it.
        match figures(effort).with_context(|| format!("measuring {name}")) {
            Ok(figures) => {
                let (seconds, load) = (started.elapsed().as_secs_f64(), page::load());
                let rows: String = figures.iter().map(|figure| figure.row() + "\n").collect();
                println!("{title} ({seconds:.0} s, load {load:.1})\n\n{HEAD}{rows}");
                sections.push(Section { title, about, figures, seconds, load });
            }
            Err(error) => {
                eprintln!("bench: {error:#}");
                failed.push(*name);
            }
        }
    }
    if let Some(file) = file {
        let old = std::fs::read_to_string(file).unwrap_or_default();
        std::fs::write(file, page::page(&sections, &old)).with_context(|| format!("cannot write {file}"))?;
    }
    if !failed.is_empty() {
        bail!("could not measure: {}", failed.join(" "));
    }
    Ok(())
}
