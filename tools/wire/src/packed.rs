//! Captures as they come: many are compressed, by gzip, zstd or lz4. They're unpacked while they are read, so what's in memory at
//! a time is bounded by the formats (8 MB and less, except for what somebody has compressed with an extraordinary window).

use flate2::read::MultiGzDecoder;
use run::capture::{unread, Error, Reader};
use ruzstd::frame::ReadFrameHeaderError;
use ruzstd::frame_decoder::{BlockDecodingStrategy, FrameDecoder, FrameDecoderError};
use std::error::Error as StdError;
use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};

/// Begins to read a capture, compressed or not.
///
/// # Errors
/// It cannot be read, or isn't a capture.
pub fn reader<'a>(input: impl Read + 'a) -> Result<Reader<Box<dyn Read + 'a>>, Error> {
    Reader::new(unpacked(input)?)
}

/// The bytes of a capture, unpacked if they have to be.
fn unpacked<'a>(mut input: impl Read + 'a) -> Result<Box<dyn Read + 'a>, Error> {
    let mut magic = Vec::new();
    // A pipe gives its first bytes once.
    input.by_ref().take(4).read_to_end(&mut magic).map_err(unread)?;
    let format = match magic[..] {
        [0x1f, 0x8b, ..] => Format::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd] => Format::Zstd,
        // pzstd begins with a frame that is to be skipped.
        [0x50..=0x5f, 0x2a, 0x4d, 0x18] => Format::Zstd,
        [0x04, 0x22, 0x4d, 0x18] => Format::Lz4,
        _ => return Ok(Box::new(Cursor::new(magic).chain(input))),
    };
    let input = BufReader::new(Cursor::new(magic).chain(input));
    let inner: Box<dyn Read + 'a> = match format {
        Format::Gzip => Box::new(MultiGzDecoder::new(input)),
        Format::Zstd => Box::new(Zstd::new(input)),
        Format::Lz4 => Box::new(Lz4(Some(lz4_flex::frame::FrameDecoder::new(input)))),
    };
    Ok(Box::new(Named { format, inner }))
}

#[derive(Clone, Copy, Debug)]
enum Format {
    Gzip,
    Zstd,
    Lz4,
}

/// Says of an error in which format it is, and whether the file is damaged or just ends.
struct Named<'a> {
    format: Format,
    inner: Box<dyn Read + 'a>,
}

impl Read for Named<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buffer).map_err(|error| {
            let format = match self.format {
                Format::Gzip => "gzip",
                Format::Zstd => "zstd",
                Format::Lz4 => "lz4",
            };
            if error.kind() == ErrorKind::OutOfMemory {
                return error;
            }
            let what = if is_end(&error) { "ends too early".to_owned() } else { format!("is damaged ({error})") };
            io::Error::new(ErrorKind::InvalidData, format!("the {format} file {what}; what came before is good"))
        })
    }
}

/// Whether an error, or one behind it, is that the file ends.
fn is_end(error: &io::Error) -> bool {
    let mut cause: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::UnexpectedEof) {
            return true;
        }
        // An io::Error hides the one in it from source().
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        cause = inner.map(|inner| inner as &(dyn StdError + 'static)).or_else(|| error.source());
    }
    false
}

/// A zstd file is any number of frames. The decoder hands out what's older than the frame's window, and the rest at the frame's end.
struct Zstd<R: Read> {
    input: BufReader<R>,
    decoder: FrameDecoder,
    /// Inside of a frame.
    is_begun: bool,
    /// What comes after the last good bytes.
    failed: Option<io::Error>,
}

impl<R: Read> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.decoder.can_collect() > 0 {
                return self.decoder.read(buffer);
            }
            if let Some(failed) = self.failed.take() {
                self.is_begun = false;
                return Err(failed);
            }
            if !self.is_begun {
                if !self.begin()? {
                    return Ok(0);
                }
            } else if self.decoder.is_finished() {
                self.end()?;
            } else if let Err(error) = self.decoder.decode_blocks(&mut self.input, BlockDecodingStrategy::UptoBlocks(1))
            {
                self.failed = Some(io::Error::new(ErrorKind::InvalidData, error));
                self.give_up();
            }
        }
    }
}

impl<R: Read> Zstd<R> {
    fn new(input: BufReader<R>) -> Zstd<R> {
        // A frame's header with the smallest window. The decoder asks whether a window is too large from the second frame on, so
        // the file's first one must not be its first.
        const SMALLEST: [u8; 6] = [0x28, 0xb5, 0x2f, 0xfd, 0, 0];
        let mut decoder = FrameDecoder::new();
        let _ = decoder.reset(SMALLEST.as_slice());
        Zstd { input, decoder, is_begun: false, failed: None }
    }

    /// Begins the next frame; false at the end of the file.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.input.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.input) {
                Ok(()) => {
                    self.is_begun = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    io::copy(&mut self.input.by_ref().take(length.into()), &mut io::sink())?;
                }
                Err(FrameDecoderError::WindowSizeTooBig { requested }) => {
                    let why = format!(
                        "it needs {requested} bytes at a time, more than is taken: `zstd -d --long=31` it first"
                    );
                    return Err(io::Error::new(ErrorKind::OutOfMemory, why));
                }
                Err(error) => return Err(io::Error::new(ErrorKind::InvalidData, error)),
            }
        }
        Ok(false)
    }

    fn end(&mut self) -> io::Result<()> {
        self.is_begun = false;
        match (self.decoder.get_checksum_from_data(), self.decoder.get_calculated_checksum()) {
            (Some(said), Some(sum)) if said != sum => {
                Err(io::Error::new(ErrorKind::InvalidData, "its checksum is wrong"))
            }
            _ => Ok(()),
        }
    }

    /// What the decoder still keeps for its window comes out when a frame ends, so we end it: with an empty last block, and any
    /// checksum.
    fn give_up(&mut self) {
        const LAST: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];
        let _ = self.decoder.decode_blocks(LAST.as_slice(), BlockDecodingStrategy::All);
    }
}

/// An lz4 file may also have any number of frames. None after an error.
struct Lz4<R: Read>(Option<lz4_flex::frame::FrameDecoder<BufReader<R>>>);

impl<R: Read> Read for Lz4<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(decoder) = &mut self.0 else { return Ok(0) };
            match decoder.read(buffer) {
                Ok(0) if !buffer.is_empty() => {}
                Err(error) => {
                    self.0 = None;
                    return Err(error);
                }
                read => return read,
            }
            // The decoder takes an end between two blocks for the frame's end, which has a mark of its own.
            let is_inside = decoder.frame_info().is_some();
            let Some(mut input) = self.0.take().map(lz4_flex::frame::FrameDecoder::into_inner) else { return Ok(0) };
            if is_inside {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            if input.fill_buf()?.is_empty() {
                return Ok(0);
            }
            self.0 = Some(lz4_flex::frame::FrameDecoder::new(input));
        }
    }
}
