//! What a person sees of the NIC that she builds: `make begin device`, `make nic`.

use crate::watch;
use anyhow::{Context, Result};
use course::markdown;
use course::nic::build::Built;
use course::nic::copy::{MineNic, FOLDER};
use course::nic::cut::body;
use course::nic::hole::Hole;
use course::nic::stairs;
use course::nic::{blame, judge};
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
        false => writeln!(stdout(), "{FOLDER}/ is there: what you have written stays, the rest is as it is today.\n")?,
    }
    for file in left {
        writeln!(
            stdout(),
            "{FOLDER}/{file} stays as it is: you have changed more than holes in it. Today's is tools/{file}."
        )?;
    }
    next(project, false, Told::default())
}

/// Builds the device around it, on which `make lesson-04 on=mine` runs.
pub fn device(project: &Project) -> Result<bool> {
    let mine = found(project)?;
    writeln!(stdout(), "Building the device with the NIC in {FOLDER}/ …")?;
    built(mine.build_device(project, Style::of_output().color)?).map(|program| program.is_some())
}

/// What is told besides, of a hole that is not filled.
#[derive(Debug, Clone, Copy, Default)]
pub struct Told {
    /// One hint more.
    pub hint: bool,
    /// In which hole the fault is.
    pub place: bool,
}

/// Judges the holes in order, and shows the first one that is not filled. One that is told for the first time is what comes next,
/// and no failure.
pub fn next(project: &Project, watch: bool, mut told: Told) -> Result<bool> {
    let (mine, holes) = (found(project)?, Hole::all(project)?);
    let known = || holes.iter().filter(|hole| mine.0.has(TOLD, &hole.name)).count();
    let before = known();
    let is_good = || look(project, &mine, &holes, mem::take(&mut told));
    Ok(watch::judged(watch, || mine.0.sources(), is_good)? || known() > before)
}

/// The learner's NIC, with what cargo needs as it is today.
fn found(project: &Project) -> Result<MineNic> {
    let mine = MineNic::find(project).context("you have no NIC yet: `make begin device` lays one out")?;
    mine.furnish(project)?;
    Ok(mine)
}

/// What was built; if it was not, what the compiler says is shown.
fn built(built: Built) -> Result<Option<PathBuf>> {
    if let Err(said) = &built {
        writeln!(stdout(), "{said}\nIt does not build yet: the compiler says where.")?;
    }
    Ok(built.ok())
}

fn look(project: &Project, mine: &MineNic, holes: &[Hole], told: Told) -> Result<bool> {
    let style = Style::of_output();
    let Some(program) = built(mine.build_judge(project, style.color)?)? else { return Ok(false) };
    for ((at, hole), verdict) in holes.iter().enumerate().zip(judge::all(project, &program, holes)) {
        let verdict = verdict?;
        if !verdict.is_right {
            tell(project, mine, &holes[..=at], &verdict.seen, told, style)?;
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
    if mine.0.has(TOLD, &hole.name) && !mine.0.has(DONE, &hole.name) {
        mine.0.note(DONE, &hole.name)?;
        let answer = markdown::plain(&format!("Your prediction: {}", hole.answer), style.width);
        writeln!(stdout(), "\n{answer}")?;
    }
    Ok(())
}

/// The last of these holes, which is not filled: the task, if it is new; what was seen; and what was asked for.
fn tell(project: &Project, mine: &MineNic, holes: &[Hole], seen: &str, told: Told, style: Style) -> Result<()> {
    let Some(hole) = holes.last() else { return Ok(()) };
    let title = format!("Lesson {}: {}", hole.name.number(), hole.title);
    writeln!(stdout(), "\n{}\n", bold(&title, style.color))?;
    let place = place(mine, hole)?;
    let is_new = !mine.0.has(TOLD, &hole.name);
    if !is_new {
        writeln!(stdout(), "In {place}.\n")?;
    } else {
        writeln!(stdout(), "{}\nWrite it in {place}. As it is now:\n", markdown::page(&hole.task, style.width))?;
        mine.0.note(TOLD, &hole.name)?;
    }
    writeln!(stdout(), "{seen}\n")?;
    if told.place {
        let culprit = blame::culprit(project, mine, holes)?;
        let found = match culprit.name == hole.name {
            true => "The fault is in this hole: with the project's own lines in all holes before it, it is the same.".to_owned(),
            false => format!(
                "The fault is in a hole before: {}, of lesson {}, in {}. With the project's own lines there, this one is right.",
                culprit.title,
                culprit.name.number(),
                self::place(mine, culprit)?
            ),
        };
        writeln!(stdout(), "{}", markdown::plain(&found, style.width))?;
    }
    if told.hint && mine.0.times(HINT, &hole.name) + 1 < hole.hints.len() {
        mine.0.note(HINT, &hole.name)?;
    }
    for hint in hole.hints.iter().take(mine.0.times(HINT, &hole.name) + 1) {
        write!(stdout(), "{}", markdown::plain(&format!("Hint: {hint}"), style.width))?;
    }
    writeln!(stdout(), "\nThe task, once more: {}", project.shown(&hole.page()))?;
    writeln!(stdout(), "then: make nic; one hint more: make nic ARGS=--hint")?;
    if !is_new {
        writeln!(stdout(), "You find nothing wrong here? Perhaps a hole before is: make nic ARGS=--where")?;
    }
    Ok(())
}

/// Where a hole is: file, line, function.
fn place(mine: &MineNic, hole: &Hole) -> Result<String> {
    let (file, function) = (&hole.place.file, &hole.place.function);
    let text = read(mine.0.folder.join(file))?;
    let line = text[..body(&text, function)?.start].lines().count();
    Ok(format!("{FOLDER}/{file}:{line}, fn {function}"))
}
