//! Where the lessons, and the references in C and Python, do what a step asks for: functions, by their names.

use crate::change::{Again, Change, Options};
use crate::mine::Language;
use crate::project::Project;
use anyhow::{Context, Result};
use run::files::{name, output, read};
use serde::Deserialize;
use std::path::Path;
use std::process::Command;

/// The programs, in C and in Python, in the folder of the lessons: one does what the lessons 01 to 07 do, the other lesson 11.
const CONNECTIONS: [&str; 2] = ["in_c/rdma.c", "in_python/rdma.py"];
const DATAGRAMS: [&str; 2] = ["in_c/datagrams.c", "in_python/datagrams.py"];
const LESSON_OF_DATAGRAMS: &str = "11";
/// What they call in Python, as a learner's program also does.
const MORE: &str = "in_python/more.py";

/// Functions that do what a step asks for.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// A file of the lesson, and a function of it or of a type in it, or a type with its functions: `src/server.rs: listen`.
    pub rust: Vec<String>,
    pub c: Vec<String>,
    pub python: Vec<String>,
}

impl Reference {
    /// The functions in a language, as they are in their files.
    pub fn functions(&self, lesson: &Path, language: Language) -> Result<Vec<String>> {
        let lessons = lesson.parent().context("a lesson must be in the folder lessons/")?;
        let [in_c, in_python] = files(lesson);
        match language {
            Language::C => self.c.iter().map(|name| function(&lessons.join(in_c), &[""], name)).collect(),
            Language::Python => {
                let named = |name: &String| {
                    let of = |file: &str| function(&lessons.join(file), &["def "], name);
                    of(in_python).or_else(|_| of(MORE))
                };
                self.python.iter().map(named).collect()
            }
            Language::Rust => {
                let of_lesson = |named: &String| {
                    let form = "a reference in Rust is written as `src/server.rs: listen`";
                    let (file, name) = named.split_once(": ").context(form)?;
                    function(&lesson.join(file), &["fn ", "struct ", "impl "], name)
                };
                self.rust.iter().map(of_lesson).collect()
            }
        }
    }
}

/// The references of a lesson, in C and in Python.
fn files(lesson: &Path) -> [&'static str; 2] {
    if name(lesson).starts_with(LESSON_OF_DATAGRAMS) {
        DATAGRAMS
    } else {
        CONNECTIONS
    }
}

/// The references as they are run from the folder of the lessons, each with a word for it.
pub(crate) fn programs(lesson: &Path) -> [(&'static str, String); 2] {
    let (lessons, [in_c, in_python]) = (lesson.parent().unwrap_or(lesson).display(), files(lesson));
    let c = in_c.trim_end_matches(".c");
    [("c", format!("'{lessons}/{c}'")), ("python", format!("python3 -u '{lessons}/{in_python}'"))]
}

/// The change as a reference is run: that of several lessons must be told which.
pub(crate) fn told_lesson(change: &Change) -> Change {
    if files(&change.name.lesson) == DATAGRAMS {
        return change.clone();
    }
    let number = format!(" --lesson {}", change.name.number().trim_start_matches('0'));
    let told = |options: &Options| {
        let of_node = |line: &String| if line.starts_with("lesson ") { line.clone() + &number } else { line.clone() };
        let nodes = options.nodes.iter().map(|(node, line)| (node.clone(), of_node(line))).collect();
        let (server, client) = (options.server.clone() + &number, options.client.clone() + &number);
        Options { server, client, nodes, ..options.clone() }
    };
    let again = change.again.iter().map(|again| Again { options: told(&again.options), ..again.clone() }).collect();
    Change { options: told(&change.options), again, ..change.clone() }
}

/// Builds the references in C.
///
/// # Errors
/// What the compiler says.
pub fn build(project: &Project) -> Result<()> {
    let folder = project.root.join("lessons/in_c");
    let mut make = Command::new("make");
    make.arg("-s").env_remove("MAKEFLAGS").env_remove("MAKELEVEL").current_dir(folder);
    output(&mut make).map(drop)
}

/// A function in a source, or what a type has of them; in Rust also one function of a type.
fn function(file: &Path, begins: &[&str], name: &str) -> Result<String> {
    let text = read(file)?;
    let margins: &[&str] = if begins.contains(&"fn ") { &["", "    "] } else { &[""] };
    let found = margins.iter().find_map(|margin| function_at(&text, margin, begins, name));
    found.with_context(|| format!("there is no {name} in {}", file.display()))
}

/// A function that begins at this margin, with the comment above it: up to the next line that is not empty and begins there, too,
/// with its closing brace.
fn function_at(text: &str, margin: &str, begins: &[&str], name: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().map(|line| line.strip_prefix(margin).unwrap_or(line)).collect();
    let is_begin = |line: &&str| {
        let is_named =
            |begin: &&str| line.split(['(', '<', ' ', '{', '*']).any(|word| word == name) && line.contains(*begin);
        !line.starts_with([' ', '\t', '/', '*', '#'])
            && (line.contains('(') || line.starts_with("impl "))
            && !line.ends_with(';')
            && begins.iter().any(is_named)
    };
    let at = lines.iter().position(is_begin)?;
    let is_comment = |line: &&&str| line.starts_with(['/', '*', '#', '@']) || line.starts_with(" *");
    let above = lines[..at].iter().rev().take_while(is_comment).count();
    let is_inside = |line: &&&str| line.is_empty() || line.starts_with([' ', '\t', ')']);
    let length = 1 + lines[at + 1..].iter().take_while(is_inside).count();
    let end =
        (at + length + usize::from(lines.get(at + length).is_some_and(|line| line.starts_with('}')))).min(lines.len());
    let shown: Vec<&str> = lines[at - above..end].to_vec();
    Some(format!("{}\n", shown.join("\n").trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::Step;

    #[test]
    fn what_a_step_names_is_there() {
        for step in Step::all(&Project::find().unwrap()).unwrap() {
            for language in [Language::Rust, Language::C, Language::Python] {
                let found = step.reference.functions(&step.name.lesson, language);
                assert!(found.is_ok(), "{}: {:#}", step.name, found.unwrap_err());
            }
        }
    }

    #[test]
    fn a_function_of_a_type_is_shown_alone() {
        let text =
            "impl Box {\n    /// Puts.\n    fn put(&self) {\n        more()\n    }\n\n    fn take(&self) {}\n}\n";
        assert_eq!(function_at(text, "", &["fn "], "put"), None);
        assert_eq!(function_at(text, "    ", &["fn "], "put").unwrap(), "/// Puts.\nfn put(&self) {\n    more()\n}\n");
    }
}
