//! The lab: how long a run takes, cold and warm and by phase, with more machines; its memory and its states. And the device in
//! user space, beside the kernel's driver in the lab: a figure for those who work on it.

use crate::figure::Figure;
use crate::tools::{bin, field, output, timed, Effort};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// MB of the machines that are made to be booted: nobody else's have so much, so there is no state of them.
const MEMORY: usize = 271;

fn lab() -> Result<Command> {
    let mut command = Command::new(bin()?.join("lab"));
    command.env("RUST_LOG", "off");
    Ok(command)
}

pub fn figures(effort: Effort) -> Result<Vec<Figure>> {
    let mut phases: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let (mut order, mut warm, mut cold, mut booted) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    // The first run may have to boot: it does not count.
    output(lab()?.args(["run", "lesson-04", "--json"]))?;
    for round in 0..effort.rounds {
        let started = Instant::now();
        let told = output(lab()?.args(["run", "lesson-04", "--timing"]))?;
        warm.push(started.elapsed().as_secs_f64());
        let line = told.lines().find_map(|line| line.strip_prefix("timing:")).context("the lab told no times")?;
        for part in line.split(',') {
            let words: Vec<&str> = part.trim().trim_end_matches(" ms").rsplitn(2, ' ').collect();
            let [ms, name] = words[..] else { continue };
            let Ok(ms) = ms.parse::<f64>() else { continue };
            if !phases.contains_key(name) {
                order.push(name.to_owned());
            }
            phases.entry(name.into()).or_default().push(ms);
        }
        if !effort.smoke {
            let before = states()?;
            let memory = (MEMORY + round).to_string();
            let started = Instant::now();
            output(lab()?.args(["run", "lesson-04", "--json", "--memory", &memory]))?;
            cold.push(started.elapsed().as_secs_f64());
            for (new, size) in states()?.into_iter().filter(|(folder, _)| !before.contains_key(folder)) {
                booted.push(size);
                std::fs::remove_dir_all(new)?;
            }
        }
    }
    let mut figures = vec![Figure::new("lesson 04, warm", "s", warm)];
    if !cold.is_empty() {
        figures.push(Figure::new("lesson 04, cold: both machines are booted, and saved", "s", cold));
        figures.push(Figure::new("the two saved states", "MB on disk", booted));
    }
    // What takes next to no time is no row; nor is the whole, which stands above.
    let parts = order
        .iter()
        .filter(|name| *name != "in all" && phases[*name].iter().sum::<f64>() > effort.rounds as f64 * 20.0);
    figures.extend(parts.map(|name| Figure::new(&format!("of a warm run: {name}"), "ms", phases[name].clone())));
    let mut memory = None;
    for workers in if effort.smoke { vec![1] } else { vec![1, 4, 8] } {
        let clients = format!("--clients={workers}");
        let run = || -> Result<(f64, f64)> {
            let mut lab = lab()?;
            let command = lab.args(["run", "lesson-09", "--json", "--server-args=--rounds 5 --loss 0", &clients]);
            timed(command)
        };
        run()?;
        let runs = (0..effort.rounds).map(|_| run()).collect::<Result<Vec<_>>>()?;
        let (times, most) = runs.into_iter().unzip();
        figures.push(Figure::new(&format!("lesson 09, {} machines, five rounds", workers + 1), "s", times));
        let what = format!("memory of the lab itself, without its machines: lesson 09, {} machines", workers + 1);
        memory = Some(Figure::new(&what, "MB", most));
    }
    // Of the most machines.
    figures.extend(memory);
    figures.extend(device(effort)?);
    Ok(figures)
}

/// The folders of saved machines, and how many MB each of them takes on the disk.
fn states() -> Result<BTreeMap<std::path::PathBuf, f64>> {
    let mut found = BTreeMap::new();
    let folder = bin()?.join("../lab");
    visit(&folder, &mut found);
    Ok(found)
}

fn visit(folder: &Path, found: &mut BTreeMap<std::path::PathBuf, f64>) {
    use std::os::unix::fs::MetadataExt;
    let entries = || std::fs::read_dir(folder).into_iter().flatten().flatten();
    if entries().any(|entry| entry.file_name() == "1.state") {
        let size: u64 = entries().filter_map(|entry| entry.metadata().ok()).map(|file| file.blocks() * 512).sum();
        found.insert(folder.to_owned(), size as f64 / 1e6);
        return;
    }
    let folders =
        entries().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()) && entry.file_name() != "runs");
    folders.for_each(|entry| visit(&entry.path(), found));
}

/// The same lesson, on the device of our own and in the lab.
fn device(effort: Effort) -> Result<Vec<Figure>> {
    let count = effort.count(1000);
    let client = |program: &str, address: &str| -> Result<String> {
        let name = format!("bench-{program}");
        let file = bin()?.join(format!("../{program}/runs/{name}.said"));
        let lesson = bin()?.join("lesson-10").display().to_string();
        let lesson = if program == "lab" { "lesson-10".into() } else { lesson };
        let mut said = format!("env RUST_LOG=off {lesson} client -a {address} --count {count}");
        let mut command = Command::new(bin()?.join(program));
        if program == "device" {
            said = format!("sh -c \"{said} >{}\"", file.display());
            command.arg("exec").arg("--quiet");
        } else {
            command.arg("exec").arg("--json");
        }
        let server = format!("env RUST_LOG=off {lesson} server");
        output(command.args(["--name", &name, "--server", &server, "--client", &said]))?;
        let file = if program == "device" { file } else { bin()?.join(format!("../lab/runs/{name}/client.log")) };
        std::fs::read_to_string(&file).with_context(|| format!("no {}", file.display()))
    };
    let (mut ours, mut kernel) = (Vec::new(), Vec::new());
    for _ in 0..effort.rounds {
        let median = |text: &str| field(text, "median_us").context("lesson 10 said no median");
        ours.push(median(&client("device", "$SERVER")?)?);
        kernel.push(median(&client("lab", "server")?)?);
    }
    Ok(vec![
        Figure::new("WRITE of 64 bytes on the device in user space", "µs", ours).beside("rdma_rxe in the lab", kernel)
    ])
}
