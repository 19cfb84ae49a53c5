//! Writing pcapng: a section header, interfaces, then one block per packet, each with its comment, or log line.
//!
//! The format is described at <https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-05.html>. Blocks
//! are written little-endian on every machine, so equal packets give equal files.

use crate::file::Line;
use roce::link::LinkType;
use std::collections::HashMap;
use std::io::{self, Write};

/// What the file says about itself; each text is left out when it is None.
#[derive(Clone, Copy, Debug, Default)]
pub struct Section<'a> {
    /// Shown by Wireshark as the comment of the capture.
    pub comment: Option<&'a str>,
    /// The hardware that recorded.
    pub hardware: Option<&'a str>,
    /// The operating system that recorded.
    pub os: Option<&'a str>,
    /// The program that recorded.
    pub application: Option<&'a str>,
}

/// Writes packets with time stamps in nanoseconds, and log lines.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    block: Vec<u8>,
    /// Their numbers.
    interfaces: HashMap<(LinkType, Option<String>), u32>,
}

pub(crate) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
pub(crate) const INTERFACE_DESCRIPTION: u32 = 1;
pub(crate) const ENHANCED_PACKET: u32 = 6;
/// Its body is one journal entry in systemd's Journal Export Format.
pub(crate) const JOURNAL_EXPORT: u32 = 9;
pub(crate) const OPT_COMMENT: u16 = 1;
pub(crate) const IF_NAME: u16 = 2;
pub(crate) const IF_TSRESOL: u16 = 9;

impl<W: Write> Writer<W> {
    /// Begins a file; interfaces are added as they turn up. Hand in a buffered writer.
    pub fn new(out: W, section: &Section) -> io::Result<Writer<W>> {
        let mut writer = Writer { out, block: Vec::with_capacity(2048), interfaces: HashMap::new() };
        writer.u32(0x1a2b_3c4d); // tells the byte order
        writer.u16(1); // version 1.0
        writer.u16(0);
        writer.block.extend_from_slice(&(-1i64).to_le_bytes()); // length of the section: not told
        writer.text_option(OPT_COMMENT, section.comment);
        writer.text_option(2, section.hardware);
        writer.text_option(3, section.os);
        writer.text_option(4, section.application);
        writer.u32(0); // no more options
        writer.finish_block(SECTION_HEADER)?;
        Ok(writer)
    }

    /// The number of an interface, which is described when it turns up. In a run file it has the name of the node whose
    /// card it is.
    pub fn interface(&mut self, link: LinkType, name: Option<&str>) -> io::Result<u32> {
        const NANOSECONDS: u8 = 9;
        let interface = (link, name.map(String::from));
        if let Some(number) = self.interfaces.get(&interface) {
            return Ok(*number);
        }
        self.u16(link.0);
        self.u16(0);
        self.u32(0); // no snap length
        self.text_option(IF_NAME, name);
        self.option(IF_TSRESOL, &[NANOSECONDS]);
        self.u32(0); // no more options
        self.finish_block(INTERFACE_DESCRIPTION)?;
        let number = self.interfaces.len() as u32;
        self.interfaces.insert(interface, number);
        Ok(number)
    }

    /// Appends a frame of which only `recorded` is known; on the wire it had `length` bytes. `time_ns` counts from 1970.
    pub fn packet(
        &mut self,
        interface: u32,
        time_ns: u64,
        recorded: &[u8],
        length: usize,
        comment: Option<&str>,
    ) -> io::Result<()> {
        let sizes = [recorded.len() as u32, length as u32];
        for word in [interface, (time_ns >> 32) as u32, time_ns as u32].into_iter().chain(sizes) {
            self.u32(word);
        }
        self.padded(recorded);
        self.text_option(OPT_COMMENT, comment);
        self.u32(0); // no more options
        self.finish_block(ENHANCED_PACKET)
    }

    /// Appends a log line.
    pub fn line(&mut self, line: &Line) -> io::Result<()> {
        self.padded(line.export().as_bytes());
        self.finish_block(JOURNAL_EXPORT)
    }

    /// Hands what was written on, to the file below.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// What this writes to.
    pub(crate) fn out(&mut self) -> &mut W {
        &mut self.out
    }

    /// Gives back what this writes to, flushed.
    pub fn into_inner(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn text_option(&mut self, code: u16, text: Option<&str>) {
        if let Some(text) = text {
            let fits = text.len().min(usize::from(u16::MAX));
            self.option(code, &text.as_bytes()[..fits]);
        }
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.u16(code);
        self.u16(value.len() as u16);
        self.padded(value);
    }

    fn u16(&mut self, value: u16) {
        self.block.extend_from_slice(&value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.block.extend_from_slice(&value.to_le_bytes());
    }

    /// Every part of a block is filled up to a multiple of four bytes.
    fn padded(&mut self, bytes: &[u8]) {
        self.block.extend_from_slice(bytes);
        let fill = bytes.len().wrapping_neg() % 4;
        self.block.extend_from_slice(&[0; 3][..fill]);
    }

    /// Writes the collected block between its type and its length, which is at both ends.
    fn finish_block(&mut self, kind: u32) -> io::Result<()> {
        let length = (self.block.len() as u32 + 12).to_le_bytes();
        self.block.extend(length);
        self.block.splice(..0, kind.to_le_bytes().into_iter().chain(length));
        let written = self.out.write_all(&self.block);
        self.block.clear();
        written
    }
}
