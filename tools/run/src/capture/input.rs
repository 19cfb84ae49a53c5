//! The bytes of a file, whichever format.

use super::{truncated, unread, Error};
use std::io::{ErrorKind, Read};

/// Which of the two byte orders a file uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
}

impl Order {
    /// The numbers at `at`; the caller has checked that they are there.
    pub(super) fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let bytes = bytes[at..at + 2].try_into().unwrap_or_default();
        match self {
            Order::Little => u16::from_le_bytes(bytes),
            Order::Big => u16::from_be_bytes(bytes),
        }
    }

    pub(super) fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let bytes = bytes[at..at + 4].try_into().unwrap_or_default();
        match self {
            Order::Little => u32::from_le_bytes(bytes),
            Order::Big => u32::from_be_bytes(bytes),
        }
    }

    pub(super) fn u64(self, bytes: &[u8], at: usize) -> u64 {
        let [first, second] = [0, 4].map(|word| u64::from(self.u32(bytes, at + word)));
        match self {
            Order::Little => second << 32 | first,
            Order::Big => first << 32 | second,
        }
    }
}

/// No packet or block that this tool looks into is larger; a greater length is damage.
pub(super) const LARGEST: usize = 16 << 20;

/// How many bytes of a file are read at a time. Memory grows beyond that only for a packet or block that really has more, whatever length
/// it claims.
const STEP: usize = 256 << 10;

/// A file, of which the packet or block at hand is in memory, with where that begins.
#[derive(Debug)]
pub(super) struct Input<R: Read> {
    /// The file's first four bytes, or all that there are.
    pub(super) magic: Vec<u8>,
    input: R,
    /// What was read, up to `filled`. Packets are looked at here, and copied nowhere.
    pub(super) buffer: Vec<u8>,
    filled: usize,
    /// The packet or block at hand, as far as somebody asked for it.
    start: usize,
    end: usize,
    /// Where it begins in the file.
    pub(super) offset: u64,
    /// Where the next one begins.
    next: u64,
}

impl<R: Read> Input<R> {
    pub(super) fn open(input: R) -> Result<Input<R>, Error> {
        let (magic, buffer) = (Vec::new(), vec![0; STEP]);
        let mut input = Input { magic, input, buffer, filled: 0, start: 0, end: 0, offset: 0, next: 0 };
        input.fill(4)?;
        input.magic = input.buffer[..input.filled.min(4)].to_vec();
        Ok(input)
    }

    /// What was asked for of the packet or block at hand.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Begins the next packet or block with this many bytes; false if the file ends exactly here.
    #[inline]
    pub(super) fn begin(&mut self, count: usize, what: &'static str) -> Result<bool, Error> {
        (self.start, self.offset) = (self.end, self.next);
        match self.read(count)? {
            0 => Ok(false),
            read if read < count => Err(truncated(self.offset, what)),
            _ => Ok(true),
        }
    }

    /// Reads on until there are this many bytes of it.
    #[inline]
    pub(super) fn extend(&mut self, count: usize, what: &'static str) -> Result<(), Error> {
        let missing = count.saturating_sub(self.bytes().len());
        match self.read(missing)? < missing {
            true => Err(truncated(self.offset, what)),
            false => Ok(()),
        }
    }

    /// Jumps to the end of what has this many bytes in all, without keeping them.
    pub(super) fn skip(&mut self, count: usize, what: &'static str) -> Result<(), Error> {
        let mut missing = count.saturating_sub(self.bytes().len());
        while missing > 0 {
            self.start = self.end;
            match self.read(missing.min(STEP))? {
                0 => return Err(truncated(self.offset, what)),
                read => missing -= read,
            }
        }
        Ok(())
    }

    /// Takes this many more bytes, or those that there are.
    #[inline]
    fn read(&mut self, count: usize) -> Result<usize, Error> {
        // Nearly always they have been read already.
        if self.filled - self.end < count {
            self.fill(count)?;
        }
        let read = count.min(self.filled - self.end);
        self.end += read;
        self.next += read as u64;
        Ok(read)
    }

    /// Reads from the file until this many bytes are there, or it ends.
    #[cold]
    fn fill(&mut self, count: usize) -> Result<(), Error> {
        // What's at hand stays, and what came before it makes room.
        self.buffer.copy_within(self.start..self.filled, 0);
        (self.filled, self.end, self.start) = (self.filled - self.start, self.end - self.start, 0);
        while self.filled - self.end < count {
            if self.filled == self.buffer.len() {
                self.buffer.resize(2 * self.filled, 0);
            }
            match self.input.read(&mut self.buffer[self.filled..]) {
                Ok(0) => break,
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(unread(error)),
            }
        }
        Ok(())
    }
}
