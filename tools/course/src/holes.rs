//! What a person sees of the NIC that she builds: `make begin device`, `make nic`.

use crate::watch;
use anyhow::{Context, Result};
use course::markdown;
use course::nic::blame::{self, Culprit};
use course::nic::build::Built;
use course::nic::copy::{MineNic, FOLDER};
use course::nic::cut::body;
use course::nic::hole::Hole;
use course::nic::judge;
use course::nic::stairs;
use course::project::Project;
use course::show::{bold, checked};
use run::files::read;
use run::lanes::Style;
use std::io::{stdout, Write};
use std::mem;
use std::path::PathBuf;

/// What is noted of a hole.
const TOLD: &str = "told";
const HINT: &str = "hint";
const DONE: &str = "done";

/// Lays the NIC out, or brings what is there up to date, and tells the first hole.
pub fn begin(project: &Project) -> Result<bool> {
    let holes = Hole::all(project)?;
    let mine = MineNic::new(project.root.join(FOLDER));
    let is_new = MineNic::find(project).is_none();
    let left = mine.lay_out(project, &holes)?;
    match is_new {
        true => writeln!(stdout(), "Your NIC is {FOLDER}/: the device's core, with {} holes in it.\n", holes.len())?,
        false => writeln!(
            stdout(),
            "{FOLDER}/ is already there. What you've written stays, and the rest is brought up to date.\n"
        )?,
    }
    for file in left {
        writeln!(
            stdout(),
            "{FOLDER}/{file} stays as it is, because you've changed more than its holes. The current one is tools/{file}."
        )?;
    }
    next(project, false, false)
}

/// Builds the device around it, on which `make lesson-04 on=mine` runs.
pub fn device(project: &Project) -> Result<bool> {
    let mine = found(project)?;
    writeln!(stdout(), "Building the device with the NIC in {FOLDER}/ …")?;
    built(mine.build_device(project, Style::of_output().color)?).map(|program| program.is_some())
}

/// Judges the holes in order, and shows the first one that is not filled, perhaps with one hint more. One that is told for the first time
/// is what comes next, and no failure.
pub fn next(project: &Project, watch: bool, mut hint: bool) -> Result<bool> {
    let (mine, holes) = (found(project)?, Hole::all(project)?);
    let known = || holes.iter().filter(|hole| mine.0.progress().has(TOLD, &hole.name)).count();
    let before = known();
    let is_good = || look(project, &mine, &holes, mem::take(&mut hint));
    Ok(watch::judged(watch, || mine.0.sources(), is_good)? || known() > before)
}

/// The learner's NIC. What is not a hole is brought up to date, because the judge is today's.
fn found(project: &Project) -> Result<MineNic> {
    let mine = MineNic::find(project).context("you have no NIC yet: `make begin device` lays one out")?;
    mine.lay_out(project, &Hole::all(project)?)?;
    Ok(mine)
}

/// What was built; if it was not, what the compiler says is shown.
fn built(built: Built) -> Result<Option<PathBuf>> {
    if let Err(said) = &built {
        writeln!(stdout(), "{said}\nIt doesn't build yet. The compiler says where.")?;
    }
    Ok(built.ok())
}

fn look(project: &Project, mine: &MineNic, holes: &[Hole], hint: bool) -> Result<bool> {
    let style = Style::of_output();
    let Some(program) = built(mine.build_judge(project, style.color)?)? else { return Ok(false) };
    for ((at, hole), verdict) in holes.iter().enumerate().zip(judge::all(project, &program, holes)) {
        let verdict = verdict?;
        if !verdict.is_right {
            tell(project, mine, holes, at, &verdict.seen, hint, style)?;
            return Ok(false);
        }
        write!(stdout(), "{}", checked(&format!("{}: {}", hole.title, verdict.seen), true, "", style))?;
        answer(mine, hole, style)?;
        let lesson = hole.name.number();
        if holes.get(at + 1).map_or(true, |next| next.name.number() != lesson) {
            done(&lesson)?;
        }
    }
    writeln!(stdout(), "\nAll holes are filled. Run a lesson on your NIC: make lesson-04 on=mine")?;
    Ok(true)
}

/// The last hole of a lesson is filled: what runs on the NIC that did not run before.
fn done(lesson: &str) -> Result<()> {
    let runs = stairs::lessons(lesson);
    let on_it = match runs.as_slice() {
        [] => String::new(),
        [only] => format!(" Lesson {only} runs on your NIC now: make lesson-{only} on=mine"),
        [first, ..] => format!(" Lessons {} run on your NIC now: make lesson-{first} on=mine", runs.join(", ")),
    };
    writeln!(stdout(), "Lesson {lesson} is done.{on_it}")?;
    Ok(())
}

/// Tells what was asked when the hole was told, once.
fn answer(mine: &MineNic, hole: &Hole, style: Style) -> Result<()> {
    if mine.0.progress().has(TOLD, &hole.name) && !mine.0.progress().has(DONE, &hole.name) {
        mine.0.progress().note(DONE, &hole.name)?;
        let answer = markdown::plain(&format!("Answer to the prediction: {}", hole.answer), style.width);
        writeln!(stdout(), "\n{answer}")?;
    }
    Ok(())
}

/// A hole that is not filled: the task, if it is new; what was seen; and hints.
fn tell(
    project: &Project,
    mine: &MineNic,
    holes: &[Hole],
    at: usize,
    seen: &str,
    hint: bool,
    style: Style,
) -> Result<()> {
    let hole = &holes[at];
    let title = format!("Lesson {}: {}", hole.name.number(), hole.title);
    writeln!(stdout(), "\n{}\n", bold(&title, style.color))?;
    let place = place(mine, hole)?;
    if mine.0.progress().has(TOLD, &hole.name) {
        writeln!(stdout(), "In {place}.\n")?;
    } else {
        writeln!(
            stdout(),
            "{}\nWrite it in {place}. What the judge says of it so far:\n",
            markdown::page(&hole.task, style.width)
        )?;
        mine.0.progress().note(TOLD, &hole.name)?;
    }
    writeln!(stdout(), "{seen}\n")?;
    if !mine.is_open(hole)? {
        blame(project, mine, holes, at, style)?;
    }
    for hint in &hole.hints[..hints(mine, hole, hint)?] {
        write!(stdout(), "{}", markdown::plain(&format!("Hint: {hint}"), style.width))?;
    }
    writeln!(stdout(), "\nThe task again: {}", project.shown(&hole.page()))?;
    writeln!(stdout(), "When you've written it: make nic. For a hint: make nic ARGS=--hint")?;
    Ok(())
}

/// How many hints are told. The first try has none, unless one is asked for; then there is one, and one more each time that one is
/// asked for.
fn hints(mine: &MineNic, hole: &Hole, more: bool) -> Result<usize> {
    let tried = usize::from(!mine.is_open(hole)?);
    let told = |mine: &MineNic| mine.0.progress().times(HINT, &hole.name).max(tried).min(hole.hints.len());
    let wanted = told(mine) + usize::from(more);
    while mine.0.progress().times(HINT, &hole.name) < wanted && more {
        mine.0.progress().note(HINT, &hole.name)?;
    }
    Ok(told(mine))
}

/// Says where the fault is: what a hole's judge has seen may be another one's doing.
fn blame(project: &Project, mine: &MineNic, holes: &[Hole], at: usize, style: Style) -> Result<()> {
    let culprit = {
        let _waiting = run::waiting::wait_for("looking for the hole with the fault");
        blame::culprit(project, mine, holes, at)?
    };
    let Some(culprit) = culprit else { return Ok(()) };
    let found = match culprit {
        Culprit::Here => {
            "The fault is in this hole: it's still there with the project's own lines in all the others.".to_owned()
        }
        Culprit::Other { hole, alone } => {
            let (title, number, place) = (&hole.title, hole.name.number(), place(mine, hole)?);
            let rest = match alone {
                true => "With the project's own lines there, this one is right.",
                false => "But it isn't the only one: another hole before that also has a fault.",
            };
            format!("The fault is in another hole: {title}, of lesson {number}, in {place}. {rest}")
        }
        Culprit::Outside(files) => format!(
            "The fault isn't in a hole: it's still there with the project's own lines in all of them. You've changed other lines \
             of {}; the current ones are in tools/.",
            files.join(", ")
        ),
    };
    writeln!(stdout(), "{}", markdown::plain(&found, style.width))?;
    Ok(())
}

/// Where a hole is: file, line, function.
fn place(mine: &MineNic, hole: &Hole) -> Result<String> {
    let (file, function) = (&hole.place.file, &hole.place.function);
    let text = read(mine.0.folder.join(file))?;
    let line = text[..body(&text, function)?.start].lines().count();
    Ok(format!("{FOLDER}/{file}:{line}, fn {function}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_no_hint_before_the_first_try_unless_it_is_asked_for() {
        let (project, mine) = (Project::find().unwrap(), "course/test-of-hints");
        let (holes, mine) = (Hole::all(&project).unwrap(), MineNic::new(project.target.join(mine)));
        let _ = std::fs::remove_dir_all(&mine.0.folder);
        mine.lay_out(&project, &holes).unwrap();
        let told = |more: bool| hints(&mine, &holes[0], more).unwrap();
        assert_eq!((told(false), told(true), told(false)), (0, 1, 1));
        mine.fill(&holes[0], "42").unwrap();
        assert_eq!((told(false), told(true), told(true), told(false)), (1, 2, 3, 3));
        mine.fill(&holes[1], "42").unwrap();
        assert_eq!(hints(&mine, &holes[1], false).unwrap(), 1, "it was tried");
    }
}
