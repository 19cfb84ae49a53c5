//! Where a log line comes from: the line of a lesson's source that called for it.
//!
//! A lesson's program says so if the variable [`WANTED`] is set, in front of each line that it prints: `[at FILE:LINE] `. In a run
//! file that is `CODE_FILE` and `CODE_LINE`, as in systemd.journal-fields(7); and `LAB_CODE`, the text of that line, for what
//! is at a number may move.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The variable that makes programs say where each of their lines comes from, with any value.
pub const WANTED: &str = "LOG_SOURCE";

/// A line of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// Its file, from the folder in which it was compiled: `lessons/04_rdma_write/src/client.rs`.
    pub file: String,
    /// Counted from 1.
    pub line: usize,
    /// What is there, without the spaces around it; empty if nobody has looked.
    pub text: String,
}

impl Source {
    /// Takes `[at FILE:LINE] ` from the front of what a program said.
    pub(crate) fn split(text: &str) -> Option<(Source, &str)> {
        let (place, rest) = text.strip_prefix("[at ")?.split_once("] ")?;
        let (file, line) = place.rsplit_once(':')?;
        Some((Source { file: file.to_owned(), line: line.parse().ok()?, text: String::new() }, rest))
    }

    /// Its place in a file of today, from 0: the line that has its text, and of several that nearest to its number. One
    /// whose text nobody knows is nowhere: the file may have changed.
    pub fn find(&self, today: &str) -> Option<usize> {
        let alike = today.lines().enumerate().filter(|(_, line)| !self.text.is_empty() && line.trim() == self.text);
        alike.map(|(at, _)| at).min_by_key(|at| at.abs_diff(self.line.saturating_sub(1)))
    }
}

/// The sources of the lessons, each read when it is first named.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    /// The repository; None: there is none, and nothing is known.
    root: Option<PathBuf>,
    files: HashMap<String, Vec<String>>,
}

impl Sources {
    pub(crate) fn new() -> Sources {
        Sources { root: crate::files::root().ok(), files: HashMap::new() }
    }

    /// Looks up what is there.
    pub(crate) fn fill(&mut self, source: &mut Source) {
        let Some(root) = &self.root else { return };
        let lines =
            self.files.entry(source.file.clone()).or_insert_with(|| read(root, &source.file).unwrap_or_default());
        source.text = lines.get(source.line.wrapping_sub(1)).map(|line| line.trim().to_owned()).unwrap_or_default();
    }
}

/// Reads a lesson's source, and nothing else, whatever a program may name.
fn read(root: &Path, file: &str) -> Option<Vec<String>> {
    let path = fs::canonicalize(root.join(file)).ok()?;
    let is_source = path.starts_with(root.join("lessons").canonicalize().ok()?) && path.extension()? == "rs";
    let text = fs::read_to_string(path).ok().filter(|_| is_source)?;
    Some(text.lines().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_text_comes_from_nowhere() {
        for other in ["[at ", "[at x] y", "[at x:y] z", "[at x:1]", "[12:00:00.000 #0001 x] SLOW  y"] {
            assert_eq!(Source::split(other), None, "{other}");
        }
    }

    #[test]
    fn a_line_that_has_moved_is_found_and_one_that_has_changed_is_not() {
        let source = Source { file: "x.rs".into(), line: 2, text: "id.accept()?;".into() };
        assert_eq!(source.find("    id.accept()?;\n\n// new\n    id.accept()?;"), Some(0));
        assert_eq!(source.find("id.reject()?;\nid.reject()?;"), None);
        assert_eq!(Source { text: String::new(), ..source }.find("\n\n\n"), None);
    }

    #[test]
    fn lessons_are_looked_up_and_nothing_else_is() {
        let mut sources = Sources::new();
        let mut text = |file: &str, line| {
            let mut source = Source { file: file.into(), line, text: String::new() };
            sources.fill(&mut source);
            source.text
        };
        let lesson = "lessons/04_rdma_write/src/main.rs";
        assert!(text(lesson, 1).starts_with("//! Lesson 04"));
        assert_eq!((text(lesson, 0), text(lesson, 100_000)), Default::default());
        for file in ["/etc/passwd", "lessons/../tools/run/src/lib.rs", "lessons/04_rdma_write/steps.toml"] {
            assert_eq!(text(file, 1), "", "{file}");
        }
    }
}
