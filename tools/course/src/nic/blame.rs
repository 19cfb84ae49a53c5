//! In which hole a fault is. A hole's judge runs all of the NIC, so what it sees may be the fault of another hole: an earlier one whose
//! judge hasn't noticed, or a later one that the learner has written already. The project's own bodies tell. With them in the others
//! this hole is right, or still wrong.

use crate::nic::copy::{self, MineNic};
use crate::nic::cut::body;
use crate::nic::hole::Hole;
use crate::nic::judge::judge;
use crate::project::Project;
use anyhow::Result;
use run::files::{read, write};

/// The copy that is tried out, below target/course/.
const FOLDER: &str = "blame";

/// Where a fault is.
#[derive(Debug)]
pub enum Culprit<'a> {
    /// In the hole that was judged wrong.
    Here,
    /// In another one. `alone` says that this one is right as soon as that one is.
    Other { hole: &'a Hole, alone: bool },
    /// Not in a hole: other lines of these files aren't the project's.
    Outside(Vec<String>),
}

/// The NIC as the learner has written it, in a place where bodies can be exchanged.
struct Trial<'a> {
    project: &'a Project,
    mine: &'a MineNic,
    copy: MineNic,
    wrong: &'a Hole,
}

/// Finds the fault because of which one of the holes, the one at `at`, is judged wrong. None if nothing else is written, so that it can only
/// be there.
pub fn culprit<'a>(
    project: &'a Project,
    mine: &'a MineNic,
    holes: &'a [Hole],
    at: usize,
) -> Result<Option<Culprit<'a>>> {
    // Those that come before are asked first: it's built on them. One that's still open can't have a fault.
    let mut others = Vec::new();
    for hole in holes[..at].iter().chain(&holes[at + 1..]) {
        if !mine.is_open(hole)? {
            others.push(hole);
        }
    }
    let changed = mine.changed_outside(project, holes)?;
    if others.is_empty() && changed.is_empty() {
        return Ok(None);
    }
    let copy = MineNic::new(project.target.join("course").join(FOLDER));
    copy.furnish(project)?;
    let trial = Trial { project, mine, copy, wrong: &holes[at] };
    if !trial.is_right_with(&others)? {
        return trial.here_or_outside(changed, others).map(Some);
    }
    // With the first `low` of them it is wrong, with the first `high` it is right. What is between is halved.
    let (mut low, mut high) = (0, others.len());
    while high - low > 1 {
        let middle = (low + high) / 2;
        if trial.is_right_with(&others[..middle])? {
            high = middle;
        } else {
            low = middle;
        }
    }
    let Some(&hole) = others.get(low) else { return Ok(Some(Culprit::Here)) };
    Ok(Some(Culprit::Other { hole, alone: low == 0 || trial.is_right_with(&[hole])? }))
}

impl<'a> Trial<'a> {
    /// Whether the hole is right when these have the project's own bodies.
    fn is_right_with(&self, replaced: &[&Hole]) -> Result<bool> {
        for file in copy::files(self.project)? {
            write(self.copy.0.folder.join(&file), read(self.mine.0.folder.join(&file))?)?;
        }
        for hole in replaced {
            self.copy.fill(hole, &copy::solution(self.project, hole)?)?;
        }
        let program = self.copy.build_judge(self.project, false)?;
        program.map_or(Ok(false), |program| Ok(judge(self.project, &program, self.wrong)?.is_right))
    }

    /// The other holes have no part in it. So it's this one, unless the learner has changed more than holes.
    fn here_or_outside(&self, changed: Vec<String>, mut others: Vec<&'a Hole>) -> Result<Culprit<'a>> {
        others.push(self.wrong);
        if changed.is_empty() || self.is_right_with(&others)? {
            return Ok(Culprit::Here);
        }
        Ok(Culprit::Outside(changed))
    }
}

impl MineNic {
    /// Whether a hole is as it was laid out.
    pub fn is_open(&self, hole: &Hole) -> Result<bool> {
        let text = read(self.0.folder.join(&hole.place.file))?;
        let own = text[body(&text, &hole.place.function)?].lines().map(str::trim);
        Ok(own.eq(hole.stub.lines().map(str::trim)))
    }
}
