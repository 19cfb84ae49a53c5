//! What changes from one lesson to the next: little is taken away, and the pages show all of it. That holds for part one:
//! from lesson 08 on each lesson stands on `common`, and not on the one before.

use super::page::Problem;
use super::sources::{Lesson, Sources};
use anyhow::{ensure, Context, Result};
use std::process::Command;

/// How many lines a lesson may take away from the one before, and why so many. A lesson adds a stage to the one before;
/// what it takes away, the reader has learned for nothing.
///
/// These are the lessons of part one but the first; later ones are no continuation of their neighbours.
const BUDGET: [(&str, usize, &str); 6] = [
    ("02", 85, "the rejection is over: its stages on both sides go, and the headers that draw its packets"),
    ("03", 45, "the headers draw other packets; connect, accept and teardown take private data and memory regions"),
    ("04", 35, "the headers draw other packets; the client's buffer holds a payload instead of nothing"),
    ("05", 24, "the headers draw other packets; teardown has a second buffer; polling becomes sleeping"),
    ("06", 240, "the bigger step: one order of stages becomes a state machine, and polling becomes waiting for events"),
    ("07", 90, "who hangs up is agreed on with the mode; hanging up is a stage of its own that either side may begin"),
];

/// The difference between the sources of two lessons.
struct Diff {
    lines: Vec<String>,
    added: usize,
    removed: usize,
}

/// Lessons that take more away from the one before than they may.
pub fn problems(sources: &Sources) -> Vec<Problem> {
    let check = |pair: &[Lesson]| {
        let [old, new] = pair else { return None };
        let (_, most, _) = BUDGET.into_iter().find(|(number, ..)| new.number() == *number)?;
        let verdict = diff(sources, old, new).and_then(|diff| within_budget(&old.name, most, diff.removed));
        Some(Problem::new(&format!("lessons/{}", new.name), format!("{:#}", verdict.err()?)))
    };
    sources.lessons.windows(2).filter_map(check).collect()
}

fn within_budget(old: &str, most: usize, removed: usize) -> Result<()> {
    ensure!(
        removed <= most,
        "takes away {removed} lines of {old}, and may take {most}. Write lesson {old} so that this one only adds to it, \
         or raise the budget in tools/xtask/src/docs/diffs.rs and say why"
    );
    Ok(())
}

/// The size of the difference, and the command that shows it. Lessons are named by their numbers.
///
/// # Errors
/// There are no such lessons.
pub fn counted(sources: &Sources, old: &str, new: &str) -> Result<Vec<String>> {
    let (from, to) = (find(sources, old)?, find(sources, new)?);
    let Diff { added, removed, .. } = diff(sources, from, to)?;
    let command = format!("diff -urN lessons/{}/src lessons/{}/src", from.name, to.name);
    Ok(vec![
        format!("From lesson {old} to lesson {new}: {added} lines more, {removed} lines less."),
        format!("`{command}`"),
    ])
}

/// The difference as a folded part of a page of the book.
///
/// # Errors
/// There are no such lessons.
pub fn folded(sources: &Sources, old: &str, new: &str) -> Result<Vec<String>> {
    let Diff { lines, added, removed } = diff(sources, find(sources, old)?, find(sources, new)?)?;
    // The sources' own documentation has fenced blocks.
    let fence = if lines.iter().any(|line| line.contains("```")) { "````" } else { "```" };
    let head = [
        "<details>".to_string(),
        format!("<summary>From lesson {old} to lesson {new}: {added} lines more, {removed} lines less</summary>"),
        String::new(),
        format!("{fence}diff"),
    ];
    Ok([&head[..], &lines, &[fence.into(), String::new(), "</details>".into()]].concat())
}

fn find<'s>(sources: &'s Sources, number: &str) -> Result<&'s Lesson> {
    sources.lesson(number).with_context(|| format!("there is no lesson {number}"))
}

fn diff(sources: &Sources, old: &Lesson, new: &Lesson) -> Result<Diff> {
    let mut diff = Command::new("diff");
    diff.current_dir(sources.path("lessons")).env("TZ", "UTC").arg("-urN");
    diff.args([old, new].map(|lesson| format!("{}/src", lesson.name)));
    let output = diff.output().context("cannot run diff; install the package diffutils")?;
    // Status 1 only says that the files differ.
    ensure!(matches!(output.status.code(), Some(0 | 1)), "diff: {}", String::from_utf8_lossy(&output.stderr).trim());
    let text = String::from_utf8(output.stdout)?;
    let (mut lines, mut added, mut removed) = (Vec::new(), 0, 0);
    // The command itself stands before each file.
    for line in text.lines().filter(|line| !line.starts_with("diff -urN ")) {
        let file = line.split_once('\t').filter(|_| line.starts_with("--- ") || line.starts_with("+++ "));
        match file {
            // A file that is only on the other side is said to be from long ago.
            Some((name, date)) if date.starts_with("1970-") => lines.push(format!("{} /dev/null", &name[..3])),
            Some((name, _)) => lines.push(name.replacen(' ', " lessons/", 1)),
            None => {
                added += usize::from(line.starts_with('+'));
                removed += usize::from(line.starts_with('-'));
                lines.push(line.trim_end().into());
            }
        }
    }
    Ok(Diff { lines, added, removed })
}

#[cfg(test)]
mod tests {
    use super::super::sources::tests::repository;
    use super::*;

    #[test]
    fn the_next_lesson_may_take_away_only_so_much() {
        assert!(within_budget("04_rdma_write", 24, 24).is_ok());
        let error = within_budget("04_rdma_write", 24, 25).unwrap_err().to_string();
        assert!(error.contains("takes away 25 lines of 04_rdma_write, and may take 24"), "{error}");
    }

    #[test]
    fn a_diff_counts_the_lines_of_all_files() {
        let sources = repository();
        let lines = folded(sources, "05", "06").unwrap();
        let of = |sign: char| lines.iter().filter(|line| line.starts_with(sign)).count();
        let files = lines.iter().filter(|line| line.starts_with("+++ ")).count();
        let summary = format!("{} lines more, {} lines less", of('+') - files, of('-') - files);
        assert!(lines[1].contains(&summary), "{} {summary}", lines[1]);
        assert!(counted(sources, "05", "06").unwrap()[0].contains(&summary));
        assert!(lines.iter().any(|line| line == "--- /dev/null"), "lesson 06 has files that lesson 05 has not");
        assert!(folded(sources, "05", "99").is_err());
    }
}
