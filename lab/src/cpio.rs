//! The archive format the kernel unpacks as its first file system: cpio, "newc" variant.
//!
//! Layout (kernel documentation, "initramfs buffer format"): for each entry the magic `070701`, thirteen
//! 8-digit hexadecimal numbers, the name with a final NUL, and the content. Header with name, and content,
//! are each padded with NUL to a multiple of 4 bytes. An entry named `TRAILER!!!` ends the archive.

use std::collections::BTreeSet;
use std::path::Path;

const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const SYMLINK: u32 = 0o120_000;

/// An archive that is being written, in memory.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    entries: u32,
    /// Folders written so far: an unpacker wants every parent before its children, once.
    folders: BTreeSet<String>,
}

impl Archive {
    /// An archive without entries.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a folder and all its parents. `path` is absolute in the file system to be.
    pub fn folder(&mut self, path: impl AsRef<Path>) {
        let name = entry_name(path.as_ref());
        if name.is_empty() || self.folders.contains(&name) {
            return;
        }
        self.parents(&name);
        self.entry(&name, DIRECTORY | 0o755, b"");
        self.folders.insert(name);
    }

    /// Adds a file with its permission bits (for example `0o755`), and the parents it needs.
    pub fn file(&mut self, path: impl AsRef<Path>, permissions: u32, content: &[u8]) {
        let name = entry_name(path.as_ref());
        self.parents(&name);
        self.entry(&name, REGULAR | permissions, content);
    }

    /// Adds a symbolic link that points to `target`.
    pub fn symlink(&mut self, path: impl AsRef<Path>, target: &str) {
        let name = entry_name(path.as_ref());
        self.parents(&name);
        self.entry(&name, SYMLINK | 0o777, target.as_bytes());
    }

    /// Ends the archive and gives its bytes.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, b"");
        self.bytes
    }

    fn parents(&mut self, name: &str) {
        if let Some((parent, _)) = name.rsplit_once('/') {
            self.folder(Path::new("/").join(parent));
        }
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        let links = if mode & DIRECTORY == DIRECTORY { 2 } else { 1 };
        let fields = [
            self.entries, // inode: any number, but not the same twice
            mode,
            0, // owner: root
            0, // group: root
            links,
            0, // modification time: fixed, so that equal content gives equal bytes
            content.len() as u32,
            0, // device numbers of the file and, for device nodes, of the device
            0,
            0,
            0,
            name.len() as u32 + 1,
            0, // checksum: unused in this variant
        ];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

/// Names in the archive have no leading slash.
fn entry_name(path: &Path) -> String {
    path.to_string_lossy().trim_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    fn sample() -> Vec<u8> {
        let mut archive = Archive::new();
        archive.file("/etc/deep/hosts", 0o644, b"10.47.91.1 server\n");
        archive.folder("/etc/deep");
        archive.symlink("/bin/sh", "dash");
        archive.finish()
    }

    #[test]
    fn first_header_is_as_documented() {
        let bytes = sample();
        let header = std::str::from_utf8(&bytes[..110]).unwrap();
        assert_eq!(&header[..6], "070701");
        assert_eq!(&header[14..22], "000041ed", "a folder with rwxr-xr-x");
        assert_eq!(&header[94..102], "00000004", "name length counts the NUL");
        assert_eq!(&bytes[110..114], b"etc\0");
        assert_eq!(bytes.len() % 4, 0);
    }

    #[test]
    fn cpio_lists_parents_once_and_first() {
        let mut cpio = Command::new("busybox")
            .args(["cpio", "-t"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("busybox is one of the lab's own requirements");
        cpio.stdin.take().unwrap().write_all(&sample()).unwrap();
        let output = cpio.wait_with_output().unwrap();
        assert!(output.status.success());
        let names: Vec<&str> = std::str::from_utf8(&output.stdout).unwrap().lines().collect();
        assert_eq!(names, ["etc", "etc/deep", "etc/deep/hosts", "bin", "bin/sh"]);
    }
}
