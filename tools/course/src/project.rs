//! Where things are: the repository, and what cargo has built.

use anyhow::{ensure, Context, Result};
use run::files::{self, files, name};
use std::path::{Path, PathBuf};

/// The folders that everything else is found in.
#[derive(Debug, Clone)]
pub struct Project {
    pub root: PathBuf,
    /// Cargo's folder for what it builds: `target`.
    pub target: PathBuf,
}

impl Project {
    /// The repository that this program is called in.
    pub fn find() -> Result<Self> {
        let program = std::env::current_exe().context("cannot find this program's own path")?;
        // target/debug/course; a test's program is in a folder below that.
        let debug = program.ancestors().skip(1).find(|folder| !folder.ends_with("deps"));
        let target = debug
            .and_then(Path::parent)
            .context("this program isn't in cargo's target folder. Run it with make, or with cargo run -p course")?;
        Ok(Self { root: files::root()?, target: target.to_owned() })
    }

    /// The folder of a lesson, by its number: `03`.
    pub fn lesson(&self, number: &str) -> Result<PathBuf> {
        let lessons = self.lessons()?;
        ensure!(number.len() == 2, "`{number}` isn't the number of a lesson. Write two digits, like 04");
        let found = lessons.into_iter().find(|folder| name(folder).starts_with(number));
        found.with_context(|| format!("there is no lesson {number}"))
    }

    /// A path as it is shown: from the repository's folder on.
    pub fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).display().to_string()
    }

    /// How a person looks at a run or a capture.
    pub fn to_look_at(&self, file: &Path) -> String {
        let (file, wire) = (self.shown(file), self.shown(&self.target.join("debug/wire")));
        format!("wireshark {file}\n  {wire} show {file}")
    }

    /// The folders of all lessons, in order.
    pub fn lessons(&self) -> Result<Vec<PathBuf>> {
        files(&self.root.join("lessons"), |path| path.join("Cargo.toml").exists())
    }
}
