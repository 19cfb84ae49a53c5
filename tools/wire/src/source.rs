//! Where a command reads from: a file, a pipe, or standard input. It's opened once; whoever reads it twice keeps a pipe's bytes in a
//! file without a name.

use anyhow::anyhow;
use run::capture::{unread, Error, Reader};
use std::fs::{metadata, File};
use std::io::{self, Read, Seek};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use wire::packed;

/// A path that means standard input.
const STDIN: &str = "-";

/// A capture that is open.
pub struct Source {
    path: PathBuf,
    file: File,
    /// Bytes that somebody has read before us.
    start: u64,
    /// What is read once is gone.
    is_pipe: bool,
    /// Somebody still writes it: at its end there will be more.
    follow: bool,
}

/// What reads from a capture.
type Captured<'a> = Reader<Box<dyn Read + 'a>>;

impl Source {
    /// Opens a capture; `-` is standard input.
    pub fn open(path: &Path) -> Result<Source, Error> {
        let mut file = match path == Path::new(STDIN) {
            true => io::stdin().as_fd().try_clone_to_owned().map_err(unread)?.into(),
            false => File::open(path).map_err(unread)?,
        };
        let is_pipe = !file.metadata().map_err(unread)?.is_file();
        let start = if is_pipe { 0 } else { file.stream_position().map_err(unread)? };
        Ok(Source { path: path.to_owned(), file, start, is_pipe, follow: false })
    }

    /// Opens one that still grows.
    pub fn followed(path: &Path) -> Result<Source, Error> {
        let source = Source::open(path)?;
        match source.is_pipe {
            true => Err(anyhow!("a pipe is read up to its end, and can't be followed: leave --follow out")),
            false => Ok(Source { follow: true, ..source }),
        }
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        match self.path == Path::new(STDIN) {
            true => "stdin",
            false => self.path.file_stem().and_then(|name| name.to_str()).unwrap_or("capture"),
        }
    }

    /// The path of a new file: beside this one, or beside nothing, if this is a pipe.
    pub fn beside(&self, end: &str) -> PathBuf {
        let name = format!("{}{end}", self.name());
        match self.is_pipe || self.path == Path::new(STDIN) {
            true => name.into(),
            false => self.path.with_file_name(name),
        }
    }

    /// Reads it, and nobody will again.
    pub fn once(self) -> Result<Captured<'static>, Error> {
        match self.is_pipe {
            true => packed::reader(self.file),
            false => packed::reader(FileAt { at: self.start, follow: self.follow, file: self.file }),
        }
    }

    /// Makes it one that can be read more than once.
    pub fn kept(self) -> Result<Source, Error> {
        if !self.is_pipe {
            return Ok(self);
        }
        let (mut from, mut file) = (&self.file, tempfile::tempfile().map_err(unread)?);
        io::copy(&mut from, &mut file)
            .map_err(|error| anyhow!("keeping what came through the pipe failed: {error}"))?;
        Ok(Source { file, is_pipe: false, start: 0, ..self })
    }

    /// Reads it from its beginning; it must be [kept](Self::kept).
    pub fn reader(&self) -> Result<Captured<'_>, Error> {
        packed::reader(FileAt { at: self.start, follow: self.follow, file: &self.file })
    }
}

/// A place in a file of its own: several may read the same open file.
struct FileAt<F> {
    file: F,
    at: u64,
    follow: bool,
}

/// A file, or one that somebody else owns.
trait At {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize>;
}

impl At for File {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        FileExt::read_at(self, buffer, at)
    }
}

impl At for &File {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        FileExt::read_at(*self, buffer, at)
    }
}

impl<F: At> Read for FileAt<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.file.read_at(buffer, self.at)? {
                0 if self.follow && !buffer.is_empty() => std::thread::sleep(Duration::from_millis(50)),
                count => {
                    self.at += count as u64;
                    return Ok(count);
                }
            }
        }
    }
}

/// Two captures can't come through one pipe.
pub fn are_two(mine: &Path, reference: &Path) -> Result<(), Error> {
    let meta = |path: &Path| match path == Path::new(STDIN) {
        true => io::stdin().as_fd().try_clone_to_owned().and_then(|fd| File::from(fd).metadata()).ok(),
        false => metadata(path).ok(),
    };
    match (meta(mine), meta(reference)) {
        (Some(one), Some(other)) if !one.is_file() && (one.dev(), one.ino()) == (other.dev(), other.ino()) => {
            Err(anyhow!(
                "{} and {} are one pipe, and a pipe has one capture: name a file for one of them",
                mine.display(),
                reference.display()
            ))
        }
        _ => Ok(()),
    }
}
