//! What the pages are checked against: the repository's files.

use super::excerpts;
use super::headers::Headers;
use super::names::Names;
use super::numbers;
use anyhow::{ensure, Context, Result};
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use wire::capture::Reader;
use wire::run::{Event, Line};
use wire::show::bytes::Which;
use wire::show::row::{self, Row};

/// The repository.
#[derive(Clone, Debug)]
pub struct Sources {
    root: PathBuf,
    headers: OnceCell<Headers>,
    names: OnceCell<Names>,
    numbers: OnceCell<BTreeSet<String>>,
    evidence: RefCell<BTreeMap<String, Rc<str>>>,
    things: RefCell<BTreeMap<String, Rc<BTreeSet<String>>>>,
}

impl Sources {
    /// The repository in this folder.
    pub fn new(root: &Path) -> Sources {
        Sources {
            root: root.into(),
            headers: OnceCell::new(),
            names: OnceCell::new(),
            numbers: OnceCell::new(),
            evidence: RefCell::default(),
            things: RefCell::default(),
        }
    }

    /// Where a file or folder of the repository is.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// The text of a file.
    ///
    /// # Errors
    /// There is no such file, or it holds no text.
    pub fn text(&self, path: &str) -> Result<String> {
        fs::read_to_string(self.path(path)).with_context(|| format!("cannot read {path}"))
    }

    /// The bytes of a file.
    ///
    /// # Errors
    /// There is no such file.
    pub fn bytes(&self, path: &str) -> Result<Vec<u8>> {
        fs::read(self.path(path)).with_context(|| format!("cannot read {path}"))
    }

    /// The files of a folder whose names end in a certain way, sorted, each with the folder's path before it.
    ///
    /// # Errors
    /// There is no such folder.
    pub fn files(&self, folder: &str, ending: &str) -> Result<Vec<String>> {
        let entries = fs::read_dir(self.path(folder)).with_context(|| format!("cannot read the folder {folder}"))?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut files: Vec<String> =
            names.filter(|name| name.ends_with(ending)).map(|name| format!("{folder}/{name}")).collect();
        files.sort();
        Ok(files)
    }

    /// The files of a folder and of all folders in it, sorted; none if there is no such folder.
    fn tree(&self, folder: &str) -> Vec<String> {
        let (folders, files): (Vec<String>, Vec<String>) =
            self.files(folder, "").unwrap_or_default().into_iter().partition(|path| self.path(path).is_dir());
        files.into_iter().chain(folders.iter().flat_map(|folder| self.tree(folder))).collect()
    }

    /// The installed C headers.
    ///
    /// # Errors
    /// There are none.
    pub fn headers(&self) -> Result<&Headers> {
        if self.headers.get().is_none() {
            let _ = self.headers.set(Headers::installed(&self.root)?);
        }
        self.headers.get().context("the C headers")
    }

    /// What the headers and the decoder have names for.
    ///
    /// # Errors
    /// The headers are not installed.
    pub fn names(&self) -> Result<&Names> {
        if self.names.get().is_none() {
            let _ = self.names.set(Names::new(self)?);
        }
        self.names.get().context("the names")
    }

    /// The numbers in the code of the repository.
    pub fn numbers(&self) -> &BTreeSet<String> {
        self.numbers.get_or_init(|| self.all_numbers())
    }

    /// What all lessons call.
    pub fn common(&self) -> String {
        self.tree("common/src").iter().filter_map(|path| self.text(path).ok()).collect()
    }

    fn all_numbers(&self) -> BTreeSet<String> {
        let folders = ["wire/src", "wire/src/cm", "lab/src", "lab"];
        let files = folders.iter().flat_map(|folder| self.files(folder, "").unwrap_or_default());
        let files = files.chain(self.tree("lessons"));
        let text = self.common() + &files.filter_map(|path| self.text(&path).ok()).collect::<String>();
        numbers::of(&text).map(numbers::normal).collect()
    }

    /// The things that a lesson has names for.
    ///
    /// # Errors
    /// The headers are not installed.
    pub fn things(&self, lesson: &str) -> Result<Rc<BTreeSet<String>>> {
        let known = self.things.borrow().get(lesson).cloned();
        let things = match known {
            Some(things) => things,
            None => Rc::new(self.names()?.of(&self.evidence(lesson)).into_iter().map(|name| name.thing).collect()),
        };
        self.things.borrow_mut().insert(lesson.into(), things.clone());
        Ok(things)
    }

    /// All that a lesson is: its code, its steps, its logs, and its packets, field by field.
    pub fn evidence(&self, lesson: &str) -> Rc<str> {
        let known = self.evidence.borrow().get(lesson).cloned();
        let text = known.unwrap_or_else(|| self.gathered(lesson).into());
        self.evidence.borrow_mut().insert(lesson.into(), text.clone());
        text
    }

    fn gathered(&self, lesson: &str) -> String {
        let of_lesson = |path: &String| path.split('/').nth(1).is_some_and(|name| name.starts_with(lesson));
        let mut files = Vec::new();
        for folder in self.files("lessons", "").unwrap_or_default().iter().filter(|path| of_lesson(path)) {
            files.push(format!("{folder}/steps.toml"));
            files.extend(self.tree(&format!("{folder}/src")));
        }
        let mut text = String::new();
        for path in self.files("captures", "").unwrap_or_default().into_iter().filter(of_lesson) {
            if path.ends_with(".pcapng") {
                let lines = self.run(&path).unwrap_or_default();
                text.extend(lines.iter().map(|line| format!("{} {}\n", line.stage().unwrap_or_default(), line.said())));
                text += &self.packets(&path);
            }
        }
        text.extend(files.iter().filter_map(|path| self.text(path).ok()));
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
    ///
    /// # Errors
    /// There is no such capture, or it is damaged.
    pub fn rows(&self, capture: &str) -> Result<Vec<Row>> {
        let bytes = self.bytes(capture)?;
        row::all(|| Ok(Reader::new(bytes.as_slice())?)).with_context(|| capture.to_string())
    }

    /// What the program of one node said in a recorded run.
    ///
    /// # Errors
    /// There is no such capture, it is damaged, or it has no lines of that node.
    pub fn lines(&self, capture: &str, node: &str) -> Result<Vec<Line>> {
        let mut lines = self.run(capture)?;
        let nodes: BTreeSet<String> = lines.iter().map(|line| line.node.clone()).collect();
        lines.retain(|line| line.node == node);
        let known = nodes.into_iter().collect::<Vec<_>>().join(", ");
        ensure!(!lines.is_empty(), "{capture} has no log lines of `{node}`, but of {known}");
        Ok(lines)
    }

    /// What the programs of all nodes said in a recorded run.
    ///
    /// # Errors
    /// There is no such capture, or it is damaged.
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

    /// The folders of the lessons, sorted: `01_cm_listen` and so on.
    ///
    /// # Errors
    /// There is no folder `lessons`.
    pub fn lessons(&self) -> Result<Vec<String>> {
        let folders = self.files("lessons", "")?;
        Ok(folders.iter().filter_map(|path| path.strip_prefix("lessons/")).map(String::from).collect())
    }
}

#[cfg(test)]
pub mod tests {
    use super::Sources;

    /// This repository, whose captures the checks are tried with.
    pub fn repository() -> Sources {
        Sources::new(&crate::root())
    }
}
