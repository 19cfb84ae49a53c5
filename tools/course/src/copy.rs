//! A copy of a lesson with a change in it: a package of its own, built beside the lessons. It is in a [`workspace`], below
//! `target/course` or in a folder of the reader's. Many copies in one are built at once.

use crate::change::Change;
use crate::page::Name;
use crate::project::Project;
use crate::workspace;
use anyhow::{bail, Context, Result};
use run::files::{read, tree};
use run::waiting::{wait_for, Waiting};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, iter};

/// The folder of the copies, below cargo's; and the workspace of many of them.
const FOLDER: &str = "course";
const TOGETHER: &str = "course/all";

#[derive(Debug)]
pub struct Copy {
    pub folder: PathBuf,
    /// Its package, and the program that is built from it.
    pub package: String,
}

impl Copy {
    /// Copies the lesson of a change, and makes the change in the copy, below `target/course`.
    pub fn lay_out(project: &Project, change: &Change) -> Result<Self> {
        let workspace = project.target.join(FOLDER).join(change.name.to_string());
        Self::lay_out_all(project, &workspace, iter::once(change))?;
        Ok(Self::tried(change, &workspace))
    }

    /// Lays out copies in one workspace: one for all that is tried with it, and none where nothing is edited.
    fn lay_out_all<'a>(
        project: &Project,
        workspace: &Path,
        all: impl Iterator<Item = &'a Change>,
    ) -> Result<Vec<Self>> {
        let edited = all.filter(|change| !change.edits.is_empty());
        let edited: BTreeMap<String, &Change> = edited.map(|change| (change.name.to_string(), change)).collect();
        let copy = |change: &Change| {
            let copy = Self::of(&change.name, workspace);
            copy.edit(change).map(|()| copy)
        };
        let copies = edited.values().map(|change| copy(change)).collect::<Result<_>>()?;
        workspace::furnish(project, workspace, &edited.into_keys().collect::<Vec<_>>())?;
        Ok(copies)
    }

    /// What is run: the copy for a change, or the lesson itself, if nothing is edited.
    fn tried(change: &Change, workspace: &Path) -> Self {
        let Name { lesson, .. } = &change.name;
        match change.edits.is_empty() {
            true => Self { folder: lesson.clone(), package: workspace::package(&change.name.number()) },
            false => Self::of(&change.name, workspace),
        }
    }

    /// The copy for a change in a workspace, whether it has been laid out or not.
    pub fn of(name: &Name, workspace: &Path) -> Self {
        let name = name.to_string();
        Self { folder: workspace.join(&name), package: workspace::package(&name) }
    }

    pub fn workspace(&self) -> &Path {
        self.folder.parent().unwrap_or(&self.folder)
    }

    pub fn write(&self, project: &Project, change: &Change) -> Result<()> {
        self.edit(change)?;
        self.furnish(project, change).map(|_| ())
    }

    /// Writes the sources, with the change made in them, and its manifest.
    fn edit(&self, change: &Change) -> Result<()> {
        let (Change { name, edits, .. }, sources) = (change, Self::sources(change)?);
        if let Some(gone) = edits.iter().find(|edit| !sources.contains(&edit.file)) {
            bail!("the change {name} edits {}, which doesn't exist in the lesson", gone.file);
        }
        let with_edits = |file: String| Ok((file.clone(), change.apply(&file, &read(name.lesson.join(&file))?)?));
        let files = sources.into_iter().map(with_edits).chain([self.manifest(change)]);
        workspace::lay_out(&self.folder, files.collect::<Result<Vec<_>>>()?)
    }

    /// The sources of a change's lesson, by their paths from its folder.
    pub fn sources(change: &Change) -> Result<Vec<String>> {
        Ok(tree(&change.name.lesson)?.into_iter().filter(|file| file.ends_with(".rs")).collect())
    }

    /// Writes what cargo needs beside the sources, as it is today. Gives the files of the library that were there and otherwise.
    pub fn furnish(&self, project: &Project, change: &Change) -> Result<Vec<PathBuf>> {
        workspace::lay_out(&self.folder, [self.manifest(change)?])?;
        workspace::furnish(project, self.workspace(), &workspace::members(self.workspace())?)
    }

    fn manifest(&self, change: &Change) -> Result<(String, String)> {
        Ok(("Cargo.toml".into(), workspace::manifest(&change.name, &self.package)?))
    }

    /// Lays out the copies of many changes, and builds them at once. What does not build is no error: see [`Copy::built`].
    pub fn build_all<'a>(project: &Project, changes: impl Iterator<Item = &'a Change>) -> Result<()> {
        let workspace = project.target.join(TOGETHER);
        let copies = Self::lay_out_all(project, &workspace, changes)?;
        // A program of an earlier time would be taken for that of today.
        copies.iter().for_each(|copy| drop(fs::remove_file(copy.program(project))));
        let mut cargo = cargo(project);
        cargo.args(["build", "-q", "--keep-going", "--manifest-path"]).arg(workspace.join("Cargo.toml"));
        cargo.args(copies.iter().map(|copy| format!("-p{}", copy.package))).stderr(Stdio::null());
        let _waiting = wait_for_compiler();
        cargo.status().map(|_| ()).context("cannot start cargo")
    }

    /// The copy of a change that has been built with many others, if it did build.
    pub fn built(project: &Project, change: &Change) -> Option<Self> {
        let copy = Self::tried(change, &project.target.join(TOGETHER));
        copy.program(project).exists().then_some(copy)
    }

    /// Where cargo puts the program.
    fn program(&self, project: &Project) -> PathBuf {
        project.target.join("debug").join(&self.package)
    }

    /// Builds the program where the lessons' programs are. What the compiler complains about is no error, but the second part
    /// of the result.
    pub fn build(&self, project: &Project, color: bool) -> Result<Result<(), String>> {
        let mut cargo = cargo(project);
        cargo.args(["build", "-q", "--color", if color { "always" } else { "never" }, "--manifest-path"]);
        let _waiting = wait_for_compiler();
        let output = cargo.arg(self.folder.join("Cargo.toml")).output().context("cannot start cargo")?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok(if output.status.success() { Ok(()) } else { Err(said) })
    }
}

/// Whoever waits for a compiler is told so.
pub(crate) fn wait_for_compiler() -> Waiting {
    wait_for("waiting for the compiler (a few seconds the first time, one or two after that)")
}

/// Cargo, to build where the lessons' programs are.
pub(crate) fn cargo(project: &Project) -> Command {
    let mut cargo = Command::new("cargo");
    // Where the crates come from is written in the repository's folder.
    cargo.env("CARGO_TARGET_DIR", &project.target).current_dir(&project.root).stdin(Stdio::null());
    cargo
}
