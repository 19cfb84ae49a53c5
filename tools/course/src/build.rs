//! Builds what a run needs beside the program that is judged: lessons as they are, `common`'s examples, and what runs them all.

use crate::change::Change;
use crate::copy::{cargo, wait_for_compiler};
use crate::project::Project;
use anyhow::{ensure, Context, Result};
use std::iter;

/// What a program of `common`'s examples begins with in a command of a change, and a lesson as it is.
pub(crate) const EXAMPLES: &str = "examples/";
const UNTOUCHED: &str = "lesson-";

/// Builds the lab or the device, as it is named: a program of an earlier time would write another log than the judge of today reads.
pub fn build_runner(project: &Project, name: &str) -> Result<()> {
    let _waiting = wait_for_compiler();
    let status = cargo(project).args(["build", "-q", "-p", name]).status().context("cannot start cargo")?;
    ensure!(status.success(), "the {name} doesn't build; the compiler's messages are above");
    Ok(())
}

/// The words of all commands that a change has in place of the two sides.
fn words(change: &Change) -> impl Iterator<Item = &str> {
    let all = iter::once(&change.options).chain(change.again.iter().map(|again| &again.options));
    all.flat_map(|options| options.nodes.values()).flat_map(|line| line.split(' '))
}

/// The programs of `common`'s examples that a change runs.
fn examples(change: &Change) -> impl Iterator<Item = &str> {
    words(change).filter_map(|word| word.strip_prefix(EXAMPLES))
}

/// Builds what runs beside a program of somebody's own: lessons as they are, and examples.
pub fn build_others(project: &Project, change: &Change) -> Result<()> {
    let is_other = |word: &str| word.starts_with(EXAMPLES) || word.starts_with(UNTOUCHED);
    if words(change).any(is_other) {
        build_lessons(project, iter::once(change))?;
    }
    Ok(())
}

/// Builds lessons as they are that stand for a learner's program; what is no lesson is there already.
pub fn build_programs<'a>(project: &Project, programs: impl Iterator<Item = &'a str>) -> Result<()> {
    let lessons: Vec<String> =
        programs.filter(|name| name.starts_with(UNTOUCHED)).map(|name| format!("-p{name}")).collect();
    if !lessons.is_empty() {
        let _waiting = wait_for_compiler();
        let status = cargo(project).args(["build", "-q", "--bins"]).args(lessons).status();
        ensure!(
            status.context("cannot start cargo")?.success(),
            "the lessons don't build; the compiler's messages are above"
        );
    }
    Ok(())
}

/// Builds what changes run beside their copies: the lessons as they are, and examples.
pub fn build_lessons<'a>(project: &Project, changes: impl Iterator<Item = &'a Change> + Clone) -> Result<()> {
    let mut cargo = cargo(project);
    cargo
        .args(["build", "-q", "--bins"])
        .args(changes.clone().map(|change| format!("-plesson-{}", change.name.number())))
        .args(
            changes.clone().flat_map(words).filter(|word| word.starts_with(UNTOUCHED)).map(|word| format!("-p{word}")),
        );
    for example in changes.flat_map(examples) {
        cargo.args(["-pcommon", "--example", example]);
    }
    let _waiting = wait_for_compiler();
    ensure!(
        cargo.status().context("cannot start cargo")?.success(),
        "the lessons don't build; the compiler's messages are above"
    );
    Ok(())
}
