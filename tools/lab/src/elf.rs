//! Leaving out of a program what only a debugger reads.
//!
//! A program that cargo has just built is four fifths debugging information. The kernel and the loader
//! go by the program header table alone (man 5 elf), and what it describes comes first in the file.

/// How such a file begins.
pub const MAGIC: &[u8] = b"\x7fELF";

/// Where the fields used here are, in a 64-bit header.
const PROGRAM_HEADERS: usize = 0x20;
const SECTION_HEADERS: usize = 0x28;
const PROGRAM_HEADER_SIZE: usize = 0x36;
const PROGRAM_HEADER_COUNT: usize = 0x38;
const SECTION_HEADER_COUNT: usize = 0x3c;
const SECTION_NAMES: usize = 0x3e;

/// The part of a 64-bit little-endian ELF file that is loaded to run it; any other file as it is.
pub fn loaded_part(mut file: Vec<u8>) -> Vec<u8> {
    let Some(end) = end_of_segments(&file) else { return file };
    file.truncate(end);
    // The table of sections is gone: say so.
    for (at, size) in [(SECTION_HEADERS, 8), (SECTION_HEADER_COUNT, 2), (SECTION_NAMES, 2)] {
        file[at..at + size].fill(0);
    }
    file
}

/// The end of the last segment; None for other files and for nonsense.
fn end_of_segments(file: &[u8]) -> Option<usize> {
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let table = number(file, PROGRAM_HEADERS, 8)?;
    let size = number(file, PROGRAM_HEADER_SIZE, 2)?;
    let count = number(file, PROGRAM_HEADER_COUNT, 2)?;
    let mut end = table.checked_add(size * count)?;
    for index in 0..count {
        let header = table + index * size;
        let offset = number(file, header + 8, 8)?;
        let length = number(file, header + 32, 8)?;
        end = end.max(offset.checked_add(length)?);
    }
    (end >= 64 && end <= file.len()).then_some(end)
}

/// A little-endian number of up to eight bytes.
fn number(file: &[u8], at: usize, size: usize) -> Option<usize> {
    let bytes = file.get(at..at.checked_add(size)?)?;
    bytes.iter().rev().try_fold(0usize, |sum, byte| Some(sum.checked_mul(256)? + usize::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_files_and_nonsense_stay_as_they_are() {
        let mut broken = b"\x7fELF\x02\x01".to_vec();
        broken.resize(80, 0xff);
        for file in [&b"#!/bin/sh\n"[..], b"\x7fELF\x02\x01", b"", &broken] {
            assert_eq!(loaded_part(file.to_vec()), file);
        }
    }
}
