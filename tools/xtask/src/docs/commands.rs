//! Commands to type: the files, targets and frames that they name exist.

use super::excerpts;
use super::page::{Page, Wrong};
use super::sources::Sources;
use run::files::read;
use std::path::Path;

/// Folders whose files commands name.
const FOLDERS: [&str; 6] = ["captures/", "common/", "docs/", "lessons/", "tools/", ".ci/"];

/// Files, make targets and frames that commands name and that do not exist.
pub fn problems(page: &Page, sources: &Sources) -> Wrong {
    let make = read("Makefile").unwrap_or_default();
    let mut wrong = Wrong::new();
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
