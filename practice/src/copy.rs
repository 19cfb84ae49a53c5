//! A copy of a lesson with a change in it: a package of its own below `target/practice`, built beside the lessons.

use crate::change::Change;
use crate::project::{files, Project};
use anyhow::{ensure, Context, Result};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A copy that has been laid out.
#[derive(Debug)]
pub struct Copy {
    /// Its folder.
    pub folder: PathBuf,
    /// Its package, and the program that is built from it.
    pub package: String,
}

impl Copy {
    /// Copies the lesson of a change, and makes the change in the copy, below `target/practice`. If nothing is edited, the
    /// lesson itself does.
    ///
    /// # Errors
    /// The change does not apply, or a file cannot be written.
    pub fn lay_out(project: &Project, change: &Change) -> Result<Self> {
        if change.edits.is_empty() {
            return Ok(Self { folder: change.lesson.clone(), package: format!("lesson-{}", change.number()) });
        }
        let copy = Self::of(change, &project.target.join("practice"));
        copy.write(project, change)?;
        Ok(copy)
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
        self.furnish(project, change)
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
        let Self { folder, package } = self;
        let root = read(&project.root.join("Cargo.toml"))?;
        write(&folder.join("Cargo.toml"), &manifest(&root, &read(&change.lesson.join("Cargo.toml"))?, package))?;
        // Cargo takes a crate for the one that it has built if it lies in the same place, seen from the workspace's root.
        for name in paths(&root) {
            link(&folder.join(name), &project.root.join(name))?;
        }
        // The versions that the lessons are built with.
        write(&folder.join("Cargo.lock"), &read(&project.root.join("Cargo.lock"))?)
    }

    /// Builds the program where the lessons' programs are. What the compiler complains about is no error, but the second part
    /// of the result.
    ///
    /// # Errors
    /// Cargo cannot be started.
    pub fn build(&self, project: &Project, color: bool) -> Result<Result<(), String>> {
        let mut cargo = Command::new("cargo");
        cargo.args(["build", "-q", "--color", if color { "always" } else { "never" }, "--manifest-path"]);
        cargo.arg(self.folder.join("Cargo.toml")).env("CARGO_TARGET_DIR", &project.target);
        // Where the crates come from is written in the repository's folder.
        let output = cargo.current_dir(&project.root).stdin(Stdio::null()).output().context("cannot start cargo")?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok(if output.status.success() { Ok(()) } else { Err(said) })
    }
}

/// One file that is both: a workspace as the repository's, with the same versions, profiles and patches, and the lesson's
/// package under another name.
fn manifest(root: &str, lesson: &str, package: &str) -> String {
    let members = |line: &str| if line.starts_with("members = ") { "members = []".into() } else { line.to_owned() };
    let name = |line: &str| if line.starts_with("name = ") { format!("name = \"{package}\"") } else { line.to_owned() };
    let lines = root.lines().map(members).chain([String::new()]).chain(lesson.lines().map(name));
    lines.map(|line| line + "\n").collect()
}

/// The folders of the repository that its manifest names the crates of.
fn paths(root: &str) -> BTreeSet<&str> {
    root.split("path = \"").skip(1).filter_map(|rest| rest.split(['/', '"']).next()).collect()
}

/// The files below a folder, by their paths from there.
fn tree(folder: &Path) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    for path in files(folder, |_| true)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match path.is_dir() {
            true => paths.extend(tree(&path)?.into_iter().map(|below| format!("{name}/{below}"))),
            false => paths.push(name),
        }
    }
    Ok(paths)
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
            manifest(root, lesson, "lesson-04-x"),
            "[workspace]\nmembers = []\n[workspace.dependencies]\ncommon = { path = \"common\" }\n\n\
             [package]\nname = \"lesson-04-x\"\nversion.workspace = true\n"
        );
        assert_eq!(paths(root).into_iter().collect::<Vec<_>>(), ["common"]);
    }
}
