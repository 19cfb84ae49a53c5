//! The blocks of a pcapng file.

use super::format::{Format, Interface};
use super::input::{Input, Order, LARGEST};
use super::{damaged, Error, Found};
use crate::pcapng::SECTION_HEADER;
use crate::pcapng::{ENHANCED_PACKET, IF_NAME, IF_TSRESOL, INTERFACE_DESCRIPTION, JOURNAL_EXPORT, OPT_COMMENT};
use roce::link::LinkType;
use std::io::Read;

// What this tool reads and does not write.
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const IF_TSOFFSET: u16 = 14;

/// One block's bytes and where it is in the file.
struct Block<'a> {
    order: Order,
    bytes: &'a [u8],
    offset: u64,
}

impl Format {
    /// The next packet or journal entry of a pcapng file; other blocks are taken note of or skipped.
    pub(super) fn block<R: Read>(&mut self, input: &mut Input<R>) -> Result<Option<Found>, Error> {
        loop {
            if !input.begin(8, "block header")? {
                return Ok(None);
            }
            // The number of a section header reads the same in both byte orders.
            let kind = self.order.u32(input.bytes(), 0);
            if kind == SECTION_HEADER {
                self.begin_section(input)?;
            }
            let length = self.order.u32(input.bytes(), 4);
            if length < 12 || length % 4 != 0 {
                return Err(damaged(input.offset, format!("a block cannot have {length} bytes")));
            }
            let length = length as usize;
            let known = [INTERFACE_DESCRIPTION, OBSOLETE_PACKET, SIMPLE_PACKET, ENHANCED_PACKET, JOURNAL_EXPORT];
            if !known.contains(&kind) {
                input.skip(length, "block")?;
                continue;
            }
            if length > LARGEST {
                return Err(damaged(input.offset, format!("a block of {length} bytes")));
            }
            input.extend(length, "block")?;
            let block = Block { order: self.order, bytes: input.bytes(), offset: input.offset };
            // The length is at both ends of a block.
            let end = block.u32(length - 4)? as usize;
            if length != end {
                return Err(block.damaged(format!("the block begins with length {length} and ends with {end}")));
            }
            match kind {
                INTERFACE_DESCRIPTION => self.interfaces.push(block.interface()?),
                SIMPLE_PACKET => return block.simple_packet(&self.interfaces).map(Some),
                JOURNAL_EXPORT => return Ok(Some(Found { data: (8, length - 12), ..Found::default() })),
                _ => return block.packet(kind, &self.interfaces).map(Some),
            }
        }
    }

    /// Each section chooses its byte order and counts its interfaces from 0.
    fn begin_section<R: Read>(&mut self, input: &mut Input<R>) -> Result<(), Error> {
        input.extend(12, "section header")?;
        self.order = match input.bytes()[8..12] {
            [0x4d, 0x3c, 0x2b, 0x1a] => Order::Little,
            [0x1a, 0x2b, 0x3c, 0x4d] => Order::Big,
            _ => return Err(damaged(input.offset, "the byte order of the section is unknown")),
        };
        self.interfaces.clear();
        Ok(())
    }
}

impl Block<'_> {
    fn damaged(&self, what: impl std::fmt::Display) -> Error {
        damaged(self.offset, what)
    }

    fn too_short(&self) -> Error {
        self.damaged("the block is too short")
    }

    fn u32(&self, at: usize) -> Result<u32, Error> {
        match at + 4 <= self.bytes.len() {
            true => Ok(self.order.u32(self.bytes, at)),
            false => Err(self.too_short()),
        }
    }

    fn interface(&self) -> Result<Interface, Error> {
        let snap_length = self.u32(12)?;
        let link = LinkType(self.order.u16(self.bytes, 8));
        let (mut frequency, mut offset) = (1_000_000, 0);
        if let Some((at, 1)) = self.option(16, IF_TSRESOL) {
            let value = self.bytes[at];
            let exponent = u32::from(value & 0x7f);
            let base: u64 = if value & 0x80 == 0 { 10 } else { 2 };
            let no_clock = || self.damaged(format!("time stamps of resolution {base}^-{exponent}"));
            frequency = base.checked_pow(exponent).ok_or_else(no_clock)?;
        }
        if let Some((at, 8)) = self.option(16, IF_TSOFFSET) {
            offset = self.order.u64(self.bytes, at) as i64;
        }
        let name = self.option(16, IF_NAME).and_then(|(at, size)| std::str::from_utf8(&self.bytes[at..at + size]).ok());
        Ok(Interface { name: name.map(str::to_owned), link, snap_length, frequency, offset })
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

    fn packet(&self, kind: u32, interfaces: &[Interface]) -> Result<Found, Error> {
        // Both kinds have these in the same places.
        let header = self.bytes.get(..28).ok_or_else(|| self.too_short())?;
        let [high, low, size, length] = [12, 16, 20, 24].map(|at| self.order.u32(header, at));
        let number = match kind {
            OBSOLETE_PACKET => usize::from(self.order.u16(header, 8)),
            _ => self.order.u32(header, 8) as usize,
        };
        let interface = interfaces
            .get(number)
            .ok_or_else(|| self.damaged(format!("a packet of interface {number}, which was not described")))?;
        let (size, data) = (size as usize, self.data(28, size as usize)?);
        Ok(Found {
            interface: Some(number),
            time_ns: Some(interface.nanoseconds(u64::from(high) << 32 | u64::from(low))),
            data,
            length: length as usize,
            comment: self.option(28 + size.next_multiple_of(4), OPT_COMMENT).unwrap_or((0, 0)),
        })
    }

    /// A packet without time stamp; the recorded length follows from the snap length.
    fn simple_packet(&self, interfaces: &[Interface]) -> Result<Found, Error> {
        let undescribed = || self.damaged("a packet before any interface was described");
        let snap_length = interfaces.first().ok_or_else(undescribed)?.snap_length;
        let length = self.u32(8)?;
        let size = if snap_length == 0 { length } else { length.min(snap_length) };
        let data = self.data(12, size as usize)?;
        Ok(Found { interface: Some(0), data, length: length as usize, ..Found::default() })
    }

    fn data(&self, at: usize, size: usize) -> Result<(usize, usize), Error> {
        if size > self.bytes.len().saturating_sub(at + 4) {
            return Err(self.damaged(format!("{size} bytes of packet in a block of {}", self.bytes.len())));
        }
        Ok((at, size))
    }
}
