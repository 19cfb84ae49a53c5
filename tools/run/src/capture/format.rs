//! What is known of a file. And the older format, pcap: a file header, then each packet behind 16 bytes of its own.

use super::input::{Input, Order, LARGEST};
use super::{damaged, not_a_capture, truncated, Error, Found};
use roce::link::LinkType;
use std::io::Read;

/// What the file has said so far.
#[derive(Debug)]
pub(super) struct Format {
    pub is_pcapng: bool,
    pub order: Order,
    /// A pcap file has one.
    pub interfaces: Vec<Interface>,
}

#[derive(Debug)]
pub(super) struct Interface {
    pub name: Option<String>,
    pub link: LinkType,
    pub snap_length: u32,
    /// Ticks of its clock in a second.
    pub frequency: u64,
    /// Seconds to add.
    pub offset: i64,
}

impl Interface {
    pub(super) fn nanoseconds(&self, ticks: u64) -> u64 {
        if self.frequency == 1_000_000_000 && self.offset == 0 {
            return ticks;
        }
        let ns = u128::from(ticks) * 1_000_000_000 / u128::from(self.frequency);
        (ns as i128 + i128::from(self.offset) * 1_000_000_000).clamp(0, i128::from(u64::MAX)) as u64
    }
}

impl Format {
    /// Reads the start of a file.
    pub(super) fn begin<R: Read>(input: &mut Input<R>) -> Result<Format, Error> {
        let (order, frequency) = match input.magic[..] {
            [] => return Err(not_a_capture("it is too short")),
            [0x0a, 0x0d, 0x0d, 0x0a] => {
                return Ok(Format { is_pcapng: true, order: Order::Little, interfaces: Vec::new() })
            }
            [0xa1, 0xb2, 0xc3, 0xd4] => (Order::Big, 1_000_000),
            [0xd4, 0xc3, 0xb2, 0xa1] => (Order::Little, 1_000_000),
            [0xa1, 0xb2, 0x3c, 0x4d] => (Order::Big, 1_000_000_000),
            [0x4d, 0x3c, 0xb2, 0xa1] => (Order::Little, 1_000_000_000),
            [0x1f, 0x8b, ..] => return Err(not_a_capture("it is compressed: gunzip it first")),
            [_, _, _, _] => return Err(not_a_capture("it begins with unknown bytes")),
            _ => return Err(truncated(0, "file header")),
        };
        input.begin(24, "file header")?;
        // The upper bits say whether frames end with a checksum; it lies beyond the IP packet anyway.
        let link = LinkType(order.u32(&input.bytes, 20) as u16);
        let interface = Interface { name: None, link, snap_length: 0, frequency, offset: 0 };
        Ok(Format { is_pcapng: false, order, interfaces: vec![interface] })
    }

    /// The next packet of a pcap file.
    pub(super) fn packet<R: Read>(&self, input: &mut Input<R>) -> Result<Option<Found>, Error> {
        if !input.begin(16, "packet header")? {
            return Ok(None);
        }
        let [seconds, fraction, size, length] = [0, 4, 8, 12].map(|at| self.order.u32(&input.bytes, at));
        if size as usize > LARGEST {
            return Err(damaged(input.offset, format!("a packet cannot have {size} bytes")));
        }
        input.extend(16 + size as usize, "packet")?;
        let unit = 1_000_000_000 / self.interfaces[0].frequency;
        Ok(Some(Found {
            interface: Some(0),
            time_ns: Some(u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * unit),
            data: (16, size as usize),
            length: length as usize,
            comment: (0, 0),
        }))
    }
}
