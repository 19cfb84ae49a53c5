//! Captures as they come: many are compressed by gzip.

use flate2::read::MultiGzDecoder;
use run::capture::{unread, Error, Reader};
use std::io::{Cursor, Read};

/// Begins to read a capture, compressed or not.
///
/// # Errors
/// It cannot be read, or is none.
pub fn reader<'a>(mut input: impl Read + 'a) -> Result<Reader<Box<dyn Read + 'a>>, Error> {
    let mut magic = Vec::new();
    // A pipe gives its first bytes once, and nobody writes a compressed file while it is read.
    input.by_ref().take(2).read_to_end(&mut magic).map_err(unread)?;
    let is_gzip = magic == [0x1f, 0x8b];
    let input = Cursor::new(magic).chain(input);
    Reader::new(if is_gzip { Box::new(MultiGzDecoder::new(input)) } else { Box::new(input) })
}
