//! Where the lessons, and the references in C and Python, do what a step asks for: functions, by their names.

use crate::mine::Language;
use anyhow::{Context, Result};
use run::files::read;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// One program each that does what the lessons 01 to 07 do, in the folder of the lessons.
const IN_C: &str = "in_c/rdma.c";
const IN_PYTHON: &str = "in_python/rdma.py";

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
        let all = |file: &str, begins: &[&str], names: &[String]| {
            let file = lessons.join(file);
            names.iter().map(|name| function(&file, begins, name)).collect::<Result<Vec<_>>>()
        };
        match language {
            Language::C => all(IN_C, &[""], &self.c),
            Language::Python => all(IN_PYTHON, &["def "], &self.python),
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

/// A function in a source, or what a type has of them, with the comment above it: up to the next line that is not empty and begins
/// at the margin, with its closing brace.
fn function(file: &PathBuf, begins: &[&str], name: &str) -> Result<String> {
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
