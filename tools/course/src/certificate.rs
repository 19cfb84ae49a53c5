//! What a learner has when all steps are done: a page that says so, with the run of her own program to play.

use anyhow::{bail, Result};
use course::change::{Change, Options};
use course::mine::{Mine, DONE};
use course::page::Name;
use course::project::Project;
use course::run::{run_program, Outcome, Place};
use course::step::Step;
use judge::expected::Expectation;
use run::files::{name, output, write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// How many bytes are written in the recorded run.
const RECORDED: usize = 60;

/// The page, and the run that it plays, in the folder of the program.
const PAGE: &str = "certificate.html";
const RUN: &str = "run.html";

/// Compares a run of the learner's program with the recorded one of a lesson: what `make compare-NN` says.
pub fn compare(project: &Project, lesson: &Path, run: &Path) -> Result<String> {
    let capture = project.root.join("captures").join(name(lesson)).with_extension("pcapng");
    output(Command::new(project.target.join("debug/wire")).arg("compare").args([run, &capture]))
}

/// Writes the page. Gives its file.
pub fn award(project: &Project, mine: &Mine, run: &Path) -> Result<PathBuf> {
    output(Command::new(project.target.join("debug/wire")).arg("play").arg(run).arg("-o").arg(mine.folder.join(RUN)))?;
    let mut rows = String::new();
    for lesson in project.lessons()? {
        let steps = Step::of(&lesson)?;
        let done: Vec<&str> =
            steps.iter().filter(|step| mine.progress().has(DONE, &step.name)).map(|step| step.title.as_str()).collect();
        if !done.is_empty() {
            rows += &format!("<tr><th>{}</th><td>{}</td></tr>\n", name(&lesson), done.join(", "));
        }
    }
    let page = mine.folder.join(PAGE);
    write(&page, text(&rows, &format!("{:?}", mine.language)))?;
    Ok(page)
}

fn text(rows: &str, language: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>An RDMA program, written packet by packet</title>\n\
         <style>body {{ font: 1.1rem/1.5 sans-serif; max-width: 46rem; margin: 3rem auto; padding: 0 1rem; color-scheme: light dark }}\n\
         table {{ border-collapse: collapse }} th, td {{ text-align: left; padding: .4rem .8rem; border-top: 1px solid #8888; vertical-align: top }}</style>\n\
         <h1>An RDMA program, written packet by packet</h1>\n\
         <p>In {language}. Each step was judged by what the device saw: calls, packets, memory, and what was left.</p>\n\
         <table>\n{rows}</table>\n<p><a href=\"{RUN}\">Play its run</a></p>\n</html>\n"
    )
}

/// A run of the program as the lesson is run. Gives its run file.
pub fn plain(project: &Project, step: &Step, command: &str) -> Result<PathBuf> {
    let name = Name { name: "mine".to_owned(), ..step.name.clone() };
    // The lesson writes a text of this length: with another one the story has other lengths.
    let text = format!("--text {}", "x".repeat(RECORDED));
    let (options, told) =
        (Options { server: text.clone(), client: text, ..Options::default() }, Expectation::Runs(Vec::new()));
    let change = Change { name, options, told, again: Vec::new(), ..step.change.clone() };
    match run_program(project, &change, command, Place::Device)? {
        Outcome::Ran { file, .. } => Ok(file),
        Outcome::Refused(said) => bail!(said),
    }
}
