//! Exercises: what a reader mends in a lesson, or reads in a capture.

use crate::change::Change;
use crate::edit::Edit;
use crate::kind::{READING, REPAIR};
use crate::page::{Name, Page, Solution, CUT, QUESTIONS, SOLVED};
use crate::proof::Proof;
use crate::reading::Reading;
use crate::run::Place;
use anyhow::Result;

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
    pub kind: Assignment,
}

#[derive(Debug, Clone)]
pub enum Assignment {
    /// Mend a lesson.
    Repair(Box<Repair>),
    /// Answer questions about a capture.
    Reading(Reading),
}

/// A hole in a lesson.
#[derive(Debug, Clone)]
pub struct Repair {
    /// Its edits make the hole, and its outcome is what a right solution does.
    pub change: Change,
    /// Exercises are judged on the device; their hole and the lesson's own source get the same verdict in the lab. Then comes
    /// what else somebody may make of the hole.
    pub proofs: Vec<Proof>,
}

impl Exercise {
    pub fn of_page(name: Name, page: &Page) -> Result<Self> {
        let kind = match page.parts(QUESTIONS).next() {
            Some(questions) => {
                READING.check(&name, page)?;
                Assignment::Reading(Reading::of_page(&name, &page.title, &questions.code("toml"))?)
            }
            None => Assignment::Repair(Box::new(Repair::of_page(name.clone(), page)?)),
        };
        let (task, why) = (page.parts[0].prose(), page.part(SOLVED)?.prose());
        Ok(Self { name, title: page.title.clone(), task, hints: page.hints()?, why, kind })
    }

    pub fn repair(&self) -> Option<&Repair> {
        match &self.kind {
            Assignment::Repair(repair) => Some(repair.as_ref()),
            Assignment::Reading(_) => None,
        }
    }

    /// The hint after this many failures; the last one stays.
    pub fn hint(&self, failures: usize) -> &str {
        self.hints.get(failures.saturating_sub(1)).or(self.hints.last()).map_or("", String::as_str)
    }
}

impl Repair {
    fn of_page(name: Name, page: &Page) -> Result<Self> {
        REPAIR.check(&name, page)?;
        let hole = page.part(CUT)?;
        let change = Change::judged(name, Edit::of_diff(&hole.code("diff"))?, page)?;
        let first = if change.needs_kernel() { Place::Lab } else { Place::Device };
        let is_in_one = first == Place::Lab || change.options.device;
        let mut proofs = Vec::new();
        for place in [first, Place::Lab].into_iter().take(if is_in_one { 1 } else { 2 }) {
            proofs.push(Proof::of(&change, "hole", change.edits.clone(), place).refused(&hole.said()));
            proofs.push(Proof::of(&change, "lesson", Vec::new(), place));
        }
        for solution in page.solutions()? {
            let edits = [&change.edits[..], &solution.edits].concat();
            proofs.push(Proof::of_solution(&change, Solution { edits, ..solution }, first));
        }
        Ok(Self { change, proofs })
    }
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
        assert!(error("Mend it.", "").contains("`` lacks its prose"));
        assert!(error("Hints", "Hinst").contains("no part `Hinst`"));
        assert!(error("## Wrong 1", "## Right 2").contains("at least 2 of the part `Wrong`"));
        assert!(error("The judge says: none", "").contains("lacks its `The judge says"));
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
