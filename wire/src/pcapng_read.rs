//! The blocks of a pcapng file.

use crate::capture::{Error, Found, FoundPacket, Input, Order, LARGEST};
use crate::link::LinkType;
use crate::pcapng::JOURNAL_EXPORT;
use std::io::Read;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

const OPT_COMMENT: u16 = 1;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;

/// What the blocks so far have said.
#[derive(Debug)]
pub(crate) struct Pcapng {
    order: Order,
    interfaces: Vec<Interface>,
}

impl Default for Pcapng {
    fn default() -> Self {
        Pcapng { order: Order::Little, interfaces: Vec::new() }
    }
}

#[derive(Debug)]
struct Interface {
    name: Option<String>,
    link: LinkType,
    snap_length: u32,
    clock: Clock,
}

/// How an interface counts time.
#[derive(Debug)]
struct Clock {
    /// Ticks in a second.
    frequency: u64,
    /// Seconds to add.
    offset: i64,
}

impl Clock {
    fn nanoseconds(&self, ticks: u64) -> u64 {
        if self.frequency == 1_000_000_000 && self.offset == 0 {
            return ticks;
        }
        let ns = u128::from(ticks) * 1_000_000_000 / u128::from(self.frequency);
        (ns as i128 + i128::from(self.offset) * 1_000_000_000).clamp(0, i128::from(u64::MAX)) as u64
    }
}

/// One block's bytes and where it lies in the file.
struct Block<'a> {
    order: Order,
    bytes: &'a [u8],
    offset: u64,
}

impl Pcapng {
    /// The name of an interface, if the file gives it one.
    pub(crate) fn name(&self, interface: usize) -> Option<&str> {
        self.interfaces.get(interface)?.name.as_deref()
    }

    /// What the interfaces so far are, and their names.
    pub(crate) fn interfaces(&self) -> Vec<(LinkType, Option<String>)> {
        self.interfaces.iter().map(|interface| (interface.link, interface.name.clone())).collect()
    }

    /// The next packet or journal entry; other blocks are taken note of or skipped.
    pub(crate) fn next<R: Read>(&mut self, input: &mut Input<R>) -> Result<Option<Found>, Error> {
        loop {
            let offset = input.offset();
            let Some(head) = input.peek_or_end(8, "block header")? else {
                return Ok(None);
            };
            // The number of a section header reads the same in both byte orders.
            let (kind, mut length) = (self.order.u32(head, 0), self.order.u32(head, 4));
            if kind == SECTION_HEADER {
                length = self.begin_section(input, offset)?;
            }
            if length < 12 || length % 4 != 0 {
                return Err(Error::Damaged { offset, what: format!("a block cannot have {length} bytes") });
            }
            let length = length as usize;
            match kind {
                INTERFACE_DESCRIPTION | OBSOLETE_PACKET | SIMPLE_PACKET | ENHANCED_PACKET | JOURNAL_EXPORT => {}
                _ => {
                    input.skip(length, "block")?;
                    continue;
                }
            }
            if length > LARGEST {
                return Err(Error::Damaged { offset, what: format!("a block of {length} bytes") });
            }
            let order = self.order;
            let block = Block { order, bytes: input.take(length, "block")?, offset };
            block.check_end()?;
            match kind {
                INTERFACE_DESCRIPTION => self.interfaces.push(block.interface()?),
                SIMPLE_PACKET => return block.simple_packet(&self.interfaces).map(|found| Some(Found::Packet(found))),
                JOURNAL_EXPORT => return Ok(Some(Found::Journal((8, length - 12)))),
                _ => return block.packet(kind, &self.interfaces).map(|found| Some(Found::Packet(found))),
            }
        }
    }

    /// Each section chooses its byte order and counts its interfaces from 0. Returns the length of its header.
    fn begin_section<R: Read>(&mut self, input: &mut Input<R>, offset: u64) -> Result<u32, Error> {
        let what = "section header";
        let head = input.peek_or_end(12, what)?.ok_or(Error::Truncated { offset, what })?;
        self.order = match head[8..12] {
            [0x4d, 0x3c, 0x2b, 0x1a] => Order::Little,
            [0x1a, 0x2b, 0x3c, 0x4d] => Order::Big,
            _ => return Err(Error::Damaged { offset, what: "the byte order of the section is unknown".into() }),
        };
        self.interfaces.clear();
        Ok(self.order.u32(head, 4))
    }
}

impl Block<'_> {
    fn damaged(&self, what: impl Into<String>) -> Error {
        Error::Damaged { offset: self.offset, what: what.into() }
    }

    /// The length stands at both ends of a block.
    fn check_end(&self) -> Result<(), Error> {
        let (first, last) = (self.u32(4)?, self.u32(self.bytes.len() - 4)?);
        if first != last {
            return Err(self.damaged(format!("the block begins with length {first} and ends with {last}")));
        }
        Ok(())
    }

    fn u32(&self, at: usize) -> Result<u32, Error> {
        match at + 4 <= self.bytes.len() {
            true => Ok(self.order.u32(self.bytes, at)),
            false => Err(self.damaged("the block is too short")),
        }
    }

    fn u16(&self, at: usize) -> Result<u16, Error> {
        match at + 2 <= self.bytes.len() {
            true => Ok(self.order.u16(self.bytes, at)),
            false => Err(self.damaged("the block is too short")),
        }
    }

    fn interface(&self) -> Result<Interface, Error> {
        let link = LinkType(self.u16(8)?);
        let snap_length = self.u32(12)?;
        let mut clock = Clock { frequency: 1_000_000, offset: 0 };
        if let Some((at, 1)) = self.option(16, IF_TSRESOL) {
            let value = self.bytes[at];
            let exponent = u32::from(value & 0x7f);
            let base: u64 = if value & 0x80 == 0 { 10 } else { 2 };
            let no_clock = || self.damaged(format!("time stamps of resolution {base}^-{exponent}"));
            clock.frequency = base.checked_pow(exponent).ok_or_else(no_clock)?;
        }
        if let Some((at, 8)) = self.option(16, IF_TSOFFSET) {
            clock.offset = self.order.u64(self.bytes, at) as i64;
        }
        let name = self.option(16, IF_NAME).and_then(|(at, size)| std::str::from_utf8(&self.bytes[at..at + size]).ok());
        Ok(Interface { name: name.map(str::to_owned), link, snap_length, clock })
    }

    /// Where the value of an option begins and how long it is; `at` is where the options begin.
    fn option(&self, mut at: usize, wanted: u16) -> Option<(usize, usize)> {
        let end = self.bytes.len() - 4;
        while at + 4 <= end {
            let code = self.order.u16(self.bytes, at);
            let length = usize::from(self.order.u16(self.bytes, at + 2));
            if code == 0 || at + 4 + length > end {
                return None;
            }
            if code == wanted {
                return Some((at + 4, length));
            }
            at += 4 + length.next_multiple_of(4);
        }
        None
    }

    fn packet(&self, kind: u32, interfaces: &[Interface]) -> Result<FoundPacket, Error> {
        let number = match kind {
            OBSOLETE_PACKET => usize::from(self.u16(8)?),
            _ => self.u32(8)? as usize,
        };
        let (high, low, size, length) = (self.u32(12)?, self.u32(16)?, self.u32(20)? as usize, self.u32(24)?);
        let interface = interfaces
            .get(number)
            .ok_or_else(|| self.damaged(format!("a packet of interface {number}, which was not described")))?;
        let data = self.data(28, size)?;
        Ok(FoundPacket {
            interface: number,
            time_ns: Some(interface.clock.nanoseconds(u64::from(high) << 32 | u64::from(low))),
            link: interface.link,
            data,
            length: length as usize,
            comment: self.option(28 + size.next_multiple_of(4), OPT_COMMENT).unwrap_or((0, 0)),
        })
    }

    /// A packet without time stamp; the recorded length follows from the snap length.
    fn simple_packet(&self, interfaces: &[Interface]) -> Result<FoundPacket, Error> {
        let interface =
            interfaces.first().ok_or_else(|| self.damaged("a packet before any interface was described"))?;
        let length = self.u32(8)?;
        let size = match interface.snap_length {
            0 => length,
            snap_length => length.min(snap_length),
        };
        let data = self.data(12, size as usize)?;
        let (link, length) = (interface.link, length as usize);
        Ok(FoundPacket { interface: 0, time_ns: None, link, data, length, comment: (0, 0) })
    }

    fn data(&self, at: usize, size: usize) -> Result<(usize, usize), Error> {
        if size > self.bytes.len().saturating_sub(at + 4) {
            return Err(self.damaged(format!("{size} bytes of packet in a block of {}", self.bytes.len())));
        }
        Ok((at, size))
    }
}
