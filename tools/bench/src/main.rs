//! `make bench`: everything that is called fast here, beside its reference, measured in turn, kept in tools/bench/figures.jsonl, and
//! written from there to docs/benchmarks.md.

mod captures;
mod circumstances;
mod device;
mod page;
mod ring;
mod row;
mod store;
mod tcp;
mod techniques;
mod tools;
mod verbs;
mod waits;

use anyhow::{Context, Result};
use clap::Parser;
use row::{Row, Run};
use run::files::{read, root, write};
use std::process::ExitCode;
use std::time::Instant;
use tools::Effort;

/// Where the figures are kept, and the page that is written from them.
const FIGURES: &str = "tools/bench/figures.jsonl";
const PAGE: &str = "docs/benchmarks.md";

type Kind = (&'static str, &'static str, &'static str, fn(Effort) -> Result<Vec<Row>>);

/// Name, title, what it says, and what measures it.
const KINDS: [Kind; 8] = [
    ("verbs", "What `common` costs", "Lesson 10 beside perftest: the same operations, sizes, depths and counts. Latencies are medians of all requests.", verbs::figures),
    ("techniques", "What each technique of lesson 10 brings", "WRITEs of 64 bytes, unless something else is said, beside the plain way. A deep queue is fast, and each request in it waits for those before it.", techniques::figures),
    ("store", "GET of lesson 12 by READs, beside a request", "One client, twenty keys, some liked more than others (Zipf), values of some 30 bytes. The client sleeps until its completion comes, and so does the server's program.", store::figures),
    ("ring", "The ring of lesson 13, by ranks", "On the device in user space, all ranks on this machine: a vector of 1 MiB, its bytes by the time of rank 0. More ranks share the same processors.", ring::figures),
    ("tcp", "RDMA beside TCP", "In the same machines. SoftRoCE does in software what a NIC does in hardware: it is for learning, and not for speed.", tcp::figures),
    ("captures", "Reading captures", "`wire show --format tsv`, `wire compare` and `wire explain` beside tshark with twelve of the table's fields: a million packets, of which each 17th is an ACK and the others are WRITEs. What counts is the processor's time.", captures::figures),
    ("device", "The device beside rdma_rxe", "The same programs on the device in user space and, on rdma_rxe, in the lab's machines. It's no race: the device runs on this machine's processors, and the lab emulates those that rdma_rxe runs on.", device::figures),
    ("waits", "How long a reader waits", "A lesson that has run before, from `make` to the prompt. Wanted: at most 0.9 s in the lab, and 0.2 s on the device.", waits::figures),
];

/// Measures what is called fast here, beside its reference.
#[derive(Parser)]
struct Options {
    /// Keep the figures, and write the page
    #[arg(long)]
    keep: bool,
    /// One round with tiny counts: does it still work?
    #[arg(long, conflicts_with = "keep")]
    smoke: bool,
    /// Measure this kind alone: verbs, techniques, store, ring, tcp, captures, device or waits. What is kept of the others stays
    #[arg(long, value_name = "KIND")]
    only: Option<String>,
    /// Measure nothing: write the page from what was kept
    #[arg(long, exclusive = true)]
    page: bool,
    /// Be TCP's server at this port
    #[arg(long, hide = true, value_name = "PORT", exclusive = true)]
    tcp_server: Option<u16>,
    /// Be TCP's client: at this port of the machine `server`, with this many small messages, and this many large ones
    #[arg(long, hide = true, num_args = 3, value_names = ["PORT", "SMALL", "LARGE"], exclusive = true)]
    tcp_client: Option<Vec<usize>>,
}

fn main() -> ExitCode {
    match work(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn work(options: &Options) -> Result<()> {
    if let Some(port) = options.tcp_server {
        return tcp::serve(port);
    }
    if let Some([port, small, large]) = options.tcp_client.as_deref() {
        return tcp::connect(u16::try_from(*port)?, *small, *large);
    }
    if !options.page {
        let run = measure(options.smoke, options.only.as_deref())?;
        if !options.keep {
            return Ok(());
        }
        write(root()?.join(FIGURES), run.text()?)?;
    }
    write(root()?.join(PAGE), page::page(&kept()?))
}

/// The run whose figures were kept.
fn kept() -> Result<Run> {
    Run::read(&read(root()?.join(FIGURES))?).with_context(|| format!("{FIGURES} is not what a run has kept"))
}

fn measure(smoke: bool, only: Option<&str>) -> Result<Run> {
    let effort = Effort { rounds: if smoke { 1 } else { 5 }, smoke };
    let mut run = match only {
        None => Run { facts: circumstances::facts()?, rows: Vec::new() },
        Some(only) => kept()?.without(only),
    };
    for (name, title, _, figures) in KINDS.into_iter().filter(|(name, ..)| only.map_or(true, |only| only == *name)) {
        let started = Instant::now();
        let rows = figures(effort).with_context(|| format!("measuring {name}"))?;
        let (seconds, load) = (started.elapsed().as_secs_f64(), circumstances::load());
        let alone = only.map_or(String::new(), |_| format!(", on {}", circumstances::date()));
        let took = format!("{seconds:.0} s, at a load of {load:.1}{alone}");
        println!("{title} ({took})\n{}", page::tables(&rows.iter().collect::<Vec<_>>()));
        run.facts.push((format!("measuring {name}"), took));
        run.rows.extend(rows.into_iter().map(|row| Row { kind: name.into(), ..row }));
    }
    if !smoke {
        print!("{}", page::slower(&run, &kept()?));
    }
    Ok(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nobody edits the page by hand, nor the program without the page.
    #[test]
    fn the_page_is_what_the_kept_figures_say() -> Result<()> {
        let page = read(root()?.join(PAGE))?;
        assert_eq!(page::page(&kept()?), page, "write it anew: cargo run -p bench -- --page");
        Ok(())
    }
}
