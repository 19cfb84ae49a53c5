//! Tries changes again, and says of each whether it came out as told.

use crate::color;
use anyhow::{ensure, Context, Result};
use practice::change::Change;
use practice::copy::Copy;
use practice::project::Project;
use practice::proof::Proof;
use practice::reading;
use practice::run::{run, Outcome};
use practice::show;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;
use wire::lanes::Style;

/// So many changes are tried at a time: much of a run is waiting.
const AT_ONCE: usize = 4;

/// Tries what is named; all changes, unless some are. Where it comes out as told, the part of the run that a page quotes is
/// kept, if that is wished.
pub fn prove(project: &Project, names: &[&String], keep: bool) -> Result<bool> {
    let is_wanted = |change: &Change| {
        names.is_empty() || names.iter().any(|name| **name == change.full_name() || **name == change.number())
    };
    let changes: Vec<Change> = Change::all(project)?.into_iter().filter(is_wanted).collect();
    ensure!(!changes.is_empty(), "there is no change of that name");
    let (next, tried, differ) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || -> Result<()> {
        while let Some(change) = changes.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcomes = of_change(project, change, keep).with_context(|| change.full_name())?;
            tried.fetch_add(outcomes.len(), Ordering::Relaxed);
            differ.fetch_add(outcomes.iter().filter(|is_as_told| !**is_as_told).count(), Ordering::Relaxed);
        }
        Ok(())
    };
    let begun = Instant::now();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a worker does not panic"))
    })?;
    let (tried, differ) = (tried.into_inner(), differ.into_inner());
    println!("{} of {tried} came out as told, in {} s", tried - differ, begun.elapsed().as_secs());
    Ok(differ == 0)
}

/// Whether each trial of a change came out as told.
fn of_change(project: &Project, change: &Change, keep: bool) -> Result<Vec<bool>> {
    if change.is_reading() {
        let proof = reading::prove(project, change);
        let why = proof.as_ref().err().map(|error| format!("  {error:#}\n")).unwrap_or_default();
        report(&change.full_name(), "answers", proof.is_ok(), &why);
        return Ok(vec![proof.is_ok()]);
    }
    change.proofs().iter().map(|proof| of_proof(project, proof, keep)).collect()
}

fn of_proof(project: &Project, proof: &Proof, keep: bool) -> Result<bool> {
    let Proof { change, place, .. } = proof;
    let outcome = Copy::lay_out(project, change).and_then(|copy| run(project, change, &copy, *place, color()))?;
    let is_as_told = proof.is_met_by(&outcome)?;
    let complaint = outcome.complaint()?;
    let why = match &outcome {
        _ if is_as_told && proof.is_right => String::new(),
        // What it must say stands in one of these lines.
        _ if is_as_told => {
            complaint.lines().find(|line| line.contains(&proof.says)).map_or(String::new(), |line| format!("{line}\n"))
        }
        Outcome::Refused(said) => said.clone(),
        Outcome::Ran { file, findings, .. } => {
            let missing = if proof.is_right { String::new() } else { format!("  it has to say: {}\n", proof.says) };
            format!("{}{missing}{}  {}\n", show::findings(findings, color()), complaint, file.display())
        }
    };
    report(&change.full_name(), place.name(), is_as_told, &why);
    if let (true, true, Outcome::Ran { run, findings, .. }) = (is_as_told && keep, change.task.is_none(), &outcome) {
        change.keep(project, &show::part(run, findings, Style::FILE)?, run)?;
    }
    Ok(is_as_told)
}

/// In one piece: others report, too.
fn report(name: &str, place: &str, is_as_told: bool, why: &str) {
    print!("{name:32} {place:8} {}\n{why}", if is_as_told { "as told" } else { "OTHERWISE" });
}
