//! What must be tried to prove a change: that it comes out as told, that an exercise can be solved, and that its judge is no
//! yes-man.

use crate::change::{Break, Change};
use crate::edit::Edit;
use crate::edited;
use crate::page::{Name, Solution};
use crate::run::{Outcome, Place};
use anyhow::Result;
use judge::expected::Expectation;
use std::iter;

#[derive(Debug, Clone)]
pub struct Proof {
    /// The lesson with these edits.
    pub change: Change,
    /// The command that is run in place of it, if one is.
    pub program: Option<String>,
    pub place: Place,
    /// Whether all must be as told.
    pub is_right: bool,
    /// A part of what the judge must say if it is not.
    pub says: String,
}

impl Proof {
    /// A lesson with these edits comes out as it must; it's called as the change is, and so.
    pub(crate) fn of(change: &Change, kind: &str, edits: Vec<Edit>, place: Place) -> Self {
        let name = Name { name: format!("{}-{kind}", change.name.name), ..change.name.clone() };
        let change = Change { name, edits, ..change.clone() };
        Self { change, program: None, place, is_right: true, says: String::new() }
    }

    pub(crate) fn of_solution(change: &Change, solution: Solution, place: Place) -> Self {
        let Solution { name, is_right, edits, says } = solution;
        Self { is_right, says, ..Self::of(change, &name, edits, place) }
    }

    /// It doesn't, and this is a part of what the judge says.
    pub(crate) fn refused(self, says: &str) -> Self {
        Self { is_right: false, says: says.to_owned(), ..self }
    }

    /// A command is run in place of the lesson.
    pub(crate) fn by(self, program: String) -> Self {
        Self { program: Some(program), ..self }
    }

    /// Whether it is about a copy of the lesson with edits, which is built first.
    pub fn is_of_copy(&self) -> bool {
        !self.change.edits.is_empty() && edited::file(&self.change.edits).is_none()
    }

    /// Whether it came out as it must: what is wrong must build, or it would fail for another reason.
    pub fn is_met_by(&self, outcome: &Outcome) -> Result<bool> {
        if self.is_right {
            return Ok(outcome.is_as_told(&self.change));
        }
        let has_failed = matches!(outcome, Outcome::Ran { .. }) && !outcome.is_as_told(&self.change);
        Ok(has_failed && outcome.complaint()?.contains(&self.says))
    }
}

impl Break {
    /// All trials: the reference of what pages quote is the lab, unless only the device can show it. On the device it comes as it is
    /// told of the lab, too, unless it is one of those `named` in the device's table of differences.
    pub fn proofs(&self, named: &[String]) -> Vec<Proof> {
        let in_lab = Proof {
            change: self.change.clone(),
            program: None,
            place: Place::Lab,
            is_right: true,
            says: String::new(),
        };
        let is_right = !named.contains(&self.change.name.to_string());
        let on_device = self.is_for_device().then(|| Proof { place: Place::Device, is_right, ..in_lab.clone() });
        iter::once(in_lab).filter(|_| !self.change.options.device).chain(on_device).collect()
    }

    /// Whether the device can show it.
    pub(crate) fn is_for_device(&self) -> bool {
        matches!(self.change.told, Expectation::Runs(_)) && !self.change.needs_kernel()
    }
}
