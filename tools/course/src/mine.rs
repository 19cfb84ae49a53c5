//! The learner's own program: a folder `mine/` beside the lessons, in Rust, C or Python; and how far it has got.

use crate::build::wait_for_compiler;
use crate::change::Name;
use crate::project::Project;
use crate::run::Place;
use crate::{sandbox, workspace};
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
const KEPT: &str = "done";
/// What is noted of a step that is done.
pub const DONE: &str = "done";

/// How sources end.
const SOURCES: [&str; 4] = [".rs", ".c", ".h", ".py"];

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
const PYTHON: [(&str, &str); 2] = [
    ("more.py", include_str!("../../../lessons/in_python/more.py")),
    ("mine.py", include_str!("../begin/python/mine.py")),
];

impl Language {
    fn files(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Rust => &RUST,
            Self::C => &C,
            Self::Python => &PYTHON,
        }
    }

    /// What is laid out beside them, which depends on this machine.
    pub fn beside(self, project: &Project) -> Result<Vec<(&'static str, String)>> {
        match self {
            Self::Rust => workspace::beside_rust(project),
            Self::C => Ok(workspace::beside_c()),
            Self::Python => Ok(workspace::beside_python()),
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
        let own = language.files().iter().map(|(file, text)| (*file, (*text).to_owned()));
        // Its source comes last: without that there is no program yet.
        let files: Vec<_> = language.beside(project)?.into_iter().chain(own).collect();
        for path in files.iter().map(|(file, _)| folder.join(file)) {
            ensure!(path.symlink_metadata().is_err(), "there is {} already", project.shown(&path));
        }
        files.iter().try_for_each(|(file, text)| write(folder.join(file), text))?;
        Ok(Self { folder, language })
    }

    /// The program as it was at the end of a lesson; as it is now, if it has not come so far.
    pub fn at(&self, lesson: &Path) -> Self {
        Self::find(&self.folder.join(KEPT).join(name(lesson))).unwrap_or_else(|| self.clone())
    }

    /// A copy of its sources, with those that it kept.
    pub fn copy_to(&self, folder: &Path) -> Result<Self> {
        const MOST: u64 = 1 << 20;
        let is_source = |file: &String| SOURCES.iter().any(|end| file.ends_with(end)) && !file.starts_with("target/");
        for file in tree(&self.folder)?.into_iter().filter(is_source) {
            let from = self.folder.join(&file);
            // What a link leads to may be anything.
            let (about, named) = (from.symlink_metadata()?, from.display());
            ensure!(about.is_file() && about.len() < MOST, "{named} is no source: a file of less than a MiB");
            write(folder.join(&file), fs::read(&from)?)?;
        }
        Self::find(folder).context("its source is gone")
    }

    /// Builds it in the sandbox, with a manifest of ours.
    pub fn build_shut_in(&self, project: &Project) -> Result<Result<String, String>> {
        let (common, target) = (project.root.join("common"), project.target.join("grade/target"));
        fs::create_dir_all(&target)?;
        for (file, text) in &self.language.files()[..self.language.files().len() - 1] {
            // A build script would run outside of the rules.
            let text = text.replace("../common", &common.display().to_string());
            write(self.folder.join(file), text.replace("publish = false", "publish = false\nbuild = false"))?;
        }
        let mut build = match self.language {
            Language::Rust => {
                write(self.folder.join("Cargo.lock"), read(project.root.join("Cargo.lock"))?)?;
                let mut cargo = sandbox::compiler(project, "cargo", &[&self.folder, &target]);
                cargo.args(["build", "-q", "--offline"]).env("CARGO_TARGET_DIR", &target);
                cargo
            }
            Language::C => {
                let mut make = sandbox::compiler(project, "make", &[&self.folder]);
                make.args(["-s", "-B"]);
                make
            }
            Language::Python => return Ok(Ok(self.command(project))),
        };
        build.env_remove("MAKEFLAGS").env_remove("MAKELEVEL").current_dir(&self.folder).stdin(Stdio::null());
        let output = build.output().context("cannot start timeout, of coreutils")?;
        if !output.status.success() {
            return Ok(Err(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
        if self.language == Language::Rust {
            // The next one is built in the same place.
            fs::copy(target.join("debug/mine"), self.folder.join("mine"))?;
        }
        Ok(Ok(self.command_of(self.folder.join("mine"))))
    }

    /// Builds it. Gives the command that runs it and what the compiler warns of, or what it complains about.
    pub fn build(&self, project: &Project, color: bool) -> Result<Result<(String, String), String>> {
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
        let _waiting = wait_for_compiler();
        // Of a make that called us these would speak to this one.
        build.env_remove("MAKEFLAGS").env_remove("MAKELEVEL").current_dir(&self.folder).stdin(Stdio::null());
        let output = build.output().context(named)?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok(if output.status.success() { Ok((self.command(project), said)) } else { Err(said) })
    }

    /// Builds it in Rust, and checks it where an editor does: that has not our environment, and has to find all compiled that needs it.
    ///
    /// # Errors
    /// What was laid out does not build.
    pub fn prepare(&self, project: &Project) -> Result<()> {
        let mut cargo = workspace::editors_cargo();
        cargo.args(["check", "-q"]).current_dir(&self.folder).env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
        let is_built = self.build(project, false)?.is_ok() && cargo.status().context("cannot start cargo")?.success();
        ensure!(is_built, "what was laid out in {} does not build", self.folder.display());
        Ok(())
    }

    /// How it is run, without its arguments.
    fn command(&self, project: &Project) -> String {
        match self.language {
            Language::Rust => self.command_of(project.target.join("debug/mine")),
            Language::C => self.command_of(self.folder.join("mine")),
            Language::Python => self.command_of(self.folder.join(self.language.source())),
        }
    }

    fn command_of(&self, program: PathBuf) -> String {
        match self.language {
            // What it prints is seen when it prints it; if a library crashes, the line that called it is told.
            Language::Python => format!("python3 -X faulthandler -u '{}'", program.display()),
            _ => format!("'{}'", program.display()),
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
            |file: &String| !file.starts_with(KEPT) && [".rs", ".c", ".h", ".py"].iter().any(|end| file.ends_with(end));
        Ok(tree(&self.folder)?.into_iter().filter(is_one).map(|file| self.folder.join(file)).collect())
    }

    /// Keeps what the program is at the end of a lesson: later ones make another of it.
    pub fn keep(&self, lesson: &Path) -> Result<()> {
        let kept = self.folder.join(KEPT).join(name(lesson));
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
