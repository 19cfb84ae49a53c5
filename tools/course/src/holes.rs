//! What a person sees of the NIC that she builds: `make begin device`, `make nic`.

use crate::watch;
use anyhow::{Context, Result};
use course::nic::build::Built;
use course::nic::copy::{MineNic, FOLDER};
use course::nic::hole::Hole;
use course::nic::judge::judge;
use course::nic::stairs;
use course::project::Project;
use course::show::{self, bold, checked};
use run::lanes::Style;
use std::io::{stdout, Write};
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
    next(project, false, false)
}

/// Builds the device around it, on which `make lesson-04 on=mine` runs.
pub fn device(project: &Project) -> Result<bool> {
    let mine = found(project)?;
    writeln!(stdout(), "Building the device with the NIC in {FOLDER}/ …")?;
    built(mine.build_device(project, Style::of_output().color)?).map(|program| program.is_some())
}

/// Judges the holes in order, and shows the first one that is not filled.
pub fn next(project: &Project, watch: bool, hint: bool) -> Result<bool> {
    let (mine, holes) = (found(project)?, Hole::all(project)?);
    let again = |hint: bool| look(project, &mine, &holes, hint);
    let seen = watch::newest(mine.0.sources());
    Ok(again(hint)? || (watch && watch::until_good(seen, || mine.0.sources(), || again(false))?))
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

fn look(project: &Project, mine: &MineNic, holes: &[Hole], hint: bool) -> Result<bool> {
    let style = Style::of_output();
    let Some(program) = built(mine.build_judge(project, style.color)?)? else { return Ok(false) };
    for (at, hole) in holes.iter().enumerate() {
        let verdict = judge(project, &program, hole)?;
        if !verdict.is_right {
            tell(project, mine, hole, &verdict.seen, hint, style)?;
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
        let answer = show::plain(&format!("Your prediction: {}", hole.answer), style.width);
        writeln!(stdout(), "\n{answer}")?;
    }
    Ok(())
}

/// A hole that is not filled: the task, if it is new; what was seen; the hints that were asked for.
fn tell(project: &Project, mine: &MineNic, hole: &Hole, seen: &str, hint: bool, style: Style) -> Result<()> {
    let title = format!("Lesson {}: {}", hole.name.number(), hole.title);
    writeln!(stdout(), "\n{}\n", bold(&title, style.color))?;
    let place = format!("{FOLDER}/{}, fn {}", hole.place.file, hole.place.function);
    if mine.0.has(TOLD, &hole.name) {
        writeln!(stdout(), "In {place}.\n")?;
    } else {
        writeln!(stdout(), "{}\nWrite it in {place}. As it is now:\n", show::page(&hole.task, style.width))?;
        mine.0.note(TOLD, &hole.name)?;
    }
    writeln!(stdout(), "{seen}\n")?;
    if hint && mine.0.times(HINT, &hole.name) + 1 < hole.hints.len() {
        mine.0.note(HINT, &hole.name)?;
    }
    for hint in hole.hints.iter().take(mine.0.times(HINT, &hole.name) + 1) {
        write!(stdout(), "{}", show::plain(&format!("Hint: {hint}"), style.width))?;
    }
    writeln!(
        stdout(),
        "\nThe task, once more: {}\nthen: make nic; one hint more: make nic ARGS=--hint",
        project.shown(&hole.page())
    )?;
    Ok(())
}
