//! The repository that a tool works on, its files, and programs to call: with errors that name them.

use anyhow::{ensure, Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, iter};

/// The repository around the working directory, or else around this program. It is looked for when a tool runs, for a clone can
/// be renamed, and copied with all that was built in it.
pub fn root() -> Result<PathBuf> {
    let is_root = |folder: &&Path| folder.join("lessons").is_dir() && folder.join("Cargo.toml").is_file();
    let around = |place: PathBuf| place.ancestors().find(is_root).map(Path::to_owned);
    let places = iter::once(env::current_dir()).chain(iter::once(env::current_exe()));
    places.flatten().find_map(around).context("this isn't a clone of the course. Run it in the course's folder")
}

/// The text of a file.
pub fn read(path: impl AsRef<Path>) -> Result<String> {
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.as_ref().display()))
}

/// The bytes of a file.
pub fn bytes(path: impl AsRef<Path>) -> Result<Vec<u8>> {
    fs::read(&path).with_context(|| format!("cannot read {}", path.as_ref().display()))
}

/// Writes a file and the folders above it, unless it is so already: cargo builds again what is newer than its program.
pub fn write(path: impl AsRef<Path>, text: impl AsRef<[u8]>) -> Result<()> {
    let path = path.as_ref();
    if fs::read(path).is_ok_and(|there| there == text.as_ref()) {
        return Ok(());
    }
    let attempt = fs::create_dir_all(path.parent().unwrap_or(path)).and_then(|()| fs::write(path, text));
    attempt.with_context(|| format!("cannot write {}", path.display()))
}

/// What is in a folder and is wanted, in the order of the names.
pub fn files(folder: &Path, wanted: impl Fn(&Path) -> bool) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot look into {}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(|path| wanted(path)).collect();
    paths.sort();
    Ok(paths)
}

/// The files below a folder, by their paths from there. An editor's own files begin with a dot.
pub fn tree(folder: &Path) -> Result<Vec<String>> {
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

/// The folder for a run of this name, among those of all runs, and what holds it against other runs until it is closed: `NAME`, or `NAME-2`
/// and so on while other runs of that name go on. `make` is given the folder before anybody else can have it.
#[cfg(unix)]
pub fn free_folder(
    runs: &Path,
    name: &str,
    make: impl FnOnce(&Path) -> std::io::Result<()>,
) -> std::io::Result<(PathBuf, fs::File)> {
    use fs::File;
    use rustix::fs::{flock, FlockOperation};

    fs::create_dir_all(runs)?;
    // A file system without locks has no second run at a time.
    let choosing = File::open(runs)?;
    let _ = flock(&choosing, FlockOperation::LockExclusive);
    let is_in_use = |folder: &Path| {
        File::open(folder).is_ok_and(|old| flock(old, FlockOperation::NonBlockingLockExclusive).is_err())
    };
    let (mut folder, mut number) = (runs.join(name), 1);
    while is_in_use(&folder) {
        number += 1;
        folder = runs.join(format!("{name}-{number}"));
    }
    make(&folder)?;
    let held = File::open(&folder)?;
    let _ = flock(&held, FlockOperation::NonBlockingLockShared);
    Ok((folder, held))
}

/// The last part of a path.
pub fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// What a program prints; an error with what it has said, if it fails.
pub fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot run {name}. Is it installed?"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name} failed ({}): {}", output.status, said.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
