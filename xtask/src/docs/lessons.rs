//! The list of lessons, which is the same everywhere.

use super::page::Problem;
use super::sources::Sources;
use anyhow::{Context, Result};
use std::process::Command;
use wire::story::{self, MAIN};

/// Where the list is kept, and what is there.
struct List {
    place: &'static str,
    lessons: Vec<String>,
}

/// Every list that is not the one of the folders in lessons/.
pub fn problems(sources: &Sources) -> Vec<Problem> {
    let lists = sources.lessons().and_then(|lessons| Ok((lists(sources)?, lessons)));
    match lists {
        Ok((lists, lessons)) => lists.iter().flat_map(|list| differences(list, &lessons)).collect(),
        Err(error) => vec![Problem::new("lessons", format!("{error:#}"))],
    }
}

fn differences(list: &List, lessons: &[String]) -> Vec<Problem> {
    let missing =
        lessons.iter().filter(|lesson| !list.lessons.contains(lesson)).map(|lesson| format!("lacks {lesson}"));
    let extra = list.lessons.iter().filter(|lesson| !lessons.contains(lesson));
    let extra = extra.map(|lesson| format!("has {lesson}, which is no folder in lessons/"));
    missing.chain(extra).map(|what| Problem::new(list.place, format!("the list of lessons {what}"))).collect()
}

/// All lists, each lesson by its folder's name.
fn lists(sources: &Sources) -> Result<Vec<List>> {
    let lessons = sources.lessons()?;
    let full = |number: &str| {
        let named = lessons.iter().find(|lesson| lesson.split('_').next() == Some(number));
        named.map_or_else(|| number.to_string(), String::clone)
    };
    let stories = story::bundled()?;
    let main = stories.iter().filter(|story| story.variant == MAIN).map(|story| story.lesson.clone());
    Ok(vec![
        List { place: "README.md", lessons: named(&sources.text("README.md")?) },
        List { place: "docs/README.md", lessons: named(&sources.text("docs/README.md")?) },
        List { place: "docs", lessons: files(sources, "docs", ".md")? },
        List { place: "captures", lessons: files(sources, "captures", ".pcapng")? },
        List { place: "wire/src/story/mod.rs", lessons: main.collect() },
        List { place: "Makefile", lessons: of_make(sources)?.iter().map(|number| full(number)).collect() },
        List { place: "Cargo.toml", lessons: of_cargo(sources)?.iter().map(|number| full(number)).collect() },
    ])
}

/// Names like `04_rdma_write` in the first cell of a table's row.
fn named(text: &str) -> Vec<String> {
    let rows = text.lines().filter_map(|line| line.strip_prefix("| ["));
    let targets = rows.filter_map(|row| Some(row.split_once("](")?.1.split_once(')')?.0));
    let parts = targets.filter_map(|target| target.split('/').map(|part| part.trim_end_matches(".md")).find(is_lesson));
    parts.map(String::from).collect()
}

/// Two digits, an underscore, a name. Lesson 00 is none: it is the set-up.
fn is_lesson(name: &&str) -> bool {
    let (number, _) = name.split_once('_').unwrap_or_default();
    number.len() == 2 && number.bytes().all(|byte| byte.is_ascii_digit()) && number != "00"
}

/// The lessons that a folder has files of; a variant is no lesson of its own.
fn files(sources: &Sources, folder: &str, ending: &str) -> Result<Vec<String>> {
    let files = sources.files(folder, ending)?;
    let names = files.iter().filter_map(|file| file.strip_prefix(folder)?.strip_prefix('/')?.strip_suffix(ending));
    Ok(names.filter(is_lesson).filter(|name| !name.contains('-')).map(String::from).collect())
}

/// What `make` alone prints.
fn of_make(sources: &Sources) -> Result<Vec<String>> {
    let output = Command::new("make").arg("-C").arg(sources.path("")).args(["-s", "--no-print-directory"]).output();
    let output = output.context("cannot run make")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.strip_prefix("Lessons: ")).context("make lists no lessons")?;
    Ok(line.split_whitespace().map(String::from).collect())
}

/// The packages `lesson-NN` in Cargo.lock, which cargo keeps in step with the workspace.
fn of_cargo(sources: &Sources) -> Result<Vec<String>> {
    let lock = sources.text("Cargo.lock")?;
    let names = lock.lines().filter_map(|line| line.strip_prefix("name = \"lesson-")?.strip_suffix('"'));
    Ok(names.map(String::from).collect())
}

/// The table of lessons, for a page in docs/: what each story is about, and its captures.
///
/// # Errors
/// There are no stories.
pub fn table(sources: &Sources) -> Result<Vec<String>> {
    let stories = story::bundled()?;
    let mut lines = vec!["| lesson | shows | captures |".to_string(), "|---|---|---|".to_string()];
    for lesson in sources.lessons()? {
        let of_lesson = stories.iter().filter(|story| story.lesson == lesson);
        let captures = of_lesson.clone().map(|story| format!("[{0}](../captures/{0}.pcapng)", story.file_name()));
        let captures = captures.collect::<Vec<_>>().join(", ");
        let about = of_lesson.clone().find(|story| story.variant == MAIN).map_or("", |story| story.about.as_str());
        lines.push(format!("| [{lesson}]({lesson}.md) | {about} | {captures} |"));
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::super::sources::tests::repository;
    use super::*;

    #[test]
    fn a_lesson_too_few_or_too_many_is_found() {
        let lessons = ["01_a".to_string(), "02_b".to_string()];
        let list =
            |lessons: &[&str]| List { place: "Makefile", lessons: lessons.iter().map(|s| s.to_string()).collect() };
        let texts = |names: &[&str]| -> Vec<String> {
            differences(&list(names), &lessons).iter().map(Problem::to_string).collect()
        };
        assert_eq!(texts(&["01_a", "02_b"]), [""; 0]);
        assert_eq!(texts(&["02_b"]), ["Makefile: the list of lessons lacks 01_a"]);
        assert_eq!(
            texts(&["01_a", "02_b", "03"]),
            ["Makefile: the list of lessons has 03, which is no folder in lessons/"]
        );
    }

    #[test]
    fn lists_are_read_from_where_they_are_kept() {
        let text = "| [01_a](lessons/01_a/src/main.rs) | x |\n| [02 b](02_b.md) | y |\n| [Set-up](00_setup.md) |\n[03_c](03_c.md)\n";
        assert_eq!(named(text), ["01_a", "02_b"]);
        let sources = repository();
        let numbers: Vec<String> =
            sources.lessons().unwrap().iter().map(|lesson| lesson.split('_').next().unwrap().to_string()).collect();
        assert_eq!(of_make(&sources).unwrap(), numbers);
        assert_eq!(of_cargo(&sources).unwrap(), numbers);
        assert_eq!(files(&sources, "captures", ".pcapng").unwrap(), sources.lessons().unwrap());
        assert_eq!(table(&sources).unwrap().len(), 2 + numbers.len());
    }
}
