//! What has to be tried to prove a change: that it comes out as told, that an exercise can be solved, and that its judge is no
//! yes-man.

use crate::change::{Break, Change, Name};
use crate::edit::Edit;
use crate::exercise::{Repair, Verdict};
use crate::expected::Told;
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
        if self.is_exercise && !self.needs_kernel() {
            Place::Device
        } else {
            Place::Lab
        }
    }
}

impl Break {
    /// All trials: the reference of what pages quote is the lab.
    #[must_use]
    pub fn proofs(&self) -> Vec<Proof> {
        vec![Proof { change: self.change.clone(), place: Place::Lab, is_right: true, says: String::new() }]
    }

    /// On the device it comes as it is told of the lab, too, unless a row of the device's table of differences names it. None
    /// if that cannot be tried.
    #[must_use]
    pub fn on_device(&self, named: &[String]) -> Option<Proof> {
        let is_possible = matches!(self.change.told, Told::Runs(_)) && !self.change.needs_kernel();
        let is_right = !named.contains(&self.change.name.to_string());
        let (change, says) = (self.change.clone(), String::new());
        is_possible.then_some(Proof { change, place: Place::Device, is_right, says })
    }
}

impl Repair {
    /// All trials: exercises are judged on the device, and their hole and the lesson's own source get the same verdict in the
    /// lab.
    #[must_use]
    pub fn proofs(&self) -> Vec<Proof> {
        let place = self.change.place();
        let with = |name: &str, edits: &[Edit], is_right, says: &str| {
            let name = Name { name: format!("{}-{name}", self.change.name.name), ..self.change.name.clone() };
            let change = Change { name, edits: edits.to_vec(), ..self.change.clone() };
            Proof { change, place, is_right, says: says.to_owned() }
        };
        let mut proofs = vec![with("hole", &self.change.edits, false, &self.says), with("lesson", &[], true, "")];
        if place == Place::Device {
            let again: Vec<Proof> = proofs.iter().map(|proof| Proof { place: Place::Lab, ..proof.clone() }).collect();
            proofs.extend(again);
        }
        let kinds = [
            (Verdict::Right, "right", true),
            (Verdict::Wrong, "wrong", false),
            // None is right. That the judge takes them is what is proven, so that one that does not is noticed.
            (Verdict::Accepted, "accepted", true),
        ];
        for (verdict, word, is_right) in kinds {
            let solutions = self.solutions.iter().filter(|solution| solution.verdict == verdict);
            proofs.extend((1..).zip(solutions).map(|(number, solution)| {
                with(&format!("{word}-{number}"), &solution.edits, is_right, &solution.says)
            }));
        }
        proofs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exercise::tests::{parse, TEXT};

    #[test]
    fn an_exercise_is_proven_by_its_hole_by_the_lesson_and_by_other_solutions() {
        let proofs = |text: &str| parse(text).unwrap().repair().unwrap().proofs();
        let of = |Proof { change, place, is_right, says }: Proof| {
            let source = change.apply("src/server.rs", "a\nb\nc\n").unwrap().replace('\n', "");
            (source, change.name.name, place, is_right, says)
        };
        let expected = [
            ("abbc", "early-hole", Place::Device, false, "empty"),
            ("abc", "early-lesson", Place::Device, true, ""),
            ("abbc", "early-hole", Place::Lab, false, "empty"),
            ("abc", "early-lesson", Place::Lab, true, ""),
            ("aBC", "early-right-1", Place::Device, true, ""),
            ("axc", "early-wrong-1", Place::Device, false, "none"),
            ("ayc", "early-wrong-2", Place::Device, false, "none"),
            ("azc", "early-accepted-1", Place::Device, true, "it was not written."),
        ];
        let owned = |(source, name, place, is_right, says): (&str, &str, Place, bool, &str)| {
            (source.to_owned(), name.to_owned(), place, is_right, says.to_owned())
        };
        assert_eq!(proofs(TEXT).into_iter().map(of).collect::<Vec<_>>(), expected.map(owned));
        let in_lab = proofs(&TEXT.replace("Mend it.", "Mend it.\n\n```toml\nkernel = true\n```"));
        assert!(in_lab.len() == 6 && in_lab.iter().all(|proof| proof.place == Place::Lab), "{in_lab:?}");
    }
}
