//! Commands to type: the files, targets and frames that they name exist.

use super::excerpts;
use super::page::{Page, Problem};
use super::sources::Sources;

/// Folders whose files commands name.
const FOLDERS: [&str; 8] = ["captures/", "common/", "docs/", "lab/", "lessons/", "wire/", "xtask/", ".ci/"];

/// Files, make targets and frames that commands name and that do not exist.
pub fn problems(page: &Page, sources: &Sources) -> Vec<Problem> {
    let make = sources.text("Makefile").unwrap_or_default();
    let lessons = sources.lessons().unwrap_or_default();
    let mut problems = Vec::new();
    for ((at, line), quoted) in page.lines.iter().enumerate().zip(page.quoted()) {
        if quoted {
            continue;
        }
        for command in commands(page, at, line) {
            let words: Vec<&str> =
                command.split_whitespace().map(|word| word.trim_end_matches([':', ';', ',', ')', '.'])).collect();
            let file = words.iter().find(|word| FOLDERS.iter().any(|folder| word.starts_with(folder)));
            if let Some(file) = file.filter(|file| !file.contains(['N', '*', '{', '…']) && !sources.path(file).exists())
            {
                problems.push(page.problem(at, format!("there is no {file}")));
            }
            let target = words.iter().position(|word| *word == "make").and_then(|make| words.get(make + 1));
            if let Some(target) = target.filter(|target| !is_target(target, &make, &lessons)) {
                problems.push(page.problem(at, format!("the Makefile has no target {target}")));
            }
            let frame = words.iter().position(|word| *word == "--packet").and_then(|option| words.get(option + 1));
            if let (Some(capture), Some(frame)) = (file, frame.filter(|frame| **frame != "N")) {
                problems.extend(
                    excerpts::packet(sources, capture, frame).err().map(|error| page.problem(at, format!("{error:#}"))),
                );
            }
        }
    }
    problems
}

/// What a line says to type: all of it in a fenced block, else what stands in backquotes.
fn commands<'l>(page: &Page, at: usize, line: &'l str) -> Vec<&'l str> {
    match page.fenced()[at] {
        true => vec![line],
        false => line.split('`').skip(1).step_by(2).collect(),
    }
}

/// `lesson-04`, `compare-NN` and so on; `check`. What is no word, such as `make`'s own options, is not looked at.
fn is_target(word: &str, make: &str, lessons: &[String]) -> bool {
    if !word.starts_with(|c: char| c.is_ascii_lowercase()) {
        return true;
    }
    let named = |name: &str| {
        make.lines().any(|line| line.starts_with(&format!("{name}:")) || line.contains(&format!(": {name}:")))
    };
    match word.rsplit_once('-') {
        Some((verb, "NN")) => named(&format!("{verb}-%")),
        Some((verb, number)) if number.bytes().all(|c| c.is_ascii_digit()) => {
            named(word) || named(&format!("{verb}-%")) && lessons.iter().any(|lesson| lesson.starts_with(number))
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
        let check = |text: &str| problems(&Page::new("docs/p.md", text), &repository()).len();
        let show = "`wire show captures/01_cm_listen.pcapng --packet step1`";
        assert_eq!((check(show), check(&show.replace("step1", "step9")), check(&show.replace("01", "91"))), (0, 1, 2));
        assert_eq!(
            (check("`make lesson-04 client=\"-s x\"`"), check("`make lesson-94`"), check("`make lessen-04`")),
            (0, 1, 1)
        );
        assert_eq!((check("```sh\nmake test   # all\n```"), check("```sh\nmake tests\n```")), (0, 1));
    }
}
