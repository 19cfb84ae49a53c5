//! Reading captures: pcap and pcapng, in both byte orders, one packet at a time.
//!
//! The reader keeps one packet and hands out slices of it, so its memory does not grow with the file. Own
//! code rather than a crate, because an error must name the byte of the file where reading stopped, a
//! hostile length must not be believed, and a million packets should take no allocation each.

mod events;
mod format;
mod input;
mod pcapng;

pub use crate::sighting::Record;
/// Why a capture cannot be read, shown or annotated. An [`io::Error`] in it is one in writing.
pub use anyhow::Error;
pub use events::Events;

use crate::file::{Event, Line};
use crate::sighting::{Lookout, Sighting};
use anyhow::anyhow;
use format::Format;
use input::Input;
use roce::link::LinkType;
use roce::track::Connection;
use std::fmt::Display;
use std::io::{self, Read};

fn not_a_capture(hint: &str) -> Error {
    anyhow!("not a pcap or pcapng file (byte 0): {hint}")
}

fn truncated(offset: u64, what: &str) -> Error {
    anyhow!("the file ends inside the {what} that begins at byte {offset}; what came before is good")
}

fn damaged(offset: u64, what: impl Display) -> Error {
    anyhow!("the file is damaged at byte {offset}: {what}")
}

/// Reading failed.
pub fn unread(error: io::Error) -> Error {
    anyhow!("reading failed: {error}")
}

/// Where the next packet or log line is in the input's buffer, and what the file says about it.
#[derive(Clone, Copy, Default)]
struct Found {
    /// Which of the file's interfaces, counted from 0; None for a log line.
    interface: Option<usize>,
    time_ns: Option<u64>,
    /// Start and length in the bytes of the record.
    data: (usize, usize),
    length: usize,
    /// Start and length of the comment; (0, 0) without one.
    comment: (usize, usize),
}

/// Reads the packets of a capture one after the other.
#[derive(Debug)]
pub struct Reader<R: Read> {
    input: Input<R>,
    format: Format,
    number: u64,
    lookout: Lookout,
}

impl<R: Read> Reader<R> {
    /// Reads the start of the file. The input need not be buffered.
    pub fn new(input: R) -> Result<Reader<R>, Error> {
        let mut input = Input::open(input)?;
        let format = Format::begin(&mut input)?;
        Ok(Reader { input, format, number: 0, lookout: Lookout::default() })
    }

    /// The next packet; None at the end of the file. After an error the reader is at its end.
    #[allow(clippy::should_implement_trait)] // A packet borrows the buffer; an Iterator's item could not.
    pub fn next(&mut self) -> Result<Option<Sighting<'_>>, Error> {
        while let Some(found) = self.found()? {
            if let Some(interface) = found.interface {
                return Ok(Some(self.sighting(interface, &found)));
            }
        }
        Ok(None)
    }

    /// The next log line; the packets before it aren't even decoded. None at the end of the file.
    pub fn line(&mut self) -> Result<Option<Line>, Error> {
        while let Some(found) = self.found()? {
            if found.interface.is_none() {
                return Ok(Some(Line::read(self.number, bytes(&self.input, found.data))));
            }
        }
        Ok(None)
    }

    /// The next packet or log line; None at the end of the file. After an error the reader is at its end.
    pub fn event(&mut self) -> Result<Option<Event<'_>>, Error> {
        let Some(found) = self.found()? else { return Ok(None) };
        Ok(Some(match found.interface {
            Some(interface) => Event::Packet(self.sighting(interface, &found)),
            None => Event::Line(Line::read(self.number, bytes(&self.input, found.data))),
        }))
    }

    /// The interfaces that the file has described so far, with their names; in a run file these are the nodes.
    pub fn interfaces(&self) -> Vec<(LinkType, Option<String>)> {
        self.format.interfaces.iter().map(|interface| (interface.link, interface.name.clone())).collect()
    }

    #[inline]
    fn found(&mut self) -> Result<Option<Found>, Error> {
        let found = match self.format.is_pcapng {
            true => self.format.block(&mut self.input)?,
            false => self.format.packet(&mut self.input)?,
        };
        self.number += u64::from(found.is_some());
        Ok(found)
    }

    /// The connections of the packets that were read, in the order in which they began.
    pub fn connections(&self) -> &[Connection] {
        self.lookout.connections()
    }

    #[inline(always)]
    fn sighting(&mut self, interface: usize, found: &Found) -> Sighting<'_> {
        let comment = Some(bytes(&self.input, found.comment)).filter(|comment| !comment.is_empty());
        let comment = comment.and_then(|comment| std::str::from_utf8(comment).ok());
        let (Found { time_ns, length, .. }, interface) = (*found, &self.format.interfaces[interface]);
        let (node, data) = (interface.name.as_deref(), bytes(&self.input, found.data));
        self.lookout.see(Record { number: self.number, node, time_ns, link: interface.link, data, length, comment })
    }
}

fn bytes<R: Read>(input: &Input<R>, (at, size): (usize, usize)) -> &[u8] {
    &input.bytes()[at..at + size]
}

#[cfg(test)]
mod tests {
    use super::input::LARGEST;
    use super::*;

    #[test]
    fn a_claimed_length_is_not_believed() {
        let mut file = vec![0; 24 + 16];
        file[..4].copy_from_slice(&[0xa1, 0xb2, 0xc3, 0xd4]);
        file[24 + 8..24 + 12].copy_from_slice(&(LARGEST as u32).to_be_bytes());
        file.extend([7; 1000]);
        let mut reader = Reader::new(file.as_slice()).unwrap();
        assert!(reader.next().unwrap_err().to_string().contains("byte 24"));
        assert!(reader.input.buffer.len() < 1 << 20, "{} bytes for a file of 1040", reader.input.buffer.len());
    }

    /// Packets are looked at where they were read, whatever part of them came first, and also if one is larger than that place was.
    #[test]
    fn packets_are_the_same_however_their_bytes_come() {
        struct Slow<'a>(&'a [u8], usize);
        impl Read for Slow<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let most = self.1.min(buffer.len());
                self.0.read(&mut buffer[..most])
            }
        }
        let sizes = [1, 100, 700_000, 0, 300_000, 60, 2_000_000, 5];
        let mut writer = crate::pcapng::Writer::new(Vec::new(), &Default::default()).unwrap();
        let interface = writer.interface(LinkType::ETHERNET, None).unwrap();
        for (i, size) in sizes.into_iter().enumerate() {
            writer.packet(interface, 0, &vec![i as u8; size], size, None).unwrap();
        }
        let file = writer.into_inner().unwrap();
        for at_a_time in [1, 7, 4096, usize::MAX] {
            let mut reader = Reader::new(Slow(&file, at_a_time)).unwrap();
            for (i, size) in sizes.into_iter().enumerate() {
                let sighting = reader.next().unwrap().unwrap();
                assert!(
                    sighting.data.len() == size && sighting.data.iter().all(|byte| *byte == i as u8),
                    "{at_a_time} {i}"
                );
            }
            assert!(reader.next().unwrap().is_none());
        }
    }
}
