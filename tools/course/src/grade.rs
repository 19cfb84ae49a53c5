//! `make grade`: all steps of programs that are handed in, each program shut in, without a network; as JSON and as a page each.

use anyhow::{ensure, Context, Result};
use course::build::build_lessons;
use course::change::{Change, Options};
use course::expected::{Expected, Told, What};
use course::judge::Finding;
use course::mine::{Mine, FOLDER};
use course::project::Project;
use course::run::{run_program, Outcome, Place};
use course::step::Step;
use course::{sandbox, show};
use run::files::{name, output, write};
use run::lanes::Style;
use rustix::fs::{flock, FlockOperation};
use serde_json::{json, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{stdout, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Below cargo's folder: what was handed in is copied there, and results stand beside it.
const RESULTS: &str = "grade";
/// A program's port, that nobody knows beforehand, is one of so many from here on.
const FIRST_PORT: u16 = 20_000;

/// What came of a step, or of a variant of it.
struct Mark {
    step: String,
    title: String,
    /// What was judged: `step`, or which hidden variant.
    trial: String,
    is_passed: bool,
    /// What is missing.
    said: String,
}

/// Judges what students have handed in: folders like mine/, or repositories with one on this machine.
pub fn grade(project: &Project, lesson: Option<&str>, students: &[PathBuf]) -> Result<bool> {
    sandbox::check(project)?;
    let steps = match lesson {
        Some(number) => Step::of(&project.lesson(number)?)?,
        None => Step::all(project)?,
    };
    build_lessons(project, steps.iter().map(|step| &step.change))?;
    let results = project.target.join(RESULTS);
    fs::create_dir_all(&results)?;
    let alone = fs::File::open(&results)?;
    let is_alone = flock(&alone, FlockOperation::NonBlockingLockExclusive).is_ok();
    ensure!(is_alone, "somebody grades in this project already: wait until that has ended");
    let (mut all, mut whose) = (Vec::new(), BTreeSet::new());
    for student in students {
        let path = path_of(student)?;
        let student = &fs::canonicalize(&path).with_context(|| format!("there is no {}", path.display()))?;
        let who = name_of(student);
        ensure!(whose.insert(who.clone()), "two students are called {who}: name their folders otherwise");
        let marks = of_student(project, student, &results.join(&who), &steps);
        let marks = marks.with_context(|| format!("cannot grade {}", student.display()))?;
        let passed = marks.iter().filter(|mark| mark.is_passed).count();
        writeln!(stdout(), "{who:24} {passed:3} of {}", marks.len())?;
        write(results.join(format!("{who}.md")), page(&who, &marks))?;
        all.push(json_of(&who, &marks));
    }
    let file = results.join("grade.json");
    write(&file, serde_json::to_string_pretty(&all)? + "\n")?;
    writeln!(stdout(), "\n{}, and a page for each beside it", project.shown(&file))?;
    Ok(true)
}

/// Where a folder or repository is on this machine: `file:///srv/anna.git` is an address, too.
fn path_of(student: &Path) -> Result<PathBuf> {
    let text = student.to_string_lossy();
    let path = text.strip_prefix("file://").unwrap_or(&text);
    ensure!(!path.contains("://"), "{text} is not on this machine: clone it before, as grading goes without a network");
    Ok(PathBuf::from(path))
}

/// What a student is called: as the folder or repository, or what that lies in.
fn name_of(student: &Path) -> String {
    let own = name(student).trim_end_matches(".git").to_owned();
    let above = student.parent().filter(|above| above.file_name().is_some());
    above.filter(|_| own == FOLDER || own.is_empty()).map_or(own, name)
}

fn of_student(project: &Project, student: &Path, copy: &Path, steps: &[Step]) -> Result<Vec<Mark>> {
    let handed_in = fetched(student, copy)?;
    // What is built last is where all are built: the program of one lesson after the other.
    let mut programs: BTreeMap<PathBuf, Result<String, String>> = BTreeMap::new();
    let mut marks = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let lesson = &step.name.lesson;
        if !programs.contains_key(lesson) {
            programs.insert(lesson.clone(), handed_in.at(lesson).build_shut_in(project)?);
        }
        let is_last = steps.get(at + 1).map(|next| &next.name.lesson) != Some(lesson);
        let variants = if is_last { variants(step) } else { Vec::new() };
        for (trial, change) in std::iter::once(("step", step.change.clone())).chain(variants) {
            let (is_passed, said) = match &programs[lesson] {
                Err(said) => (false, said.clone()),
                Ok(command) => judged(project, &change, &sandbox::wrapped(project, command))?,
            };
            let (step, title) = (step.name.to_string(), step.title.clone());
            marks.push(Mark { step, title, trial: trial.to_owned(), is_passed, said });
        }
    }
    Ok(marks)
}

/// What was handed in, as a copy that is ours: a folder, or what a repository has in it.
fn fetched(student: &Path, copy: &Path) -> Result<Mine> {
    let _ = fs::remove_dir_all(copy);
    fs::create_dir_all(copy)?;
    let mut from = student.to_owned();
    if from.join(".git").exists() || from.join("HEAD").exists() {
        // Hooks and filters of a stranger's repository do not run at a clone. That it is somebody else's git is told to accept.
        let trusting = copy.join("trusting.gitconfig");
        write(&trusting, "[safe]\n\tdirectory = *\n")?;
        let mut git = Command::new("git");
        git.env("GIT_CONFIG_GLOBAL", trusting).args(["clone", "-q", "--no-hardlinks"]).arg(&from);
        output(git.arg(copy.join("clone")))?;
        from = copy.join("clone");
    }
    let found = [from.join(FOLDER), from].iter().find_map(|folder| Mine::find(folder));
    let found = found.context("there is no program: neither src/main.rs, mine.c nor mine.py")?;
    // Sources alone: whatever else lies there, links among it, is not ours to build with.
    found.copy_to(&copy.join(FOLDER))
}

/// Judges one run.
fn judged(project: &Project, change: &Change, command: &str) -> Result<(bool, String)> {
    let outcome = run_program(project, change, command, Place::Device)?;
    let is_passed = outcome.is_as_told(change);
    let Outcome::Ran { run, findings, .. } = outcome else { return Ok((false, String::new())) };
    if is_passed {
        return Ok((true, String::new()));
    }
    let first: Vec<Finding> = findings.into_iter().filter(|finding| !finding.is_met()).take(1).collect();
    let style = Style::FILE;
    Ok((false, show::findings(&first, style) + &show::trouble(&run, style)?))
}

/// What is run besides the steps, of which no page tells: another port, and the untouched lesson as the other side.
fn variants(step: &Step) -> Vec<(&'static str, Change)> {
    let Change { options, told, .. } = &step.change;
    let number = step.name.number();
    let port = FIRST_PORT + (std::process::id() % 10_000) as u16;
    let with = |server: String, client: String| {
        let nodes = [("server".to_owned(), server), ("client".to_owned(), client)].into();
        Change { options: Options { nodes, ..options.clone() }, again: Vec::new(), ..step.change.clone() }
    };
    let (server, client) = (&options.server, &options.client);
    let own = (format!("lesson server {server}"), format!("lesson client -a $SERVER {client}"));
    // The server of lesson 07 asks for words that no step tells. That of lesson 06 does the same, but for the end.
    let its_server = if number == "07" { "06" } else { number.as_str() };
    let lesson = (format!("lesson-{its_server} server"), format!("lesson-{number} client -a $SERVER"));
    // Of the untouched side nobody asks what a step does.
    let ends = |change: Change| Change { told: Told::Runs(told_exits(told)), ..change };
    vec![
        ("another port", with(format!("{} -p {port}", own.0), format!("{} -p {port}", own.1))),
        ("the lesson's client", ends(with(own.0.clone(), lesson.1))),
        ("the lesson's server", ends(with(lesson.0, own.1.clone()))),
    ]
}

/// That both end as they are expected to.
fn told_exits(told: &Told) -> Vec<Expected> {
    let Told::Runs(expected) = told else { return Vec::new() };
    let is_exit = |expected: &&Expected| matches!(expected.what, What::Exit(_));
    expected.iter().filter(is_exit).cloned().collect()
}

fn json_of(who: &str, marks: &[Mark]) -> Value {
    let mark = |mark: &Mark| {
        let Mark { step, title, trial, is_passed, said } = mark;
        json!({ "step": step, "title": title, "trial": trial, "passed": is_passed, "said": said })
    };
    let passed = marks.iter().filter(|mark| mark.is_passed).count();
    json!({ "student": who, "passed": passed, "of": marks.len(), "marks": marks.iter().map(mark).collect::<Vec<_>>() })
}

/// A page in Markdown: a row for each step, and what is missing.
fn page(who: &str, marks: &[Mark]) -> String {
    let passed = marks.iter().filter(|mark| mark.is_passed).count();
    let mut text = format!("# {who}\n\n{passed} of {}\n\n| | step | |\n|---|---|---|\n", marks.len());
    for Mark { step, title, trial, is_passed, .. } in marks {
        let mark = if *is_passed { "✓" } else { "✗" };
        text += &format!("| {mark} | {step} {title} | {trial} |\n");
    }
    for Mark { step, trial, said, .. } in marks.iter().filter(|mark| !mark.is_passed) {
        // A fence that nothing in it can end.
        text += &format!("\n## {step}, {trial}\n\n~~~~~~text\n{}\n~~~~~~\n", said.trim_end().replace("~~~", "~ ~"));
    }
    text
}
