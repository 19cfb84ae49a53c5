//! The archive format the kernel unpacks as its first file system, and in which files go to and fro: cpio, "newc" variant.
//!
//! Layout (kernel documentation, "initramfs buffer format"): for each entry the magic `070701`, thirteen
//! 8-digit hexadecimal numbers, the name with a final NUL, and the content. Header with name, and content,
//! are each padded with NUL to a multiple of 4 bytes. An entry named `TRAILER!!!` ends the archive.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const SYMLINK: u32 = 0o120_000;
const TRAILER: &str = "TRAILER!!!";

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
        self.entry(&name, DIRECTORY | 0o755, 0, b"");
        self.folders.insert(name);
    }

    /// Adds a file with its permission bits (for example `0o755`), and the parents it needs.
    pub fn file(&mut self, path: impl AsRef<Path>, permissions: u32, content: &[u8]) {
        self.dated_file(path, permissions, 0, content);
    }

    /// Adds a file that was changed last at `time`, in seconds since 1970.
    pub fn dated_file(&mut self, path: impl AsRef<Path>, permissions: u32, time: i64, content: &[u8]) {
        let name = entry_name(path.as_ref());
        self.parents(&name);
        self.entry(&name, REGULAR | permissions, time, content);
    }

    /// Adds a symbolic link that points to `target`.
    pub fn symlink(&mut self, path: impl AsRef<Path>, target: &str) {
        let name = entry_name(path.as_ref());
        self.parents(&name);
        self.entry(&name, SYMLINK | 0o777, 0, target.as_bytes());
    }

    /// Ends the archive and gives its bytes.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.entry(TRAILER, 0, 0, b"");
        self.bytes
    }

    fn parents(&mut self, name: &str) {
        if let Some((parent, _)) = name.rsplit_once('/') {
            self.folder(Path::new("/").join(parent));
        }
    }

    fn entry(&mut self, name: &str, mode: u32, time: i64, content: &[u8]) {
        self.entries += 1;
        let links = if mode & DIRECTORY == DIRECTORY { 2 } else { 1 };
        let fields = [
            self.entries, // inode: any number, but not the same twice
            mode,
            0, // owner: root
            0, // group: root
            links,
            time as u32, // mostly 0, so that equal content gives equal bytes
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

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A folder.
    Folder,
    /// A plain file.
    File,
    /// A link, a device and the like.
    Other,
}

/// One entry of an archive that is read.
#[derive(Debug)]
pub struct Entry {
    /// Path, mostly relative.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Permission bits.
    pub permissions: u32,
    /// What is in the file.
    pub content: Vec<u8>,
}

/// Reads the next entry; `None` at the archive's end.
///
/// # Errors
/// It is no such archive, or cut.
pub fn next(archive: &mut impl Read) -> io::Result<Option<Entry>> {
    let nonsense = || io::Error::new(ErrorKind::InvalidData, "it holds no cpio archive");
    let mut header = [0; 110];
    archive.read_exact(&mut header)?;
    let text = std::str::from_utf8(&header).ok().filter(|text| text.starts_with("070701")).ok_or_else(nonsense)?;
    let field = |index: usize| u32::from_str_radix(&text[6 + 8 * index..14 + 8 * index], 16).map_err(|_| nonsense());
    let (mode, size, name_size) = (field(1)?, field(6)?, field(11)?);
    let name = padded(archive, name_size, header.len())?;
    let content = padded(archive, size, 0)?;
    let name = String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned();
    let kind = match mode & 0o170_000 {
        DIRECTORY => Kind::Folder,
        REGULAR => Kind::File,
        _ => Kind::Other,
    };
    Ok((name != TRAILER).then_some(Entry { name, kind, permissions: mode & 0o7777, content }))
}

/// So many bytes, and the padding behind them: they begin `at` bytes behind a multiple of 4.
fn padded(archive: &mut impl Read, size: u32, at: usize) -> io::Result<Vec<u8>> {
    let end = (at + size as usize).next_multiple_of(4) - at;
    let mut bytes = Vec::new();
    archive.take(end as u64).read_to_end(&mut bytes)?;
    if bytes.len() < end {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    bytes.truncate(size as usize);
    Ok(bytes)
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
    fn what_is_written_can_be_read_and_nonsense_is_an_error() {
        let archive = sample();
        let mut rest = archive.as_slice();
        let entries: Vec<Entry> = std::iter::from_fn(|| next(&mut rest).unwrap()).collect();
        let names: Vec<_> = entries.iter().map(|entry| (entry.name.as_str(), entry.kind)).collect();
        let folders = [("etc", Kind::Folder), ("etc/deep", Kind::Folder)];
        assert_eq!(names[..2], folders);
        assert_eq!(names[2..], [("etc/deep/hosts", Kind::File), ("bin", Kind::Folder), ("bin/sh", Kind::Other)]);
        assert_eq!((entries[2].permissions, entries[2].content.as_slice()), (0o644, &b"10.47.91.1 server\n"[..]));
        for cut in [0, 50, 120, 300] {
            let mut cut = &archive[..cut];
            assert!(std::iter::repeat_with(|| next(&mut cut)).take(9).any(|entry| entry.is_err()));
        }
        assert!(next(&mut [b'0'; 200].as_slice()).is_err());
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
