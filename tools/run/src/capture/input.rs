//! The bytes of a file, whichever format.

use super::Error;
use std::io::{self, Read};

/// Which of the two byte orders a file uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
}

impl Order {
    /// The number of so many bytes at `at`; the caller has checked that it is there.
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

/// A file read through one buffer, with the position in the file.
#[derive(Debug)]
pub(super) struct Input<R> {
    input: R,
    pub(super) buffer: Vec<u8>,
    /// The part of `buffer` that is filled and not yet used.
    start: usize,
    end: usize,
    /// Where the bytes of the last `take` begin in `buffer`.
    last: usize,
    /// Where `start` is in the file, in bytes.
    pub(super) offset: u64,
}

impl<R: Read> Input<R> {
    pub(super) fn new(input: R) -> Input<R> {
        Input { input, buffer: vec![0; 256 << 10], start: 0, end: 0, last: 0, offset: 0 }
    }

    /// The bytes that the last `take` returned.
    pub(super) fn taken(&self) -> &[u8] {
        &self.buffer[self.last..self.start]
    }

    /// Makes `wanted` bytes available if the file has them; returns how many there are.
    fn fill(&mut self, wanted: usize) -> Result<usize, Error> {
        if self.end - self.start >= wanted {
            return Ok(self.end - self.start);
        }
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < wanted {
            if self.end == self.buffer.len() {
                // Only what the file really has is worth memory, whatever length it claims.
                self.buffer.resize(wanted.min(self.buffer.len() * 2), 0);
            }
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => break,
                Ok(count) => self.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::Input(error)),
            }
        }
        Ok(self.end)
    }

    /// The next `count` bytes without using them up; None if the file ends exactly here.
    pub(super) fn peek(&mut self, count: usize, what: &'static str) -> Result<Option<&[u8]>, Error> {
        let offset = self.offset;
        match self.fill(count)? {
            0 => Ok(None),
            available if available < count => Err(Error::truncated(offset, what)),
            _ => Ok(Some(&self.buffer[self.start..self.start + count])),
        }
    }

    /// Uses up the next `count` bytes.
    pub(super) fn take(&mut self, count: usize, what: &'static str) -> Result<&[u8], Error> {
        if self.fill(count)? < count {
            return Err(Error::truncated(self.offset, what));
        }
        self.last = self.start;
        self.start += count;
        self.offset += count as u64;
        Ok(&self.buffer[self.last..self.start])
    }

    /// Jumps over `count` bytes, however many, without keeping them.
    pub(super) fn skip(&mut self, mut count: usize, what: &'static str) -> Result<(), Error> {
        let offset = self.offset;
        while count > 0 {
            let step = self.fill(1)?.min(count);
            if step == 0 {
                return Err(Error::truncated(offset, what));
            }
            self.start += step;
            self.offset += step as u64;
            count -= step;
        }
        Ok(())
    }
}
