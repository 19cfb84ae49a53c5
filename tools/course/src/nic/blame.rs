//! In which hole a fault is. Later holes build on earlier ones: what is wrong in one that was taken for filled, a judge may notice only
//! then. The project's own bodies tell: with them in the holes before, this one is right, or wrong still.

use crate::nic::copy::{self, MineNic};
use crate::nic::cut::body;
use crate::nic::hole::Hole;
use crate::nic::judge::judge;
use crate::project::Project;
use anyhow::{Context, Result};
use run::files::{read, write};

/// The copy that is tried out, below target/course/.
const FOLDER: &str = "blame";

/// The hole with the fault, of these, of which the last one is judged wrong: that one, or one before it.
pub fn culprit<'a>(project: &Project, mine: &MineNic, holes: &'a [Hole]) -> Result<&'a Hole> {
    let (wrong, before) = holes.split_last().context("there is no hole")?;
    let tried = MineNic::new(project.target.join("course").join(FOLDER));
    tried.furnish(project)?;
    for file in copy::files(project)? {
        write(tried.0.folder.join(&file), read(mine.0.folder.join(&file))?)?;
    }
    // Whether it is right when so many of those before it have the project's bodies.
    let is_right = |count: usize| -> Result<bool> {
        for (at, hole) in before.iter().enumerate() {
            let text = read(mine.0.folder.join(&hole.place.file))?;
            let own = || Ok(text[body(&text, &hole.place.function)?].to_owned());
            tried.fill(hole, &if at < count { copy::solution(project, hole) } else { own() }?)?;
        }
        let program = tried.build_judge(project, false)?;
        program.map_or(Ok(false), |program| Ok(judge(project, &program, wrong)?.is_right))
    };
    // With `low` of them it is wrong, with `high` it is right: what lies between is halved.
    let (mut low, mut high) = (0, before.len());
    if !is_right(high)? {
        return Ok(wrong);
    }
    while high - low > 1 {
        let middle = (low + high) / 2;
        if is_right(middle)? {
            high = middle;
        } else {
            low = middle;
        }
    }
    Ok(&before[low])
}
