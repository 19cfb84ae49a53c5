//! Where the lessons, and the references in C and Python, do what a step asks for: functions, by their names.

use crate::change::{Again, Change, Options};
use crate::mine::Language;
use crate::project::Project;
use anyhow::{Context, Result};
use run::files::{output, read};
use serde::Deserialize;
use std::path::Path;
use std::process::Command;

/// One program each that does what the lessons 01 to 07 do, in the folder of the lessons.
const IN_C: &str = "in_c/rdma.c";
const IN_PYTHON: &str = "in_python/rdma.py";
/// What it calls, and a learner's program does, too.
const MORE: &str = "in_python/more.py";

/// Functions that do what a step asks for.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// A file of the lesson, and a function of it, or a type with its functions: `src/server.rs: listen`.
    pub rust: Vec<String>,
    pub c: Vec<String>,
    pub python: Vec<String>,
}

impl Reference {
    /// The functions in a language, as they stand in their files.
    pub fn functions(&self, lesson: &Path, language: Language) -> Result<Vec<String>> {
        let lessons = lesson.parent().context("a lesson lies in the folder of the lessons")?;
        match language {
            Language::C => self.c.iter().map(|name| function(&lessons.join(IN_C), &[""], name)).collect(),
            Language::Python => {
                let named = |name: &String| {
                    let of = |file: &str| function(&lessons.join(file), &["def "], name);
                    of(IN_PYTHON).or_else(|_| of(MORE))
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

/// The references as they are run from the folder of the lessons, each with a word for it.
pub(crate) fn programs(lesson: &Path) -> [(&'static str, String); 2] {
    let lessons = lesson.parent().unwrap_or(lesson).display();
    let c = IN_C.trim_end_matches(".c");
    [("c", format!("'{lessons}/{c}'")), ("python", format!("python3 -u '{lessons}/{IN_PYTHON}'"))]
}

/// The change as a reference is run: it has to be told which lesson.
pub(crate) fn told_lesson(change: &Change) -> Change {
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

/// Builds the reference in C.
///
/// # Errors
/// What the compiler says.
pub fn build(project: &Project) -> Result<()> {
    let folder = project.root.join("lessons/in_c");
    let mut make = Command::new("make");
    make.arg("-s").env_remove("MAKEFLAGS").env_remove("MAKELEVEL").current_dir(folder);
    output(&mut make).map(drop)
}

/// A function in a source, or what a type has of them, with the comment above it: up to the next line that is not empty and begins
/// at the margin, with its closing brace.
fn function(file: &Path, begins: &[&str], name: &str) -> Result<String> {
    let text = read(file)?;
    let lines: Vec<&str> = text.lines().collect();
    let is_begin = |line: &&str| {
        let is_named =
            |begin: &&str| line.split(['(', '<', ' ', '{', '*']).any(|word| word == name) && line.contains(*begin);
        !line.starts_with([' ', '\t', '/', '*', '#'])
            && (line.contains('(') || line.starts_with("impl "))
            && !line.ends_with(';')
            && begins.iter().any(is_named)
    };
    let at = lines.iter().position(is_begin).with_context(|| format!("there is no {name} in {}", file.display()))?;
    let is_comment = |line: &&&str| line.starts_with(['/', '*', '#', '@']) || line.starts_with(" *");
    let above = lines[..at].iter().rev().take_while(is_comment).count();
    let is_inside = |line: &&&str| line.is_empty() || line.starts_with([' ', '\t', ')']);
    let length = 1 + lines[at + 1..].iter().take_while(is_inside).count();
    let end =
        (at + length + usize::from(lines.get(at + length).is_some_and(|line| line.starts_with('}')))).min(lines.len());
    let shown: Vec<&str> = lines[at - above..end].to_vec();
    Ok(format!("{}\n", shown.join("\n").trim_end()))
}
