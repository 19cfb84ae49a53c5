//! What changes from one lesson to the next: little is taken away, and the lesson's page shows every line that's added. That
//! holds for part one, because from lesson 08 on each lesson builds on `common` and not on the one before.

use super::page::Page;
use super::sources::{tree, Lesson, Sources};
use super::MORE;
use anyhow::{ensure, Context, Result};
use run::files::read;
use std::collections::BTreeSet;
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

struct Diff {
    lines: Vec<String>,
    added: usize,
    removed: usize,
}

/// Lessons that take more away from the one before than they may.
pub fn problems(sources: &Sources) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for (number, most, _) in BUDGET {
        let at = sources.lessons.iter().position(|lesson| lesson.number() == number);
        let Some([old, new]) = at.and_then(|at| sources.lessons.get(at.checked_sub(1)?..=at)) else { continue };
        let Diff { removed, .. } = diff(old, new)?;
        if removed > most {
            problems.push(format!(
                "lessons/{}: takes away {removed} lines of {old}, and may take {most}. Write lesson {old} so that this one \
                 only adds to it, or raise the budget in tools/xtask/src/docs/diffs.rs and say why",
                new.name,
                old = old.name
            ));
        }
    }
    Ok(problems)
}

/// The lessons whose pages show every line that they add.
const SHOWN: [&str; 7] = ["01", "02", "03", "04", "05", "06", "07"];

/// The lines that a lesson adds and its pages don't show (most have one, a long one has two). With all of them there, somebody
/// who has written the lesson before can write this one from its pages alone.
pub fn unshown(sources: &Sources, pages: &[Page]) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for number in SHOWN {
        let lesson = sources.find(number)?;
        let path = format!("docs/{}.md", lesson.name);
        let of_lesson = pages.iter().filter(|page| page.lesson() == Some(number) && !page.path.starts_with(MORE));
        let shown: BTreeSet<&str> = of_lesson.flat_map(shown).collect();
        let added = added(sources, lesson)?;
        let missing: Vec<&String> = added.iter().filter(|line| !shown.contains(line.as_str())).collect();
        println!(
            "docs: {path} shows {} of the {} lines that its lesson adds",
            added.len() - missing.len(),
            added.len()
        );
        let told = |line: &&String| format!("{path}: lesson {number} adds a line that its page doesn't show: {line}");
        problems.extend(missing.iter().map(told));
    }
    Ok(problems)
}

/// The lines of code on a page.
fn shown(page: &Page) -> impl Iterator<Item = &str> {
    page.blocks("rust").into_iter().flatten().map(|at| page.lines[at].trim())
}

/// The lines that a lesson has and the one before doesn't, without imports and the headers of files.
fn added(sources: &Sources, lesson: &Lesson) -> Result<Vec<String>> {
    let folder = format!("lessons/{}/src", lesson.name);
    let source = tree(&folder).iter().map(read).collect::<Result<String>>()?;
    let before = sources.lessons.iter().take_while(|it| it.number() < lesson.number()).last();
    let lines: Vec<String> = match before {
        Some(before) => {
            diff(before, lesson)?.lines.iter().filter_map(|line| line.strip_prefix('+').map(String::from)).collect()
        }
        None => source.lines().map(String::from).collect(),
    };
    let heads = heads(&source);
    let lines = lines.iter().filter(|line| !line.starts_with("++ ")).map(|line| line.trim().to_string());
    Ok(lines.filter(|line| !line.is_empty() && !heads.contains(line.as_str())).collect())
}

/// The lines of a source that only say what it is about and what it needs: `//!`, `mod`, and `use` up to its semicolon.
fn heads(source: &str) -> BTreeSet<&str> {
    let mut heads = BTreeSet::new();
    let mut within = false;
    for line in source.lines() {
        within = within || line.starts_with("use ");
        if within || line.starts_with("//!") || line.starts_with("mod ") {
            heads.insert(line.trim());
        }
        within = within && !line.ends_with(';');
    }
    heads
}

/// The size of the difference, and the command that shows it. Lessons are named by their numbers.
pub fn counted(sources: &Sources, old: &str, new: &str) -> Result<Vec<String>> {
    let (from, to) = (sources.find(old)?, sources.find(new)?);
    let command = format!("`diff -urN lessons/{}/src lessons/{}/src`", from.name, to.name);
    Ok(vec![format!("{}.", diff(from, to)?.size(old, new)), command])
}

/// The difference as a folded part of a page of the book.
pub fn folded(sources: &Sources, old: &str, new: &str) -> Result<Vec<String>> {
    let diff = diff(sources.find(old)?, sources.find(new)?)?;
    // The sources' own documentation has fenced blocks.
    let fence = if diff.lines.iter().any(|line| line.contains("```")) { "````" } else { "```" };
    let summary = format!("<summary>{}</summary>", diff.size(old, new));
    let head = ["<details>".into(), summary, String::new(), format!("{fence}diff")];
    Ok([&head[..], &diff.lines, &[fence.into(), String::new(), "</details>".into()]].concat())
}

impl Diff {
    fn size(&self, old: &str, new: &str) -> String {
        format!("From lesson {old} to lesson {new}: {} lines more, {} lines less", self.added, self.removed)
    }
}

fn diff(old: &Lesson, new: &Lesson) -> Result<Diff> {
    let mut diff = Command::new("diff");
    diff.current_dir("lessons").env("TZ", "UTC").arg("-urN");
    diff.args([old, new].map(|lesson| format!("{}/src", lesson.name)));
    let output = diff.output().context("cannot run diff; install the package diffutils")?;
    // Status 1 only says that the files differ.
    ensure!(matches!(output.status.code(), Some(0 | 1)), "diff: {}", String::from_utf8_lossy(&output.stderr).trim());
    let mut diff = Diff { lines: Vec::new(), added: 0, removed: 0 };
    // The command itself comes before each file.
    for line in String::from_utf8(output.stdout)?.lines().filter(|line| !line.starts_with("diff -urN ")) {
        let file = line.split_once('\t').filter(|_| line.starts_with("--- ") || line.starts_with("+++ "));
        diff.lines.push(match file {
            // A file that is only on the other side is said to be from long ago.
            Some((name, date)) if date.starts_with("1970-") => format!("{} /dev/null", &name[..3]),
            Some((name, _)) => name.replacen(' ', " lessons/", 1),
            None => line.trim_end().into(),
        });
        diff.added += usize::from(file.is_none() && line.starts_with('+'));
        diff.removed += usize::from(file.is_none() && line.starts_with('-'));
    }
    Ok(diff)
}
