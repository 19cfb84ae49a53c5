//! What a person sees of "Write it yourself": `make begin`, `make step`, `make hint`, `make solution`.

use crate::{certificate, watch};
use anyhow::{bail, ensure, Context, Result};
use course::ahead;
use course::build::build_others;
use course::markdown;
use course::mine::{Language, Mine, DONE, FOLDER};
use course::project::Project;
use course::run::{run_program, Outcome, Place};
use course::show::{self, bold};
use course::step::Step;
use course::task::{in_language, is_for};
use judge::Finding;
use run::files::name;
use run::lanes::Style;
use std::io::{self, stdout, IsTerminal, Write};

/// The lessons after which the program is compared with the recorded run. With the last of them it has its certificate.
const COMPARED: [&str; 2] = ["05", "07"];
/// What else is noted of a step.
const TOLD: &str = "told";
const HINT: &str = "hint";

/// Lays the program out, and tells the first step.
pub fn begin(project: &Project, language: Language) -> Result<bool> {
    let mine = Mine::begin(project, language)?;
    let file = project.shown(&mine.folder.join(language.source()));
    writeln!(stdout(), "Your program is {file}. It parses its arguments; server and client are still empty.\n")?;
    if language == Language::Rust {
        mine.prepare(project)?;
    }
    match current(project, &mine)? {
        Some(step) => tell(&mine, &step)?,
        None => bail!("the lessons have no steps: this clone lacks lessons/*/steps"),
    }
    Ok(true)
}

const NONE_YET: &str =
    "you have no program yet. `make begin` lays one out in Rust; for the others it's `make begin language=c` or `language=python`";

/// Judges the step that comes next; tells it, if that was not done yet, or if only that is wished. Or another one, which is
/// named: `01-2`.
pub fn step(project: &Project, named: Option<&str>, place: Place, watch: bool, only_tell: bool) -> Result<bool> {
    let Ok(mine) = find(project) else {
        writeln!(stdout(), "course: {NONE_YET}")?;
        return Ok(false);
    };
    let Some(step) = wished(project, &mine, named)? else { return finished(project) };
    if only_tell || !mine.progress().has(TOLD, &step.name) {
        tell(&mine, &step)?;
        return Ok(true);
    }
    watch::judged(watch, || mine.sources(), || judge(project, &mine, &step, place))
}

/// Tells one hint more, to the step that comes next, or to one that is named; all that were told before as well, if that is wished.
pub fn hint(project: &Project, named: Option<&str>, again: bool) -> Result<bool> {
    let mine = find(project)?;
    let Some(step) = wished(project, &mine, named)? else { return finished(project) };
    let width = Style::of_output().width;
    let hints: Vec<&String> = step.hints.iter().filter(|hint| is_for(hint, mine.language)).collect();
    let (told, all) = (mine.progress().times(HINT, &step.name), hints.len());
    let first = if again { 0 } else { told.min(all - 1) };
    for (at, hint) in hints.iter().enumerate().take(told + 1).skip(first) {
        write!(stdout(), "{}", markdown::plain(&format!("{} of {all}: {hint}", at + 1), width))?;
    }
    if told < all {
        mine.progress().note(HINT, &step.name)?;
    }
    if first > 0 {
        writeln!(stdout(), "\nThe earlier hints again: make hint ARGS=--all")?;
    }
    if told >= all {
        writeln!(stdout(), "\nThat's the last hint. `make solution` shows how the lesson does it.")?;
    }
    Ok(true)
}

/// Shows how the lesson, or the reference in the learner's language, does it; after asking.
pub fn solution(project: &Project, named: Option<&str>, yes: bool) -> Result<bool> {
    let mine = find(project)?;
    let Some(step) = wished(project, &mine, named)? else { return finished(project) };
    if !yes {
        ensure!(
            io::stdin().is_terminal(),
            "this asks whether you're sure, so it needs a terminal. Without one, add ARGS=--yes"
        );
        if !crate::typed("Show how it's done? You'll remember better what you find yourself. [y/N] ")?
            .eq_ignore_ascii_case("y")
        {
            return Ok(true);
        }
    }
    for text in step.reference.functions(&step.name.lesson, mine.language)? {
        writeln!(stdout(), "{text}")?;
    }
    Ok(true)
}

fn find(project: &Project) -> Result<Mine> {
    let mine = Mine::find(&project.root.join(FOLDER));
    mine.context(NONE_YET)
}

/// The first step that is not done.
fn current(project: &Project, mine: &Mine) -> Result<Option<Step>> {
    Ok(Step::all(project)?.into_iter().find(|step| !mine.progress().has(DONE, &step.name)))
}

/// The step that is named, or else the next one.
fn wished(project: &Project, mine: &Mine, named: Option<&str>) -> Result<Option<Step>> {
    named.map_or_else(|| current(project, mine), |named| by_name(project, named).map(Some))
}

/// A step by the begin of its name: lesson and number.
fn by_name(project: &Project, named: &str) -> Result<Step> {
    let is_it = |step: &Step| step.name.to_string().split('-').take(2).eq(named.split('-').take(2));
    let found = Step::all(project)?.into_iter().find(is_it);
    found.with_context(|| format!("there is no step {named}. Steps are named like 01-2, by lesson and number"))
}

fn finished(project: &Project) -> Result<bool> {
    writeln!(stdout(), "All steps are done. Your program does what lessons 01 to 07 and lesson 11 do.")?;
    crate::next::next(project)
}

/// What is above a step: `Lesson 01, step 2: Knock`.
fn heading(step: &Step, style: Style) -> String {
    bold(&format!("Lesson {}, step {}: {}", step.name.number(), step.number(), step.title), style.color)
}

fn tell(mine: &Mine, step: &Step) -> Result<()> {
    let style = Style::of_output();
    let task = in_language(&step.task, mine.language);
    writeln!(stdout(), "{}\n\n{}", heading(step, style), markdown::page(&task, style.width))?;
    writeln!(stdout(), "Write it, then: make step (or make step ARGS=--watch). If you're stuck: make hint")?;
    if !mine.progress().has(TOLD, &step.name) {
        mine.progress().note(TOLD, &step.name)?;
    }
    Ok(())
}

/// Builds it, runs it, and says how far it is.
fn judge(project: &Project, mine: &Mine, step: &Step, place: Place) -> Result<bool> {
    mine.runs_in(place)?;
    let style = Style::of_output();
    writeln!(stdout(), "{}\n", heading(step, style))?;
    let command = match mine.build(project, style.color)? {
        Ok((command, warnings)) => {
            write!(stdout(), "{warnings}")?;
            command
        }
        Err(said) => {
            writeln!(stdout(), "{said}\nIt doesn't build yet. The compiler says where.")?;
            return Ok(false);
        }
    };
    build_others(project, &step.change)?;
    let outcome = run_program(project, &step.change, &command, place)?;
    let is_as_told = outcome.is_as_told(&step.change);
    let Outcome::Ran { file, run, findings, again } = outcome else { bail!("a step has no outcome for a compiler") };
    let findings: Vec<Finding> = findings.into_iter().filter(|finding| !finding.is_absent()).collect();
    if is_as_told {
        writeln!(stdout(), "{}", show::part(&run, &findings, style)?)?;
        write!(stdout(), "{}", show::findings(&findings, style))?;
        if !again.is_empty() {
            writeln!(stdout(), "\nIt also passed when we ran it once more (`lesson` is your program):\n{again}")?;
        }
        if mine.progress().has(DONE, &step.name) {
            writeln!(stdout(), "\nThis step is done, and your program still passes it.")?;
            renew(project, mine, step)?;
            return Ok(true);
        }
        return done(project, mine, step, &command);
    }
    if !again.is_empty() {
        writeln!(stdout(), "We ran it once more (`lesson` is your program):\n{again}")?;
    }
    write!(stdout(), "{}{}", show::crashes(&run, style), missing(&findings, style))?;
    if let Some(said) = ahead::other_side(&step.change) {
        write!(stdout(), "{}", markdown::hanging("    ", &said, style.width))?;
    }
    writeln!(stdout(), "\n{}\n{}", show::trouble(&run, style)?, show::packets(&run, style)?)?;
    if mine.progress().has(DONE, &step.name) {
        writeln!(
            stdout(),
            "You had already done this step. If a later one has asked for something else, that's fine.\n"
        )?;
    }
    let run = project.to_look_at(&file);
    writeln!(
        stdout(),
        "The whole run:\n  {run}\nTo read the task again: make step ARGS=--task\nthen: make step, or make hint"
    )?;
    Ok(false)
}

/// What is there, and the first thing that is not: what follows it may be no fault of its own.
fn missing(findings: &[Finding], style: Style) -> String {
    let first = findings.iter().position(|finding| !finding.is_met()).unwrap_or(findings.len());
    let others = findings.iter().skip(first + 1).take_while(|finding| finding.expected.or).count();
    let end = findings.len().min(first + 1 + others);
    let more = findings[end..].iter().filter(|finding| !finding.is_met()).count();
    let text = show::findings_without_run(&findings[..end], style);
    match more {
        0 => text,
        1 => format!("{text}    (one more thing is missing after it, perhaps because of this)\n"),
        _ => format!("{text}    ({more} more things are missing after it, perhaps because of this)\n"),
    }
}

/// Notes that a step is done, and tells the next.
fn done(project: &Project, mine: &Mine, step: &Step, command: &str) -> Result<bool> {
    let answer = markdown::plain(&format!("Answer to the prediction: {}", step.answer), Style::of_output().width);
    write!(stdout(), "\n{answer}")?;
    mine.progress().note(DONE, &step.name)?;
    let next = current(project, mine)?;
    let lesson = &step.name.lesson;
    let is_last = next.as_ref().map(|next| &next.name.lesson) != Some(lesson);
    if is_last {
        mine.keep(lesson)?;
        writeln!(stdout(), "\nLesson {} is done. Your program does what the lesson's own does.", step.name.number())?;
        if let Some(next) = &next {
            writeln!(stdout(), "Before you go on, read docs/{}.md.", name(&next.name.lesson))?;
        }
    }
    if is_last && COMPARED.contains(&step.name.number().as_str()) {
        let run = certificate::plain(project, step, command)?;
        writeln!(stdout(), "Compared with the recorded run:\n{}", certificate::compare(project, lesson, &run)?)?;
        if COMPARED.last() == Some(&step.name.number().as_str()) {
            let page = certificate::award(project, mine, &run)?;
            writeln!(stdout(), "Your certificate, with your own run to play: {}", project.shown(&page))?;
        }
    }
    writeln!(stdout())?;
    match next {
        Some(next) => tell(mine, &next)?,
        None => drop(finished(project)?),
    }
    Ok(true)
}

/// Keeps what has been mended in the last lesson that is done.
fn renew(project: &Project, mine: &Mine, step: &Step) -> Result<()> {
    let (lesson, steps) = (&step.name.lesson, Step::all(project)?);
    let mut of_lesson = steps.iter().filter(|other| other.name.lesson == *lesson);
    let mut later = steps.iter().filter(|other| other.name.lesson > *lesson);
    let is_done = |other: &Step| mine.progress().has(DONE, &other.name);
    if of_lesson.all(is_done) && !later.any(is_done) {
        mine.keep(lesson)?;
    }
    Ok(())
}
