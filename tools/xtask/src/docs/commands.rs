//! Commands to type: the files, targets and frames that they name exist.

use super::excerpts;
use super::page::{Page, Problem};
use super::sources::Sources;

/// Folders whose files commands name.
const FOLDERS: [&str; 6] = ["captures/", "common/", "docs/", "lessons/", "tools/", ".ci/"];

/// Files, make targets and frames that commands name and that do not exist.
pub fn problems(page: &Page, sources: &Sources) -> Vec<Problem> {
    let make = sources.text("Makefile").unwrap_or_default();
    let mut problems = Vec::new();
    for (at, line) in page.prose() {
        // In a fenced block all of a line, else what stands in backquotes.
        let commands = if page.fenced[at] { vec![line.as_str()] } else { line.split('`').skip(1).step_by(2).collect() };
        for command in commands {
            let words: Vec<&str> =
                command.split_whitespace().map(|word| word.trim_end_matches([':', ';', ',', ')', '.'])).collect();
            let after = |name| words.get(words.iter().position(|word| *word == name)? + 1);
            let file = words.iter().find(|word| FOLDERS.iter().any(|folder| word.starts_with(folder)));
            let missing = file.filter(|file| !file.contains(['N', '*', '{', '…']) && !sources.path(file).exists());
            problems.extend(missing.map(|file| page.problem(at, format!("there is no {file}"))));
            let target = after("make").filter(|target| !is_target(target, &make, sources));
            problems.extend(target.map(|target| page.problem(at, format!("the Makefile has no target {target}"))));
            let frame = file.zip(after("--packet").filter(|frame| **frame != "N"));
            let missing = frame.and_then(|(capture, frame)| excerpts::packet(sources, capture, frame).err());
            problems.extend(missing.map(|error| page.problem(at, format!("{error:#}"))));
        }
    }
    problems
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
    let change = |number: &str, name: &str| {
        let lesson = sources.lesson(number);
        lesson.is_some_and(|lesson| sources.path(&format!("lessons/{}/changes/{name}.md", lesson.name)).exists())
    };
    if let [verb, number, name] = word.splitn(3, '-').collect::<Vec<_>>()[..] {
        return named(word)
            || named(&format!("{verb}-%")) && ((number, name) == ("NN", "NAME") || change(number, name));
    }
    match word.rsplit_once('-') {
        Some((verb, "NN")) => named(&format!("{verb}-%")),
        Some((verb, number)) if number.bytes().all(|c| c.is_ascii_digit()) => {
            named(word) || named(&format!("{verb}-%")) && sources.lesson(number).is_some()
        }
        _ => named(word),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sources::tests::repository;
    use super::*;

    #[test]
    fn commands_name_what_exists() {
        let check = |text: &str| problems(&Page::new("docs/p.md", text), repository()).len();
        let show = "`wire show captures/01_cm_listen.pcapng --packet step1`";
        assert_eq!((check(show), check(&show.replace("step1", "step9")), check(&show.replace("01", "91"))), (0, 1, 2));
        assert_eq!(
            (check("`make lesson-04 client=\"-s x\"`"), check("`make lesson-94`"), check("`make lessen-04`")),
            (0, 1, 1)
        );
        assert_eq!((check("`make try-04-whose`"), check("`make try-NN-NAME`"), check("`make try-04-none`")), (0, 0, 1));
        assert_eq!((check("```sh\nmake test   # all\n```"), check("```sh\nmake tests\n```")), (0, 1));
    }
}
