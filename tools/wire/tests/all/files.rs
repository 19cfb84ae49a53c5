//! Captures as files, and the command that reads them.

use roce::LinkType;
use run::pcapng::{Section, Writer};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A file of these frames, a microsecond after each other.
pub fn capture_of<F: AsRef<[u8]>>(link: LinkType, frames: impl IntoIterator<Item = F>) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), link, &Section::default()).unwrap();
    for (i, frame) in (0..).zip(frames) {
        writer.packet(1_700_000_000_000_000_000 + i * 1000, frame.as_ref(), None).unwrap();
    }
    writer.into_inner().unwrap()
}

/// A file of these Ethernet frames.
pub fn capture<F: AsRef<[u8]>>(frames: impl IntoIterator<Item = F>) -> Vec<u8> {
    capture_of(LinkType::ETHERNET, frames)
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The capture of a lesson: `04_rdma_write`.
pub fn bundled(name: &str) -> PathBuf {
    root().join(format!("captures/{name}.pcapng"))
}

/// The captures of all lessons.
pub fn all_bundled() -> Vec<PathBuf> {
    let files = std::fs::read_dir(root().join("captures")).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "pcapng")).collect()
}

/// An empty folder for one test.
pub fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A file for one test.
pub fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// What `wire` does with a file.
pub fn wire(command: &str, file: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_wire")).arg(command).arg(file).args(arguments).output().unwrap()
}

pub fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}
