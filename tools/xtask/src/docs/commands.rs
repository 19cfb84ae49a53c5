//! Commands to type: the files, targets and frames that they name exist.

use super::excerpts;
use super::headers::is_word;
use super::page::{Page, Wrong};
use super::sources::{files, Sources};
use anyhow::{ensure, Context, Result};
use run::files::read;
use run::story;
use std::path::Path;

/// Folders whose files commands name.
const FOLDERS: [&str; 6] = ["captures/", "common/", "docs/", "lessons/", "tools/", ".ci/"];

/// Files, make targets and frames that commands name and that do not exist.
pub fn problems(page: &Page, sources: &Sources) -> Wrong {
    let make = read("Makefile").unwrap_or_default();
    let mut wrong = Wrong::new();
    let named = |(at, line): (usize, String)| no_step(&line, sources).map(|what| (at, what)).collect::<Wrong>();
    wrong.extend(page.prose().flat_map(named));
    for (at, command) in page.code() {
        let words: Vec<&str> =
            command.split_whitespace().map(|word| word.trim_end_matches([':', ';', ',', ')', '.'])).collect();
        let after = |name| words.get(words.iter().position(|word| *word == name)? + 1);
        // As it is, or behind a name: PCAP=captures/04_rdma_write.pcapng.
        let values = words.iter().map(|word| word.rsplit('=').next().unwrap_or(word));
        let file = values.clone().find(|word| FOLDERS.iter().any(|folder| word.starts_with(folder)));
        let missing = file.filter(|file| !file.contains(['N', '*', '{', '…']) && !Path::new(file).exists());
        wrong.extend(missing.map(|file| (at, format!("there is no {file}"))));
        let runs = values.filter_map(|word| word.split_once("/runs/")?.1.split('/').next());
        let runs = runs.filter(|run| run.len() == 2 && run.bytes().all(|c| c.is_ascii_digit()));
        let of_none = runs.filter(|number| !sources.has_lesson(number));
        wrong.extend(of_none.map(|number| (at, format!("there is no lesson {number}, so it has no run"))));
        let target = after("make").filter(|target| !is_target(target, &make, sources));
        wrong.extend(target.map(|target| (at, format!("the Makefile has no target {target}"))));
        let frame = file.zip(after("--packet").filter(|frame| **frame != "N"));
        let missing = frame.and_then(|(capture, frame)| excerpts::packet(capture, frame).err());
        wrong.extend(missing.map(|error| (at, format!("{error:#}"))));
    }
    wrong
}

/// The command that made a lesson's recorded run: the lesson, and all options of the run, and no others.
pub fn recorded(block: &[String], name: &str) -> Result<()> {
    let story = story::named(name)?;
    let (lesson, _) = story.lesson.split_once('_').unwrap_or_default();
    let made =
        block.iter().find(|line| line.starts_with("make lesson-")).context("no line begins with make lesson-")?;
    let words = shlex::split(made).context("a quote isn't closed")?;
    let of = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('=')).unwrap_or_default();
    let is_of = words.get(1).is_some_and(|target| *target == format!("lesson-{lesson}"));
    ensure!(is_of, "captures/{name}.pcapng is a run of lesson {lesson}");
    for (option, was) in [("server", &story.server), ("client", &story.client), ("wire", &story.wire)] {
        // Which quotes are the inner ones is the shell's business.
        ensure!(
            of(option).replace('"', "'") == was.replace('"', "'"),
            "captures/{name}.pcapng was recorded with {option}='{was}'"
        );
    }
    let workers = of("workers");
    ensure!(workers.is_empty() || workers == story.clients.to_string(), "that run had {} workers", story.clients);
    Ok(())
}

/// Steps of Write it yourself that don't exist: `04-9`.
fn no_step<'l>(line: &'l str, sources: &'l Sources) -> impl Iterator<Item = String> + 'l {
    let words = line.split(|c: char| !(is_word(c) || "-.:/".contains(c))).map(|word| word.trim_matches(['.', ':']));
    words.filter_map(|word| {
        let (number, step) = word.split_once('-').filter(|(number, step)| number.len() == 2 && step.len() == 1)?;
        let (lesson, step) = (sources.lesson(number)?, step.parse::<u8>().ok()?);
        let begin = format!("lessons/{}/steps/{step}-", lesson.name);
        let exists =
            files(&format!("lessons/{}/steps", lesson.name), ".md").ok()?.iter().any(|path| path.starts_with(&begin));
        (!exists).then(|| format!("lesson {number} has no step {step}"))
    })
}

/// `lesson-04`, `compare-NN` and so on; `try-04-whose`, which is a change of that lesson; `check`. What is no word, such as
/// `make`'s own options, is not looked at.
fn is_target(word: &str, make: &str, sources: &Sources) -> bool {
    if !word.starts_with(|c: char| c.is_ascii_lowercase()) {
        return true;
    }
    let named = |name: &str| {
        make.lines().any(|line| line.starts_with(&format!("{name}:")) || line.contains(&format!(": {name}:")))
    };
    let is_pattern = |verb| named(&format!("{verb}-%"));
    match word.splitn(3, '-').collect::<Vec<_>>()[..] {
        [verb, "NN", "NAME"] => is_pattern(verb),
        [verb, number, name] => named(word) || is_pattern(verb) && sources.change(number, name).is_ok(),
        [verb, "NN"] => is_pattern(verb),
        [verb, number] if number.bytes().all(|c| c.is_ascii_digit()) => {
            named(word) || is_pattern(verb) && sources.lesson(number).is_some()
        }
        _ => named(word),
    }
}
