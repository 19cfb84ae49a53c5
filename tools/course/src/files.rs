//! Files and folders, with errors that name them.

use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// What is in a folder and is wanted, in the order of the names.
pub fn files(folder: &Path, wanted: impl Fn(&Path) -> bool) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot look into {}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(|path| wanted(path)).collect();
    paths.sort();
    Ok(paths)
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

pub(crate) fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The text of a file.
pub fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Writes a file and the folders above it, unless it is so already: cargo builds anew what is newer than its program.
pub fn write(path: &Path, text: impl AsRef<[u8]>) -> Result<()> {
    if fs::read(path).is_ok_and(|there| there == text.as_ref()) {
        return Ok(());
    }
    let attempt = fs::create_dir_all(path.parent().unwrap_or(path)).and_then(|()| fs::write(path, text));
    attempt.with_context(|| format!("cannot write {}", path.display()))
}
