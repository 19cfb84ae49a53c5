//! Finding the pages of changes, in the order in which a reader meets them.

use crate::change::Break;
use crate::exercise::Exercise;
use crate::kind::{BREAK, REPAIR};
use crate::page::{Name, Page};
use crate::project::Project;
use anyhow::{bail, Result};
use run::files::{files, name};
use std::fs;
use std::path::Path;

/// The folder of the pages with what is deeper, in that of the pages.
const MORE: &str = "more";

#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// What is broken on purpose.
    pub breaks: Vec<Break>,
    /// What is mended or read.
    pub exercises: Vec<Exercise>,
}

impl Changes {
    /// All changes of a lesson: first those of its page, in the page's order, which is from easy to hard; then those of the page
    /// with what is deeper. None if it has no folder for them.
    pub fn of(lesson: &Path) -> Result<Self> {
        let mut changes = Self::default();
        BREAK.of(lesson, |name, page| changes.add(name, page))?;
        let page = page(lesson, "") + &page(lesson, MORE);
        changes.breaks.sort_by_key(|it| of_table(&it.change.name, &page).unwrap_or(usize::MAX));
        // In prose a line may end within a command.
        let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
        changes.exercises.sort_by_key(|it| words.find(&format!("`make try-{}`", it.name)).unwrap_or(usize::MAX));
        Ok(changes)
    }

    pub fn all(project: &Project) -> Result<Self> {
        let mut all = Self::default();
        for lesson in project.lessons()? {
            let Self { breaks, exercises } = Self::of(&lesson)?;
            all.breaks.extend(breaks);
            all.exercises.extend(exercises);
        }
        Ok(all)
    }

    /// What a page is, its command says.
    fn add(&mut self, name: Name, page: &Page) -> Result<()> {
        let commands = [BREAK, REPAIR].map(|kind| kind.command(&name));
        match commands.iter().position(|command| *command == page.command) {
            Some(0) => self.breaks.push(Break::of_page(name, page)?),
            Some(_) => self.exercises.push(Exercise::of_page(name, page)?),
            None => bail!("its command is `{}`, but must be `{}` or `{}`", page.command, commands[0], commands[1]),
        }
        Ok(())
    }
}

/// The text of a lesson's pages; without one there is no order.
fn page(lesson: &Path, folder: &str) -> String {
    let docs = lesson.ancestors().nth(2).unwrap_or(lesson).join("docs").join(folder);
    let number = name(lesson).chars().take(2).collect::<String>();
    let pages = files(&docs, |page| name(page).starts_with(&number)).unwrap_or_default();
    pages.iter().filter_map(|page| fs::read_to_string(page).ok()).collect()
}

/// Where the marks of a page's tables name a change.
fn of_table(name: &Name, page: &str) -> Option<usize> {
    let begin = format!("<!-- generated: changes {} ", name.number());
    let mut names = page.lines().filter_map(|line| line.strip_prefix(&begin)).flat_map(str::split_whitespace);
    names.position(|word| word == name.name)
}

/// Whether the page of its lesson is about a change.
pub fn is_on_page(name: &Name) -> bool {
    of_table(name, &page(&name.lesson, "")).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exercise::tests::TEXT;

    #[test]
    fn changes_come_in_the_order_of_their_page() {
        let project = Project::find().unwrap();
        let breaks = Changes::of(&project.lesson("08").unwrap()).unwrap().breaks;
        let breaks: Vec<&str> = breaks.iter().map(|it| &*it.change.name.name).collect();
        assert_eq!(breaks[..3], ["not-to-rts", "wrong-number", "psn-ahead"], "those of the page's table");
        assert_eq!(breaks[5..8], ["other-gid", "one-try", "closed-pair"], "then those of the deeper page's");
        assert_eq!(breaks[breaks.len() - 2..], ["strangers-answer", "wrong-gid"], "then the others");
        let exercises = Changes::of(&project.lesson("04").unwrap()).unwrap().exercises;
        let exercises: Vec<&str> = exercises.iter().map(|it| &*it.name.name).collect();
        assert_eq!(
            exercises,
            ["whose", "rights", "patience", "retries", "reuse", "lent"],
            "the deeper page's come last"
        );
    }

    #[test]
    fn the_command_of_a_page_is_its_own_and_a_change_asks_something() {
        let error = |text: &str| {
            let name = Name { lesson: "lessons/04_rdma_write".into(), name: "late".into() };
            Changes::default().add(name, &Page::parse(text).unwrap()).unwrap_err().to_string()
        };
        let said = error(TEXT);
        assert!(said.contains("`make try-04-early`") && said.contains("`make try-04-late`"), "{said}");
        let answer = "<details><summary>What happens</summary>\n\nIt is so.\n\n</details>\n";
        assert!(error(&format!("# Look\n\n`make break-04 CHANGE=late`\n\n{answer}")).contains("lacks its prose"));
    }
}
