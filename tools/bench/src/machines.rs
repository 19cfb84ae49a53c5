//! The lab: how long a run takes, cold and warm and with more machines. And the device in user space, beside the kernel's driver in
//! the lab: a figure for those who work on it.

use crate::row::Row;
use crate::tools::{bin, field, output, said, timed, Effort};
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

/// MB of the machines that are made to be booted: nobody else's have so much, so there is no state of them.
const MEMORY: usize = 271;

fn lab(arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new(bin()?.join("lab"));
    command.env("RUST_LOG", "off").args(arguments).arg("--json");
    Ok(command)
}

pub fn figures(effort: Effort) -> Result<Vec<Row>> {
    let rounds = |run: &dyn Fn(usize) -> Result<f64>| (0..effort.rounds).map(run).collect::<Result<Vec<f64>>>();
    // The first run may have to boot: it does not count.
    output(&mut lab(&["run", "lesson-04"])?)?;
    let mut rows = vec![Row::new("lesson 04, warm", "s", &rounds(&|_| timed(&mut lab(&["run", "lesson-04"])?))?)];
    if !effort.smoke {
        rows.push(Row::new("lesson 04, cold: both machines are booted, and saved", "s", &rounds(&cold)?));
    }
    for workers in if effort.smoke { vec![1] } else { vec![1, 4, 8] } {
        let clients = format!("--clients={workers}");
        let run = |_| timed(&mut lab(&["run", "lesson-09", "--server-args=--rounds 5 --loss 0", &clients])?);
        run(0)?;
        rows.push(Row::new(&format!("lesson 09, {} machines, five rounds", workers + 1), "s", &rounds(&run)?));
    }
    let count = effort.count(1000);
    let (ours, kernel) = (rounds(&|_| device(count))?, rounds(&|_| rxe(count))?);
    let what = "WRITE of 64 bytes on the device in user space";
    rows.push(Row::beside(what, "µs", &ours, "rdma_rxe in the lab", &kernel));
    Ok(rows)
}

fn cold(round: usize) -> Result<f64> {
    let before = states()?;
    let seconds = timed(&mut lab(&["run", "lesson-04", "--memory", &(MEMORY + round).to_string()])?)?;
    states()?.difference(&before).try_for_each(std::fs::remove_dir_all)?;
    Ok(seconds)
}

/// The folders of saved machines.
fn states() -> Result<BTreeSet<PathBuf>> {
    let folder = bin()?.join("../lab/state");
    let entries = std::fs::read_dir(&folder).with_context(|| format!("no {}", folder.display()))?;
    Ok(entries.flatten().map(|entry| entry.path()).collect())
}

/// The median of lesson 10's WRITEs in the lab.
fn rxe(count: usize) -> Result<f64> {
    let client = format!("env RUST_LOG=off lesson-10 client -a server --count {count}");
    let server = "env RUST_LOG=off lesson-10 server";
    output(&mut lab(&["exec", "--name", "bench-lab", "--server", server, "--client", &client])?)?;
    field(&said("bench-lab")?, "median_us").context("lesson 10 said no median")
}

/// The same on the device of our own.
fn device(count: usize) -> Result<f64> {
    let (lesson, file) = (bin()?.join("lesson-10"), bin()?.join("../device/runs/bench-device.said"));
    let (lesson, to) = (format!("env RUST_LOG=off {}", lesson.display()), file.display());
    let client = format!("sh -c \"{lesson} client -a $SERVER --count {count} >{to}\"");
    let mut device = Command::new(bin()?.join("device"));
    device.args(["exec", "--quiet", "--name", "bench-device", "--server", &format!("{lesson} server")]);
    output(device.args(["--client", &client]))?;
    let said = std::fs::read_to_string(&file).with_context(|| format!("no {to}"))?;
    field(&said, "median_us").context("lesson 10 said no median")
}
