//! What the pages are checked against: the repository's files.

use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use wire::capture::Reader;
use wire::show::row::{self, Row};
use wire::story::timeline::Timeline;

/// The repository.
#[derive(Clone, Debug)]
pub struct Sources {
    root: PathBuf,
}

impl Sources {
    /// The repository in this folder.
    pub fn new(root: &Path) -> Sources {
        Sources { root: root.into() }
    }

    /// Where a file or folder of the repository is.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// The text of a file.
    ///
    /// # Errors
    /// There is no such file, or it holds no text.
    pub fn text(&self, path: &str) -> Result<String> {
        fs::read_to_string(self.path(path)).with_context(|| format!("cannot read {path}"))
    }

    /// The bytes of a file.
    ///
    /// # Errors
    /// There is no such file.
    pub fn bytes(&self, path: &str) -> Result<Vec<u8>> {
        fs::read(self.path(path)).with_context(|| format!("cannot read {path}"))
    }

    /// The files of a folder whose names end in a certain way, sorted, each with the folder's path before it.
    ///
    /// # Errors
    /// There is no such folder.
    pub fn files(&self, folder: &str, ending: &str) -> Result<Vec<String>> {
        let entries = fs::read_dir(self.path(folder)).with_context(|| format!("cannot read the folder {folder}"))?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut files: Vec<String> =
            names.filter(|name| name.ends_with(ending)).map(|name| format!("{folder}/{name}")).collect();
        files.sort();
        Ok(files)
    }

    /// The packets of a capture.
    ///
    /// # Errors
    /// There is no such capture, or it is damaged.
    pub fn rows(&self, capture: &str) -> Result<Vec<Row>> {
        let bytes = self.bytes(capture)?;
        row::all(|| Ok(Reader::new(bytes.as_slice())?)).with_context(|| capture.to_string())
    }

    /// A timeline, read.
    ///
    /// # Errors
    /// There is no such file, or it has no three lanes.
    pub fn timeline(&self, path: &str) -> Result<Timeline> {
        Timeline::parse(&self.text(path)?).with_context(|| format!("{path} is no timeline: it has no three lanes"))
    }

    /// The folders of the lessons, sorted: `01_cm_listen` and so on.
    ///
    /// # Errors
    /// There is no folder `lessons`.
    pub fn lessons(&self) -> Result<Vec<String>> {
        let folders = self.files("lessons", "")?;
        Ok(folders.iter().filter_map(|path| path.strip_prefix("lessons/")).map(String::from).collect())
    }
}

#[cfg(test)]
pub mod tests {
    use super::Sources;

    /// This repository, whose captures the checks are tried with.
    pub fn repository() -> Sources {
        Sources::new(&crate::root())
    }
}
