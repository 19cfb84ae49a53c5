//! What has to be tried to prove a change: that it comes out as told, that an exercise can be solved, and that its judge is no
//! yes-man.

use crate::change::{Change, Edit};
use crate::run::{Outcome, Place};
use anyhow::Result;

/// One trial.
#[derive(Debug, Clone)]
pub struct Proof {
    /// The lesson with these edits.
    pub change: Change,
    /// Where it is tried.
    pub place: Place,
    /// Whether all must be as told.
    pub is_right: bool,
    /// A part of what the judge must say if it is not.
    pub says: String,
}

impl Proof {
    /// Whether it came out as it must: what is wrong has to build, or it would fail for another reason.
    ///
    /// # Errors
    /// The run file is damaged.
    pub fn is_met_by(&self, outcome: &Outcome) -> Result<bool> {
        if self.is_right {
            return Ok(outcome.is_as_told(&self.change));
        }
        let has_failed = matches!(outcome, Outcome::Ran { .. }) && !outcome.is_as_told(&self.change);
        Ok(has_failed && outcome.complaint()?.contains(&self.says))
    }
}

impl Change {
    /// Where people try it unless they say otherwise.
    #[must_use]
    pub fn place(&self) -> Place {
        if self.task.is_none() || self.needs_kernel() {
            Place::Lab
        } else {
            Place::Device
        }
    }

    /// On the device it comes as it is told of the lab, too, unless a row of the device's table of differences names it. None
    /// if that cannot be tried.
    #[must_use]
    pub fn on_device(&self, named: &[String]) -> Option<Proof> {
        let is_possible = self.task.is_none() && self.compile.is_none() && !self.needs_kernel();
        let is_right = !named.contains(&self.full_name());
        is_possible.then(|| Proof { change: self.clone(), place: Place::Device, is_right, says: String::new() })
    }

    /// All trials. The reference of what pages quote is the lab; exercises are judged on the device, and their hole and the
    /// lesson's own source get the same verdict in the lab.
    #[must_use]
    pub fn proofs(&self) -> Vec<Proof> {
        let place = self.place();
        if self.task.is_none() || self.is_reading() {
            return vec![Proof { change: self.clone(), place, is_right: true, says: String::new() }];
        }
        let with = |name: &str, edits: &[Edit], is_right, says: &str| {
            let change = Self { name: format!("{}-{name}", self.name), edits: edits.to_vec(), ..self.clone() };
            Proof { change, place, is_right, says: says.to_owned() }
        };
        let mut proofs = vec![with("hole", &self.edits, false, &self.says), with("lesson", &[], true, "")];
        if place == Place::Device {
            let again: Vec<Proof> = proofs.iter().map(|proof| Proof { place: Place::Lab, ..proof.clone() }).collect();
            proofs.extend(again);
        }
        let kinds = [
            (&self.right, "right", true),
            (&self.wrong, "wrong", false),
            // None is right. That the judge takes them is what is proven, so that one that does not is noticed.
            (&self.accepted_today, "accepted", true),
        ];
        for (solutions, word, is_right) in kinds {
            proofs.extend((1..).zip(solutions).map(|(number, solution)| {
                with(&format!("{word}-{number}"), &solution.edits(&self.edits), is_right, &solution.says)
            }));
        }
        proofs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const TEXT: &str = r#"
        title = "Look too early"
        task = "Mend it"
        hints = ["Where?"]
        why = "Nothing yet."
        says = "empty"
        [[edits]]
        file = "src/server.rs"
        from = "b"
        to = "bb"
        [[outcome]]
        node = "server"
        line = "the memory holds"
        [[right]]
        file = "src/server.rs"
        from = "bb"
        to = "b "
        also = [{ file = "src/server.rs", from = "c", to = "C" }]
        [[accepted_today]]
        file = "src/server.rs"
        from = "bb"
        to = "B"
        says = "what is looked at is not what was written"
    "#;

    #[test]
    fn an_exercise_is_proven_by_its_hole_by_the_lesson_and_by_other_solutions() {
        let of = |proof: Proof| {
            let source = proof.change.apply("src/server.rs", "abc").unwrap();
            (source, proof.change.name, proof.place, proof.is_right, proof.says)
        };
        let proofs = |text: &str| {
            let exercise = Change::parse(Path::new("lessons/04_rdma_write"), "early", text).unwrap();
            exercise.proofs().into_iter().map(of).collect::<Vec<_>>()
        };
        let expected = [
            ("abbc", "early-hole", Place::Device, false, "empty"),
            ("abc", "early-lesson", Place::Device, true, ""),
            ("abbc", "early-hole", Place::Lab, false, "empty"),
            ("abc", "early-lesson", Place::Lab, true, ""),
            ("ab C", "early-right-1", Place::Device, true, ""),
            ("aBc", "early-accepted-1", Place::Device, true, "what is looked at is not what was written"),
        ];
        let owned = |(source, name, place, is_right, says): (&str, &str, Place, bool, &str)| {
            (source.to_owned(), name.to_owned(), place, is_right, says.to_owned())
        };
        assert_eq!(proofs(TEXT), expected.map(owned));
        let in_lab = proofs(&TEXT.replace("why =", "kernel = true\nwhy ="));
        assert!(in_lab.len() == 4 && in_lab.iter().all(|(_, _, place, ..)| *place == Place::Lab), "{in_lab:?}");
    }
}
