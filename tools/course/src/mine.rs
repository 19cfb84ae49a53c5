//! The learner's own program: a folder `mine/` beside the lessons, in Rust, C or Python; and how far it has got.

use crate::copy::wait_for_compiler;
use crate::progress::Progress;
use crate::project::Project;
use crate::run::Place;
use crate::sandbox::{self, Sandbox, INSIDE};
use crate::workspace;
use anyhow::{bail, ensure, Context, Result};
use run::files::{files, name, tree, write};
use run::waiting::wait_for;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The folder, in the repository's; version control leaves it alone.
pub const FOLDER: &str = "mine";
/// Where it says how far it has got.
const NOTE: &str = ".steps";
/// What the program was at the end of each lesson.
const KEPT: &str = "done";
/// What is noted of a step that is done.
pub const DONE: &str = "done";

/// Seconds that a compiler may take for a program that was handed in: cargo builds the library as well, the first time.
const C_TIME: u32 = 30;
const RUST_TIME: u32 = 600;
/// Bytes of what a compiler says that are kept.
const SAID: u64 = 16 << 10;

/// How sources end.
pub(crate) const SOURCES: [&str; 4] = [".rs", ".c", ".h", ".py"];

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
    pub const ALL: [Language; 3] = [Self::Rust, Self::C, Self::Python];

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
        let language = Language::ALL.into_iter().find(is_there)?;
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
            bail!(
                "{file} is already there, and `make step` goes on with it. To start over, move the folder away first"
            );
        }
        let own = language.files().iter().map(|(file, text)| (*file, (*text).to_owned()));
        // Its source comes last: without that there is no program yet.
        let files: Vec<_> = language.beside(project)?.into_iter().chain(own).collect();
        for path in files.iter().map(|(file, _)| folder.join(file)) {
            ensure!(
                path.symlink_metadata().is_err(),
                "{} is already there. To start over, move the folder away first",
                project.shown(&path)
            );
        }
        workspace::lay_out(&folder, files)?;
        let mine = Self { folder, language };
        mine.furnish(project)?;
        Ok(mine)
    }

    /// Writes what it's built with, as that is today.
    fn furnish(&self, project: &Project) -> Result<()> {
        match self.language {
            Language::Rust => workspace::furnish_own(project, &self.folder, &project.root.join(workspace::LIBRARY)),
            Language::C | Language::Python => Ok(()),
        }
    }

    /// The program as it was at the end of a lesson; as it is now, if it has not come so far.
    pub fn at(&self, lesson: &Path) -> Self {
        Self::find(&self.folder.join(KEPT).join(name(lesson))).unwrap_or_else(|| self.clone())
    }

    /// Builds it in the sandbox, with a manifest of ours. Gives the command that runs it there, or what the compiler complains about.
    pub fn build_shut_in(&self, project: &Project, sandbox: &Sandbox) -> Result<Result<String, String>> {
        for (file, text) in &self.language.files()[..self.language.files().len() - 1] {
            // A build script would run outside of the rules.
            write(self.folder.join(file), text.replace("publish = false", "publish = false\nbuild = false"))?;
        }
        let mut build = match self.language {
            Language::Rust => {
                let library = Path::new(sandbox::COURSE).join(workspace::LIBRARY);
                workspace::furnish_own(project, &self.folder, &library)?;
                // What is left of another student's program could be taken for this one's, or be read by it.
                for path in [sandbox.target().join("debug"), sandbox.target().join("debug/deps")] {
                    remove_named(&path, "mine")?;
                }
                remove_named(&sandbox.target().join("debug/incremental"), "mine")?;
                remove_named(&sandbox.target().join("debug/.fingerprint"), "mine")?;
                let mut cargo = sandbox.compiler(&self.folder, RUST_TIME, "cargo");
                cargo.args(["build", "-q", "--offline"]);
                cargo
            }
            Language::C => {
                let mut make = sandbox.compiler(&self.folder, C_TIME, "make");
                make.args(["-s", "-B"]);
                make
            }
            Language::Python => return Ok(Ok(self.command_of(Path::new(INSIDE).join(self.language.source())))),
        };
        sandbox.give(&self.folder)?;
        build.env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
        // A file, because its size has a limit.
        let said = sandbox.said();
        build.stdout(Stdio::null()).stderr(fs::File::create(&said)?);
        let status = build.status().context("cannot start timeout. Install the package coreutils")?;
        if !status.success() {
            let why = match status.code() {
                Some(124 | 137) => "the compiler took too long and was stopped\n",
                _ => "",
            };
            return Ok(Err(why.to_owned() + &beginning(&said)?));
        }
        if self.language == Language::Rust {
            // The next one is built in the same place.
            ensure!(
                sandbox.target().join("debug/mine").symlink_metadata()?.is_file(),
                "cargo built no program called mine; check the package name in Cargo.toml"
            );
            fs::copy(sandbox.target().join("debug/mine"), self.folder.join("mine"))?;
        }
        Ok(Ok(self.command_of(Path::new(INSIDE).join("mine"))))
    }

    /// Builds it. Gives the command that runs it and what the compiler warns of, or what it complains about.
    pub fn build(&self, project: &Project, color: bool) -> Result<Result<(String, String), String>> {
        let mut build = match self.language {
            Language::Rust => {
                self.furnish(project)?;
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

    /// Builds it in Rust, and if an editor's cargo won't take that, checks it as the editor will: that doesn't have our environment, so everything
    /// that needs it must be compiled.
    ///
    /// # Errors
    /// What was laid out does not build.
    pub fn prepare(&self, project: &Project) -> Result<()> {
        let mut is_built = self.build(project, false)?.is_ok();
        if is_built && !workspace::is_shared()? {
            let mut cargo = workspace::editors_cargo();
            cargo.args(["check", "-q"]).current_dir(&self.folder).env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
            let _waiting =
                wait_for("compiling what your program needs once more, for your editor (a minute or two, once)");
            is_built = cargo.status().context("cannot start cargo")?.success();
        }
        ensure!(is_built, "the program laid out in {} doesn't build; the messages are above", self.folder.display());
        Ok(())
    }

    /// How it's run, without its arguments.
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
        ensure!(
            is_possible,
            "the lab's machines have no Python, so a program in Python is judged on the device. Leave on=lab out"
        );
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

    /// Which steps or holes are done; how many hints of which were asked for; and which were told.
    pub fn progress(&self) -> Progress {
        Progress { file: self.folder.join(NOTE) }
    }
}

/// What a compiler has said, as much as somebody reads.
fn beginning(said: &Path) -> Result<String> {
    let mut text = Vec::new();
    fs::File::open(said)?.take(SAID).read_to_end(&mut text)?;
    let more = if text.len() as u64 == SAID { "\n(and more)\n" } else { "" };
    Ok(String::from_utf8_lossy(&text).into_owned() + more)
}

/// Removes what is called so in a folder, or begins so and goes on with `-` or `.`.
fn remove_named(folder: &Path, name: &str) -> Result<()> {
    let is_it = |path: &Path| {
        let file = run::files::name(path);
        let of = file.strip_prefix("lib").unwrap_or(&file).strip_prefix(name);
        of.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.']))
    };
    if !folder.exists() {
        return Ok(());
    }
    for path in files(folder, is_it)? {
        match path.is_dir() {
            true => fs::remove_dir_all(&path)?,
            false => fs::remove_file(&path)?,
        }
    }
    Ok(())
}
