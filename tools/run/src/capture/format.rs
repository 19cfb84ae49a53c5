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

/// What a file is that isn't a capture we read, and what makes one of it.
fn named<R: Read>(input: &mut Input<R>) -> Result<String, Error> {
    let compressed = |by: &str, with: &str| format!("it is compressed by {by}: {with} it first");
    let other = |what: &str| format!("it is {what}: `editcap -F pcap FILE NEW` makes a pcap file of it");
    let is_erf = is_erf(input)?;
    Ok(match input.magic[..] {
        [0x1f, 0x8b, ..] => compressed("gzip", "`gzip -d`"),
        [0x1f, 0x9d, ..] => compressed("compress", "`uncompress`"),
        [0x28, 0xb5, 0x2f, 0xfd] => compressed("zstd", "`zstd -d`"),
        [0x04 | 0x02, 0x22 | 0x21, 0x4d | 0x4c, 0x18] => compressed("lz4", "`lz4 -d`"),
        [0xfd, b'7', b'z', b'X'] => compressed("xz", "`xz -d`"),
        [b'B', b'Z', b'h', _] => compressed("bzip2", "`bzip2 -d`"),
        [b'L', b'Z', b'I', b'P'] => compressed("lzip", "`lzip -d`"),
        [b'7', b'z', 0xbc, 0xaf] => compressed("7-Zip", "`7z x`"),
        [b'P', b'K', 3, 4] => compressed("zip", "`unzip`"),
        [b's', b'n', b'o', b'o'] => other("a snoop file"),
        [0xa1, 0xb2, 0xcd, 0x34] | [0x34, 0xcd, 0xb2, 0xa1] => {
            other("a pcap file of modified form (by a patched libpcap)")
        }
        [0xa1, 0xe2, 0xcb, 0x12] | [0x12, 0xcb, 0xe2, 0xa1] => other("a pcap file of Navtel's form"),
        [0x1c, 0, 1, 0xac] | [0xac, 1, 0, 0x1c] | [0x1c, 0, 2, 0xac] | [0xac, 2, 0, 0x1c] => {
            other("a capture of IXIA's")
        }
        [b'R', b'T', b'S', b'S'] | [b'G', b'M', b'B', b'U'] => other("a capture of Microsoft Network Monitor's"),
        [b'T', b'R', b'S', b'N'] => other("a capture of Sniffer's"),
        [b'X', b'C', b'P', 0] => other("a capture of NetXRay's"),
        [b'i', b'p', b't', b'r'] => other("a trace of AIX's iptrace"),
        _ if input.magic.iter().all(|byte| (0x20..0x7f).contains(byte) || byte.is_ascii_whitespace()) => {
            "it begins with text; `text2pcap` makes a capture of a hexadecimal dump".to_owned()
        }
        _ if is_erf => other("a file of ERF records (Endace)"),
        [a, b, c, d] => format!("it begins with the unknown bytes {a:02x} {b:02x} {c:02x} {d:02x}"),
        _ => "it is too short".to_owned(),
    })
}

/// ERF has no mark of its own. It begins with a time of this century, a known type of record, and lengths that fit each other.
fn is_erf<R: Read>(input: &mut Input<R>) -> Result<bool, Error> {
    if input.begin(16, "file header").is_err() {
        return Ok(false);
    }
    let seconds = Order::Little.u32(input.bytes(), 4);
    let (kind, record) = (input.bytes()[8] & 0x7f, Order::Big.u16(input.bytes(), 10));
    Ok((978_307_200..4_102_444_800).contains(&seconds) && (1..=27).contains(&kind) && record >= 16)
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
            [_, _, _, _] => return Err(not_a_capture(&named(input)?)),
            _ => return Err(truncated(0, "file header")),
        };
        input.begin(24, "file header")?;
        // The upper bits say whether frames end with a checksum; it is beyond the IP packet anyway.
        let link = LinkType(order.u32(input.bytes(), 20) as u16);
        let interface = Interface { name: None, link, snap_length: 0, frequency, offset: 0 };
        Ok(Format { is_pcapng: false, order, interfaces: vec![interface] })
    }

    /// The next packet of a pcap file.
    pub(super) fn packet<R: Read>(&self, input: &mut Input<R>) -> Result<Option<Found>, Error> {
        if !input.begin(16, "packet header")? {
            return Ok(None);
        }
        let [seconds, fraction, size, length] = [0, 4, 8, 12].map(|at| self.order.u32(input.bytes(), at));
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
