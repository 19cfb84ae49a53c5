//! One packet byte by byte: hexadecimal beside field, value and meaning.

use super::Error;
use crate::capture::{Reader, Record};
use crate::cm::{self, mad};
use crate::field::{Base, Field, Header};
use crate::icrc::{self, Icrc};
use crate::link::LinkType;
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
            match event {
                Event::Packet(record) => frame(&record, out)?,
                Event::Line(line) => writeln!(out, "frame {count}, {} on {}: {}", line.program, line.node, line.text)?,
            }
            return Ok(out.flush()?);
        }
    }
    Err(Error::Unfit(match which {
        Which::Frame(number) => format!("there is no frame {number}: the file has {count}"),
        Which::Step(step) => format!("no packet's comment begins with `Step {step}:`"),
    }))
}

fn frame(record: &Record, out: &mut impl Write) -> Result<(), Error> {
    let Record { number, data, length, .. } = *record;
    let recorded = if data.len() < length { format!(", {} recorded", data.len()) } else { String::new() };
    write!(out, "frame {number}, {length} bytes{recorded}: ")?;
    match Frame::decode(record.link, data) {
        Frame::Roce(packet) => {
            writeln!(out, "{}, {} -> {}", packet.name(), packet.datagram.src, packet.datagram.dst)?;
            comment(record, out)?;
            roce(record, &packet, out)
        }
        Frame::Other(other) => {
            writeln!(out, "{}", other.name())?;
            comment(record, out)?;
            dump(out, 0, data)
        }
    }
}

fn comment(record: &Record, out: &mut impl Write) -> Result<(), Error> {
    if let Some(text) = record.comment {
        writeln!(out, "{text}")?;
    }
    Ok(())
}

fn roce(record: &Record, packet: &Packet, out: &mut impl Write) -> Result<(), Error> {
    let bytes = record.data;
    let ip = packet.datagram.ip_offset;
    let udp = ip + packet.datagram.udp_offset;
    if record.link == LinkType::ETHERNET && ip == lower::ethernet::HEADER.length {
        header(out, &lower::ethernet::HEADER, bytes, 0)?;
    } else {
        section(out, "Link layer", ip)?;
        dump(out, 0, &bytes[..ip])?;
    }
    let ip_header = if packet.datagram.src.is_ipv4() { &lower::ipv4::HEADER } else { &lower::ipv6::HEADER };
    header(out, ip_header, bytes, ip)?;
    let options = &bytes[ip + ip_header.length..udp];
    if !options.is_empty() {
        section(out, "IP options or extension headers", options.len())?;
        dump(out, ip + ip_header.length, options)?;
    }
    header(out, &lower::udp::HEADER, bytes, udp)?;
    for (offset, declared) in packet.headers() {
        header(out, declared, bytes, ip + offset)?;
    }
    let start = ip + packet.payload_offset();
    match packet.cm() {
        Some(message) => cm_message(out, &message, bytes, start)?,
        None if packet.payload_length() > 0 => {
            section(out, "Payload", packet.payload_length())?;
            dump(out, start, packet.payload())?;
        }
        None => {}
    }
    tail(packet, bytes, start + packet.payload_length(), out)
}

/// Padding, ICRC, and what fills the frame up to the least length of Ethernet.
fn tail(packet: &Packet, bytes: &[u8], start: usize, out: &mut impl Write) -> Result<(), Error> {
    let end = packet.datagram.ip_offset + packet.datagram.wire_length;
    let crc = end - icrc::LENGTH;
    rest(out, "Padding", bytes, start, crc)?;
    section(out, "ICRC  Invariant CRC", icrc::LENGTH)?;
    let sent = bytes.get(crc..end).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
    let value = sent.map(|sum| format!("{sum:#010x}")).unwrap_or_default();
    let verdict = match packet.icrc() {
        Icrc::Ok => "ok: it fits the packet (little-endian)".into(),
        Icrc::Bad => format!("bad: {:#010x} would fit the packet", packet.expected_icrc().unwrap_or(0)),
        Icrc::Cut => "cut: the recording ends before it".into(),
    };
    row(out, crc, bytes.get(crc..end).unwrap_or(&[]), "ICRC", &value, &verdict)?;
    rest(out, "Ethernet padding", bytes, end, bytes.len())
}

fn rest(out: &mut impl Write, title: &str, bytes: &[u8], start: usize, end: usize) -> Result<(), Error> {
    match bytes.get(start..end) {
        Some(part) if !part.is_empty() => {
            section(out, title, part.len())?;
            dump(out, start, part)
        }
        _ => Ok(()),
    }
}

/// A CM message: the MAD header, the fields of the message, and the RDMA-CM header within its private data.
fn cm_message(out: &mut impl Write, message: &cm::Message, bytes: &[u8], start: usize) -> Result<(), Error> {
    header(out, &mad::HEADER, bytes, start)?;
    let body = start + mad::HEADER.length;
    let Some(declared) = message.kind.header() else {
        section(out, message.kind.name(), message.body.len())?;
        return dump(out, body, message.body);
    };
    let (private, fields) = match declared.fields.split_last() {
        Some((last, fields)) => (last, fields),
        None => return Ok(()),
    };
    section(out, &format!("{}  {}", declared.name, declared.title), declared.length)?;
    for field in fields {
        field_row(out, field, bytes, body)?;
    }
    let mut private_start = body + private.span().0;
    if message.ip_cm().is_some() {
        header(out, &cm::ip_cm::HEADER, bytes, private_start)?;
        private_start += cm::ip_cm::HEADER.length;
    }
    section(out, "PrivateData", body + private.span().1 - private_start)?;
    dump(out, private_start, message.private_data())
}

fn section(out: &mut impl Write, title: &str, length: usize) -> Result<(), Error> {
    Ok(writeln!(out, "\n{title}, {length} bytes")?)
}

/// Every field of a header that begins at `start`.
fn header(out: &mut impl Write, header: &Header, bytes: &[u8], start: usize) -> Result<(), Error> {
    section(out, &format!("{}  {}", header.name, header.title), header.length)?;
    header.fields.iter().try_for_each(|field| field_row(out, field, bytes, start))
}

fn field_row(out: &mut impl Write, field: &Field, bytes: &[u8], start: usize) -> Result<(), Error> {
    let at = start + field.span().0;
    let Some(part) = bytes.get(start..).and_then(|header| field.slice(header)) else {
        return row(out, at, &[], field.name, "", "cut: not recorded");
    };
    let number = bytes.get(start..).and_then(|header| field.read(header));
    let (value, meaning) = match (field.base, number) {
        (Base::Address, _) => (address(part), String::new()),
        (Base::Dec, Some(number)) => (number.to_string(), (field.meaning)(number)),
        (Base::Hex, Some(number)) => {
            (format!("0x{number:0width$x}", width = field.bits.div_ceil(4)), (field.meaning)(number))
        }
        _ => (String::new(), String::new()),
    };
    if part.len() > COLUMNS {
        row(out, at, &part[..COLUMNS], field.name, &value, &meaning)?;
        let rows = part.chunks(COLUMNS).enumerate().skip(1);
        return rows.into_iter().try_for_each(|(i, chunk)| row(out, at + i * COLUMNS, chunk, "", "", ""));
    }
    match field.bits % 8 {
        0 => row(out, at, part, field.name, &value, &meaning),
        _ => bits_row(out, at, part, field, &value, &meaning),
    }
}

/// Bytes in the left column of a field's row.
const COLUMNS: usize = 8;

fn row(out: &mut impl Write, at: usize, bytes: &[u8], name: &str, value: &str, meaning: &str) -> Result<(), Error> {
    let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let line = format!("  {at:04x}  {:26}  {name:23}  {value:18}  {meaning}", hex.join(" "));
    Ok(writeln!(out, "{}", line.trim_end())?)
}

/// A field that does not fill its bytes: the bits that belong to it, dots for the others.
fn bits_row(
    out: &mut impl Write,
    at: usize,
    bytes: &[u8],
    field: &Field,
    value: &str,
    meaning: &str,
) -> Result<(), Error> {
    let first = field.bit % 8;
    let mut pattern = String::new();
    for bit in 0..bytes.len() * 8 {
        if bit > 0 && bit % 8 == 0 {
            pattern.push(' ');
        }
        let set = bytes[bit / 8] >> (7 - bit % 8) & 1 == 1;
        pattern.push(match (first..first + field.bits).contains(&bit) {
            true if set => '1',
            true => '0',
            false => '.',
        });
    }
    let line = format!("  {at:04x}  {pattern:26}  {:23}  {value:18}  {meaning}", field.name);
    Ok(writeln!(out, "{}", line.trim_end())?)
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
fn dump(out: &mut impl Write, start: usize, bytes: &[u8]) -> Result<(), Error> {
    let mut before: &[u8] = &[];
    let mut repeated = 0;
    for (i, line) in bytes.chunks(16).enumerate() {
        if line == before {
            repeated += 1;
            continue;
        }
        repetition(out, repeated)?;
        (before, repeated) = (line, 0);
        let hex: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        let printable = |&byte: &u8| if (0x20..0x7f).contains(&byte) { char::from(byte) } else { '.' };
        let text: String = line.iter().map(printable).collect();
        writeln!(out, "  {:04x}  {:47}  {text}", start + i * 16, hex.join(" "))?;
    }
    repetition(out, repeated)
}

fn repetition(out: &mut impl Write, count: usize) -> Result<(), Error> {
    match count {
        0 => Ok(()),
        1 => Ok(writeln!(out, "        (the same line once more)")?),
        _ => Ok(writeln!(out, "        (the same line {count} times more)")?),
    }
}
