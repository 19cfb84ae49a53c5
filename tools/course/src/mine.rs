//! The learner's own program: a folder `mine/` beside the lessons, in Rust, C or Python; and how far it has got.

use crate::change::Name;
use crate::project::Project;
use crate::run::Place;
use crate::workspace;
use anyhow::{bail, ensure, Context, Result};
use run::files::{name, read, tree, write};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The folder, in the repository's; version control leaves it alone.
pub const FOLDER: &str = "mine";
/// Where it says which steps are done, a line each; how many hints of which were asked for; and which were told.
const NOTE: &str = ".steps";
/// What the program was at the end of each lesson.
const DONE: &str = "done";

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Language {
    Rust,
    C,
    Python,
}

#[derive(Debug, Clone)]
pub struct Mine {
    pub folder: PathBuf,
    pub language: Language,
}

/// What a program begins with: its files.
const RUST: [(&str, &str); 2] = [
    ("Cargo.toml", include_str!("../begin/rust/Cargo.toml.txt")),
    ("src/main.rs", include_str!("../begin/rust/src/main.rs")),
];
const C: [(&str, &str); 2] =
    [("Makefile", include_str!("../begin/c/Makefile")), ("mine.c", include_str!("../begin/c/mine.c"))];
const PYTHON: [(&str, &str); 1] = [("mine.py", include_str!("../begin/python/mine.py"))];

impl Language {
    fn files(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Rust => &RUST,
            Self::C => &C,
            Self::Python => &PYTHON,
        }
    }

    /// The file that the learner writes.
    pub fn source(self) -> &'static str {
        self.files().last().map_or("", |(name, _)| name)
    }
}

impl Mine {
    /// The program in a folder, if there is one.
    pub fn find(folder: &Path) -> Option<Self> {
        let is_there = |language: &Language| folder.join(language.source()).exists();
        let language = [Language::Rust, Language::C, Language::Python].into_iter().find(is_there)?;
        Some(Self { folder: folder.to_owned(), language })
    }

    /// Lays a program out. One that is there stays as it is.
    ///
    /// # Errors
    /// There is something already.
    pub fn begin(project: &Project, language: Language) -> Result<Self> {
        let folder = project.root.join(FOLDER);
        if let Some(mine) = Self::find(&folder) {
            let file = project.shown(&folder.join(mine.language.source()));
            bail!("there is {file} already: `make step` goes on with it. To begin anew, move the folder away first");
        }
        for (file, text) in language.files() {
            ensure!(!folder.join(file).exists(), "there is {} already", project.shown(&folder.join(file)));
            write(folder.join(file), text)?;
        }
        let mine = Self { folder, language };
        if language == Language::Rust {
            workspace::furnish_alone(project, &mine.folder)?;
        }
        Ok(mine)
    }

    /// Builds it. Gives the command that runs it, or what the compiler complains about.
    pub fn build(&self, project: &Project, color: bool) -> Result<Result<String, String>> {
        let mut build = match self.language {
            Language::Rust => {
                let mut cargo = Command::new("cargo");
                cargo.args(["build", "-q", "--color", if color { "always" } else { "never" }]);
                cargo.env("CARGO_TARGET_DIR", &project.target);
                cargo
            }
            Language::C => {
                let mut make = Command::new("make");
                make.arg("-s");
                make
            }
            Language::Python => {
                let mut python = Command::new("python3");
                python.args(["-c", "import sys; compile(open(sys.argv[1]).read(), sys.argv[1], 'exec')"]);
                python.arg(self.language.source());
                python
            }
        };
        let named = format!("cannot start {}", build.get_program().to_string_lossy());
        // Of a make that called us these would speak to this one.
        build.env_remove("MAKEFLAGS").env_remove("MAKELEVEL").current_dir(&self.folder).stdin(Stdio::null());
        let output = build.output().context(named)?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok(if output.status.success() { Ok(self.command(project)) } else { Err(said) })
    }

    /// How it is run, without its arguments.
    fn command(&self, project: &Project) -> String {
        let own = |path: PathBuf| format!("'{}'", path.display());
        match self.language {
            Language::Rust => own(project.target.join("debug/mine")),
            Language::C => own(self.folder.join("mine")),
            // What it prints is seen when it prints it.
            Language::Python => format!("python3 -u {}", own(self.folder.join(self.language.source()))),
        }
    }

    /// Whether it can run there.
    pub fn runs_in(&self, place: Place) -> Result<()> {
        let is_possible = self.language != Language::Python || place == Place::Device;
        ensure!(is_possible, "the lab's machines have no Python: a program in it is judged on the device");
        Ok(())
    }

    /// The files that somebody writes.
    pub fn sources(&self) -> Result<Vec<PathBuf>> {
        let is_one =
            |file: &String| !file.starts_with(DONE) && [".rs", ".c", ".h", ".py"].iter().any(|end| file.ends_with(end));
        Ok(tree(&self.folder)?.into_iter().filter(is_one).map(|file| self.folder.join(file)).collect())
    }

    /// Keeps what the program is at the end of a lesson: later ones make another of it.
    pub fn keep(&self, lesson: &Path) -> Result<()> {
        let kept = self.folder.join(DONE).join(name(lesson));
        for path in self.sources()? {
            let file = path.strip_prefix(&self.folder).context("a source lies outside")?;
            write(kept.join(file), fs::read(&path)?)?;
        }
        Ok(())
    }

    fn notes(&self) -> Vec<String> {
        read(self.folder.join(NOTE)).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Whether this was noted of a step.
    pub fn has(&self, what: &str, step: &Name) -> bool {
        self.notes().contains(&format!("{what} {step}"))
    }

    /// How often this was noted.
    pub fn times(&self, what: &str, step: &Name) -> usize {
        self.notes().iter().filter(|line| **line == format!("{what} {step}")).count()
    }

    pub fn note(&self, what: &str, step: &Name) -> Result<()> {
        let lines: String = self.notes().iter().map(|line| format!("{line}\n")).collect();
        write(self.folder.join(NOTE), format!("{lines}{what} {step}\n"))
    }
}
