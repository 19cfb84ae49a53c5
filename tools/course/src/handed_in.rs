//! What a student has handed in, as a copy that is ours: a folder like mine/, or a repository with one. It may be anything, and nothing in
//! it is followed, run or waited for. Sources alone are copied.

use crate::mine::{Mine, FOLDER, SOURCES};
use anyhow::{bail, ensure, Context, Result};
use run::files::{name, output, write};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Bytes of a source, files of a folder that are looked at, folders within each other, and files of a repository.
const SOURCE: u64 = 1 << 20;
const FILES: usize = 2000;
const DEPTH: usize = 8;
const OBJECTS: usize = 100_000;
/// Seconds that git may take.
const GIT_TIME: &str = "60";

/// Copies what was handed in, replacing an older copy.
///
/// # Errors
/// What is wrong with it.
pub fn fetched(student: &Path, copy: &Path) -> Result<Mine> {
    let _ = fs::remove_dir_all(copy);
    fs::create_dir_all(copy)?;
    let about = fs::symlink_metadata(student).with_context(|| format!("there is no {}", student.display()))?;
    ensure!(!about.is_symlink(), "it's a link. Name the folder that it leads to");
    ensure!(about.is_dir(), "it isn't a folder. Name the student's folder, not a file in it");
    fs::read_dir(student).context("cannot read its folder")?;
    let repository = [student.join(".git"), student.to_owned()];
    let repository = repository.iter().find(|folder| folder.join("HEAD").symlink_metadata().is_ok());
    let dot_git = student.join(".git").symlink_metadata();
    ensure!(
        dot_git.map_or(true, |about| about.is_dir()),
        ".git isn't a folder, so the repository is somewhere else. Name that repository"
    );
    let mut from = student.to_owned();
    if let Some(repository) = repository {
        is_complete(repository)?;
        // A clone doesn't run hooks or filters of a stranger's repository. We tell git to accept that somebody else owns it.
        let trusting = copy.join("trusting.gitconfig");
        write(&trusting, "[safe]\n\tdirectory = *\n")?;
        let mut git = Command::new("timeout");
        git.args(["--kill-after=5", GIT_TIME, "git"]).env("GIT_CONFIG_GLOBAL", trusting);
        git.args(["clone", "-q", "--no-hardlinks"]).arg(&from);
        output(git.arg(copy.join("clone"))).context("git cannot clone it")?;
        from = copy.join("clone");
    }
    let found = [from.join(FOLDER), from].into_iter().filter(|folder| !folder.is_symlink());
    let found = found.filter_map(|folder| Mine::find(&folder)).next();
    let found = found.context("it contains no program: no src/main.rs, mine.c or mine.py")?;
    let to = copy.join(FOLDER);
    for file in sources(&found.folder)? {
        write(to.join(&file), text(&found.folder.join(&file))?)?;
    }
    Mine::find(&to).with_context(|| format!("cannot use {} as a source", found.language.source()))
}

/// Checks that a repository is complete in its own folder, because what it borrows from another one may be somebody else's work.
fn is_complete(repository: &Path) -> Result<()> {
    let mut left = OBJECTS;
    each(repository, 0, &mut left, &mut |path, kind| {
        let is_foreign = kind.is_symlink() || path.ends_with("objects/info/alternates") || path.ends_with("commondir");
        ensure!(!is_foreign, "its repository isn't complete: {} leads out of it", name(path));
        ensure!(kind.is_file() || kind.is_dir(), "its repository is damaged: {} isn't a file", name(path));
        Ok(true)
    })
}

/// The paths of all sources, from the folder on.
fn sources(folder: &Path) -> Result<Vec<PathBuf>> {
    let (mut found, mut left) = (Vec::new(), FILES);
    each(folder, 0, &mut left, &mut |path, kind| {
        let (below, name) = (path.strip_prefix(folder)?, name(path));
        if kind.is_dir() {
            // What was built, and what editors keep.
            return Ok(name != "target" && !name.starts_with('.'));
        }
        if SOURCES.iter().any(|end| name.ends_with(end)) {
            // A link may lead to anybody's file, and reading a pipe may never end.
            ensure!(kind.is_file(), "{} is a link, a device or a pipe, not a source file", below.display());
            found.push(below.to_owned());
        }
        Ok(true)
    })?;
    Ok(found)
}

/// Looks at everything in a folder, and into those folders for which `look` returns true. It follows no links.
fn each(
    folder: &Path,
    depth: usize,
    left: &mut usize,
    look: &mut dyn FnMut(&Path, fs::FileType) -> Result<bool>,
) -> Result<()> {
    ensure!(depth <= DEPTH, "its folders are nested too deeply, more than {DEPTH} levels");
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", name(folder)))? {
        let entry = entry?;
        let Some(fewer) = left.checked_sub(1) else { bail!("it has too many files") };
        *left = fewer;
        let (path, kind) = (entry.path(), entry.file_type()?);
        if look(&path, kind)? && kind.is_dir() {
            each(&path, depth + 1, left, look)?;
        }
    }
    Ok(())
}

/// A source's text.
fn text(path: &Path) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    let file = File::open(path).with_context(|| format!("cannot read {}", name(path)))?;
    file.take(SOURCE).read_to_end(&mut text)?;
    ensure!(text.len() < SOURCE as usize, "{} has more than a MiB, too much for a source file", name(path));
    Ok(text)
}
