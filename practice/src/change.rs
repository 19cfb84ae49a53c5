//! Reading `lessons/NN_topic/changes/NAME.toml`: one change to a lesson, and what must come of it.
//!
//! ```toml
//! title = "Post the receive too late"
//! ask = "Which of the two programs notices?"
//! why = "The explanation, in Markdown: it stands on the lesson's page, too."
//! # server, client = "options"   wire = "rules", as those of `make lesson-NN`
//! # compile = "error[E0505]"     it does not build: the compiler says this, and there is no outcome
//! # faults = ["FAULT", …]        what happens to the machines, as `lab exec --fault`; a packet or a log line sets it off:
//! #                              "kill server when SLOW  rdma_accept", "power-off client when client sends RC Send Only",
//! #                              "on server rdma link delete rxe0 when …", "on client ip link set eth0 down when …"
//! # kernel = true                only the kernel's own driver does this, so it is never run on the device (faults are so)
//! # capture = true               the recorded run is kept as captures/changes/NN-NAME.pcapng
//!
//! # [nodes]                      commands in place of the two sides of the lesson, and of more clients. In them `lesson` is
//! # client = "rping -c -a $SERVER -C 1"                    the changed lesson's program, and `examples/NAME` an example of
//! # client-2 = "lesson client -a $SERVER"                  `common`: "examples/odd_peer client $SERVER send=ff"
//!
//! [[edits]]
//! file = "src/server.rs"         # below the lesson's folder
//! from = "…"                     # stands there exactly once
//! to = "…"
//!
//! [[outcome]]                    # in the words of `wire show`
//! node = "server"                # or "any"
//! packet = "RNR NAK"             # a packet that the node sends: its name, and what else is said of it
//! times = 2                      # exactly so many; at least one unless this is said
//!
//! [[outcome]]
//! node = "client"
//! line = "status=IBV_WC_SUCCESS" # the node's program, its kernel, or the lab about it, says this
//! then = true                    # it stands behind the first of the one before
//!
//! [[outcome]]
//! node = "client"
//! exit = 0                       # the program's exit status
//! ```
//!
//! An exercise is a change, too. Its edits make the hole that the reader mends, and what must come of it is what a right
//! solution does; the lesson as it is must be one. In place of a question it has a task and hints:
//!
//! ```toml
//! task = "What is wrong, and where to look."
//! hints = ["After the first failure.", "After the second."]
//!
//! [[right]]                      # an edit to the hole that is another right solution; the tests try it
//! [[wrong]]                      # one that is none
//! ```

use crate::judge::is_name;
use crate::project::{files, Project};
use anyhow::{bail, ensure, Context, Result};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Where the captures of changes are kept.
const CAPTURES: &str = "captures/changes";

/// One change.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The file's name without its ending.
    #[serde(skip)]
    pub name: String,
    /// The lesson's folder.
    #[serde(skip)]
    pub lesson: PathBuf,
    /// What is done, in a few words.
    pub title: String,
    /// What the reader is asked to predict.
    #[serde(default)]
    pub ask: String,
    /// What the reader has to mend, if this is an exercise.
    pub task: Option<String>,
    /// What helps with that, one more after each failure.
    #[serde(default)]
    pub hints: Vec<String>,
    /// Edits to the hole that mend it in other ways than the lesson does.
    #[serde(default)]
    pub right: Vec<Edit>,
    /// Edits to the hole that do not mend it.
    #[serde(default)]
    pub wrong: Vec<Edit>,
    /// What comes of it, and why.
    pub why: String,
    /// Options for the server.
    #[serde(default)]
    pub server: String,
    /// Options for the client.
    #[serde(default)]
    pub client: String,
    /// What happens to packets on the wire.
    #[serde(default)]
    pub wire: String,
    /// Commands of nodes that do not do as the lesson does: other programs, more clients.
    #[serde(default)]
    pub nodes: BTreeMap<String, String>,
    /// What is done to the machines, and when: as `lab exec --fault`.
    #[serde(default)]
    pub faults: Vec<String>,
    /// Whether the device in user space cannot show it.
    #[serde(default)]
    pub kernel: bool,
    /// Whether the recorded run is kept for a page.
    #[serde(default)]
    pub capture: bool,
    /// What the compiler says, if the change does not build.
    pub compile: Option<String>,
    /// What is edited.
    #[serde(default)]
    pub edits: Vec<Edit>,
    /// What must be in the run file.
    #[serde(default)]
    pub outcome: Vec<Expected>,
}

/// One place in a file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// The file, below the lesson's folder.
    pub file: String,
    /// What stands there now, exactly once.
    pub from: String,
    /// What stands there then.
    pub to: String,
}

/// Something that a run file must show. One of packet, line and exit is given.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// Who sends or says it.
    pub node: String,
    /// A packet's name as `wire show` prints it; behind it, after two spaces, what else is said about it.
    pub packet: Option<String>,
    /// A part of a line.
    pub line: Option<String>,
    /// The exit status.
    pub exit: Option<i32>,
    /// How often, if that matters.
    pub times: Option<usize>,
    /// Whether only what stands behind the first of the expectation before counts.
    #[serde(default)]
    pub then: bool,
}

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

    fn parse(lesson: &Path, name: &str, text: &str) -> Result<Self> {
        let change = Self { name: name.into(), lesson: lesson.into(), ..basic_toml::from_str(text)? };
        ensure!(
            change.compile.is_some() == change.outcome.is_empty(),
            "a change has an outcome, or does not compile: one of the two"
        );
        ensure!(
            change.task.is_some() == change.ask.is_empty() && change.task.is_none() == change.hints.is_empty(),
            "a change asks something; an exercise has a task and hints in place of that"
        );
        let mut before: Option<&Expected> = None;
        for expected in &change.outcome {
            let Expected { node, packet, line, exit, then, .. } = expected;
            let count = usize::from(packet.is_some()) + usize::from(line.is_some()) + usize::from(exit.is_some());
            ensure!(count == 1, "an outcome of the {node} is one of packet, line and exit");
            if let Some(packet) = packet {
                ensure!(is_name(packet), "`wire show` calls no packet `{packet}`");
            }
            let is_after = before.is_some_and(|before| before.times != Some(0));
            ensure!(!then || is_after, "`then` is about what stands behind the outcome before it: there must be one");
            before = Some(expected);
        }
        Ok(change)
    }

    /// All changes of a lesson, in the order of their names; none if it has no folder for them.
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
        paths.iter().map(|path| Self::load(lesson, &name(path))).collect()
    }

    /// All changes of all lessons.
    ///
    /// # Errors
    /// As for [`Change::of`].
    pub fn all(project: &Project) -> Result<Vec<Self>> {
        let changes = project.lessons()?.iter().map(|lesson| Self::of(lesson)).collect::<Result<Vec<_>>>()?;
        Ok(changes.concat())
    }

    /// What has to be tried to prove it, each with whether all must then be as told.
    #[must_use]
    pub fn proofs(&self) -> Vec<(Self, bool)> {
        if self.task.is_none() {
            return vec![(self.clone(), true)];
        }
        let with = |name: String, edits: &[Edit], is_right| {
            let name = format!("{}-{name}", self.name);
            (Self { name, edits: edits.to_vec(), ..self.clone() }, is_right)
        };
        let mended = |edit: &Edit| [self.edits.clone(), vec![edit.clone()]].concat();
        let mut proofs = vec![with("hole".into(), &self.edits, false), with("lesson".into(), &[], true)];
        let (right, wrong) = ((1..).zip(&self.right), (1..).zip(&self.wrong));
        proofs.extend(right.map(|(number, edit)| with(format!("right-{number}"), &mended(edit), true)));
        proofs.extend(wrong.map(|(number, edit)| with(format!("wrong-{number}"), &mended(edit), false)));
        proofs
    }

    /// How people call it: `03-late-receive`.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}-{}", self.number(), self.name)
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

    /// Its lesson's number: `03`.
    #[must_use]
    pub fn number(&self) -> String {
        number(&self.lesson)
    }

    /// A file of the lesson with the change in it.
    ///
    /// # Errors
    /// What is to be edited is not there, or more than once.
    pub fn apply(&self, file: &str, text: &str) -> Result<String> {
        let mut text = text.to_owned();
        for edit in self.edits.iter().filter(|edit| edit.file == file) {
            match text.matches(&edit.from).count() {
                1 => text = text.replacen(&edit.from, &edit.to, 1),
                count => bail!(
                    "{}, change {}: this stands {count} times in {file}, and must stand there once:\n{}",
                    self.lesson.display(),
                    self.name,
                    edit.from
                ),
            }
        }
        Ok(text)
    }
}

fn number(lesson: &Path) -> String {
    let folder = lesson.file_name().unwrap_or_default().to_string_lossy();
    folder.split('_').next().unwrap_or_default().to_owned()
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
    fn an_exercise_is_proven_by_its_hole_by_the_lesson_and_by_other_solutions() {
        let text = TEXT.replace("ask = \"What is there?\"", "task = \"Mend it\"\nhints = [\"Where?\"]");
        let edit = "\n[[right]]\nfile = \"src/server.rs\"\nfrom = \"bb\"\nto = \"b \"";
        let exercise = parse(&format!("{text}{edit}")).unwrap();
        let of =
            |(proof, is_right): (Change, bool)| (proof.apply("src/server.rs", "abc").unwrap(), proof.name, is_right);
        let proofs: Vec<_> = exercise.proofs().into_iter().map(of).collect();
        let expected = [("abbc", "early-hole", false), ("abc", "early-lesson", true), ("ab c", "early-right-1", true)];
        assert_eq!(proofs, expected.map(|(text, name, is_right)| (text.to_owned(), name.to_owned(), is_right)));
    }

    #[test]
    fn mistakes_in_a_file_are_named() {
        let error = |text: &str| format!("{:#}", parse(text).unwrap_err());
        assert!(error(&TEXT.replace("ask", "aks")).contains("unknown field `aks`"));
        assert!(error(&TEXT.replace("line =", "exit = 0\nline =")).contains("one of packet, line and exit"));
        assert!(error(&TEXT.replace("line", "packet")).contains("calls no packet `the memory holds`"));
        assert!(error(&format!("{TEXT}\nthen = true")).contains("there must be one"));
        assert!(error(&TEXT.replace("ask", "task")).contains("an exercise has a task and hints"));
        assert!(error(&TEXT.replace("ask", "compile = \"error\"\nask")).contains("one of the two"));
    }
}
