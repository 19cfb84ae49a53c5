//! A run of a changed lesson: in the lab, on the kernel's own driver, or on the device in user space.

use crate::build::{build_others, EXAMPLES};
use crate::change::{Again, Change};
use crate::copy::Copy;
use crate::drawn::Drawn;
use crate::enough;
use crate::port::ReservedPort;
use crate::project::Project;
use crate::show;
use anyhow::{bail, ensure, Context, Result};
use judge::expected::{Expectation, Expected, What};
use judge::seen::{self, BETWEEN};
use judge::{judge, Finding};
use run::capture::Events;
use run::files::{bytes, read};
use run::lanes::Style;
use rustix::fs::{memfd_create, MemfdFlags};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};

/// Where the lab's server is.
const SERVER: &str = "10.47.91.1";
/// Exit status of both: a program failed. That may be what the change is about.
const PROGRAM_FAILED: i32 = 1;
/// What a command of a change calls the changed lesson's program.
const LESSON: &str = "lesson";

/// An exercise whose client is dead has failed: nobody waits until its server has noticed. Seconds.
const GRACE: u32 = 2;
/// Nor for one that waits for what nobody will do. (What is sent again comes after a second, and lesson 11 waits two for whoever asks.)
const IDLE: u32 = 3;
/// MiB that a learner's program may say and send: it may do so in circles.
const MOST: &str = "16";
/// MiB of memory that all of a run's programs may have together.
const MEMORY: &str = "2048";

/// What is looked for in words has each of them in one line.
const UNCUT: Style = Style { color: false, width: usize::MAX };

/// Where a change is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Place {
    /// On machines with the kernel's driver: what pages quote is from there.
    Lab,
    /// On the device in user space, within milliseconds.
    Device,
}

impl Place {
    pub fn name(self) -> &'static str {
        match self {
            Self::Lab => "lab",
            Self::Device => "device",
        }
    }

    /// Seconds that a run may take: a learner's program may run in circles.
    fn deadline(self) -> u32 {
        match self {
            Self::Lab => 45,
            Self::Device => 20,
        }
    }
}

/// What came of a change.
pub enum Outcome {
    /// It does not build, and the compiler says why.
    Refused(String),
    Ran {
        file: PathBuf,
        run: Box<Events>,
        /// What there is of what was expected.
        findings: Vec<Finding>,
        /// How it was run, if that was once more; and if all was as told, how else it was run.
        again: String,
    },
}

impl Outcome {
    /// Whether all is as the change says.
    pub fn is_as_told(&self, change: &Change) -> bool {
        match (self, &change.told) {
            (Self::Refused(said), Expectation::Refused(expected)) => said.contains(expected),
            (Self::Ran { findings, .. }, Expectation::Runs(_)) => findings.iter().all(Finding::is_met),
            _ => false,
        }
    }

    /// What the judge says about what is not as told: what is missing, and what stands out.
    pub fn complaint(&self) -> Result<String> {
        let Self::Ran { run, findings, .. } = self else { return Ok(String::new()) };
        let unmet: Vec<Finding> = findings.iter().filter(|finding| !finding.is_met()).cloned().collect();
        Ok(show::findings(&unmet, UNCUT) + &show::trouble(run, UNCUT)?)
    }
}

/// Builds a copy, runs it if it can be built, and judges the run.
pub fn run(project: &Project, change: &Change, copy: &Copy, place: Place, color: bool) -> Result<Outcome> {
    let name = &change.name;
    let is_possible = place == Place::Lab || !change.needs_kernel();
    ensure!(is_possible, "{name} needs a kernel, so it runs only in the lab. Add on=lab");
    let is_told = place == Place::Device || !change.options.device;
    ensure!(is_told, "only the device shows what we need to judge {name}. Run it without on=lab");
    if let Err(said) = copy.build(project, color)? {
        return Ok(Outcome::Refused(said));
    }
    build_others(project, change)?;
    run_built(project, change, copy, place)
}

/// Runs a program that has been built, and judges the run.
pub fn run_built(project: &Project, change: &Change, copy: &Copy, place: Place) -> Result<Outcome> {
    run_program(project, change, &copy.package, place)
}

/// Runs a program, or a command that stands for it, as a change asks for it, and judges the run; then once more, as often as the
/// change says so and all was as told. If all runs were, it is the first that is given: it shows what was asked for.
pub fn run_program(project: &Project, change: &Change, program: &str, place: Place) -> Result<Outcome> {
    let mut first = run_once(project, change, program, place)?;
    let mut others = Vec::new();
    for Again { options, told } in change.again.iter().filter(|_| first.is_as_told(change)) {
        let now = Change { options: options.clone(), told: told.clone(), again: Vec::new(), ..change.clone() };
        let mut outcome = run_once(project, &now, program, place)?;
        let Outcome::Ran { again, .. } = &mut outcome else { return Ok(outcome) };
        if again.is_empty() {
            *again = "both sides are yours\n".to_owned();
        }
        others.push(again.clone());
        if !outcome.is_as_told(&now) {
            return Ok(outcome);
        }
    }
    if let Outcome::Ran { again, .. } = &mut first {
        *again = others.join("\n");
    }
    Ok(first)
}

fn run_once(project: &Project, change: &Change, program: &str, place: Place) -> Result<Outcome> {
    let drawn = Drawn::new();
    let expected = if let Expectation::Runs(expected) = &change.told { expected.as_slice() } else { &[] };
    let expected: Vec<Expected> = seen_in(place, expected).iter().map(|expected| drawn.filled(expected)).collect();
    // Of an exercise it also matters what a program does afterwards.
    let enough = if change.is_exercise { &[][..] } else { &expected };
    let (file, recorded) = execute(project, change, &drawn, program, place, enough)?;
    let run = Box::new(seen::read(&recorded)?);
    let nodes: Vec<String> =
        nodes(change, None).into_iter().filter(|(_, line)| is_judged(line)).map(|(node, _)| node).collect();
    let expected = match is_strict(change, place) {
        true => [expected, own_work(&run, &nodes, program)].concat(),
        false => expected,
    };
    let again = show::options(change).replace("{long}", &format!("{}…", drawn.text));
    Ok(Outcome::Ran { file, findings: judge(&run, &expected)?, run, again: drawn.fill(&again) })
}

/// What can be seen in a place. What comes after a line that is left out comes after none.
fn seen_in(place: Place, expected: &[Expected]) -> Vec<Expected> {
    let is_seen = |expected: &Expected| place == Place::Device || !expected.what.is_of_device();
    let mut was_seen = true;
    let mut seen = Vec::new();
    for one in expected {
        let then = one.then && was_seen;
        was_seen = is_seen(one);
        seen.extend(was_seen.then(|| Expected { then, ..one.clone() }));
    }
    seen
}

/// Runs all programs, and gives the run file and what is in it.
fn execute(
    project: &Project,
    change: &Change,
    drawn: &Drawn,
    program: &str,
    place: Place,
    expected: &[Expected],
) -> Result<(PathBuf, Vec<u8>)> {
    let runner = project.target.join("debug").join(place.name());
    ensure!(runner.exists(), "there is no {}. Build it with `cargo build -p {}`", runner.display(), place.name());
    let (name, options) = (change.name.to_string(), &change.options);
    let mut command = Command::new(runner);
    let deadline = options.deadline.unwrap_or(place.deadline()).to_string();
    command.args(["exec", "--name", &name, "--wire", &options.wire, "--deadline", &deadline]);
    // Once the run is over, another one of its name may take its folder: two graders run the same steps. So we read a copy, which the device
    // makes before that.
    let copy = memfd_create("run", MemfdFlags::CLOEXEC).context("cannot make a file in memory")?;
    let copied = format!("/proc/{}/fd/{}", process::id(), copy.as_raw_fd());
    if place == Place::Device {
        command.args(["--pcap", &copied]);
    }
    // Held until the run is over.
    let port = if place == Place::Device && is_on_tcp(change)? { Some(ReservedPort::hold()?) } else { None };
    let is_strict = is_strict(change, place);
    let nodes = nodes(change, port.as_ref());
    // A script's sleeps say when something happens to its program. Where there is one, all sleeps take their time.
    let is_scripted = nodes.values().any(|line| line.contains('&'));
    for (node, line) in nodes {
        let is_judged = is_judged(&line);
        command.args(["--strict", &node].into_iter().filter(|_| is_strict && is_judged && !is_scripted));
        let line = line.split(' ').map(|word| part(project, word, program)).collect::<Vec<_>>().join(" ");
        // The device finds an address for each program by itself.
        let line = drawn.fill(&if place == Place::Lab { line.replace("$SERVER", SERVER) } else { line });
        match node.as_str() {
            "server" | "client" => command.arg(format!("--{node}")).arg(line),
            _ => command.arg("--node").arg(format!("{node}={line}")),
        };
    }
    command.arg("--json").args(options.faults.iter().flat_map(|fault| ["--fault", fault]));
    if is_strict {
        let [grace, idle] = [options.grace.unwrap_or(GRACE), options.idle.unwrap_or(IDLE)].map(|time| time.to_string());
        command.args(["--log", "--grace", &grace, "--idle", &idle, "--most", MOST, "--memory", MEMORY]);
        command.args(options.late_arm.then_some("--late-arm"));
        command.args(options.late_read.then_some("--late-read"));
    }
    // What is judged is in the log: a lesson that goes without one by itself has one here.
    if env::var_os("RUST_LOG").is_none() {
        command.env("RUST_LOG", "info");
    }
    command.current_dir(&project.root).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let file = project.target.join(place.name()).join("runs").join(&name).join("wire.pcapng");
    let (output, was_enough) = enough::run(command, &file, expected, options.sides().len())
        .with_context(|| format!("cannot start the {}", place.name()))?;
    let is_over = output.status.success() || output.status.code() == Some(PROGRAM_FAILED) || was_enough;
    if output.status.code().is_none() && !is_over {
        // Nothing was said before this.
        bail!(
            "something killed the {} ({}), and the run with it. Does your program kill other processes, its parent for example?",
            place.name(),
            output.status
        );
    }
    ensure!(is_over, "the {} could not run it ({}); its own message is above", place.name(), output.status);
    // A run of the same name that goes on keeps its folder.
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let file = report["file"].as_str().map(PathBuf::from);
    let file = file.with_context(|| format!("cannot read the {}'s report", place.name()))?;
    let recorded = bytes(if place == Place::Device { Path::new(&copied) } else { &file })?;
    Ok((file, recorded))
}

/// The command of each node: the two sides of the lesson, unless the change says otherwise. On the device a lesson that listens
/// on TCP does so on this port of this machine.
fn nodes(change: &Change, port: Option<&ReservedPort>) -> BTreeMap<String, String> {
    let port = port.map_or(String::new(), |port| format!("-p {} ", port.number));
    let server = format!("lesson server {port}{}", change.options.server);
    let client = format!("lesson client -a $SERVER {port}{}", change.options.client);
    let sides = change.options.sides().into_iter().map(|side| {
        let own = if side == "server" { &server } else { &client };
        let line = change.options.nodes.get(&side).unwrap_or(own).trim().to_owned();
        (side, line)
    });
    sides.collect()
}

/// Whether a node's command runs the learner's program, and not one that is its other side.
fn is_judged(line: &str) -> bool {
    line.split(' ').any(|word| word == LESSON)
}

fn is_strict(change: &Change, place: Place) -> bool {
    place == Place::Device && change.is_exercise
}

/// What's asked of every learner's program: that no other one opens the device for it.
fn own_work(run: &Events, nodes: &[String], program: &str) -> Vec<Expected> {
    let mut others = BTreeSet::new();
    for line in run.lines() {
        let opened = line.field("program").filter(|_| line.fact() == Some("opened"));
        if let Some(other) = opened.filter(|file| nodes.contains(&line.node) && !is_named(program, file)) {
            others.insert((line.node.clone(), other.to_owned()));
        }
    }
    let never = |(node, other): (String, String)| Expected {
        times: Some(0),
        hint: format!("Your program ran another one, {other}, and that one did the work. Make the calls yourself."),
        ..Expected::new(&node, What::Note(format!("opened{BETWEEN}program={other}")))
    };
    others.into_iter().map(never).collect()
}

/// Whether a command names this file: `python3` is one of `python3.11`. In a sandbox it's a word of the wrapped command.
fn is_named(command: &str, file: &str) -> bool {
    let mut names = command.split(' ').map(|word| word.trim_matches('\'')).filter_map(|path| path.rsplit('/').next());
    names.any(|name| !name.is_empty() && file.starts_with(name))
}

/// Whether a lesson listens on TCP. One whose nodes are all alike has no server's part.
fn is_on_tcp(change: &Change) -> Result<bool> {
    let server = change.name.lesson.join("src/server.rs");
    Ok(server.exists() && read(server)?.contains("common::tcp"))
}

/// A word of a command as it is run.
fn part(project: &Project, word: &str, program: &str) -> String {
    match word {
        LESSON => program.to_owned(),
        word if word.starts_with(EXAMPLES) => project.target.join("debug").join(word).display().to_string(),
        word => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_the_lab_what_only_a_device_tells_is_left_out_and_nothing_waits_for_it() {
        let lines = [
            "client never sends: NAK",
            "client notes: complete  work=WRITE",
            "then client sends: DREQ",
            "then client says: x",
        ];
        let expected: Vec<Expected> = lines.iter().map(|line| line.to_string().try_into().unwrap()).collect();
        let then = |place| seen_in(place, &expected).iter().map(|expected| expected.then).collect::<Vec<_>>();
        assert_eq!(then(Place::Device), [false, false, true, true]);
        assert_eq!(then(Place::Lab), [false, false, true]);
    }
}
