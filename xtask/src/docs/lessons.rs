//! The lists of lessons and of their captures, which are the same everywhere.

use super::page::Problem;
use super::sources::Sources;
use anyhow::Result;
use std::collections::BTreeSet;
use wire::story::{self, Story, MAIN};

/// Every list that is not the one of the folders in lessons/. The Makefile and cargo look at these folders themselves.
pub fn problems(sources: &Sources) -> Vec<Problem> {
    let lessons = sources.lessons.iter().map(|lesson| lesson.name.clone()).collect();
    let of_list = |(place, list): &(&str, BTreeSet<String>)| differences(place, list, &lessons);
    match lists(sources) {
        Ok(lists) => lists.iter().flat_map(of_list).collect(),
        Err(error) => vec![Problem::new("lessons", format!("{error:#}"))],
    }
}

fn differences(place: &str, list: &BTreeSet<String>, lessons: &BTreeSet<String>) -> Vec<Problem> {
    let missing = lessons.difference(list).map(|lesson| format!("lacks {lesson}"));
    let extra = list.difference(lessons).map(|lesson| format!("has {lesson}, which is no folder in lessons/"));
    missing.chain(extra).map(|what| Problem::new(place, format!("the list of lessons {what}"))).collect()
}

/// All lists, each lesson by its folder's name, with where they are kept.
fn lists(sources: &Sources) -> Result<[(&'static str, BTreeSet<String>); 4]> {
    let readme = sources.text("README.md")?;
    let rows =
        readme.lines().filter_map(|line| line.strip_prefix("| [")?.split_once("](lessons/")?.1.split('/').next());
    let stories = story::bundled()?;
    let files = |folder: &str, ending: &str| -> Result<BTreeSet<String>> {
        let files = sources.files(folder, ending)?;
        let names = files.iter().filter_map(|file| file.strip_prefix(folder)?.strip_prefix('/')?.strip_suffix(ending));
        // Lesson 00 is none: it is the set-up. A variant is no lesson of its own.
        let is_lesson = |name: &&str| {
            name.starts_with(|c: char| c.is_ascii_digit()) && !name.starts_with("00_") && !name.contains('-')
        };
        Ok(names.filter(is_lesson).map(String::from).collect())
    };
    Ok([
        ("README.md", rows.map(String::from).collect()),
        ("docs", files("docs", ".md")?),
        ("captures", files("captures", ".pcapng")?),
        ("wire/src/story/mod.rs", stories.into_iter().map(|story| story.lesson).collect()),
    ])
}

/// The table of lessons, for a page in docs/: what each story is about, and its captures.
///
/// # Errors
/// There are no stories.
pub fn table(sources: &Sources) -> Result<Vec<String>> {
    let stories = story::bundled()?;
    let mut lines = vec!["| lesson | shows | captures |".to_string(), "|---|---|---|".to_string()];
    for lesson in &sources.lessons {
        let of_lesson = stories.iter().filter(|story| story.lesson == lesson.name);
        let captures = of_lesson.clone().map(|story| format!("[{0}](../captures/{0}.pcapng)", story.file_name()));
        let captures = captures.collect::<Vec<_>>().join(", ");
        let about = of_lesson.clone().find(|story| story.variant == MAIN).map_or("", |story| story.about.as_str());
        lines.push(format!("| [{0}]({0}.md) | {about} | {captures} |", lesson.name));
    }
    Ok(lines)
}

/// The table of captures, for the page beside them.
///
/// # Errors
/// A story has no capture.
pub fn captures(sources: &Sources) -> Result<Vec<String>> {
    let head = ["| capture | what it shows | options | RoCE packets |", "|---|---|---|---|"].map(String::from);
    let row = |story: &Story| {
        let (name, about) = (story.file_name(), &story.about);
        let sides = [("server", &story.server), ("client", &story.client)];
        let given = sides.iter().filter(|(_, options)| !options.is_empty());
        let given = given.map(|(side, options)| format!("{side} `{options}`"));
        let clients = (story.clients > 1).then(|| format!("{} clients", story.clients));
        let options = given.chain(clients).collect::<Vec<_>>().join(", ");
        let packets = sources.rows(&format!("captures/{name}.pcapng"))?.len();
        Ok(format!("| [{name}]({name}.pcapng) | {about} | {options} | {packets} |"))
    };
    let rows: Result<Vec<String>> = story::bundled()?.iter().map(row).collect();
    Ok([head.to_vec(), rows?].concat())
}

#[cfg(test)]
mod tests {
    use super::super::sources::tests::repository;
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_lesson_too_few_or_too_many_is_found() {
        let texts = |names: &[&str]| -> Vec<String> {
            differences("docs", &set(names), &set(&["01_a", "02_b"])).iter().map(Problem::to_string).collect()
        };
        assert_eq!(texts(&["01_a", "02_b"]), [""; 0]);
        assert_eq!(texts(&["02_b"]), ["docs: the list of lessons lacks 01_a"]);
        assert_eq!(
            texts(&["01_a", "02_b", "03"]),
            ["docs: the list of lessons has 03, which is no folder in lessons/"]
        );
    }

    #[test]
    fn each_list_has_all_lessons() {
        let sources = repository();
        let lessons: BTreeSet<String> = sources.lessons.iter().map(|lesson| lesson.name.clone()).collect();
        assert!(lists(sources).unwrap().iter().all(|(_, list)| *list == lessons));
        assert_eq!(table(sources).unwrap().len(), 2 + lessons.len());
    }
}
