//! A file that grows by whole blocks: it can be opened at any moment, whatever happens to the program that writes it.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

/// Collects what is written to it, in pieces, and brings it to the file when it is flushed: so flush it between blocks alone.
#[derive(Debug)]
pub struct Blocks {
    file: File,
    waiting: Vec<u8>,
    /// Length of the file up to its last whole block.
    good: u64,
    is_given_up: bool,
}

impl Blocks {
    /// Writes to an empty file.
    pub fn new(file: File) -> Blocks {
        Blocks { file, waiting: Vec::new(), good: 0, is_given_up: false }
    }

    /// From now on all that is written is dropped: the file stays as it is.
    pub fn give_up(&mut self) {
        self.waiting = Vec::new();
        self.is_given_up = true;
    }
}

impl Write for Blocks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_given_up {
            self.waiting.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let result = self.file.write_all(&self.waiting);
        match result {
            Ok(()) => self.good += self.waiting.len() as u64,
            // A part may have found room. If it cannot be taken away, readers say where the good part ends.
            Err(_) => {
                let cut = self.file.set_len(self.good);
                let _ = cut.and_then(|()| self.file.seek(SeekFrom::Start(self.good)));
            }
        }
        self.waiting.clear();
        result
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
