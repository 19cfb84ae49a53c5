//! Exercises: what a reader mends in a lesson, or reads in a capture.

use crate::change::{Again, Change, Name, Options};
use crate::edit::Edit;
use crate::expected::Told;
use crate::page::{Page, Part, AGAIN, RUN_BY};
use crate::proof::Proof;
use crate::reading::Reading;
use crate::run::Place;
use anyhow::{ensure, Result};

#[derive(Debug, Clone)]
pub struct Exercise {
    pub name: Name,
    /// What it is about, in a few words.
    pub title: String,
    /// What is wrong, and where to look.
    pub task: String,
    /// What helps, one more after each failure.
    pub hints: Vec<String>,
    /// Told when it is solved.
    pub why: String,
    pub kind: Kind,
}

#[derive(Debug, Clone)]
pub enum Kind {
    /// Mend a lesson.
    Repair(Box<Repair>),
    /// Answer questions about a capture.
    Reading(Reading),
}

/// A hole in a lesson.
#[derive(Debug, Clone)]
pub struct Repair {
    /// Its edits make the hole; what must come of it is what a right solution does.
    pub change: Change,
    /// Exercises are judged on the device; their hole and the lesson's own source get the same verdict in the lab. Then comes
    /// what else somebody may make of the hole.
    pub proofs: Vec<Proof>,
}

/// The parts of a page in which solutions are, what they are called, whether they are right, and how many there have to be.
const SOLUTIONS: [(&str, &str, bool, usize); 2] = [("Right", "right", true, 1), ("Wrong", "wrong", false, 2)];
pub(crate) const HINTS: &str = "Hints";
const SOLVED: &str = "Solved";
pub(crate) const OUTCOME: &str = "Pass when";
const HOLE: &str = "The hole";
const QUESTIONS: &str = "The questions";

impl Exercise {
    pub fn of_page(name: Name, page: &Page) -> Result<Self> {
        let known = ["", RUN_BY, HINTS, SOLVED, OUTCOME, AGAIN, HOLE, QUESTIONS]
            .into_iter()
            .chain(SOLUTIONS.map(|(part, ..)| part));
        let known: Vec<&str> = known.collect();
        let unknown = page.parts.iter().find(|part| !known.contains(&part.kind()));
        ensure!(unknown.is_none(), "an exercise has no part `{}`", unknown.map_or("", |part| &part.name));
        let (task, hints) = (page.parts[0].prose(), list(&page.part(HINTS)?.prose()));
        ensure!(!task.is_empty() && !hints.is_empty(), "an exercise has a task, and hints");
        let kind = match page.parts(QUESTIONS).next() {
            Some(questions) => Kind::Reading(Reading::of_page(&name, &page.title, &questions.code("toml"))?),
            None => Kind::Repair(Box::new(Repair::of_page(name.clone(), page)?)),
        };
        Ok(Self { name, title: page.title.clone(), task, hints, why: page.part(SOLVED)?.prose(), kind })
    }

    pub fn repair(&self) -> Option<&Repair> {
        match &self.kind {
            Kind::Repair(repair) => Some(repair.as_ref()),
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
        let options = Options::of_page(page)?;
        let told = Told::parse(&page.part(OUTCOME)?.code("text"), options.sides())?;
        let hole = page.part(HOLE)?;
        let edits = Edit::of_diff(&hole.code("diff"))?;
        let again = Again::of_page(page, &told)?;
        let change = Change { name, edits, options, told, again, is_exercise: true };
        let first = if change.needs_kernel() { Place::Lab } else { Place::Device };
        let with = |kind: &str, edits: &[Edit], place, is_right, says: &str| {
            let name = Name { name: format!("{}-{kind}", change.name.name), ..change.name.clone() };
            let change = Change { name, edits: edits.to_vec(), ..change.clone() };
            Proof { change, program: None, place, is_right, says: says.to_owned() }
        };
        let mut proofs = Vec::new();
        let is_in_one = first == Place::Lab || change.options.device;
        for place in [first, Place::Lab].into_iter().take(if is_in_one { 1 } else { 2 }) {
            proofs.push(with("hole", &change.edits, place, false, &hole.said()));
            proofs.push(with("lesson", &[], place, true, ""));
        }
        let mut silent = hole.said().is_empty();
        for (heading, kind, is_right, least) in SOLUTIONS {
            let parts: Vec<&Part> = page.parts.iter().filter(|part| part.kind() == heading).collect();
            ensure!(parts.len() >= least, "an exercise has another right solution, and two wrong ones");
            for (number, part) in (1..).zip(parts) {
                let edits = [&change.edits[..], &Edit::of_diff(&part.code("diff"))?].concat();
                silent |= !is_right && part.said().is_empty();
                proofs.push(with(&format!("{kind}-{number}"), &edits, first, is_right, &part.said()));
            }
        }
        ensure!(!silent, "what the judge says stands below the hole, and below each wrong solution");
        Ok(Self { change, proofs })
    }
}

/// The items of a numbered list.
pub(crate) fn list(text: &str) -> Vec<String> {
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
        2. There.\n\n</details>\n\n<details><summary>Pass when</summary>\n\n```text\nserver says: the memory holds\n```\n\n</details>\n\n\
        <details><summary>Solved</summary>\n\nNothing yet.\n\n</details>\n\n<details><summary>The hole, and the judge</summary>\n\n```diff\n\
        --- src/server.rs\n-b\n+bb\n```\n\nThe judge says: empty\n\n## Right 1\n\n```diff\n--- src/server.rs\n-bb\n+B\n@@\n-c\n+C\n```\n\n\
        ## Wrong 1\n\n```diff\n--- src/server.rs\n-bb\n+x\n```\n\nThe judge says: none\n\n## Wrong 2\n\n```diff\n--- src/server.rs\n-bb\n+y\n```\n\n\
        The judge says: none\n\n</details>\n";

    pub(crate) fn parse(text: &str) -> Result<Exercise> {
        let name = Name { lesson: "lessons/04_rdma_write".into(), name: "early".into() };
        Exercise::of_page(name, &Page::parse(text)?)
    }

    #[test]
    fn a_page_tells_the_task_and_what_may_be_made_of_the_hole() {
        let exercise = parse(TEXT).unwrap();
        assert_eq!((exercise.hints.len(), exercise.hint(1), exercise.hint(9)), (2, "Where is it?", "There."));
        let repair = exercise.repair().unwrap();
        assert_eq!(repair.change.holes(), ["src/server.rs"]);
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
        assert!(error("## Wrong 1", "## Right 2").contains("two wrong ones"));
        assert!(error("The judge says: none", "").contains("below each wrong solution"));
    }

    #[test]
    fn an_exercise_is_proven_by_its_hole_by_the_lesson_and_by_other_solutions() {
        let proofs = |text: &str| parse(text).unwrap().repair().unwrap().proofs.clone();
        let told = |proof: Proof| {
            let Proof { change, place, is_right, says, .. } = proof;
            let source = change.apply("src/server.rs", "a\nb\nc\n").unwrap().replace('\n', "");
            format!("{source} {} {} {is_right} {says}", change.name.name, place.name())
        };
        let expected = [
            "abbc early-hole device false empty",
            "abc early-lesson device true ",
            "abbc early-hole lab false empty",
            "abc early-lesson lab true ",
            "aBC early-right-1 device true ",
            "axc early-wrong-1 device false none",
            "ayc early-wrong-2 device false none",
        ];
        assert_eq!(proofs(TEXT).into_iter().map(told).collect::<Vec<_>>(), expected);
        let in_lab = proofs(&TEXT.replace("Mend it.", "Mend it.\n\n## How it's run\n\n```toml\nkernel = true\n```"));
        assert!(in_lab.len() == 5 && in_lab.iter().all(|proof| proof.place == Place::Lab), "{in_lab:?}");
    }
}
