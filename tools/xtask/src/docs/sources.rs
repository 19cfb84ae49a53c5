//! What the pages are checked against: the repository's files, and the installed headers.

use super::drawings::{OVER_TCP, PROTOCOLS};
use super::excerpts;
use super::headers::Headers;
use super::names::Names;
use super::numbers;
use anyhow::{ensure, Context, Result};
use run::capture::{Events, Reader};
use run::file::Line;
use run::files::{self, bytes, read};
use run::row::Row;
use std::collections::BTreeSet;
use std::path::Path;
use wire::show::bytes::Which;

/// The folders of tools/ whose numbers the pages may name.
const CODE: &str =
    "roce/src roce/src/cm run/src wire/src nic/src nic/src/qp nic/src/cm device/src device/src/node lab/src lab";

#[derive(Clone, Debug)]
pub struct Sources {
    pub headers: Headers,
    /// What the headers and the decoder have names for.
    pub names: Names,
    /// The numbers in the code of the repository.
    pub numbers: BTreeSet<String>,
    /// The versions of systems in it: `Linux 6.1`.
    pub versions: BTreeSet<String>,
    pub lessons: Vec<Lesson>,
    /// The folders of lessons that are no programs: holes in the device's core.
    pub without_program: Vec<String>,
}

/// All that a lesson is: its code, its steps, its logs, and its packets, field by field.
#[derive(Clone, Debug)]
pub struct Lesson {
    /// Its folder in lessons/: `04_rdma_write`.
    pub name: String,
    /// The things that it has names for.
    pub things: BTreeSet<String>,
    /// The numbers that it has, or that the code has which all lessons call.
    pub numbers: BTreeSet<String>,
}

impl Lesson {
    pub fn number(&self) -> &str {
        self.name.split('_').next().unwrap_or_default()
    }
}

impl Sources {
    /// Reads the repository, which is the working directory.
    pub fn new() -> Result<Sources> {
        let headers = Headers::installed()?;
        let (names, numbers, lessons) = (Names::new(&headers), BTreeSet::new(), Vec::new());
        let without_program =
            files("lessons", "")?.into_iter().filter(|folder| Path::new(folder).join("holes").exists());
        let without_program = without_program.collect();
        let mut sources = Sources { headers, names, numbers, versions: BTreeSet::new(), lessons, without_program };
        let common = texts(&tree("common/src"));
        // Beside the lessons stand the same programs in another language, which are no crates.
        let folders = files("lessons", "")?.into_iter();
        for folder in folders.filter(|folder| Path::new(folder).join("Cargo.toml").exists()) {
            let name = folder.trim_start_matches("lessons/").to_string();
            let text = evidence(&folder, &name);
            let things = sources.names.of(&text).into_iter().map(|name| name.thing).collect();
            sources.lessons.push(Lesson { name, things, numbers: numbers::all(&(text + &common)) });
        }
        let mut code = tree("lessons");
        // What the long test of `wire explain` has measured.
        code.push("tools/device/tests/all/explain.md".into());
        for folder in CODE.split(' ') {
            code.extend(files(&format!("tools/{folder}"), "").unwrap_or_default());
        }
        // A run in which one NIC is from this course, or which is of a protocol, belongs to no lesson with a program; nor one over TCP.
        let met = ["captures/met", OVER_TCP, PROTOCOLS].map(|folder| files(folder, ".pcapng"));
        let met = met.into_iter().collect::<Result<Vec<_>>>()?.concat();
        let met: String = met.iter().map(|path| recorded(path)).collect();
        let code = texts(&code) + &common;
        let differences = read("tools/device/differences.toml")? + &texts(&tree("tools/device/tests"));
        sources.versions = &numbers::versions(&code) | &numbers::versions(&differences);
        sources.numbers = numbers::all(&(code + &met));
        Ok(sources)
    }

    pub fn lesson(&self, number: &str) -> Option<&Lesson> {
        self.lessons.iter().find(|lesson| lesson.number() == number)
    }

    /// Whether there is a lesson of this number, be it a program or not.
    pub fn has_lesson(&self, number: &str) -> bool {
        let begin = format!("lessons/{number}_");
        self.lesson(number).is_some() || self.without_program.iter().any(|folder| folder.starts_with(&begin))
    }

    /// A lesson that is a program, which must be there.
    pub fn find(&self, number: &str) -> Result<&Lesson> {
        self.lesson(number).with_context(|| format!("there is no lesson {number}"))
    }

    /// Where a change is: `lessons/04_rdma_write/changes/wrong-key.md`.
    pub fn change(&self, lesson: &str, name: &str) -> Result<String> {
        let path = format!("lessons/{}/changes/{name}.md", self.find(lesson)?.name);
        ensure!(Path::new(&path).exists(), "there is no {path}");
        Ok(path)
    }
}

/// The files of a folder whose names end in a certain way, sorted, each with the folder's path before it.
pub fn files(folder: &str, ending: &str) -> Result<Vec<String>> {
    let paths = files::files(Path::new(folder), |path| files::name(path).ends_with(ending))?;
    Ok(paths.iter().map(|path| path.display().to_string()).collect())
}

/// The files of a folder and of all folders in it; none if there is no such folder.
pub fn tree(folder: &str) -> Vec<String> {
    let below = files::tree(Path::new(folder)).unwrap_or_default();
    below.into_iter().map(|below| format!("{folder}/{below}")).collect()
}

/// What is in those of the files that hold text.
fn texts(files: &[String]) -> String {
    files.iter().filter_map(|path| read(path).ok()).collect()
}

/// All that a lesson's code, steps, log and packets say.
fn evidence(folder: &str, name: &str) -> String {
    let mut text = texts(&[vec![format!("{folder}/steps.toml")], tree(&format!("{folder}/src"))].concat());
    let mut captures = files("captures", ".pcapng").unwrap_or_default();
    captures.retain(|path| path.starts_with(&format!("captures/{name}")));
    text.extend(captures.iter().map(|path| recorded(path)));
    text
}

/// All that a recorded run's log and packets say.
fn recorded(capture: &str) -> String {
    let lines = run(capture).unwrap_or_default();
    let said = lines.iter().map(|line| format!("{} {}\n", line.stage().unwrap_or_default(), line.said()));
    said.chain([packets(capture)]).collect()
}

/// All packets of a capture, with the fields' names, values and meanings, but without their bytes.
fn packets(capture: &str) -> String {
    let (mut text, bytes) = (String::new(), bytes(capture).unwrap_or_default());
    for row in rows(capture).unwrap_or_default() {
        text += &format!("{} {}\n", row.label, row.details.join(" "));
        let shown = excerpts::shown(&bytes, Which::Frame(row.frame)).unwrap_or_default();
        // The first line has the frame's number, which any other number may equal.
        let told = shown.lines().skip(1).filter(|line| !line.starts_with("  "));
        let fields = shown.lines().filter_map(|line| line.get(32..).filter(|_| line.starts_with("  ")));
        text.extend(told.chain(fields).flat_map(|line| [line, "\n"]));
    }
    text
}

pub fn rows(capture: &str) -> Result<Vec<Row>> {
    let events = Events::read(&bytes(capture)?[..]).and_then(|events| events.to_end().map(|()| events));
    Ok(events.with_context(|| capture.to_string())?.drawn())
}

/// What the program of one node said in a recorded run.
pub fn lines(capture: &str, node: &str) -> Result<Vec<Line>> {
    let (of_node, others): (Vec<_>, Vec<_>) = run(capture)?.into_iter().partition(|line| line.node == node);
    let known = others.into_iter().map(|line| line.node).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>();
    ensure!(!of_node.is_empty(), "{capture} has no log lines of `{node}`, but of {}", known.join(", "));
    Ok(of_node)
}

/// What the programs of all nodes said in a recorded run.
pub fn run(capture: &str) -> Result<Vec<Line>> {
    let (bytes, mut lines) = (bytes(capture)?, Vec::new());
    let mut reader = Reader::new(bytes.as_slice()).with_context(|| capture.to_string())?;
    while let Some(line) = reader.line().with_context(|| capture.to_string())? {
        lines.extend(Some(line).filter(|line| ![Line::LAB, Line::KERNEL].contains(&line.program.as_str())));
    }
    Ok(lines)
}
