//! Tries changes again, and says of each whether it came out as told.

use anyhow::{anyhow, Context, Result};
use course::build::{build_lessons, build_programs, build_runner};
use course::changes::Changes;
use course::copy::Copy;
use course::differences;
use course::edited;
use course::exercise::{Assignment, Exercise, Repair};
use course::page::Name;
use course::project::Project;
use course::proof::Proof;
use course::reference;
use course::run::{run, run_built, run_program, Outcome, Place};
use course::show;
use course::step::Step;
use run::files::{bytes, write};
use run::lanes::Style;
use std::io::{stdout, Write};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::OnceLock;
use std::thread;
use std::time::Instant;

/// So many runs go on at a time: most of a run is waiting for what never comes. One in the lab takes some 200 MB of memory.
const AT_ONCE: usize = 6;

/// What all who try things share.
struct Guide<'a> {
    project: &'a Project,
    keep: bool,
    trials: Vec<Proof>,
    built: OnceLock<Result<()>>,
    /// The next of the trials that nobody has begun.
    next: AtomicUsize,
}

/// What is named: a lesson's number, the whole name of a change, or that of one trial, `04-1-write-wrong-2`; all, if nothing is.
fn chosen(project: &Project, all: Changes, steps: &mut Vec<Step>, names: &[String]) -> Result<Changes> {
    let full = |name: &Name| [name.number(), name.to_string()];
    let of_changes = all.breaks.iter().map(|it| &it.change.name).chain(all.exercises.iter().map(|it| &it.name));
    let of_all = of_changes.chain(steps.iter().map(|step| &step.name));
    let known: Vec<String> = of_all.flat_map(full).collect();
    let is_trial = |name: &str| known.iter().any(|known| is_part(name, known));
    for name in names.iter().filter(|name| !known.contains(name) && !is_trial(name)) {
        project
            .lesson(name)
            .with_context(|| format!("there is no change {name}; `make break-NN` lists those of lesson NN"))?;
        writeln!(stdout(), "lesson {name} has no changes")?;
    }
    let is_in = |known: &String| names.iter().any(|name| name == known || is_part(name, known));
    let is_wanted = |name: &Name| names.is_empty() || full(name).iter().any(is_in);
    let Changes { mut breaks, mut exercises } = all;
    breaks.retain(|it| is_wanted(&it.change.name));
    exercises.retain(|exercise| is_wanted(&exercise.name));
    steps.retain(|step| is_wanted(&step.name));
    Ok(Changes { breaks, exercises })
}

/// Whether a name goes on where another one ends, which is more than a lesson's number.
fn is_part(name: &str, whole: &str) -> bool {
    whole.contains('-') && name.strip_prefix(whole).is_some_and(|rest| rest.starts_with('-'))
}

/// Whether a trial is to be made: if its lesson is named, its change, or itself; or nothing is.
fn is_named(trial: &Name, names: &[String]) -> bool {
    let (number, full) = (trial.number(), trial.to_string());
    names.is_empty() || names.iter().any(|name| [&number, &full].contains(&name) || is_part(&full, name))
}

/// Tries what is named, or all changes; and in one place, if that is wished. Where it comes out as told, the part of the run that
/// a page quotes is kept, if that is wished.
pub fn prove(project: &Project, names: &[String], only: Option<Place>, keep: bool) -> Result<bool> {
    let all = Changes::all(project)?;
    let named = differences::named(project, &all.breaks)?;
    let mut steps = Step::all(project)?;
    let Changes { breaks, exercises } = chosen(project, all, &mut steps, names)?;
    if breaks.is_empty() && exercises.is_empty() && steps.is_empty() {
        return Ok(true);
    }
    let begun = Instant::now();
    [Place::Device, Place::Lab]
        .into_iter()
        .filter(|place| only.map_or(true, |only| only == *place))
        .try_for_each(|place| build_runner(project, place.name()))?;
    let repairs: Vec<&Repair> = exercises.iter().filter_map(Exercise::repair).collect();
    let changes = breaks.iter().map(|it| &it.change).chain(repairs.iter().map(|repair| &repair.change));
    let changes = changes.chain(steps.iter().map(|step| &step.change));
    build_lessons(project, changes)?;
    let stand_ins = steps.iter().flat_map(|step| &step.proofs).filter_map(|proof| proof.program.as_deref());
    build_programs(project, stand_ins)?;
    if !steps.is_empty() {
        reference::build(project)?;
    }
    let trials =
        breaks.iter().flat_map(|it| it.proofs(&named)).chain(repairs.iter().flat_map(|repair| repair.proofs.clone()));
    let trials = trials.chain(steps.iter().flat_map(|step| step.proofs.clone()));
    let is_wanted =
        |proof: &Proof| only.map_or(true, |only| proof.place == only) && is_named(&proof.change.name, names);
    let mut trials: Vec<Proof> = trials.filter(is_wanted).collect();
    // Programs are built while others run, and short runs come at the end, so that all end together.
    trials.sort_by_key(|Proof { change, place, .. }| (*place == Place::Device, !change.edits.is_empty()));
    let guide = &Guide { project, keep, trials, built: OnceLock::new(), next: AtomicUsize::new(0) };
    let (results, done) = mpsc::channel();
    for exercise in &exercises {
        let Assignment::Reading(reading) = &exercise.kind else { continue };
        results.send(told(&exercise.name, "answers", || reading.prove(project).map(|()| (true, String::new()))))?;
    }
    let (mut tried, mut differ) = (0, Vec::new());
    thread::scope(|scope| {
        if guide.trials.iter().any(Proof::is_of_copy) {
            scope.spawn(|| guide.build());
        }
        for results in vec![results; AT_ONCE] {
            scope.spawn(move || guide.work(&results));
        }
        // If we can't print this, nobody would see the other results either, so the threads end.
        for (is_as_told, told) in done {
            tried += 1;
            write!(stdout(), "{tried:3}  {told}")?;
            differ.extend((!is_as_told).then_some(told));
        }
        anyhow::Ok(())
    })?;
    if !differ.is_empty() {
        writeln!(stdout(), "\nThese came out differently:\n{}", differ.concat())?;
    }
    writeln!(
        stdout(),
        "{} of {tried} came out as their pages say, in {} s",
        tried - differ.len(),
        begun.elapsed().as_secs()
    )?;
    Ok(differ.is_empty())
}

/// Tries something. Returns whether it came out as its page says, and a line about that with the reason below it.
fn told(name: &Name, place: &str, attempt: impl FnOnce() -> Result<(bool, String)>) -> (bool, String) {
    let begun = Instant::now();
    let (is_as_told, why) = attempt().unwrap_or_else(|error| (false, format!("  {error:#}\n")));
    let (verdict, took) = (if is_as_told { "as it says" } else { "DIFFERENT" }, begun.elapsed().as_secs_f32());
    (is_as_told, format!("{name:32} {place:8} {verdict:10} {took:4.1} s\n{why}"))
}

impl Guide<'_> {
    /// Builds all copies: whoever needs one first does it, and others wait.
    fn build(&self) -> Result<()> {
        let of_copies = self.trials.iter().filter(|proof| proof.is_of_copy());
        let build = || Copy::build_all(self.project, of_copies.map(|proof| &proof.change));
        self.built.get_or_init(build).as_ref().map_err(|error| anyhow!("{error:#}")).copied()
    }

    /// Tries one after the other, until there is none left, or nobody who hears of it.
    fn work(&self, results: &Sender<(bool, String)>) {
        while let Some(proof) = self.trials.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            let told = told(&proof.change.name, proof.place.name(), || self.of_proof(proof));
            if results.send(told).is_err() {
                return;
            }
        }
    }

    /// Whether it came out as told, and what there is to say about that.
    fn of_proof(&self, proof: &Proof) -> Result<(bool, String)> {
        let Proof { change, place, is_right, says, .. } = proof;
        let outcome = self.outcome(proof)?;
        let (is_as_told, complaint) = (proof.is_met_by(&outcome)?, outcome.complaint()?);
        let is_reference = (*place == Place::Device) == change.options.device;
        let is_kept = is_as_told && self.keep && !change.is_exercise && is_reference;
        let why = match outcome {
            Outcome::Ran { file, run, findings, .. } if is_kept => {
                self.keep(&change.name, &show::part(&run, &findings, Style::FILE)?, &file)?;
                String::new()
            }
            // One of these lines contains what it must say.
            _ if is_as_told => complaint
                .lines()
                .find(|line| !is_right && line.contains(says))
                .map_or(String::new(), |line| format!("{line}\n")),
            Outcome::Refused(said) => said,
            Outcome::Ran { file, findings, .. } => {
                let missing = match (is_right, says.as_str()) {
                    (true, _) => String::new(),
                    (_, "") => {
                        "  a row of tools/device/differences.toml says that it comes out differently here\n".to_owned()
                    }
                    (_, says) => format!("  it should say: {says}\n"),
                };
                format!("{}{missing}{complaint}  {}\n", show::findings(&findings, Style::of_output()), file.display())
            }
        };
        Ok((is_as_told, why))
    }

    /// Keeps the part of a run that pages quote; and all of it, if somebody has put a capture of it beside that.
    fn keep(&self, name: &Name, part: &str, run: &Path) -> Result<()> {
        let file = self.project.root.join(format!("captures/changes/{name}.txt"));
        let lines: String = part.lines().map(|line| line.trim_end().to_owned() + "\n").collect();
        // Where nothing is sent and nothing is said there is nothing to quote.
        if !lines.is_empty() {
            write(&file, lines)?;
        }
        let capture = file.with_extension("pcapng");
        if capture.exists() {
            write(&capture, bytes(run)?)?;
        }
        Ok(())
    }

    fn outcome(&self, proof: &Proof) -> Result<Outcome> {
        let Proof { change, program, place, .. } = proof;
        if let Some(program) = program {
            return run_program(self.project, change, program, *place);
        }
        if edited::file(&change.edits).is_some() {
            return run_program(self.project, change, &edited::build(self.project, change)?, *place);
        }
        if proof.is_of_copy() {
            self.build()?;
        }
        match Copy::built(self.project, change) {
            Some(copy) => run_built(self.project, change, &copy, *place),
            // The compiler has something to say about it.
            None => run(self.project, change, &Copy::lay_out(self.project, change)?, *place, Style::of_output().color),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lesson_a_change_or_one_trial_is_named() {
        let trial = Name { lesson: "lessons/04_rdma_write".into(), name: "1-write-wrong-2".into() };
        for (named, is_it) in [
            ("04", true),
            ("04-1-write", true),
            ("04-1-write-wrong-2", true),
            ("04-1", true),
            ("05", false),
            ("0", false),
            ("04-2-look", false),
        ] {
            assert_eq!(is_named(&trial, &[named.to_owned()]), is_it, "{named}");
        }
        assert!(is_named(&trial, &[]));
    }
}
