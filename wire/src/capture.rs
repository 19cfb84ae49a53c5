//! Reading captures: pcap and pcapng, in both byte orders, one packet at a time.
//!
//! The reader keeps one buffer and hands out slices of it, so its memory does not grow with the file. Own
//! code rather than a crate, because an error must name the byte of the file where reading stopped, a
//! hostile length must not be believed, and a million packets shall take no allocation each.

use crate::link::LinkType;
use crate::pcapng_read::Pcapng;
use crate::run::{Event, Line};
use std::fmt;
use std::io::{self, Read};

/// One recorded frame.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Counts every frame and log line of the file from 1, as Wireshark does.
    pub number: u64,
    /// The name of the interface, if the file has it; in a run file that is the node that sent the frame.
    pub node: Option<&'a str>,
    /// Nanoseconds since 1970; None where the file does not tell.
    pub time_ns: Option<u64>,
    /// What the frame begins with.
    pub link: LinkType,
    /// The recorded bytes.
    pub data: &'a [u8],
    /// Bytes on the wire; more than recorded if a snap length cut the frame.
    pub length: usize,
    /// The comment stored with the packet.
    pub comment: Option<&'a str>,
}

/// Why a capture cannot be read, and where.
#[derive(Debug)]
pub enum Error {
    /// The operating system failed.
    Io(io::Error),
    /// The file begins with something else.
    NotACapture(&'static str),
    /// The file ends in the middle of something.
    Truncated {
        /// Where that something begins, in bytes from the start of the file.
        offset: u64,
        /// What it is.
        what: &'static str,
    },
    /// The bytes contradict the format.
    Damaged {
        /// Where, in bytes from the start of the file.
        offset: u64,
        /// How.
        what: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io(error) => write!(f, "reading failed: {error}"),
            Error::NotACapture(hint) => write!(f, "not a pcap or pcapng file (byte 0): {hint}"),
            Error::Truncated { offset, what } => {
                write!(f, "the file ends inside the {what} that begins at byte {offset}; what came before is good")
            }
            Error::Damaged { offset, what } => write!(f, "the file is damaged at byte {offset}: {what}"),
        }
    }
}

impl std::error::Error for Error {}

/// Which of the two byte orders a file uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
}

impl Order {
    /// The 32-bit number at `at`; the caller has checked that it is there.
    pub(crate) fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let four = bytes[at..at + 4].try_into().unwrap_or_default();
        match self {
            Order::Little => u32::from_le_bytes(four),
            Order::Big => u32::from_be_bytes(four),
        }
    }

    /// The 64-bit number at `at`; the caller has checked that it is there.
    pub(crate) fn u64(self, bytes: &[u8], at: usize) -> u64 {
        let (first, second) = (u64::from(self.u32(bytes, at)), u64::from(self.u32(bytes, at + 4)));
        match self {
            Order::Little => second << 32 | first,
            Order::Big => first << 32 | second,
        }
    }

    /// The 16-bit number at `at`; the caller has checked that it is there.
    pub(crate) fn u16(self, bytes: &[u8], at: usize) -> u16 {
        match self {
            Order::Little => u16::from_le_bytes([bytes[at], bytes[at + 1]]),
            Order::Big => u16::from_be_bytes([bytes[at], bytes[at + 1]]),
        }
    }
}

/// What comes next in a file.
pub(crate) enum Found {
    Packet(FoundPacket),
    /// Start and length of a journal entry in the bytes of the record.
    Journal((usize, usize)),
}

/// Where a packet lies in the input's buffer, and what the file says about it.
pub(crate) struct FoundPacket {
    /// Which of the file's interfaces, counted from 0.
    pub(crate) interface: usize,
    pub(crate) time_ns: Option<u64>,
    pub(crate) link: LinkType,
    /// Start and length in the bytes of the record.
    pub(crate) data: (usize, usize),
    pub(crate) length: usize,
    /// Start and length of the comment; (0, 0) without one.
    pub(crate) comment: (usize, usize),
}

/// Reads the packets of a capture one after the other.
#[derive(Debug)]
pub struct Reader<R: Read> {
    input: Input<R>,
    format: Format,
    number: u64,
    start_ns: Option<u64>,
}

#[derive(Debug)]
enum Format {
    Pcap(Pcap),
    Pcapng(Pcapng),
}

impl<R: Read> Reader<R> {
    /// Reads the start of the file. The input need not be buffered.
    pub fn new(input: R) -> Result<Reader<R>, Error> {
        let mut input = Input::new(input);
        let format = match input.peek(4)? {
            Some([0x0a, 0x0d, 0x0d, 0x0a]) => Format::Pcapng(Pcapng::default()),
            Some([0x1f, 0x8b, ..]) => return Err(Error::NotACapture("it is compressed: gunzip it first")),
            Some(magic) => match Pcap::from_magic(magic) {
                Some(pcap) => Format::Pcap(pcap.read_header(&mut input)?),
                None => return Err(Error::NotACapture("it begins with unknown bytes")),
            },
            None => return Err(Error::NotACapture("it is too short")),
        };
        Ok(Reader { input, format, number: 0, start_ns: None })
    }

    /// The next packet; None at the end of the file. After an error the reader is at its end.
    #[allow(clippy::should_implement_trait)] // A packet borrows the buffer; an Iterator's item could not.
    pub fn next(&mut self) -> Result<Option<Record<'_>>, Error> {
        loop {
            match self.found()? {
                None => return Ok(None),
                Some(Found::Packet(found)) => return Ok(Some(self.record(found))),
                Some(Found::Journal(_)) => {}
            }
        }
    }

    /// The next packet or log line; None at the end of the file. After an error the reader is at its end.
    pub fn event(&mut self) -> Result<Option<Event<'_>>, Error> {
        Ok(match self.found()? {
            None => None,
            Some(Found::Packet(found)) => Some(Event::Packet(self.record(found))),
            Some(Found::Journal((at, size))) => {
                Some(Event::Line(Line::read(self.number, &self.input.taken()[at..at + size])))
            }
        })
    }

    /// Nanoseconds since 1970 at the file's first packet or line, once that is read.
    pub fn start_ns(&self) -> Option<u64> {
        self.start_ns
    }

    /// The interfaces that the file has described so far, with their names; in a run file these are the nodes.
    pub fn interfaces(&self) -> Vec<(LinkType, Option<String>)> {
        match &self.format {
            Format::Pcap(pcap) => vec![(pcap.link, None)],
            Format::Pcapng(pcapng) => pcapng.interfaces(),
        }
    }

    fn found(&mut self) -> Result<Option<Found>, Error> {
        let found = match &mut self.format {
            Format::Pcap(pcap) => pcap.next(&mut self.input)?.map(Found::Packet),
            Format::Pcapng(pcapng) => pcapng.next(&mut self.input)?,
        };
        self.number += u64::from(found.is_some());
        if self.number == 1 {
            self.start_ns = match &found {
                Some(Found::Packet(packet)) => packet.time_ns,
                Some(Found::Journal((at, size))) => Some(Line::read(1, &self.input.taken()[*at..at + size]).time_ns()),
                None => self.start_ns,
            };
        }
        Ok(found)
    }

    fn record(&self, found: FoundPacket) -> Record<'_> {
        let FoundPacket { interface, time_ns, link, data: (at, size), length, comment: (from, many) } = found;
        let bytes = self.input.taken();
        let comment = (many > 0).then(|| std::str::from_utf8(&bytes[from..from + many]).ok()).flatten();
        let node = match &self.format {
            Format::Pcap(_) => None,
            Format::Pcapng(pcapng) => pcapng.name(interface),
        };
        Record { number: self.number, node, time_ns, link, data: &bytes[at..at + size], length, comment }
    }
}

/// The older format: a file header, then each packet behind 16 bytes of its own.
#[derive(Debug)]
struct Pcap {
    order: Order,
    /// Nanoseconds in the unit of the time stamps.
    unit: u64,
    link: LinkType,
}

impl Pcap {
    fn from_magic(magic: &[u8]) -> Option<Pcap> {
        let (order, unit) = match magic {
            [0xa1, 0xb2, 0xc3, 0xd4] => (Order::Big, 1000),
            [0xd4, 0xc3, 0xb2, 0xa1] => (Order::Little, 1000),
            [0xa1, 0xb2, 0x3c, 0x4d] => (Order::Big, 1),
            [0x4d, 0x3c, 0xb2, 0xa1] => (Order::Little, 1),
            _ => return None,
        };
        Some(Pcap { order, unit, link: LinkType::ETHERNET })
    }

    fn read_header<R: Read>(mut self, input: &mut Input<R>) -> Result<Pcap, Error> {
        let header = input.take(24, "file header")?;
        // The upper bits say whether frames end with a checksum; it lies beyond the IP packet anyway.
        self.link = LinkType(self.order.u32(header, 20) as u16);
        Ok(self)
    }

    fn next<R: Read>(&mut self, input: &mut Input<R>) -> Result<Option<FoundPacket>, Error> {
        let offset = input.offset();
        let Some(header) = input.peek_or_end(16, "packet header")? else {
            return Ok(None);
        };
        let [seconds, fraction, size, length] = [0, 4, 8, 12].map(|at| self.order.u32(header, at));
        if size as usize > LARGEST {
            let what = format!("a packet cannot have {size} bytes");
            return Err(Error::Damaged { offset, what });
        }
        input.take(16 + size as usize, "packet")?;
        Ok(Some(FoundPacket {
            interface: 0,
            time_ns: Some(u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * self.unit),
            link: self.link,
            data: (16, size as usize),
            length: length as usize,
            comment: (0, 0),
        }))
    }
}

/// No packet or block that this tool looks into is larger; a greater length is damage.
pub(crate) const LARGEST: usize = 16 << 20;

/// A file read through one buffer, with the position in the file.
#[derive(Debug)]
pub(crate) struct Input<R> {
    input: R,
    buffer: Vec<u8>,
    /// The part of `buffer` that is filled and not yet used.
    start: usize,
    end: usize,
    /// Where the bytes of the last `take` begin in `buffer`.
    last: usize,
    /// Where `start` is in the file.
    offset: u64,
}

impl<R: Read> Input<R> {
    fn new(input: R) -> Input<R> {
        Input { input, buffer: vec![0; 256 << 10], start: 0, end: 0, last: 0, offset: 0 }
    }

    /// The position in the file, in bytes.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// The bytes that the last `take` returned.
    fn taken(&self) -> &[u8] {
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
                Err(error) => return Err(Error::Io(error)),
            }
        }
        Ok(self.end)
    }

    /// The next `count` bytes without using them up; None if the file ends before.
    fn peek(&mut self, count: usize) -> Result<Option<&[u8]>, Error> {
        let available = self.fill(count)?;
        Ok((available >= count).then(|| &self.buffer[self.start..self.start + count]))
    }

    /// As `peek`, but None only if the file ends exactly here.
    pub(crate) fn peek_or_end(&mut self, count: usize, what: &'static str) -> Result<Option<&[u8]>, Error> {
        let offset = self.offset;
        match self.fill(count)? {
            0 => Ok(None),
            available if available < count => Err(Error::Truncated { offset, what }),
            _ => Ok(Some(&self.buffer[self.start..self.start + count])),
        }
    }

    /// Uses up the next `count` bytes.
    pub(crate) fn take(&mut self, count: usize, what: &'static str) -> Result<&[u8], Error> {
        if self.fill(count)? < count {
            return Err(Error::Truncated { offset: self.offset, what });
        }
        self.last = self.start;
        self.start += count;
        self.offset += count as u64;
        Ok(&self.buffer[self.last..self.start])
    }

    /// Jumps over `count` bytes, however many, without keeping them.
    pub(crate) fn skip(&mut self, mut count: usize, what: &'static str) -> Result<(), Error> {
        let offset = self.offset;
        while count > 0 {
            let step = self.fill(1)?.min(count);
            if step == 0 {
                return Err(Error::Truncated { offset, what });
            }
            self.start += step;
            self.offset += step as u64;
            count -= step;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claimed_length_is_not_believed() {
        let mut file = vec![0; 24 + 16];
        file[..4].copy_from_slice(&[0xa1, 0xb2, 0xc3, 0xd4]);
        file[24 + 8..24 + 12].copy_from_slice(&(LARGEST as u32).to_be_bytes());
        file.extend([7; 1000]);
        let mut reader = Reader::new(file.as_slice()).unwrap();
        assert!(matches!(reader.next(), Err(Error::Truncated { offset: 24, .. })));
        assert!(reader.input.buffer.len() < 1 << 20, "{} bytes for a file of 1040", reader.input.buffer.len());
    }

    #[test]
    fn a_packet_larger_than_the_buffer_is_read_whole() {
        let mut file = vec![0; 24 + 16];
        file[..4].copy_from_slice(&[0xa1, 0xb2, 0xc3, 0xd4]);
        file[24 + 8..24 + 12].copy_from_slice(&1_000_000u32.to_be_bytes());
        file.extend((0..1_000_000u32).map(|i| i as u8));
        let mut reader = Reader::new(file.as_slice()).unwrap();
        let record = reader.next().unwrap().unwrap();
        assert_eq!((record.data.len(), record.data[999_999]), (1_000_000, 999_999u32 as u8));
        assert!(reader.next().unwrap().is_none());
    }
}
