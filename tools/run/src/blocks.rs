//! A file that grows by whole blocks: it can be opened at any moment, whatever happens to the program that writes it.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

/// The last blocks that may give their room to the last words.
const MOST: usize = 512;
/// The line that ends a file comes after the one that says why, and gets its room with it.
const LAST_LINE: u64 = 512;

/// Collects what is written to it, one block at a time, and brings it to the file when it is flushed. What is flushed first is the
/// file's head.
///
/// If a flush finds too little room, its blocks that don't fit are lost, and the next one has the last words: why the file ends. A reader
/// who lacks them would think that the writer was killed, so they take the room of the blocks before them if there is no other.
#[derive(Debug)]
pub struct Blocks {
    file: File,
    waiting: Vec<u8>,
    /// Length of the file up to its last whole block.
    good: u64,
    /// Where the last blocks begin, those that wait and those behind the head.
    begins: VecDeque<u64>,
    is_full: bool,
    is_given_up: bool,
}

impl Blocks {
    /// Writes to an empty file.
    pub fn new(file: File) -> Blocks {
        let (waiting, begins) = (Vec::new(), VecDeque::new());
        Blocks { file, waiting, good: 0, begins, is_full: false, is_given_up: false }
    }

    /// From now on all that is written is dropped: the file stays as it is.
    pub fn give_up(&mut self) {
        self.waiting = Vec::new();
        self.is_given_up = true;
    }

    /// Appends what waits. If there isn't room for all of it, only whole blocks stay.
    fn append(&mut self) -> io::Result<()> {
        let written = self.file.write_all(&self.waiting);
        if written.is_err() {
            // Last words are whole, or aren't there.
            if !self.is_full {
                let length = self.file.metadata().map_or(self.good, |file| file.len());
                let whole = self.begins.iter().rev().find(|begin| **begin <= length);
                self.good = self.good.max(whole.copied().unwrap_or_default());
            }
            // A part of a block may have found room. If it cannot be taken away, readers say where the good part ends.
            let _ = self.cut();
        }
        written
    }

    fn cut(&mut self) -> io::Result<()> {
        self.file.set_len(self.good)?;
        self.file.seek(SeekFrom::Start(self.good)).map(drop)
    }

    /// Cuts off blocks that have as much room as those that wait, or as there are.
    fn make_room(&mut self) -> io::Result<()> {
        let wanted = self.good.saturating_sub(self.waiting.len() as u64 + LAST_LINE);
        while let Some(begin) = self.begins.pop_back() {
            self.good = self.good.min(begin);
            if self.good <= wanted {
                break;
            }
        }
        self.cut()
    }
}

impl Write for Blocks {
    fn write(&mut self, block: &[u8]) -> io::Result<usize> {
        if !self.is_given_up {
            self.begins.push_back(self.good + self.waiting.len() as u64);
            self.waiting.extend_from_slice(block);
            if self.begins.len() > MOST {
                self.begins.pop_front();
            }
        }
        Ok(block.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let mut written = self.append();
        if written.is_err() && self.is_full {
            written = self.make_room().and_then(|()| self.append());
        }
        // The file's head stays, and so do its last words.
        if self.good == 0 || self.is_full {
            self.begins.clear();
        }
        match written {
            Ok(()) => self.good += self.waiting.len() as u64,
            Err(_) => {
                self.is_full = true;
                self.begins.retain(|begin| *begin < self.good);
            }
        }
        self.waiting.clear();
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_finds_no_room_is_cut_off_and_the_rest_is_dropped() {
        // Nothing can be written to a file that is open for reading alone, nor be cut off it.
        let mut full = Blocks::new(File::open("/dev/null").unwrap());
        assert!(full.flush().is_ok(), "nothing to write");
        full.write_all(b"block").unwrap();
        assert!(full.flush().is_err());
        full.give_up();
        full.write_all(b"block").unwrap();
        assert!(full.flush().is_ok());
    }
}
