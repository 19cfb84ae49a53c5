//! `make next`: where a learner is in the course, and what comes. What was run is below target/, and a mark of
//! each break that came as told; what was solved is below try/.

use anyhow::Result;
use course::attempt::{Attempt, State};
use course::changes::{self, Changes};
use course::mine::{Mine, DONE, FOLDER};
use course::project::Project;
use course::run::Place;
use course::step::Step;
use run::files::{name, read, write};
use std::fmt::Write as _;
use std::io::{stdout, Write};
use std::path::{Path, PathBuf};

/// Words that somebody reads in a minute, in a text like this.
const WORDS: usize = 200;

/// A lesson, and how far a learner is with it.
#[derive(Default)]
struct Stop {
    number: String,
    title: String,
    page: String,
    minutes: usize,
    is_run: bool,
    /// The breaks of its page that were not made, and the exercises that are not solved: their commands.
    breaks: Vec<String>,
    repairs: Vec<String>,
    /// The steps that the learner's own program has not done: their pages.
    steps: Vec<String>,
    /// It has steps, done or not.
    has_steps: bool,
    /// There is such a program.
    is_begun: bool,
}

impl Stop {
    fn of(project: &Project, lesson: &Path) -> Result<Self> {
        let number = name(lesson)[..2].to_owned();
        let page = format!("docs/{}.md", name(lesson));
        let text = read(project.root.join(&page))?;
        let heading = text.lines().next().unwrap_or_default();
        let is_run = |run: &str| {
            [Place::Lab, Place::Device].iter().any(|it| project.target.join(it.name()).join("runs").join(run).exists())
        };
        let breaks = Changes::of(lesson)?.breaks.into_iter().map(|it| it.change.name);
        let breaks = breaks.filter(|it| changes::is_on_page(it) && !made(project, &it.to_string()).exists());
        let repairs = Attempt::of(project, Some(&number))?.into_iter().filter(|it| it.state() != State::Solved);
        let mine = Mine::find(&project.root.join(FOLDER));
        let is_left = |step: &Step| !mine.as_ref().is_some_and(|mine| mine.progress().has(DONE, &step.name));
        let steps = Step::of(lesson)?;
        Ok(Self {
            has_steps: !steps.is_empty(),
            steps: steps.iter().filter(|step| is_left(step)).map(|step| project.shown(&step.page())).collect(),
            is_begun: mine.is_some(),
            title: heading.trim_start_matches(['#', ' ']).to_owned(),
            page,
            minutes: text.split_whitespace().count().div_ceil(WORDS),
            is_run: is_run(&number),
            breaks: breaks.map(|it| format!("make break-{} CHANGE={}", it.number(), it.name)).collect(),
            repairs: repairs.map(|it| format!("make try-{}", it.exercise.name)).collect(),
            number,
        })
    }

    /// What is left of it, in order; the page first, while it was not run.
    fn left(&self) -> String {
        let mut text = format!("{}\n", self.title);
        let mut row = |what: &str, command: &str, takes: &str| {
            let _ = writeln!(text, "  {what:8} {command:44} {takes}");
        };
        if !self.is_run {
            row("read", &self.page, &format!("{} minutes", self.minutes));
            row("run", &format!("make lesson-{}", self.number), "a minute");
        }
        match (self.steps.as_slice(), self.is_begun) {
            ([], _) => {}
            (_, false) => row("write", "make begin", "your own program, 10 minutes a step"),
            ([only], true) => row("write", "make step", &format!("10 minutes: {only}")),
            ([first, more @ ..], true) => {
                row("write", "make step", &format!("10 minutes: {first}; {} more", more.len()))
            }
        }
        for (what, all, takes) in [("break", &self.breaks, "5 minutes"), ("repair", &self.repairs, "10 minutes")] {
            match all.as_slice() {
                [] => {}
                [only] => row(what, only, takes),
                [first, more @ ..] => row(what, first, &format!("{takes}; {} more", more.len())),
            }
        }
        text
    }
}

/// The mark of a break that came as told: one that ended otherwise is still to be made.
fn made(project: &Project, change: &str) -> PathBuf {
    project.target.join("course/made").join(change)
}

/// Leaves the mark of a break.
pub fn mark(project: &Project, change: &str) -> Result<()> {
    write(made(project, change), "")
}

/// A count with its noun: `1 break`, `2 breaks`.
fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Prints where the learner is, and what comes.
pub fn next(project: &Project) -> Result<bool> {
    let stops = project.lessons()?.iter().map(|lesson| Stop::of(project, lesson)).collect::<Result<Vec<_>>>()?;
    write!(stdout(), "{}", text(&stops))?;
    Ok(true)
}

/// The learner is at the last of the lessons that were run in their order, while something is left of it, or else at the one
/// behind it. Whoever writes is at the lesson of the next step, or at one before it that has no steps and was not run.
fn text(stops: &[Stop]) -> String {
    let is_written = |stop: &Stop| stop.is_begun && !stop.steps.is_empty();
    let is_before = |stop: &Stop| !stop.has_steps && !stop.is_run;
    let writes = stops.iter().any(is_written);
    let written = stops.iter().position(|stop| writes && (is_written(stop) || is_before(stop)));
    let run = written.unwrap_or_else(|| stops.iter().take_while(|stop| stop.is_run).count());
    let next = stops.get(run);
    let last = run
        .checked_sub(1)
        .map(|at| &stops[at])
        .filter(|it| !it.breaks.is_empty() || !it.repairs.is_empty() || !it.steps.is_empty())
        .filter(|_| written.is_none());
    let mut text = if run == 0 && written.is_none() { welcome(stops) } else { String::new() };
    let shown = last.or(next);
    text += &match shown {
        Some(stop) => stop.left(),
        None => "You've run every lesson. docs/real_world.md says where to go from here.\n".to_owned(),
    };
    if let (Some(_), Some(next)) = (last, next) {
        text += &format!("or on:     make lesson-{}\n", next.number);
    }
    let earlier = &stops[..run.saturating_sub(usize::from(last.is_some()))];
    let breaks: usize = earlier.iter().map(|stop| stop.breaks.len()).sum();
    let repairs: usize = earlier.iter().map(|stop| stop.repairs.len()).sum();
    if breaks + repairs > 0 {
        text += &format!(
            "Earlier lessons have {} and {} left: `make break-01` …, `make try`.\n",
            counted(breaks, "break"),
            counted(repairs, "repair")
        );
    }
    let steps: usize = stops.iter().map(|stop| stop.steps.len()).sum();
    if steps > 0 && shown.map_or(true, |stop| stop.steps.is_empty()) {
        let command = if stops.iter().any(|stop| stop.is_begun) { "make step" } else { "make begin" };
        text += &format!("Your own program has {} to go: {command}\n", counted(steps, "step"));
    }
    text
}

fn welcome(stops: &[Stop]) -> String {
    let looked = stops.iter().find(|stop| stop.is_run);
    let looked = looked.map(|stop| format!("You've looked at lesson {}. The course begins with 01.\n", stop.number));
    looked.unwrap_or_default()
        + "Welcome. docs/what_is_rdma.md says in ten minutes what this is about.\n\
           Just looking around for an hour? That page, `make lesson-04`, the puzzle of lesson 07, `make lesson-10`.\n\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stop(number: &str, is_run: bool, breaks: &[&str]) -> Stop {
        let breaks = breaks.iter().map(|name| format!("make break-{number} CHANGE={name}")).collect();
        Stop { number: number.into(), title: format!("Lesson {number}: x"), is_run, breaks, ..Stop::default() }
    }

    #[test]
    fn what_was_run_tells_where_a_learner_is() {
        let begin = text(&[stop("01", false, &["a"]), stop("02", false, &[])]);
        assert!(begin.starts_with("Welcome") && begin.contains("Lesson 01: x") && begin.contains("make lesson-01"));
        // Who has only looked at a later one is at the first.
        let looked = text(&[stop("01", false, &[]), stop("02", true, &[])]);
        assert!(looked.starts_with("You've looked at lesson 02") && looked.contains("make lesson-01"), "{looked}");
        let amid = text(&[stop("01", true, &["a", "b"]), stop("02", false, &[])]);
        assert!(amid.contains("make break-01 CHANGE=a") && amid.contains("1 more"), "{amid}");
        assert!(amid.ends_with("or on:     make lesson-02\n") && !amid.contains("run "), "{amid}");
        assert!(text(&[stop("01", true, &[]), stop("02", false, &[])]).starts_with("Lesson 02: x\n  read"));
        assert!(text(&[stop("01", true, &[])]).starts_with("You've run every lesson"));
        let behind = text(&[stop("01", true, &["a"]), stop("02", true, &[])]);
        assert!(
            behind.starts_with("You've run every lesson") && behind.contains("have 1 break and 0 repairs left"),
            "{behind}"
        );
    }

    #[test]
    fn whoever_writes_is_at_the_next_step() {
        let step = |stop: Stop, steps: &[&str]| Stop {
            steps: steps.iter().map(|page| (*page).to_owned()).collect(),
            is_begun: true,
            ..stop
        };
        let stops = [step(stop("01", true, &["a"]), &[]), step(stop("02", false, &["b"]), &["1-x.md", "2-y.md"])];
        let said = text(&stops);
        assert!(said.starts_with("Lesson 02") && said.contains("1-x.md; 1 more") && said.contains("run "), "{said}");
        assert!(said.contains("have 1 break and 0 repairs left"), "{said}");
        // Between two lessons with steps are some without: they are not left out.
        let stops = |is_run| [stop("08", is_run, &[]), step(stop("11", false, &[]), &["1-x.md"])];
        let said = text(&stops(false));
        assert!(said.starts_with("Lesson 08") && said.ends_with("has 1 step to go: make step\n"), "{said}");
        assert!(text(&stops(true)).starts_with("Lesson 11"));
    }

    #[test]
    fn a_break_that_came_otherwise_is_still_to_be_made() {
        let found = Project::find().unwrap();
        let project = Project { target: found.target.join("course/test-of-next"), root: found.root };
        let lesson = project.lesson("04").unwrap();
        let first = || Stop::of(&project, &lesson).unwrap().breaks[0].clone();
        // Its run is there in any case.
        std::fs::create_dir_all(project.target.join("device/runs/04-wrong-key")).unwrap();
        assert_eq!(first(), "make break-04 CHANGE=wrong-key");
        mark(&project, "04-wrong-key").unwrap();
        assert_eq!(first(), "make break-04 CHANGE=past-the-end");
        std::fs::remove_dir_all(&project.target).unwrap();
    }
}
