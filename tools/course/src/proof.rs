//! What has to be tried to prove a change: that it comes out as told, that an exercise can be solved, and that its judge is no
//! yes-man.

use crate::change::{Break, Change, Name};
use crate::edit::Edit;
use crate::exercise::Repair;
use crate::expected::Told;
use crate::run::{Outcome, Place};
use anyhow::Result;
use std::iter;

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
    pub fn is_met_by(&self, outcome: &Outcome) -> Result<bool> {
        if self.is_right {
            return Ok(outcome.is_as_told(&self.change));
        }
        let has_failed = matches!(outcome, Outcome::Ran { .. }) && !outcome.is_as_told(&self.change);
        Ok(has_failed && outcome.complaint()?.contains(&self.says))
    }
}

impl Break {
    /// All trials: the reference of what pages quote is the lab. On the device it comes as it is told of the lab, too, unless
    /// it is one of those `named` in the device's table of differences.
    pub fn proofs(&self, named: &[String]) -> Vec<Proof> {
        let in_lab = Proof { change: self.change.clone(), place: Place::Lab, is_right: true, says: String::new() };
        let is_right = !named.contains(&self.change.name.to_string());
        let on_device = self.is_for_device().then(|| Proof { place: Place::Device, is_right, ..in_lab.clone() });
        iter::once(in_lab).chain(on_device).collect()
    }

    /// Whether the device can show it.
    pub(crate) fn is_for_device(&self) -> bool {
        matches!(self.change.told, Told::Runs(_)) && !self.change.needs_kernel()
    }
}

impl Repair {
    /// All trials: exercises are judged on the device, and their hole and the lesson's own source get the same verdict in the
    /// lab.
    pub fn proofs(&self) -> Vec<Proof> {
        let place = if self.change.needs_kernel() { Place::Lab } else { Place::Device };
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
        let solutions = self.solutions.iter();
        proofs.extend(solutions.map(|of| with(&of.name, &of.edits, of.is_taken, &of.says)));
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
        let told = |Proof { change, place, is_right, says }: Proof| {
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
            "azc early-accepted-1 device true it was not written.",
        ];
        assert_eq!(proofs(TEXT).into_iter().map(told).collect::<Vec<_>>(), expected);
        let in_lab = proofs(&TEXT.replace("Mend it.", "Mend it.\n\n```toml\nkernel = true\n```"));
        assert!(in_lab.len() == 6 && in_lab.iter().all(|proof| proof.place == Place::Lab), "{in_lab:?}");
    }
}
