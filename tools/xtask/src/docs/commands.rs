//! Commands to type: the files, targets and frames that they name exist.

use super::excerpts;
use super::headers::is_word;
use super::page::{Page, Wrong};
use super::sources::{files, Sources};
use run::files::read;
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
        let file = words.iter().find(|word| FOLDERS.iter().any(|folder| word.starts_with(folder)));
        let missing = file.filter(|file| !file.contains(['N', '*', '{', '…']) && !Path::new(file).exists());
        wrong.extend(missing.map(|file| (at, format!("there is no {file}"))));
        let target = after("make").filter(|target| !is_target(target, &make, sources));
        wrong.extend(target.map(|target| (at, format!("the Makefile has no target {target}"))));
        let frame = file.zip(after("--packet").filter(|frame| **frame != "N"));
        let missing = frame.and_then(|(capture, frame)| excerpts::packet(capture, frame).err());
        wrong.extend(missing.map(|error| (at, format!("{error:#}"))));
    }
    wrong
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
