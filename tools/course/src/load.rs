//! Finding the files of changes, looking for mistakes in them, and keeping what pages quote of a run.

use crate::change::{number, Change, Expected};
use crate::project::{files, Project};
use crate::seen::is_name;
use anyhow::{ensure, Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// Where the captures of changes are kept.
const CAPTURES: &str = "captures/changes";

impl Change {
    /// Reads one of a lesson's changes.
    ///
    /// # Errors
    /// There is none of that name, or the file is not as it should be; the message names it.
    pub fn load(lesson: &Path, name: &str) -> Result<Self> {
        let file = lesson.join("changes").join(name).with_extension("toml");
        let text = fs::read_to_string(&file).with_context(|| {
            format!(
                "there is no `{name}`: `make break-{0}` and `make try-{0}` list those of the lesson",
                number(lesson)
            )
        })?;
        Self::parse(lesson, name, &text).with_context(|| format!("{}", file.display()))
    }

    pub(crate) fn parse(lesson: &Path, name: &str, text: &str) -> Result<Self> {
        let change = Self { name: name.into(), lesson: lesson.into(), ..basic_toml::from_str(text)? };
        change.check()?;
        Ok(change)
    }

    /// Looks for mistakes.
    fn check(&self) -> Result<()> {
        let kinds = [self.compile.is_some(), !self.outcome.is_empty(), self.is_reading()];
        ensure!(
            kinds.into_iter().filter(|is_it| *is_it).count() == 1,
            "a change has an outcome, or does not compile, or asks questions about a capture: one of the three"
        );
        ensure!(
            self.task.is_some() == self.ask.is_empty() && self.task.is_none() == self.hints.is_empty(),
            "a change asks something; an exercise has a task and hints in place of that"
        );
        ensure!(self.is_reading() != self.read.is_empty(), "`read` names the capture that questions are about");
        self.questions.iter().try_for_each(|question| question.check())?;
        let mut before: Option<&Expected> = None;
        for expected in &self.outcome {
            expected.check()?;
            let then = &expected.then;
            let is_after = before.is_some_and(|before| before.times != Some(0));
            ensure!(!then || is_after, "`then` is about what stands behind the outcome before it: there must be one");
            before = Some(expected);
        }
        Ok(())
    }

    /// All changes of a lesson: first those of its page, in the page's order, which is from easy to hard. None if it has no
    /// folder for them.
    ///
    /// # Errors
    /// One of the files is not as it should be.
    pub fn of(lesson: &Path) -> Result<Vec<Self>> {
        let folder = lesson.join("changes");
        if !folder.exists() {
            return Ok(Vec::new());
        }
        let paths = files(&folder, |path| path.extension().is_some_and(|ending| ending == "toml"))?;
        let name = |path: &PathBuf| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut changes = paths.iter().map(|path| Self::load(lesson, &name(path))).collect::<Result<Vec<_>>>()?;
        let page = Self::page(lesson);
        changes.sort_by_key(|change| change.place_on(&page).unwrap_or(usize::MAX));
        Ok(changes)
    }

    /// The text of a lesson's page; without one there is no order.
    fn page(lesson: &Path) -> String {
        let docs = lesson.ancestors().nth(2).unwrap_or(lesson).join("docs");
        fs::read_to_string(docs.join(lesson.file_name().unwrap_or_default()).with_extension("md")).unwrap_or_default()
    }

    /// Whether its lesson's page is about it.
    #[must_use]
    pub fn is_on_page(&self) -> bool {
        self.place_on(&Self::page(&self.lesson)).is_some()
    }

    /// Where a page names it: an exercise by its command, another change in the mark of the page's table.
    fn place_on(&self, page: &str) -> Option<usize> {
        if self.task.is_some() {
            return page.find(&format!("`make try-{}`", self.full_name()));
        }
        let begin = page.find(&format!("<!-- generated: changes {} ", self.number()))?;
        let mark = page[begin..].lines().next()?;
        mark.split(' ').position(|word| word == self.name)
    }

    /// All changes of all lessons.
    ///
    /// # Errors
    /// As for [`Change::of`].
    pub fn all(project: &Project) -> Result<Vec<Self>> {
        let changes = project.lessons()?.iter().map(|lesson| Self::of(lesson)).collect::<Result<Vec<_>>>()?;
        Ok(changes.concat())
    }

    /// Keeps the part of a run that the lesson's page quotes: `NAME.txt`; and all of it, if a page wants that.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn keep(&self, project: &Project, part: &str, run: &[u8]) -> Result<()> {
        let file = self.lesson.join("changes").join(&self.name).with_extension("txt");
        let lines: String = part.lines().map(|line| line.trim_end().to_owned() + "\n").collect();
        fs::write(&file, lines).with_context(|| format!("cannot write {}", file.display()))?;
        if !self.capture {
            return Ok(());
        }
        let folder = project.root.join(CAPTURES);
        let file = folder.join(self.full_name()).with_extension("pcapng");
        fs::create_dir_all(&folder)
            .and_then(|()| fs::write(&file, run))
            .with_context(|| format!("cannot write {}", file.display()))
    }
}

impl Expected {
    pub(crate) fn check(&self) -> Result<()> {
        let Self { node, packet, line, exit, .. } = self;
        let count = usize::from(packet.is_some()) + usize::from(line.is_some()) + usize::from(exit.is_some());
        ensure!(count == 1, "an outcome of the {node} is one of packet, line and exit");
        packet.iter().try_for_each(|packet| {
            ensure!(is_name(packet), "`wire show` calls no packet `{packet}`");
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        title = "Look too early"
        ask = "What is there?"
        why = "Nothing yet."
        [[edits]]
        file = "src/server.rs"
        from = "b"
        to = "bb"
        [[outcome]]
        node = "server"
        line = "the memory holds"
    "#;

    fn parse(text: &str) -> Result<Change> {
        Change::parse(Path::new("lessons/04_rdma_write"), "early", text)
    }

    #[test]
    fn an_edit_is_made_where_its_text_stands_once() {
        let change = parse(TEXT).unwrap();
        assert_eq!(change.number(), "04");
        assert_eq!(change.apply("src/server.rs", "abc").unwrap(), "abbc");
        assert_eq!(change.apply("src/client.rs", "abc").unwrap(), "abc", "another file");
        for wrong in ["", "bxb"] {
            let error = change.apply("src/server.rs", wrong).unwrap_err().to_string();
            assert!(error.contains("change early: this stands") && error.contains("src/server.rs"), "{error}");
        }
    }

    #[test]
    fn changes_come_in_the_order_of_their_page() {
        let page = "<!-- generated: changes 04 b early -->\nFrom easy to hard: `make try-04-c`, `make try-04-early`.";
        let place = |text: &str, name: &str| Change { name: name.into(), ..parse(text).unwrap() }.place_on(page);
        assert!(place(TEXT, "b") < place(TEXT, "early") && place(TEXT, "b").is_some());
        assert_eq!(place(TEXT, "c"), None, "an exercise is none of the table's");
        let exercise = TEXT.replace("ask", "hints = ['']\ntask");
        assert!(place(&exercise, "c") < place(&exercise, "early") && place(&exercise, "c").is_some());
        assert_eq!(place(&exercise, "b"), None);
    }

    #[test]
    fn the_place_of_an_exercise_is_where_its_word_stands() {
        let more = "[[edits]]\nfile = 'src/worker.rs'\nfrom = 'c'\nto = '// Exercise: here'\n[[outcome]]";
        assert_eq!(parse(TEXT).unwrap().holes(), ["src/server.rs"]);
        assert_eq!(parse(&TEXT.replace("[[outcome]]", more)).unwrap().holes(), ["src/worker.rs"]);
    }

    #[test]
    fn mistakes_in_a_file_are_named() {
        let error = |text: &str| format!("{:#}", parse(text).unwrap_err());
        assert!(error(&TEXT.replace("ask", "aks")).contains("unknown field `aks`"));
        assert!(error(&TEXT.replace("line =", "exit = 0\nline =")).contains("one of packet, line and exit"));
        assert!(error(&TEXT.replace("line", "packet")).contains("calls no packet `the memory holds`"));
        assert!(error(&format!("{TEXT}\nthen = true")).contains("there must be one"));
        assert!(error(&TEXT.replace("ask", "task")).contains("an exercise has a task and hints"));
        assert!(error(&TEXT.replace("ask", "compile = \"error\"\nask")).contains("one of the three"));
    }
}
