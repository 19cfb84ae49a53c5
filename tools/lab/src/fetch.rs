//! Files that a run brings back: a machine writes them to its drive as a cpio archive, the lab reads it from there.

use crate::options::Fetched;
use crate::outcome::Outcome;
use anyhow::{Context, Result};
use cpio::newc::Reader;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// So much of a file is in memory at a time.
const PIECE: usize = 64 << 10;

/// The command that makes a machine write what it has of these to its drive.
pub fn command(wanted: &[&Fetched]) -> String {
    let paths = wanted.iter().map(|fetched| format!(" '.{}'", fetched.path.replace('\'', r"'\''")));
    format!("cd /; find{} 2>/dev/null | cpio -o -H newc 2>/dev/null >/dev/vda; sync", paths.collect::<String>())
}

/// Unpacks what the machines have written to their drives, which are in the order of the nodes. What no machine had makes
/// the run no good.
pub fn all<'a>(wanted: &[Fetched], drives: impl Iterator<Item = &'a mut File>, outcome: &mut Outcome) -> Result<()> {
    let mut found = Vec::new();
    for (node, drive) in outcome.nodes.iter().zip(drives).filter(|(node, _)| node.fetched) {
        let wanted: Vec<&Fetched> = wanted.iter().filter(|fetched| fetched.is_from(&node.name)).collect();
        let folder = outcome.folder.join("out").join(&node.name);
        let unpacked = unpack(drive, &wanted, &folder);
        found.extend(unpacked.with_context(|| format!("cannot fetch files of the {}", node.name))?);
    }
    if let Some(fetched) = wanted.iter().find(|fetched| !found.contains(fetched)) {
        let who = fetched.node.as_ref().map_or("no machine has".to_owned(), |node| format!("the {node} has no"));
        outcome.trouble.get_or_insert_with(|| format!("{who} {} after the run (--out)", fetched.path));
    }
    Ok(())
}

/// Unpacks what is wanted of a machine's drive, and gives what was there. Links and devices stay behind, and no path leads
/// elsewhere: what is on the drive is only as good as the programs that ran there.
fn unpack<'a>(mut drive: impl Read + Seek, wanted: &[&'a Fetched], folder: &Path) -> Result<Vec<&'a Fetched>> {
    drive.rewind()?;
    let mut archive = BufReader::new(drive);
    let mut found = Vec::new();
    loop {
        let mut file = Reader::new(archive)?;
        if file.entry().is_trailer() {
            return Ok(found);
        }
        let (path, mode) = (format!("/{}", file.entry().name().trim_start_matches("./")), file.entry().mode());
        let mut copies = Vec::new();
        for fetched in wanted {
            let Some(here) = place(fetched, &path, folder) else { continue };
            copies.extend(create(&here, mode).with_context(|| format!("cannot write {}", here.display()))?);
            found.push(*fetched);
        }
        copy(&mut file, &mut copies).with_context(|| format!("cannot write what was in {path}"))?;
        archive = file.finish()?;
    }
}

/// Where an entry goes, if it is what is wanted or lies in it.
fn place(fetched: &Fetched, path: &str, folder: &Path) -> Option<PathBuf> {
    let rest = path.strip_prefix(&fetched.path)?;
    if !(rest.is_empty() || rest.starts_with('/')) || rest.split('/').any(|part| part == "..") {
        return None;
    }
    let own = || folder.join(Path::new(&fetched.path).file_name().unwrap_or_default());
    let mut here = fetched.here.clone().unwrap_or_else(own).into_os_string();
    here.push(rest);
    Some(here.into())
}

/// Creates a folder, or a file, which is given.
fn create(here: &Path, mode: u32) -> io::Result<Option<File>> {
    match mode & 0o170_000 {
        0o040_000 => fs::create_dir_all(here).map(|()| None),
        0o100_000 => {
            fs::create_dir_all(here.parent().unwrap_or(here))?;
            let mode = mode & 0o777 | 0o600;
            File::options().write(true).create(true).truncate(true).mode(mode).open(here).map(Some)
        }
        _ => Ok(None),
    }
}

/// Writes what an entry holds, up to 4 GiB, to each of these files, a piece at a time.
fn copy(entry: &mut impl Read, copies: &mut [File]) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    while !copies.is_empty() {
        let count = entry.read(&mut piece)?;
        if count == 0 {
            break;
        }
        copies.iter_mut().try_for_each(|file| file.write_all(&piece[..count]))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::Archive;
    use std::io::SeekFrom;

    /// A drive that takes note of the longest read.
    struct Drive(io::Cursor<Vec<u8>>, usize);

    impl Read for Drive {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            self.1 = self.1.max(bytes.len());
            self.0.read(bytes)
        }
    }

    impl Seek for Drive {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.0.seek(to)
        }
    }

    #[test]
    fn a_large_file_goes_through_memory_in_pieces_to_all_its_places() {
        let folder = tempfile::tempdir().unwrap();
        let mut archive = Archive::default();
        let content: Vec<u8> = (0..4u32 << 20).map(|i| (i >> 8) as u8).collect();
        archive.file("/tmp/large", 0o644, &content).unwrap();
        archive.file("/tmp/unwanted", 0o644, &content).unwrap();
        archive.file("/tmp/last", 0o644, b"x").unwrap();
        let mut drive = Drive(io::Cursor::new(archive.finish().unwrap()), 0);
        let wanted = ["/tmp/large", "/tmp/large", "/tmp/large:HERE", "/tmp/last"];
        let wanted = wanted.map(|text| text.replace("HERE", folder.path().join("here").to_str().unwrap()));
        let wanted = wanted.map(|text| Fetched::parse(&text).unwrap());
        let found = unpack(&mut drive, &wanted.iter().collect::<Vec<_>>(), folder.path()).unwrap();
        assert_eq!(found.len(), 4);
        for (name, content) in [("large", &content[..]), ("here", &content), ("last", b"x")] {
            assert!(fs::read(folder.path().join(name)).unwrap() == content, "{name}");
        }
        assert!(drive.1 <= PIECE, "{} bytes are read at once", drive.1);
    }

    #[test]
    fn nothing_leads_out_of_the_folder() {
        let place = |wanted: &str, path: &str| place(&Fetched::parse(wanted).unwrap(), path, Path::new("/out"));
        assert_eq!(place("/tmp/x", "/tmp/x"), Some("/out/x".into()));
        assert_eq!(place("/tmp/x:here", "/tmp/x/a/b"), Some("here/a/b".into()));
        assert_eq!(place("/tmp/x", "/tmp/xy"), None);
        assert_eq!(place("/tmp/x", "/tmp/x/../../y"), None);
        assert_eq!(place("/tmp/x", "/etc/passwd"), None);
    }
}
