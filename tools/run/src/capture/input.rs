//! The bytes of a file, whichever format.

use super::{truncated, unread, Error};
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};

/// Which of the two byte orders a file uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
}

impl Order {
    /// The number of this many bytes at `at`; the caller has checked that it is there.
    pub(super) fn number(self, bytes: &[u8], at: usize, width: usize) -> u64 {
        let bytes = bytes[at..at + width].iter();
        let add = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        match self {
            Order::Little => bytes.rev().fold(0, add),
            Order::Big => bytes.fold(0, add),
        }
    }

    pub(super) fn u32(self, bytes: &[u8], at: usize) -> u32 {
        self.number(bytes, at, 4) as u32
    }

    pub(super) fn u16(self, bytes: &[u8], at: usize) -> u16 {
        self.number(bytes, at, 2) as u16
    }
}

/// No packet or block that this tool looks into is larger; a greater length is damage.
pub(super) const LARGEST: usize = 16 << 20;

/// A file, of which one packet or block is in memory, with where that begins.
#[derive(Debug)]
pub(super) struct Input<R: Read> {
    /// The file's first four bytes, or all that there are.
    pub(super) magic: Vec<u8>,
    /// All of it.
    input: BufReader<Chain<Cursor<Vec<u8>>, R>>,
    /// What was read of the packet or block so far.
    pub(super) bytes: Vec<u8>,
    /// Where it begins in the file.
    pub(super) offset: u64,
    /// Where the next one begins.
    next: u64,
}

impl<R: Read> Input<R> {
    pub(super) fn open(mut input: R) -> Result<Input<R>, Error> {
        let mut magic = Vec::new();
        input.by_ref().take(4).read_to_end(&mut magic).map_err(unread)?;
        let input = BufReader::with_capacity(256 << 10, Cursor::new(magic.clone()).chain(input));
        Ok(Input { magic, input, bytes: Vec::new(), offset: 0, next: 0 })
    }

    /// Begins the next packet or block with this many bytes; false if the file ends exactly here.
    pub(super) fn begin(&mut self, count: usize, what: &'static str) -> Result<bool, Error> {
        self.offset = self.next;
        self.bytes.clear();
        match self.read(count)? {
            0 => Ok(false),
            read if read < count => Err(truncated(self.offset, what)),
            _ => Ok(true),
        }
    }

    /// Reads on until there are this many bytes of it.
    pub(super) fn extend(&mut self, count: usize, what: &'static str) -> Result<(), Error> {
        let missing = count.saturating_sub(self.bytes.len());
        match self.read(missing)? < missing {
            true => Err(truncated(self.offset, what)),
            false => Ok(()),
        }
    }

    /// Jumps to the end of what has this many bytes in all, without keeping them.
    pub(super) fn skip(&mut self, count: usize, what: &'static str) -> Result<(), Error> {
        let missing = count.saturating_sub(self.bytes.len()) as u64;
        let skipped = io::copy(&mut self.input.by_ref().take(missing), &mut io::sink()).map_err(unread)?;
        self.next += skipped;
        match skipped < missing {
            true => Err(truncated(self.offset, what)),
            false => Ok(()),
        }
    }

    /// Memory grows with what the file really has, whatever length it claims.
    fn read(&mut self, count: usize) -> Result<usize, Error> {
        // Nearly always it has been read already.
        if let Some(bytes) = self.input.buffer().get(..count) {
            self.bytes.extend_from_slice(bytes);
            self.input.consume(count);
            self.next += count as u64;
            return Ok(count);
        }
        let read = self.input.by_ref().take(count as u64).read_to_end(&mut self.bytes).map_err(unread)?;
        self.next += read as u64;
        Ok(read)
    }
}
