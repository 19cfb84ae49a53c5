//! Edits of a lesson's source: a change's own, and what somebody makes of the hole of an exercise.

use serde::Deserialize;

/// One place in a file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// The file, below the lesson's folder.
    pub file: String,
    /// What stands there now, exactly once.
    pub from: String,
    /// What stands there then.
    pub to: String,
}

impl Edit {
    /// Whether a line that this takes out is taken out by another one, too.
    pub(crate) fn is_told_by(&self, other: &Edit) -> bool {
        let (ours, theirs) = (self.taken_out(), other.taken_out());
        let tells = |ours: &str| theirs.iter().any(|theirs| ours.contains(theirs) || theirs.contains(ours));
        self.file == other.file && ours.into_iter().any(tells)
    }

    fn taken_out(&self) -> Vec<&str> {
        let stays = |line: &str| self.to.lines().any(|other| other.trim() == line);
        // `Ok(())` and braces alone tell nothing.
        self.from.lines().map(str::trim).filter(|line| line.len() > 8 && !stays(line)).collect()
    }
}

/// What somebody may make of a hole.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Solution {
    file: String,
    from: String,
    to: String,
    #[serde(default)]
    also: Vec<Edit>,
    /// A part of what the judge says about it, or would have to say.
    #[serde(default)]
    pub says: String,
}

impl Solution {
    /// The hole, and then what was made of it.
    pub(crate) fn edits(&self, hole: &[Edit]) -> Vec<Edit> {
        let Self { file, from, to, also, .. } = self.clone();
        [hole, &[Edit { file, from, to }], &also].concat()
    }
}
