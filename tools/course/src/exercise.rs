//! Exercises: what a reader mends in a lesson, or reads in a capture.

use crate::change::{Change, Name, Options};
use crate::edit::Edit;
use crate::expected::Told;
use crate::page::Page;
use crate::reading::Reading;
use anyhow::{ensure, Result};

/// One exercise.
#[derive(Debug, Clone)]
pub struct Exercise {
    /// What it is called.
    pub name: Name,
    /// What it is about, in a few words.
    pub title: String,
    /// What is wrong, and where to look.
    pub task: String,
    /// What helps, one more after each failure.
    pub hints: Vec<String>,
    /// Told when it is solved.
    pub why: String,
    /// What there is to do.
    pub kind: Kind,
}

/// What there is to do in an exercise.
#[derive(Debug, Clone)]
pub enum Kind {
    /// Mend a lesson.
    Repair(Repair),
    /// Answer questions about a capture.
    Reading(Reading),
}

/// A hole in a lesson.
#[derive(Debug, Clone)]
pub struct Repair {
    /// Its edits make the hole; what must come of it is what a right solution does.
    pub change: Change,
    /// A part of what the judge says about the hole.
    pub says: String,
    /// What somebody may make of the hole.
    pub solutions: Vec<Solution>,
}

/// What somebody may make of a hole.
#[derive(Debug, Clone)]
pub struct Solution {
    /// What it is for the judge, and its number: `wrong-1`.
    pub name: String,
    /// Whether the judge takes it.
    pub is_taken: bool,
    /// The hole, and then what was made of it.
    pub edits: Vec<Edit>,
    /// A part of what the judge says about a wrong one, or why an accepted one is none.
    pub says: String,
}

/// The parts of a page in which solutions are, and whether the judge takes these. One that is accepted today is none: that the
/// judge takes it is what is proven, so that one that does not is noticed.
const SOLUTIONS: [(&str, &str, bool); 3] =
    [("Right", RIGHT, true), ("Wrong", WRONG, false), ("Accepted today", "accepted", true)];
const RIGHT: &str = "right";
const WRONG: &str = "wrong";
const HINTS: &str = "Hints";
const SOLVED: &str = "Solved";
const OUTCOME: &str = "What has to come of it";
const HOLE: &str = "The hole";
const QUESTIONS: &str = "The questions";

impl Exercise {
    /// Takes what a page says.
    pub fn of_page(name: Name, page: &Page) -> Result<Self> {
        let known = ["", HINTS, SOLVED, OUTCOME, HOLE, QUESTIONS].into_iter().chain(SOLUTIONS.map(|(part, ..)| part));
        let known: Vec<&str> = known.collect();
        let unknown = page.parts.iter().find(|part| !known.contains(&part.kind()));
        ensure!(unknown.is_none(), "an exercise has no part `{}`", unknown.map_or("", |part| &part.name));
        let (task, hints) = (page.parts[0].prose(), list(&page.part(HINTS)?.prose()));
        ensure!(!task.is_empty() && !hints.is_empty(), "an exercise has a task, and hints");
        let kind = match page.parts(QUESTIONS).next() {
            Some(questions) => Kind::Reading(Reading::of_page(&name, &page.title, &questions.code("toml"))?),
            None => Kind::Repair(Repair::of_page(name.clone(), page)?),
        };
        Ok(Self { name, title: page.title.clone(), task, hints, why: page.part(SOLVED)?.prose(), kind })
    }

    /// The hole, if there is one.
    pub fn repair(&self) -> Option<&Repair> {
        match &self.kind {
            Kind::Repair(repair) => Some(repair),
            Kind::Reading(_) => None,
        }
    }

    /// The hint after so many failures; the last one stays.
    pub fn hint(&self, failures: usize) -> &str {
        self.hints.get(failures.saturating_sub(1)).or(self.hints.last()).map_or("", String::as_str)
    }
}

impl Repair {
    fn of_page(name: Name, page: &Page) -> Result<Self> {
        let options: Options = basic_toml::from_str(&page.parts[0].code("toml"))?;
        let told = Told::parse(&page.part(OUTCOME)?.code("text"), options.sides())?;
        let hole = page.part(HOLE)?;
        let (edits, says) = (Edit::of_diff(&hole.code("diff"))?, hole.said());
        let mut solutions = Vec::<Solution>::new();
        let of = |kind: &str, all: &[Solution]| all.iter().filter(|solution| solution.name.starts_with(kind)).count();
        for part in &page.parts {
            let Some((_, kind, is_taken)) = SOLUTIONS.iter().find(|(name, ..)| *name == part.kind()) else { continue };
            let edits = [&edits[..], &Edit::of_diff(&part.code("diff"))?].concat();
            let name = format!("{kind}-{}", of(kind, &solutions) + 1);
            solutions.push(Solution { name, is_taken: *is_taken, edits, says: part.said() });
        }
        let is_enough = of(RIGHT, &solutions) > 0 && of(WRONG, &solutions) > 1;
        ensure!(is_enough, "an exercise has another right solution, and two wrong ones");
        let silent = solutions.iter().any(|solution| !solution.name.starts_with(RIGHT) && solution.says.is_empty());
        ensure!(
            !says.is_empty() && !silent,
            "what the judge says stands below the hole, and below each wrong solution"
        );
        Ok(Self { change: Change { name, edits, options, told, is_exercise: true }, says, solutions })
    }
}

/// The items of a numbered list.
fn list(text: &str) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    for line in text.lines() {
        let item = line.split_once(". ").filter(|(number, _)| number.parse::<u8>().is_ok());
        match (item, items.last_mut()) {
            (Some((_, item)), _) => items.push(item.to_owned()),
            (None, Some(last)) => *last = format!("{last} {}", line.trim()),
            (None, None) => items.push(line.to_owned()),
        }
    }
    items
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The hole makes "bb" of "b".
    pub(crate) const TEXT: &str = "# Look too early\n\n`make try-04-early`\n\nMend it.\n\n<details><summary>Hints</summary>\n\n1. Where\n   is it?\n\
        2. There.\n\n</details>\n\n<details><summary>What has to come of it</summary>\n\n```text\nserver says: the memory holds\n```\n\n</details>\n\n\
        <details><summary>Solved</summary>\n\nNothing yet.\n\n</details>\n\n<details><summary>The hole, and the judge</summary>\n\n```diff\n\
        --- src/server.rs\n-b\n+bb\n```\n\nThe judge says: empty\n\n### Right 1\n\n```diff\n--- src/server.rs\n-bb\n+B\n@@\n-c\n+C\n```\n\n\
        ### Wrong 1\n\n```diff\n--- src/server.rs\n-bb\n+x\n```\n\nThe judge says: none\n\n### Wrong 2\n\n```diff\n--- src/server.rs\n-bb\n+y\n```\n\n\
        The judge says: none\n\n### Accepted today 1\n\n```diff\n--- src/server.rs\n-bb\n+z\n```\n\nIt is none: it was not written.\n\n</details>\n";

    pub(crate) fn parse(text: &str) -> Result<Exercise> {
        let name = Name { lesson: "lessons/04_rdma_write".into(), name: "early".into() };
        Exercise::of_page(name, &Page::parse(text)?)
    }

    #[test]
    fn a_page_tells_the_task_and_what_may_be_made_of_the_hole() {
        let exercise = parse(TEXT).unwrap();
        assert_eq!((exercise.hints.len(), exercise.hint(1), exercise.hint(9)), (2, "Where is it?", "There."));
        let repair = exercise.repair().unwrap();
        assert_eq!((&*repair.says, repair.solutions.len(), repair.change.holes()), ("empty", 4, vec!["src/server.rs"]));
        let more = "@@\n-c\n+c // Exercise: here\n```\n\nThe judge says: empty";
        let exercise =
            parse(&TEXT.replace("```\n\nThe judge says: empty", &more.replace("@@", "--- src/worker.rs"))).unwrap();
        assert_eq!(exercise.repair().unwrap().change.holes(), ["src/worker.rs"], "where its word stands");
    }

    #[test]
    fn mistakes_in_a_page_are_named() {
        let error = |from: &str, to: &str| format!("{:#}", parse(&TEXT.replacen(from, to, 1)).unwrap_err());
        assert!(error("Mend it.", "").contains("a task, and hints"));
        assert!(error("Hints", "Hinst").contains("no part `Hinst`"));
        assert!(error("### Wrong 1", "### Right 2").contains("two wrong ones"));
        assert!(error("The judge says: none", "").contains("below each wrong solution"));
    }
}
