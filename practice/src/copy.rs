//! A copy of a lesson with a change in it: a package of its own below `target/practice`, built beside the lessons. Many copies
//! are the packages of one workspace, and are built at once.

use crate::change::Change;
use crate::project::{files, Project};
use anyhow::{ensure, Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The workspace of many copies, below cargo's folder.
const TOGETHER: &str = "practice/all";

/// A copy that has been laid out.
#[derive(Debug)]
pub struct Copy {
    /// Its folder.
    pub folder: PathBuf,
    /// Its package, and the program that is built from it.
    pub package: String,
}

impl Copy {
    /// Copies the lesson of a change, and makes the change in the copy, below `target/practice`.
    ///
    /// # Errors
    /// The change does not apply, or a file cannot be written.
    pub fn lay_out(project: &Project, change: &Change) -> Result<Self> {
        let copy = Self::tried(change, &project.target.join("practice"));
        if !change.edits.is_empty() {
            copy.write(project, change)?;
        }
        Ok(copy)
    }

    /// What is run: the copy for a change, or the lesson itself, if nothing is edited.
    fn tried(change: &Change, folder: &Path) -> Self {
        match change.edits.is_empty() {
            true => Self { folder: change.lesson.clone(), package: format!("lesson-{}", change.number()) },
            false => Self::of(change, folder),
        }
    }

    /// The copy for a change in a folder, whether it has been laid out or not.
    #[must_use]
    pub fn of(change: &Change, folder: &Path) -> Self {
        let name = change.full_name();
        Self { folder: folder.join(&name), package: format!("lesson-{name}") }
    }

    /// Lays it out.
    ///
    /// # Errors
    /// As for [`Copy::lay_out`].
    pub fn write(&self, project: &Project, change: &Change) -> Result<()> {
        self.edit(change)?;
        self.furnish(project, change)
    }

    /// Writes the sources, with the change made in them.
    fn edit(&self, change: &Change) -> Result<()> {
        let mut edited = 0;
        for file in Self::sources(change)? {
            let text = read(&change.lesson.join(&file))?;
            let changed = change.apply(&file, &text)?;
            edited += usize::from(changed != text);
            write(&self.folder.join(&file), &changed)?;
        }
        let named: BTreeSet<&str> = change.edits.iter().map(|edit| edit.file.as_str()).collect();
        ensure!(
            edited == named.len(),
            "change {}: one of {named:?} does not exist, or nothing is changed in it",
            change.name
        );
        Ok(())
    }

    /// The sources of a change's lesson, by their paths from its folder.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn sources(change: &Change) -> Result<Vec<String>> {
        Ok(tree(&change.lesson)?.into_iter().filter(|file| file.ends_with(".rs")).collect())
    }

    /// Writes what cargo needs beside the sources, as it is today.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn furnish(&self, project: &Project, change: &Change) -> Result<()> {
        let package = package(&read(&change.lesson.join("Cargo.toml"))?, &self.package);
        workspace(project, &self.folder, std::slice::from_ref(&self.package), &[], &package)
    }

    /// Lays out the copies of many changes, and builds them at once. What does not build is no error: see [`Copy::built`].
    ///
    /// # Errors
    /// A change does not apply, a file cannot be written, or cargo cannot be started.
    pub fn build_all<'a>(project: &Project, changes: impl Iterator<Item = &'a Change>) -> Result<()> {
        let folder = project.target.join(TOGETHER);
        let edited = changes.filter(|change| !change.edits.is_empty()).map(|change| (change.full_name(), change));
        // One copy for all that is tried with it.
        let edited: BTreeMap<String, &Change> = edited.collect();
        let mut packages = Vec::new();
        for change in edited.values() {
            let copy = Self::of(change, &folder);
            copy.edit(change)?;
            let manifest = package(&read(&change.lesson.join("Cargo.toml"))?, &copy.package);
            write(&copy.folder.join("Cargo.toml"), &manifest)?;
            // One of an earlier time would be taken for that of today.
            let _ = fs::remove_file(copy.program(project));
            packages.push(copy.package);
        }
        let members: Vec<&str> = edited.keys().map(String::as_str).collect();
        workspace(project, &folder, &packages, &members, "")?;
        let mut cargo = cargo(project);
        cargo.args(["build", "-q", "--keep-going", "--manifest-path"]).arg(folder.join("Cargo.toml"));
        cargo.args(packages.iter().map(|package| format!("-p{package}"))).stderr(Stdio::null());
        cargo.status().map(|_| ()).context("cannot start cargo")
    }

    /// The copy of a change that has been built with many others, if it did build.
    #[must_use]
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
    ///
    /// # Errors
    /// Cargo cannot be started.
    pub fn build(&self, project: &Project, color: bool) -> Result<Result<(), String>> {
        let mut cargo = cargo(project);
        cargo.args(["build", "-q", "--color", if color { "always" } else { "never" }, "--manifest-path"]);
        let output = cargo.arg(self.folder.join("Cargo.toml")).output().context("cannot start cargo")?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok(if output.status.success() { Ok(()) } else { Err(said) })
    }
}

/// Cargo, to build where the lessons' programs are.
pub(crate) fn cargo(project: &Project) -> Command {
    let mut cargo = Command::new("cargo");
    // Where the crates come from is written in the repository's folder.
    cargo.env("CARGO_TARGET_DIR", &project.target).current_dir(&project.root).stdin(Stdio::null());
    cargo
}

/// Writes a workspace as the repository's, with the same versions, profiles and patches, and other members. A package that
/// stands behind it is one of them, too.
fn workspace(project: &Project, folder: &Path, packages: &[String], members: &[&str], package: &str) -> Result<()> {
    let root = read(&project.root.join("Cargo.toml"))?;
    write(&folder.join("Cargo.toml"), &(manifest(&root, packages, members) + "\n" + package))?;
    // Cargo takes a crate for the one that it has built if it lies in the same place, seen from the workspace's root.
    for name in paths(&root) {
        link(&folder.join(name), &project.root.join(name))?;
    }
    // The versions that the lessons are built with.
    write(&folder.join("Cargo.lock"), &read(&project.root.join("Cargo.lock"))?)
}

/// A lesson's own code takes little time, and a person waits for the compiler: only what it calls is optimized.
fn manifest(root: &str, packages: &[String], members: &[&str]) -> String {
    let with =
        |line: &str| if line.starts_with("members = ") { format!("members = {members:?}") } else { line.to_owned() };
    let fast = |package: &String| {
        format!("\n[profile.dev.package.{package}]\nopt-level = 0\ndebug = false\nincremental = false\n")
    };
    root.lines().map(|line| with(line) + "\n").chain(packages.iter().map(fast)).collect()
}

/// The lesson's package under another name.
fn package(lesson: &str, package: &str) -> String {
    let name = |line: &str| if line.starts_with("name = ") { format!("name = \"{package}\"") } else { line.to_owned() };
    lesson.lines().map(|line| name(line) + "\n").collect()
}

/// The folders of the repository that its manifest names the crates of.
fn paths(root: &str) -> BTreeSet<&str> {
    root.split("path = \"").skip(1).filter_map(|rest| rest.split(['/', '"']).next()).collect()
}

/// The files below a folder, by their paths from there. An editor's own files begin with a dot.
pub(crate) fn tree(folder: &Path) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    for path in files(folder, |path| !name(path).starts_with('.'))? {
        let name = name(&path);
        match path.is_dir() {
            true => paths.extend(tree(&path)?.into_iter().map(|below| format!("{name}/{below}"))),
            false => paths.push(name),
        }
    }
    Ok(paths)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Writes a file, unless it is so already: cargo builds anew what is newer than its program.
fn write(path: &Path, text: &str) -> Result<()> {
    if fs::read_to_string(path).is_ok_and(|there| there == text) {
        return Ok(());
    }
    let attempt = || -> std::io::Result<()> {
        fs::create_dir_all(path.parent().unwrap_or(path))?;
        fs::write(path, text)
    };
    attempt().with_context(|| format!("cannot write {}", path.display()))
}

/// Makes a symbolic link, unless it is there.
fn link(path: &Path, target: &Path) -> Result<()> {
    match fs::read_link(path) {
        Ok(there) if there == target => Ok(()),
        _ => symlink(target, path).with_context(|| format!("cannot make the link {}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copys_manifest_is_the_workspaces_and_the_lessons() {
        let root =
            "[workspace]\nmembers = [\"common\", \"lab\"]\n[workspace.dependencies]\ncommon = { path = \"common\" }\n";
        let lesson = "[package]\nname = \"lesson-04\"\nversion.workspace = true\n";
        assert_eq!(
            manifest(root, &["lesson-04-x".into()], &["04-x"]),
            "[workspace]\nmembers = [\"04-x\"]\n[workspace.dependencies]\ncommon = { path = \"common\" }\n\n\
             [profile.dev.package.lesson-04-x]\nopt-level = 0\ndebug = false\nincremental = false\n"
        );
        assert_eq!(package(lesson, "lesson-04-x"), "[package]\nname = \"lesson-04-x\"\nversion.workspace = true\n");
        assert_eq!(paths(root).into_iter().collect::<Vec<_>>(), ["common"]);
    }
}
