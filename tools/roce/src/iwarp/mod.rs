//! iWARP: RDMA inside TCP. The second wire, beside RoCE's packets.
//!
//! TCP carries bytes without borders, so a unit may begin in the middle of a segment and end in another one. [`Streams`] puts
//! them together and says of each TCP segment which units end in it. It does so only for connections whose MPA Request it has
//! seen, and only for bytes that come in order: what comes after a gap it can't tell, and says so.

pub mod crc32c;
pub mod headers;
mod stream;
pub mod terminate;

pub use stream::{Brought, Doubt, Streams};

use crate::field::Header;
use headers::{enhanced, mpa, read, startup, tagged, terminate_control, untagged};

const REQUEST: &[u8; 16] = b"MPA ID Req Frame";
const REPLY: &[u8; 16] = b"MPA ID Rep Frame";
/// The most private data that a start-up frame may have (RFC 5044, 7.1).
const MOST_PRIVATE: usize = 512;

/// Whether the CRC at the end of a unit fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crc {
    /// Nobody asked for CRCs.
    Unused,
    Ok,
    Bad,
}

/// A place in somebody's memory: steering tag and tagged offset.
pub type Place = (u32, u64);

/// What a unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Request,
    Reply,
    /// A segment of DDP with RDMAP's operation code.
    Rdmap(u8),
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Request => "MPA Request",
            Kind::Reply => "MPA Reply",
            Kind::Rdmap(opcode) => name(opcode),
        }
    }
}

/// The name of an operation code of RDMAP (RFC 5040, 4.3; from 8 on RFC 7306).
pub fn name(opcode: u8) -> &'static str {
    match opcode {
        0 => "RDMAP Write",
        1 => "RDMAP Read Request",
        2 => "RDMAP Read Response",
        3 => "RDMAP Send",
        4 => "RDMAP Send with Invalidate",
        5 => "RDMAP Send with SE",
        6 => "RDMAP Send with SE and Invalidate",
        7 => "RDMAP Terminate",
        8 => "RDMAP Immediate Data",
        9 => "RDMAP Immediate Data with SE",
        10 => "RDMAP Atomic Request",
        11 => "RDMAP Atomic Response",
        _ => "RDMAP with an unknown opcode",
    }
}

/// Every name that a unit can have.
pub fn names() -> impl Iterator<Item = &'static str> {
    [Kind::Request, Kind::Reply].into_iter().map(Kind::name).chain((0..12).map(name))
}

/// One unit of an iWARP connection, whole: a start-up frame of MPA, or a length, a DDP segment, padding and CRC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    pub kind: Kind,
    /// All of its bytes.
    pub bytes: Vec<u8>,
    /// Where it begins in the frame that it ends in; None if that was an earlier one.
    pub start: Option<usize>,
    pub crc: Crc,
}

impl Unit {
    /// Its headers, with where each begins in it.
    pub fn headers(&self) -> Vec<(usize, &'static Header)> {
        let Kind::Rdmap(opcode) = self.kind else {
            let more = (self.number(0, startup::ENHANCED) == Some(1) && self.bytes.len() >= 24)
                .then_some((20, &enhanced::HEADER));
            return [(0, &startup::HEADER)].into_iter().chain(more).collect();
        };
        let ddp = if self.is_tagged() { &tagged::HEADER } else { &untagged::HEADER };
        let rdmap = match opcode {
            1 => Some(&read::HEADER),
            7 => Some(&terminate_control::HEADER),
            _ => None,
        };
        let rdmap = rdmap.map(|header| (2 + ddp.length, header));
        let all = [(0, &mpa::HEADER), (2, ddp)].into_iter().chain(rdmap);
        all.filter(|(start, header)| start + header.length <= self.end()).collect()
    }

    /// Where what is behind the headers begins.
    pub fn payload_offset(&self) -> usize {
        self.headers().last().map_or(0, |(start, header)| start + header.length)
    }

    /// What is behind the headers: an application's bytes, private data, or what a Terminate repeats.
    pub fn payload(&self) -> &[u8] {
        self.bytes.get(self.payload_offset()..self.end()).unwrap_or_default()
    }

    /// Where padding and CRC begin.
    pub fn end(&self) -> usize {
        match self.kind {
            Kind::Rdmap(_) => 2 + mpa::LENGTH.read(&self.bytes).unwrap_or_default() as usize,
            _ => self.bytes.len(),
        }
    }

    pub fn is_tagged(&self) -> bool {
        self.number(2, tagged::TAGGED) == Some(1)
    }

    /// Whether its message ends with it.
    pub fn is_last(&self) -> bool {
        self.number(2, tagged::LAST) == Some(1)
    }

    /// The receiver's memory: steering tag and offset of a WRITE or READ Response.
    pub fn place(&self) -> Option<Place> {
        let is_placed = matches!(self.kind, Kind::Rdmap(_)) && self.is_tagged();
        let place = (self.number(2, tagged::STAG)? as u32, self.number(2, tagged::OFFSET)?);
        is_placed.then_some(place)
    }

    /// Queue, number of the message in it, and offset in the message, of what goes to a buffer that the receiver chooses.
    pub fn queued(&self) -> Option<[u32; 3]> {
        let number = |field| self.number(2, field).map(|number| number as u32);
        let queued = [number(untagged::QUEUE)?, number(untagged::MSN)?, number(untagged::OFFSET)?];
        (matches!(self.kind, Kind::Rdmap(_)) && !self.is_tagged()).then_some(queued)
    }

    /// The tag that a SEND with invalidate ends.
    pub fn invalidated(&self) -> Option<u32> {
        let does = matches!(self.kind, Kind::Rdmap(4 | 6)) && !self.is_tagged();
        self.number(2, untagged::INVALIDATE).filter(|_| does).map(|tag| tag as u32)
    }

    /// What a READ Request asks for: bytes, the source's tag and offset, and the sink's.
    pub fn wanted(&self) -> Option<(u32, Place, Place)> {
        let number = |field| self.of_header(&read::HEADER, field);
        let source = (number(read::SOURCE)? as u32, number(read::SOURCE_OFFSET)?);
        Some((number(read::SIZE)? as u32, source, (number(read::SINK)? as u32, number(read::SINK_OFFSET)?)))
    }

    /// Layer, sort and code of the error that a Terminate names.
    pub fn error(&self) -> Option<[u8; 3]> {
        let number = |field| self.of_header(&terminate_control::HEADER, field).map(|number| number as u8);
        Some([number(terminate_control::LAYER)?, number(terminate_control::KIND)?, number(terminate_control::CODE)?])
    }

    /// READs that the sender of a start-up frame answers, and has under way, at a time.
    pub fn reads(&self) -> Option<[u16; 2]> {
        let number = |field| self.of_header(&enhanced::HEADER, field).map(|number| number as u16);
        Some([number(enhanced::IRD)?, number(enhanced::ORD)?])
    }

    /// Whether a start-up frame says no.
    pub fn is_rejected(&self) -> bool {
        self.kind == Kind::Reply && self.number(0, startup::REJECTED) == Some(1)
    }

    fn of_header(&self, header: &Header, field: crate::field::Field) -> Option<u64> {
        let (start, _) = self.headers().into_iter().find(|(_, other)| other.title == header.title)?;
        self.number(start, field)
    }

    fn number(&self, start: usize, field: crate::field::Field) -> Option<u64> {
        field.read(self.bytes.get(start..)?)
    }
}

#[cfg(test)]
mod tests;
