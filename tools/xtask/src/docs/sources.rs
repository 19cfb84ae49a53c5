//! What the pages are checked against: the repository's files, and the installed headers.

use super::excerpts;
use super::headers::Headers;
use super::names::Names;
use super::numbers;
use anyhow::{ensure, Context, Result};
use run::capture::Reader;
use run::file::{Event, Line};
use run::row::{self, Row};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use wire::show::bytes::Which;

/// The folders of tools/ whose numbers the pages may name.
const CODE: &str =
    "roce/src roce/src/cm run/src wire/src nic/src nic/src/qp nic/src/cm device/src device/src/rim lab/src lab";

/// The repository.
#[derive(Clone, Debug)]
pub struct Sources {
    root: PathBuf,
    /// The installed C headers.
    pub headers: Headers,
    /// What the headers and the decoder have names for.
    pub names: Names,
    /// The numbers in the code of the repository.
    pub numbers: BTreeSet<String>,
    /// The lessons, in order.
    pub lessons: Vec<Lesson>,
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
    /// Two digits.
    pub fn number(&self) -> &str {
        self.name.split('_').next().unwrap_or_default()
    }
}

impl Sources {
    /// Reads the repository in this folder.
    pub fn new(root: &Path) -> Result<Sources> {
        let headers = Headers::installed()?;
        let (names, numbers, lessons) = (Names::new(&headers), BTreeSet::new(), Vec::new());
        let mut sources = Sources { root: root.into(), headers, names, numbers, lessons };
        let common = sources.texts(&sources.tree("common/src"));
        for folder in sources.files("lessons", "")? {
            let name = folder.trim_start_matches("lessons/").to_string();
            let text = sources.evidence(&folder, &name);
            let things = sources.names.of(&text).into_iter().map(|name| name.thing).collect();
            sources.lessons.push(Lesson { name, things, numbers: numbers::all(&(text + &common)) });
        }
        let mut code = sources.tree("lessons");
        for folder in CODE.split(' ') {
            code.extend(sources.files(&format!("tools/{folder}"), "").unwrap_or_default());
        }
        sources.numbers = numbers::all(&(sources.texts(&code) + &common));
        Ok(sources)
    }

    /// Where a file or folder of the repository is.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// The text of a file.
    pub fn text(&self, path: &str) -> Result<String> {
        fs::read_to_string(self.path(path)).with_context(|| format!("cannot read {path}"))
    }

    /// The bytes of a file.
    pub fn bytes(&self, path: &str) -> Result<Vec<u8>> {
        fs::read(self.path(path)).with_context(|| format!("cannot read {path}"))
    }

    /// The files of a folder whose names end in a certain way, sorted, each with the folder's path before it.
    pub fn files(&self, folder: &str, ending: &str) -> Result<Vec<String>> {
        let entries = fs::read_dir(self.path(folder)).with_context(|| format!("cannot read the folder {folder}"))?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut files: Vec<String> =
            names.filter(|name| name.ends_with(ending)).map(|name| format!("{folder}/{name}")).collect();
        files.sort();
        Ok(files)
    }

    /// The files of a folder and of all folders in it; none if there is no such folder.
    pub fn tree(&self, folder: &str) -> Vec<String> {
        let (folders, files): (Vec<String>, Vec<String>) =
            self.files(folder, "").unwrap_or_default().into_iter().partition(|path| self.path(path).is_dir());
        files.into_iter().chain(folders.iter().flat_map(|folder| self.tree(folder))).collect()
    }

    /// What stands in those of the files that hold text.
    fn texts(&self, files: &[String]) -> String {
        files.iter().filter_map(|path| self.text(path).ok()).collect()
    }

    /// The lesson with this number.
    pub fn lesson(&self, number: &str) -> Option<&Lesson> {
        self.lessons.iter().find(|lesson| lesson.number() == number)
    }

    /// The same, which must be there.
    pub fn find(&self, number: &str) -> Result<&Lesson> {
        self.lesson(number).with_context(|| format!("there is no lesson {number}"))
    }

    /// Where a change is: `lessons/04_rdma_write/changes/wrong-key.md`.
    pub fn change(&self, lesson: &str, name: &str) -> Result<String> {
        let path = format!("lessons/{}/changes/{name}.md", self.find(lesson)?.name);
        ensure!(self.path(&path).exists(), "there is no {path}");
        Ok(path)
    }

    /// All that a lesson's code, steps, log and packets say.
    fn evidence(&self, folder: &str, name: &str) -> String {
        let mut text =
            self.texts(&[vec![format!("{folder}/steps.toml")], self.tree(&format!("{folder}/src"))].concat());
        let captures = self.files("captures", ".pcapng").unwrap_or_default();
        for path in captures.iter().filter(|path| path.starts_with(&format!("captures/{name}"))) {
            let lines = self.run(path).unwrap_or_default();
            text.extend(lines.iter().map(|line| format!("{} {}\n", line.stage().unwrap_or_default(), line.said())));
            text += &self.packets(path);
        }
        text
    }

    /// All packets of a capture, with the fields' names, values and meanings, but without their bytes.
    fn packets(&self, capture: &str) -> String {
        let (mut text, bytes) = (String::new(), self.bytes(capture).unwrap_or_default());
        for row in self.rows(capture).unwrap_or_default() {
            text += &format!("{} {}\n", row.label, row.details.join(" "));
            let shown = excerpts::shown(&bytes, Which::Frame(row.frame)).unwrap_or_default();
            // The first line has the frame's number, which any other number may equal.
            let told = shown.lines().skip(1).filter(|line| !line.starts_with("  "));
            let fields = shown.lines().filter_map(|line| line.get(32..).filter(|_| line.starts_with("  ")));
            text.extend(told.chain(fields).flat_map(|line| [line, "\n"]));
        }
        text
    }

    /// The packets of a capture.
    pub fn rows(&self, capture: &str) -> Result<Vec<Row>> {
        let bytes = self.bytes(capture)?;
        row::all(|| Reader::new(bytes.as_slice())).with_context(|| capture.to_string())
    }

    /// What the program of one node said in a recorded run.
    pub fn lines(&self, capture: &str, node: &str) -> Result<Vec<Line>> {
        let (of_node, others): (Vec<_>, Vec<_>) = self.run(capture)?.into_iter().partition(|line| line.node == node);
        let known = others.into_iter().map(|line| line.node).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>();
        ensure!(!of_node.is_empty(), "{capture} has no log lines of `{node}`, but of {}", known.join(", "));
        Ok(of_node)
    }

    /// What the programs of all nodes said in a recorded run.
    pub fn run(&self, capture: &str) -> Result<Vec<Line>> {
        let (bytes, mut lines) = (self.bytes(capture)?, Vec::new());
        let mut reader = Reader::new(bytes.as_slice()).with_context(|| capture.to_string())?;
        while let Some(event) = reader.event().with_context(|| capture.to_string())? {
            match event {
                Event::Line(line) if ![Line::LAB, Line::KERNEL].contains(&line.program.as_str()) => lines.push(line),
                _ => {}
            }
        }
        Ok(lines)
    }
}
