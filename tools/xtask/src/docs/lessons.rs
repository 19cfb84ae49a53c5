//! The lists of lessons and of their captures, which are the same everywhere.

use super::page;
use super::sources::{rows, Lesson, Sources};
use anyhow::Result;
use run::files::read;
use run::story::{self, Step, Story, MAIN};
use std::path::Path;
use workbench::challenge::{self, Challenge};

/// Lessons that have no row, page, picture, capture or story. The Makefile and cargo find their folders themselves.
pub fn problems(sources: &Sources) -> Result<Vec<String>> {
    let (readme, stories) = (read("README.md")?, story::bundled()?);
    let mut problems = Vec::new();
    for lesson in &sources.lessons {
        let (name, idea) = (&lesson.name, format!("images/idea_{}.svg", lesson.number()));
        let exists = |path: String| Path::new(&path).exists();
        let lists = [
            ("README.md", readme.contains(&format!("](lessons/{name}/"))),
            ("docs", exists(format!("docs/{name}.md"))),
            ("captures", exists(format!("captures/{name}.pcapng"))),
            ("tools/run/src/story/mod.rs", stories.iter().any(|story| story.lesson == *name)),
        ];
        let missing = lists.iter().filter(|(_, listed)| !listed);
        problems.extend(missing.map(|(place, _)| format!("{place}: the list of lessons lacks {name}")));
        // The picture of its idea, which says in words what it shows.
        let (page, drawn) = (read(format!("docs/{name}.md")), read(format!("docs/{idea}")));
        if !page.is_ok_and(|page| page.contains(&format!("]({idea})"))) {
            problems.push(format!("docs/{name}.md: does not show its idea, {idea}"));
        }
        if !drawn.is_ok_and(|svg| svg.contains("<title ") && svg.contains("<desc ")) {
            problems.push(format!("docs/{idea}: says nothing in <title> and <desc>"));
        }
    }
    Ok(problems)
}

/// The table of lessons, for a page in docs/: what each story is about, and its captures.
pub fn table(sources: &Sources) -> Result<Vec<String>> {
    let stories = story::bundled()?;
    let row = |lesson: &Lesson| {
        let of_lesson = stories.iter().filter(|story| story.lesson == lesson.name);
        let captures = of_lesson.clone().map(|story| format!("[{0}](../captures/{0}.pcapng)", story.file_name()));
        let captures = captures.collect::<Vec<_>>().join(", ");
        let about = of_lesson.clone().find(|story| story.variant == MAIN).map_or("", |story| story.about.as_str());
        [format!("[{0}]({0}.md)", lesson.name), about.to_owned(), captures]
    };
    Ok(page::table(&["lesson", "shows", "captures"], sources.lessons.iter().map(row)))
}

/// The table of the workbench's challenges, for a page in docs/.
pub fn challenges() -> Vec<String> {
    let row = |of: Challenge| {
        let number = of.page.split('_').next().filter(|number| number.parse::<u8>().is_ok());
        let page = number.map_or("What RDMA is".to_owned(), |number| format!("lesson {number}"));
        [format!("[{page}]({}.md)", of.page), of.title.to_owned(), of.task.replace("\n\n", " ")]
    };
    page::table(&["page", "challenge", "what to make happen"], challenge::all().into_iter().map(row))
}

/// What happens in a story, and which packets that puts on the wire.
pub fn steps(name: &str) -> Result<Vec<String>> {
    let row = |step: Step| [step.number.to_string(), step.packets.trim_start_matches("RC ").to_owned(), step.title];
    Ok(page::table(&["step", "packets", "what happens"], story::named(name)?.steps.into_iter().map(row)))
}

/// The table of captures, for the page beside them.
pub fn captures() -> Result<Vec<String>> {
    let row = |story: &Story| {
        let name = story.file_name();
        let sides = [("server", &story.server), ("client", &story.client)];
        let given = sides.iter().filter(|(_, options)| !options.is_empty());
        let given = given.map(|(side, options)| format!("{side} `{options}`"));
        let clients = (story.clients > 1).then(|| format!("{} clients", story.clients));
        let wire = (!story.wire.is_empty()).then(|| format!("wire `{}`", story.wire));
        let options = given.chain(clients).chain(wire).collect::<Vec<_>>().join(", ");
        let packets = rows(&format!("captures/{name}.pcapng"))?.len();
        Ok([format!("[{name}]({name}.pcapng)"), story.about.clone(), options, packets.to_string()])
    };
    let rows = story::bundled()?.iter().map(row).collect::<Result<Vec<_>>>()?;
    Ok(page::table(&["capture", "what it shows", "options", "RoCE packets"], rows))
}
