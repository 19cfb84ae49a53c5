//! `make grade`: all steps of programs that are handed in, each program shut in, without a network; as JSON and as a page each.

use anyhow::{bail, ensure, Context, Result};
use course::build::build_lessons;
use course::change::{Change, Options};
use course::handed_in::fetched;
use course::mine::FOLDER;
use course::project::Project;
use course::run::{run_program, Outcome, Place};
use course::sandbox::Sandbox;
use course::show;
use course::step::Step;
use judge::expected::{Expectation, Expected, What};
use judge::Finding;
use run::files::name;
use run::lanes::Style;
use rustix::fs::{flock, FlockOperation};
use serde_json::{json, Value};
use std::collections::BTreeSet;
use std::fs;
use std::io::{stdout, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Below cargo's folder, unless somebody names another one: results are there, and below `shut-in` what programs are shut in with, copies
/// of them among it.
const RESULTS: &str = "grade";
const SHUT_IN: &str = "shut-in";
/// All students, and a file that is this one only when it is complete.
const ALL: &str = "grade.json";
/// A program's port, that nobody knows beforehand, is one of this many from here on.
const FIRST_PORT: u16 = 20_000;
/// Options that both sides must have: the untouched lesson is run without any.
const AGREED: [&str; 4] = ["-m", "--mode", "--closer", "--puzzle"];
/// How long trials without success, and builds, may take in a lesson, and of a student. What passes costs nothing
/// of it.
const OF_LESSON: Duration = Duration::from_secs(40);
const OF_STUDENT: Duration = Duration::from_secs(160);

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

/// What came of a student's program.
#[derive(Default)]
struct Marks {
    marks: Vec<Mark>,
    /// Lessons of which there is nothing: mine/done has no program of that time, and the program of today passes none of their steps.
    missing: Vec<String>,
}

/// What is known of a student: marks, or why there are none.
type Graded = (String, Result<Marks, String>);

/// Judges what students have handed in: folders like mine/, or repositories with one on this machine. Each of them may take so long,
/// whatever passes. False if some of it could not be graded.
pub fn grade(
    project: &Project,
    lesson: Option<&str>,
    limit: Duration,
    to: Option<&Path>,
    students: &[PathBuf],
) -> Result<bool> {
    let lessons = match lesson {
        Some(number) => vec![Step::of(&project.lesson(number)?)?],
        None => project.lessons()?.iter().map(|lesson| Step::of(lesson)).collect::<Result<_>>()?,
    };
    let results = results(project, to)?;
    let alone = fs::File::open(&results)?;
    let is_alone = flock(&alone, FlockOperation::NonBlockingLockExclusive).is_ok();
    ensure!(
        is_alone,
        "another `make grade` is writing to {}. Wait for it to end, or name another folder with to=FOLDER",
        project.shown(&results)
    );
    // Whatever happens from here on, nobody takes an old one for today's.
    let file = results.join(ALL);
    remove(&file)?;
    let sandbox = Sandbox::lay_out(project, &results.join(SHUT_IN))?;
    build_lessons(project, lessons.iter().flatten().map(|step| &step.change))?;
    let (mut rows, mut whose) = (Vec::<Graded>::new(), BTreeSet::new());
    for student in students {
        let (who, path) = named(student);
        let marks = match path {
            Ok(_) if !whose.insert(who.clone()) => {
                Err(anyhow::anyhow!("another student is called {who} as well. Rename one of the two folders"))
            }
            Ok(path) => {
                let copy = results.join(SHUT_IN).join(format!("of {who}"));
                of_student(project, &sandbox, &path, &copy, &lessons, lesson.is_some(), limit)
            }
            Err(error) => Err(error),
        };
        let row = (who, marks.map_err(|error| format!("{error:#}")));
        writeln!(stdout(), "{}", line(&row))?;
        // Of two with one name the page is the first one's.
        if !rows.iter().any(|(who, _)| *who == row.0) {
            replace(&results.join(format!("{}.md", row.0)), &page(&row))?;
        }
        rows.push(row);
    }
    let all: Vec<Value> = rows.iter().map(json_of).collect();
    replace(&file, &(serde_json::to_string_pretty(&all)? + "\n"))?;
    writeln!(stdout(), "\nThe results are in {}, with a page for each student next to it", project.shown(&file))?;
    let failed = rows.iter().filter(|(_, marks)| marks.is_err()).count();
    if failed > 0 {
        writeln!(stdout(), "{failed} of {} could not be graded; their lines above say why", rows.len())?;
    }
    Ok(failed == 0)
}

/// The folder of the results. Scripts in it name its whole path.
fn results(project: &Project, to: Option<&Path>) -> Result<PathBuf> {
    let folder = to.map_or_else(|| project.target.join(RESULTS), Path::to_owned);
    let made = fs::create_dir_all(&folder).and_then(|()| fs::canonicalize(&folder));
    made.with_context(|| format!("cannot write results to {}", folder.display()))
}

fn remove(file: &Path) -> Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error).context("cannot remove an old grade"),
        _ => Ok(()),
    }
}

/// Writes a file whole, or not at all.
fn replace(file: &Path, text: &str) -> Result<()> {
    let new = file.with_extension("new");
    fs::write(&new, text)?;
    fs::rename(&new, file).with_context(|| format!("cannot write {}", file.display()))
}

/// What a student is called: as the folder or repository, or what that is in. And where that is: `file:///srv/anna.git` is an
/// address, too.
fn named(student: &Path) -> (String, Result<PathBuf>) {
    let text = student.to_string_lossy();
    let path = text.strip_prefix("file://").map_or(student, Path::new);
    let is_here = !path.to_string_lossy().contains("://");
    // Where it is, without what a last link leads to.
    let last = path.file_name().filter(|last| *last != "..");
    let whole = match (path.parent(), last) {
        (Some(above), Some(last)) => {
            let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
            fs::canonicalize(above).map(|above| above.join(last))
        }
        _ => fs::canonicalize(path),
    };
    let whole = whole.with_context(|| format!("there is no {}", path.display()));
    let who = name_of(whole.as_deref().unwrap_or(path));
    let found = match is_here {
        true => whole,
        false => Err(anyhow::anyhow!("it is not on this machine: clone it before, as grading goes without a network")),
    };
    (who, found)
}

/// Letters and digits of its name: it becomes a file's name, and is printed.
fn name_of(student: &Path) -> String {
    const LONGEST: usize = 60;
    let own = name(student).trim_end_matches(".git").to_owned();
    let above = student.parent().filter(|above| above.file_name().is_some());
    let called = above.filter(|_| own == FOLDER || own.is_empty()).map_or(own, name);
    let plain = |c: char| if c.is_alphanumeric() || "-_.+@ ".contains(c) { c } else { '_' };
    let called: String = called.trim_start_matches('.').chars().map(plain).take(LONGEST).collect();
    if called.is_empty() {
        "unnamed".to_owned()
    } else {
        called
    }
}

/// Judges one student's program, lesson by lesson.
fn of_student(
    project: &Project,
    sandbox: &Sandbox,
    student: &Path,
    copy: &Path,
    lessons: &[Vec<Step>],
    is_asked_for: bool,
    limit: Duration,
) -> Result<Marks> {
    let first = Instant::now();
    let over = || {
        let is_over = first.elapsed() >= limit;
        is_over
            .then(|| format!("not run: this program has had {} s by now, which is all that it gets", limit.as_secs()))
    };
    let handed_in = fetched(student, copy)?;
    let (mut all, mut lost) = (Marks::default(), Duration::ZERO);
    for steps in lessons.iter().filter(|steps| !steps.is_empty()) {
        let lesson = &steps[0].name.lesson;
        let program = handed_in.at(lesson);
        let is_kept = program.folder != handed_in.folder;
        let begun = Instant::now();
        let built = match over() {
            Some(said) => Err(said),
            None => program.build_shut_in(project, sandbox)?,
        };
        let mut left = OF_LESSON.min(OF_STUDENT.saturating_sub(lost));
        let all_of_it = left;
        if built.is_err() {
            left = left.saturating_sub(begun.elapsed());
        }
        let mut marks = Vec::new();
        for (step, trial, change) in trials(steps)? {
            let begun = Instant::now();
            let (is_passed, said) = match (&built, over()) {
                (Err(said), _) => (false, said.clone()),
                (Ok(_), Some(said)) => (false, said),
                (Ok(_), None) if left.is_zero() => (false, late(lost)),
                (Ok(command), None) => judged(project, &change, &sandbox.wrapped(&program.folder, command))?,
            };
            if !is_passed {
                left = left.saturating_sub(begun.elapsed());
            }
            let (step, title) = (step.name.to_string(), step.title.clone());
            marks.push(Mark { step, title, trial: trial.to_owned(), is_passed, said });
        }
        lost += all_of_it - left;
        if !is_asked_for && !is_kept && !marks.iter().any(|mark| mark.is_passed) {
            all.missing.push(steps[0].name.number());
        } else {
            all.marks.extend(marks);
        }
    }
    let _ = fs::remove_dir_all(copy);
    Ok(all)
}

/// Why a trial was not made.
fn late(lost: Duration) -> String {
    let (whose, time) = match lost + OF_LESSON > OF_STUDENT {
        true => ("of all lessons", OF_STUDENT),
        false => ("of this lesson", OF_LESSON),
    };
    format!("not run: trials {whose} that did not pass had taken {} s, which is all that they get", time.as_secs())
}

/// All that is run of a lesson: its steps, and variants of which no page tells.
fn trials(steps: &[Step]) -> Result<Vec<(&Step, &'static str, Change)>> {
    let own = steps.iter().map(|step| (step, "step", step.change.clone()));
    // The last one that is about the learner's own two sides: what others demand is about the peer that they have.
    let is_plain = |step: &&Step| {
        let Options { server, client, nodes, .. } = &step.change.options;
        let lines = nodes.values().chain([server, client]);
        let agrees = |line: &String| line.split(' ').any(|word| AGREED.contains(&word));
        nodes.values().all(|line| line.starts_with("lesson ")) && !lines.into_iter().any(agrees)
    };
    let Some(step) = steps.iter().rfind(is_plain) else { bail!("no step is about both sides") };
    let variants = variants(step).into_iter().map(|(trial, change)| (step, trial, change));
    Ok(own.chain(variants).collect())
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
    let own = |side: &str, usual: String| options.nodes.get(side).cloned().unwrap_or(usual);
    let own = (
        own("server", format!("lesson server {}", options.server)),
        own("client", format!("lesson client -a $SERVER {}", options.client)),
    );
    // With the same options: both sides must be started alike.
    let untouched = |line: &str| line.replacen("lesson ", &format!("lesson-{number} "), 1);
    let lesson = (untouched(&own.0), untouched(&own.1));
    // Of the untouched side nobody asks what a step does.
    let ends = |change: Change| Change { told: Expectation::Runs(told_exits(told)), ..change };
    vec![
        ("another port", with(format!("{} -p {port}", own.0), format!("{} -p {port}", own.1))),
        ("the lesson's client", ends(with(own.0.clone(), lesson.1))),
        ("the lesson's server", ends(with(lesson.0, own.1.clone()))),
    ]
}

/// That both end as they are expected to.
fn told_exits(told: &Expectation) -> Vec<Expected> {
    let Expectation::Runs(expected) = told else { return Vec::new() };
    let is_exit = |expected: &&Expected| matches!(expected.what, What::Exit(_));
    expected.iter().filter(is_exit).cloned().collect()
}

fn passed(marks: &Marks) -> usize {
    marks.marks.iter().filter(|mark| mark.is_passed).count()
}

/// A student in a line.
fn line((who, marks): &Graded) -> String {
    match marks {
        Ok(marks) => format!("{who:24} {}", sum(marks)),
        Err(why) => format!("{who:24} not graded: {why}"),
    }
}

fn sum(marks: &Marks) -> String {
    let sum = format!("{:3} of {}", passed(marks), marks.marks.len());
    match &marks.missing[..] {
        [] => sum,
        missing => format!("{sum}; not handed in: {}", missing.join(", ")),
    }
}

fn json_of((who, marks): &Graded) -> Value {
    let mark = |mark: &Mark| {
        let Mark { step, title, trial, is_passed, said } = mark;
        json!({ "step": step, "title": title, "trial": trial, "passed": is_passed, "said": said })
    };
    match marks {
        Ok(marks) => json!({
            "student": who, "passed": passed(marks), "of": marks.marks.len(), "not_handed_in": marks.missing,
            "marks": marks.marks.iter().map(mark).collect::<Vec<_>>()
        }),
        Err(why) => json!({ "student": who, "not_graded": why }),
    }
}

/// A page in Markdown: a row for each step, and what is missing.
fn page((who, marks): &Graded) -> String {
    let marks = match marks {
        Ok(marks) => marks,
        Err(why) => return format!("# {who}\n\nnot graded:\n\n{}", fenced(why)),
    };
    let mut text = format!("# {who}\n\n{}\n\n| | step | |\n|---|---|---|\n", sum(marks).trim());
    for Mark { step, title, trial, is_passed, .. } in &marks.marks {
        let mark = if *is_passed { "✓" } else { "✗" };
        text += &format!("| {mark} | {step} {title} | {trial} |\n");
    }
    for Mark { step, trial, said, .. } in marks.marks.iter().filter(|mark| !mark.is_passed) {
        text += &format!("\n## {step}, {trial}\n\n{}", fenced(said));
    }
    text
}

/// A fence that nothing in it can end.
fn fenced(text: &str) -> String {
    format!("~~~~~~text\n{}\n~~~~~~\n", text.trim_end().replace("~~~", "~ ~"))
}
