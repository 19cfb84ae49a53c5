//! Archives in which files go to and fro, and which the kernel unpacks as its first file system: cpio, "newc" variant.

use cpio::newc::{trailer, Builder, ModeFileType};
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// An archive that is being written, in memory. Paths are absolute in the file system to be.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    /// Folders written so far: an unpacker wants every parent before its children, once.
    folders: BTreeSet<PathBuf>,
}

impl Archive {
    /// Adds a folder and all its parents.
    pub fn folder(&mut self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        let is_root = path.parent().is_none();
        if is_root || !self.folders.insert(path.to_owned()) {
            return Ok(());
        }
        self.entry(path, ModeFileType::Directory, 0o755, 0, b"")
    }

    /// Adds a file with its permission bits (for example `0o755`), and the parents it needs.
    pub fn file(&mut self, path: impl AsRef<Path>, permissions: u32, content: &[u8]) -> io::Result<()> {
        self.dated_file(path, permissions, 0, content)
    }

    /// Adds a file that was changed last at `time`, in seconds since 1970.
    pub fn dated_file(&mut self, path: impl AsRef<Path>, bits: u32, time: i64, content: &[u8]) -> io::Result<()> {
        self.entry(path.as_ref(), ModeFileType::Regular, bits, time, content)
    }

    /// Adds a symbolic link that points to `target`.
    pub fn symlink(&mut self, path: impl AsRef<Path>, target: &str) -> io::Result<()> {
        self.entry(path.as_ref(), ModeFileType::Symlink, 0o777, 0, target.as_bytes())
    }

    pub fn finish(self) -> io::Result<Vec<u8>> {
        trailer(self.bytes)
    }

    fn entry(&mut self, path: &Path, kind: ModeFileType, bits: u32, time: i64, content: &[u8]) -> io::Result<()> {
        self.folder(path.parent().unwrap_or(path))?;
        // Names in an archive have no leading slash.
        let name = path.to_string_lossy();
        let entry = Builder::new(name.trim_matches('/')).mode(bits).set_mode_file_type(kind).mtime(time as u32);
        let mut writer = entry.write(&mut self.bytes, content.len() as u32);
        writer.write_all(content)?;
        writer.finish().map(drop)
    }
}
