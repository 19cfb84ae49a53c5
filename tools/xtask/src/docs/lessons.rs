//! The lists of lessons and of their captures, which are the same everywhere.

use super::page::Problem;
use super::sources::{Lesson, Sources};
use anyhow::Result;
use run::story::{self, Story, MAIN};

/// Lessons that have no row, page, capture or story. The Makefile and cargo find their folders themselves.
pub fn problems(sources: &Sources) -> Result<Vec<Problem>> {
    let (readme, stories) = (sources.text("README.md")?, story::bundled()?);
    let mut problems = Vec::new();
    for Lesson { name, .. } in &sources.lessons {
        let exists = |path: String| sources.path(&path).exists();
        let lists = [
            ("README.md", readme.contains(&format!("](lessons/{name}/"))),
            ("docs", exists(format!("docs/{name}.md"))),
            ("captures", exists(format!("captures/{name}.pcapng"))),
            ("tools/run/src/story/mod.rs", stories.iter().any(|story| story.lesson == *name)),
        ];
        let missing = lists.iter().filter(|(_, listed)| !listed);
        problems.extend(missing.map(|(place, _)| Problem::new(place, format!("the list of lessons lacks {name}"))));
    }
    Ok(problems)
}

/// The table of lessons, for a page in docs/: what each story is about, and its captures.
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

    #[test]
    fn a_lesson_that_is_not_listed_is_found() {
        let mut sources = repository().clone();
        sources.lessons.truncate(1);
        assert_eq!((problems(&sources).unwrap(), table(&sources).unwrap().len()), (vec![], 3));
        sources.lessons[0].name = "01_x".into();
        let places: Vec<String> = problems(&sources).unwrap().into_iter().map(|problem| problem.place).collect();
        assert_eq!(places, ["README.md", "docs", "captures", "tools/run/src/story/mod.rs"]);
    }
}
