//! One packet byte by byte: hexadecimal beside field, value and meaning.

use crate::capture::{Error, Reader, Record};
use crate::cm::{self, mad};
use crate::field::{Base, Field, Header};
use crate::icrc::{self, Icrc};
use crate::link::{Datagram, LinkType};
use crate::lower;
use crate::packet::{Frame, Packet};
use crate::run::Event;
use std::io::{Read, Write};
use std::net::Ipv6Addr;
use std::str::FromStr;

/// What to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The frame with this number, which may be a log line.
    Frame(u64),
    /// The first packet of this step of the lesson, which the packets' comments tell.
    Step(u64),
}

impl FromStr for Which {
    type Err = String;

    fn from_str(word: &str) -> Result<Which, String> {
        let number = |digits: &str| digits.parse().ok().filter(|number| *number > 0);
        let which = number(word).map(Which::Frame).or_else(|| number(word.strip_prefix("step")?).map(Which::Step));
        which.ok_or_else(|| format!("`{word}` is neither a frame's number, as 10, nor a step, as step8"))
    }
}

/// Shows a frame of a capture.
pub fn write<R: Read>(reader: &mut Reader<R>, which: Which, out: &mut impl Write) -> Result<(), Error> {
    let mut count = 0;
    while let Some(event) = reader.event()? {
        count += 1;
        let wanted = match (&event, which) {
            (_, Which::Frame(number)) => number == count,
            (Event::Packet(record), Which::Step(step)) => {
                record.comment.is_some_and(|comment| comment.starts_with(&format!("Step {step}:")))
            }
            (Event::Line(_), Which::Step(_)) => false,
        };
        if wanted {
            let text = match event {
                Event::Packet(record) => frame(&record),
                Event::Line(line) => format!("frame {count}, {} on {}: {}\n", line.program, line.node, line.text),
            };
            out.write_all(text.as_bytes())?;
            return Ok(out.flush()?);
        }
    }
    Err(Error::Unfit(match which {
        Which::Frame(number) => format!("there is no frame {number}: the file has {count}"),
        Which::Step(step) => format!("no packet's comment begins with `Step {step}:`"),
    }))
}

fn frame(record: &Record) -> String {
    let Record { number, data, length, .. } = *record;
    let recorded = if data.len() < length { format!(", {} recorded", data.len()) } else { String::new() };
    let comment = record.comment.map(|comment| format!("{comment}\n")).unwrap_or_default();
    let (title, rest) = match Frame::decode(record.link, data) {
        Frame::Roce(packet) => {
            let Datagram { src, dst, .. } = packet.datagram;
            (format!("{}, {src} -> {dst}", packet.name()), roce(record, &packet))
        }
        Frame::Other(other) => (other.name().to_owned(), dump(0, data)),
    };
    format!("frame {number}, {length} bytes{recorded}: {title}\n{comment}{rest}")
}

fn roce(record: &Record, packet: &Packet) -> String {
    let bytes = record.data;
    let ip = packet.datagram.ip_offset;
    let udp = ip + packet.datagram.udp_offset;
    let mut text = match record.link == LinkType::ETHERNET && ip == lower::ethernet::HEADER.length {
        true => header(&lower::ethernet::HEADER, bytes, 0),
        false => section("Link layer", ip) + &dump(0, &bytes[..ip]),
    };
    let ip_header = if packet.datagram.src.is_ipv4() { &lower::ipv4::HEADER } else { &lower::ipv6::HEADER };
    text += &header(ip_header, bytes, ip);
    text += &rest("IP options or extension headers", bytes, ip + ip_header.length, udp);
    text += &header(&lower::udp::HEADER, bytes, udp);
    text.extend(packet.headers().map(|(offset, declared)| header(declared, bytes, ip + offset)));
    let (start, length) = (ip + packet.payload_offset(), packet.payload_length());
    match packet.cm() {
        Some(message) => text += &cm_message(&message, bytes, start),
        None if length > 0 => text += &(section("Payload", length) + &dump(start, packet.payload())),
        None => {}
    }
    text + &tail(packet, bytes, start + length)
}

/// Padding, ICRC, and what fills the frame up to the least length of Ethernet.
fn tail(packet: &Packet, bytes: &[u8], start: usize) -> String {
    let end = packet.datagram.ip_offset + packet.datagram.wire_length;
    let crc = end - icrc::LENGTH;
    let sent = bytes.get(crc..end).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
    let value = sent.map(|sum| format!("{sum:#010x}")).unwrap_or_default();
    let verdict = match packet.icrc() {
        Icrc::Ok => "ok: it fits the packet (little-endian)".into(),
        Icrc::Bad => format!("bad: {:#010x} would fit the packet", packet.expected_icrc().unwrap_or(0)),
        Icrc::Cut => "cut: the recording ends before it".into(),
    };
    rest("Padding", bytes, start, crc)
        + &section("ICRC  Invariant CRC", icrc::LENGTH)
        + &row(crc, &hex(bytes.get(crc..end).unwrap_or(&[])), "ICRC", &value, &verdict)
        + &rest("Ethernet padding", bytes, end, bytes.len())
}

fn rest(title: &str, bytes: &[u8], start: usize, end: usize) -> String {
    let part = bytes.get(start..end).filter(|part| !part.is_empty());
    part.map(|part| section(title, part.len()) + &dump(start, part)).unwrap_or_default()
}

/// A CM message: the MAD header, the fields of the message, and the RDMA-CM header within its private data.
fn cm_message(message: &cm::Message, bytes: &[u8], start: usize) -> String {
    let body = start + mad::HEADER.length;
    let mut text = header(&mad::HEADER, bytes, start);
    let Some((Header { name, title, length, fields }, private)) =
        message.kind.header().and_then(|header| Some((header, header.fields.last()?)))
    else {
        return text + &section(message.kind.name(), message.body.len()) + &dump(body, message.body);
    };
    text += &section(&format!("{name}  {title}"), *length);
    text.extend(fields[..fields.len() - 1].iter().map(|field| field_rows(field, bytes, body)));
    let mut private_start = body + private.span().0;
    if message.ip_cm().is_some() {
        text += &header(&cm::ip_cm::HEADER, bytes, private_start);
        private_start += cm::ip_cm::HEADER.length;
    }
    text + &section("PrivateData", body + private.span().1 - private_start)
        + &dump(private_start, message.private_data())
}

fn section(title: &str, length: usize) -> String {
    format!("\n{title}, {length} bytes\n")
}

/// Every field of a header that begins at `start`.
fn header(header: &Header, bytes: &[u8], start: usize) -> String {
    let rows = header.fields.iter().map(|field| field_rows(field, bytes, start));
    section(&format!("{}  {}", header.name, header.title), header.length) + &rows.collect::<String>()
}

fn field_rows(field: &Field, bytes: &[u8], start: usize) -> String {
    let at = start + field.span().0;
    let header = bytes.get(start..).unwrap_or(&[]);
    let Some(part) = field.slice(header) else { return row(at, "", field.name, "", "cut: not recorded") };
    let (value, meaning) = match (field.base, field.read(header)) {
        (Base::Address, _) => (address(part), String::new()),
        (Base::Dec, Some(number)) => (number.to_string(), (field.meaning)(number)),
        (Base::Hex, Some(number)) => {
            (format!("0x{number:0width$x}", width = field.bits.div_ceil(4)), (field.meaning)(number))
        }
        _ => (String::new(), String::new()),
    };
    if field.bits % 8 != 0 {
        return row(at, &pattern(part, field), field.name, &value, &meaning);
    }
    let (first, more) = part.split_at(part.len().min(COLUMNS));
    let more = more.chunks(COLUMNS).enumerate();
    let more = more.map(|(i, chunk)| row(at + (i + 1) * COLUMNS, &hex(chunk), "", "", ""));
    row(at, &hex(first), field.name, &value, &meaning) + &more.collect::<String>()
}

/// Bytes in the left column of a field's row.
const COLUMNS: usize = 8;

fn row(at: usize, left: &str, name: &str, value: &str, meaning: &str) -> String {
    let line = format!("  {at:04x}  {left:26}  {name:23}  {value:18}  {meaning}");
    line.trim_end().to_owned() + "\n"
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

/// A field that does not fill its bytes: the bits that belong to it, dots for the others.
fn pattern(bytes: &[u8], field: &Field) -> String {
    let first = field.bit % 8;
    let bit = |at: usize| match (bytes[at / 8] >> (7 - at % 8) & 1, (first..first + field.bits).contains(&at)) {
        (_, false) => '.',
        (0, true) => '0',
        (_, true) => '1',
    };
    let byte = |at: usize| (at * 8..at * 8 + 8).map(bit).collect::<String>();
    (0..bytes.len()).map(byte).collect::<Vec<_>>().join(" ")
}

/// A GID, or an IPv4 address in the last four of sixteen bytes.
fn address(bytes: &[u8]) -> String {
    let Ok(bytes) = <[u8; 16]>::try_from(bytes) else { return String::new() };
    let v6 = Ipv6Addr::from(bytes);
    match v6.to_ipv4() {
        Some(v4) if v6.segments() != [0; 8] => v4.to_string(),
        _ => v6.to_string(),
    }
}

/// Sixteen bytes a line, with the letters they would be. Lines that repeat the one before are counted.
fn dump(start: usize, bytes: &[u8]) -> String {
    let (mut text, mut lines) = (String::new(), bytes.chunks(16).enumerate().peekable());
    while let Some((i, line)) = lines.next() {
        let printable = |&byte: &u8| if (0x20..0x7f).contains(&byte) { char::from(byte) } else { '.' };
        let letters: String = line.iter().map(printable).collect();
        text += &format!("  {:04x}  {:47}  {letters}\n", start + i * 16, hex(line));
        let repeated = std::iter::from_fn(|| lines.next_if(|(_, next)| *next == line)).count();
        text += &match repeated {
            0 => String::new(),
            1 => "        (the same line once more)\n".to_owned(),
            _ => format!("        (the same line {repeated} times more)\n"),
        };
    }
    text
}
