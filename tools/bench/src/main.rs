//! `make bench`: everything that is called fast here, beside its reference, measured by turns, kept in tools/bench/figures.tsv, and
//! written from there to docs/benchmarks.md.
//!
//! ```text
//! bench [--keep FIGURES] [KIND …]    all kinds, or these: measures, prints, and keeps the figures
//! bench --smoke [KIND …]             one round with tiny counts: does it still work?
//! bench --page FIGURES PAGE          writes the page from what was kept
//! ```

mod builds;
mod captures;
mod circumstances;
mod figure;
mod machines;
mod others;
mod page;
mod row;
mod run;
mod techniques;
mod tools;
mod verbs;

use anyhow::{bail, Context, Result};
use figure::Figure;
use row::Row;
use run::Run;
use std::process::ExitCode;
use std::time::Instant;
use tools::Effort;

type Kind = (&'static str, &'static str, &'static str, fn(Effort) -> Result<Vec<Figure>>);

/// Name, title, what it says, and what measures it.
const KINDS: [Kind; 7] = [
    ("verbs", "What `common` costs", "Lesson 10 beside perftest: the same operations, sizes, depths and counts. Latencies are medians of all requests.", verbs::figures),
    ("techniques", "What each technique of lesson 10 brings", "WRITEs of 64 bytes, unless something else is said, beside the plain way.\n\n![Throughput and median latency over the depth, each as a multiple of what it is at depth 1](images/10_depth.svg)", techniques::figures),
    ("tcp", "RDMA beside TCP", "In the same machines. SoftRoCE does in software what a NIC does in hardware: it is for learning, and not for speed.", others::tcp),
    ("connections", "Connections", "Five in a row, each with a program of its own.", others::connections),
    ("lab", "The lab", "Whole runs, from the command to its end. And the device in user space, which is read and not raced.", machines::figures),
    ("wire", "Reading captures", "`wire show` beside tshark with fields of the same kind, and beside `wire compare`, which reads two captures: how do both grow? Built with `--release`, as tshark is.", captures::figures),
    ("builds", "Building", "From nothing, on this machine, with what cargo has downloaded before; and what `make site` builds.", builds::figures),
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["tcp-server", clients] => clients.parse().map_err(Into::into).and_then(others::tcp_server),
        ["tcp-client", host, small, large] => tcp_client(host, small, large),
        ["--page", figures, page] => write_page(figures, page),
        ["--smoke", ref kinds @ ..] => measure(kinds, Effort { rounds: 1, smoke: true }, None),
        ["--keep", figures, ref kinds @ ..] => measure(kinds, Effort { rounds: 5, smoke: false }, Some(figures)),
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
    let (mut run, mut failed) = (Run::default(), Vec::new());
    for (name, title, _, figures) in KINDS.iter().filter(|(name, ..)| kinds.is_empty() || kinds.contains(name)) {
        let started = Instant::now();
        // One that cannot be measured does not keep the others from it.
        match figures(effort).with_context(|| format!("measuring {name}")) {
            Ok(figures) => {
                let (seconds, load) = (started.elapsed().as_secs_f64(), circumstances::load());
                let rows: Vec<Row> = figures.iter().map(Figure::row).collect();
                println!("{title} ({seconds:.0} s, load {load:.1})\n{}", page::tables(&rows));
                run.kinds.push(run::Kind { name: (*name).into(), seconds, load, rows });
            }
            Err(error) => {
                eprintln!("bench: {error:#}");
                failed.push(*name);
            }
        }
    }
    if let Some(file) = file {
        run.facts = circumstances::facts();
        if let Ok(before) = std::fs::read_to_string(file) {
            run.compare(&Run::read(&before).with_context(|| format!("{file} is not what a run has kept"))?);
        }
        std::fs::write(file, run.text()).with_context(|| format!("cannot write {file}"))?;
    }
    if !failed.is_empty() {
        bail!("could not measure: {}", failed.join(" "));
    }
    Ok(())
}

fn write_page(figures: &str, page: &str) -> Result<()> {
    let kept = std::fs::read_to_string(figures).with_context(|| format!("cannot read {figures}"))?;
    let run = Run::read(&kept).with_context(|| format!("{figures} is not what a run has kept"))?;
    std::fs::write(page, page::page(&run, title)).with_context(|| format!("cannot write {page}"))
}

fn title(kind: &str) -> Option<page::Title> {
    KINDS.iter().find(|(name, ..)| *name == kind).map(|(_, title, about, _)| (*title, *about))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nobody edits the page by hand, nor the program without the page.
    #[test]
    fn the_page_is_what_the_kept_figures_say() -> Result<()> {
        let root = tools::root()?;
        let run = Run::read(&std::fs::read_to_string(root.join("tools/bench/figures.tsv"))?)?;
        let page = std::fs::read_to_string(root.join("docs/benchmarks.md"))?;
        assert_eq!(
            page::page(&run, title),
            page,
            "write it anew: bench --page tools/bench/figures.tsv docs/benchmarks.md"
        );
        Ok(())
    }
}
