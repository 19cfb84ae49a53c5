//! A packet in parts: every header with its fields, what they hold and mean, and where their bytes are.

use roce::cm::{self, mad};
use roce::field::{Base, Field, Header};
use roce::icrc::{self, Icrc};
use roce::link::{self, LinkType};
use roce::lower;
use roce::nvme::Capsule;
use roce::packet::Packet;
use run::sighting::Sighting;
use std::net::Ipv6Addr;

/// A header, or bytes that are none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its name, and that written out: `BTH  Base Transport Header`.
    pub title: String,
    /// Where it begins in the frame.
    pub start: usize,
    /// Bytes on the wire; a snap length may have cut them.
    pub length: usize,
    /// In the order of the wire; none for bytes without a meaning of their own, as the payload.
    pub values: Vec<Value>,
}

/// A field of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// The name of the specification.
    pub name: &'static str,
    /// Where it begins in the frame, in bits.
    pub bit: usize,
    /// Width in bits.
    pub bits: usize,
    /// What it holds; nothing if that is just bytes, or was cut.
    pub value: String,
    /// What that means; nothing where the value says it all.
    pub meaning: String,
}

impl Value {
    /// The bytes that it touches: the first, and the first that it does not.
    pub fn span(&self) -> (usize, usize) {
        (self.bit / 8, (self.bit + self.bits).div_ceil(8))
    }
}

/// All parts of a RoCE packet, from the first byte of the frame on.
pub fn parts(sighting: &Sighting, packet: &Packet) -> Vec<Part> {
    let (record, bytes) = (&sighting.record, sighting.data);
    let inner: Vec<_> = sighting.nvme().into_iter().flat_map(Capsule::headers).collect();
    let ip = packet.datagram.ip_offset;
    let udp = ip + packet.datagram.udp_offset;
    let mut parts = vec![match record.link == LinkType::ETHERNET && ip == lower::ethernet::HEADER.length {
        true => header(&lower::ethernet::HEADER, bytes, 0),
        false if packet.datagram.is_tunnelled => {
            let title = format!("Link layer and {}", link::tunnels(record.link, bytes));
            raw(&title, 0, ip)
        }
        false => raw("Link layer", 0, ip),
    }];
    let ip_header = if packet.datagram.src.is_ipv4() { &lower::ipv4::HEADER } else { &lower::ipv6::HEADER };
    parts.push(header(ip_header, bytes, ip));
    parts.extend(rest("IP options or extension headers", ip + ip_header.length, udp));
    parts.push(header(&lower::udp::HEADER, bytes, udp));
    parts.extend(packet.headers().map(|(offset, declared)| header(declared, bytes, ip + offset)));
    let (start, length) = (ip + packet.payload_offset(), packet.payload_length());
    match packet.cm() {
        Some(message) => cm_message(&message, &inner, bytes, start, &mut parts),
        None => payload("Payload", &inner, bytes, [start, start + length], &mut parts),
    }
    tail(packet, bytes, start + length, &mut parts);
    parts
}

/// Padding, ICRC, and what fills the frame up to the least length of Ethernet.
fn tail(packet: &Packet, bytes: &[u8], start: usize, parts: &mut Vec<Part>) {
    let end = packet.datagram.ip_offset + packet.datagram.wire_length;
    let crc = end - icrc::LENGTH;
    let sent = bytes.get(crc..end).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
    let value = sent.map(|sum| format!("{sum:#010x}")).unwrap_or_default();
    let meaning = match packet.icrc() {
        Icrc::Ok => "ok: it fits the packet (little-endian)".into(),
        Icrc::Bad => format!("bad: {:#010x} would fit the packet", packet.expected_icrc().unwrap_or(0)),
        Icrc::Cut => "cut: the recording ends before it".into(),
    };
    parts.extend(rest("Padding", start, crc.min(bytes.len())));
    let values = vec![Value { name: "ICRC", bit: crc * 8, bits: icrc::LENGTH * 8, value, meaning }];
    parts.push(Part { title: "ICRC  Invariant CRC".into(), start: crc, length: icrc::LENGTH, values });
    parts.extend(rest("Ethernet padding", end, bytes.len()));
}

/// A CM message: the MAD header, the fields of the message, and the RDMA-CM header within its private data.
fn cm_message(message: &cm::Message, inner: &Inner, bytes: &[u8], start: usize, parts: &mut Vec<Part>) {
    let body = start + mad::HEADER.length;
    parts.push(header(&mad::HEADER, bytes, start));
    let Some((Header { name, title, length, fields }, private)) =
        message.kind.header().and_then(|header| Some((header, header.fields.last()?)))
    else {
        parts.push(raw(message.kind.name(), body, message.body.len()));
        return;
    };
    let values = fields[..fields.len() - 1].iter().map(|field| value(field, bytes, body)).collect();
    parts.push(Part { title: format!("{name}  {title}"), start: body, length: *length, values });
    let (mut private_start, end) = (body + private.span().0, body + private.span().1);
    if message.ip_cm().is_some() {
        parts.push(header(&cm::ip_cm::HEADER, bytes, private_start));
        private_start += cm::ip_cm::HEADER.length;
    }
    payload("PrivateData", inner, bytes, [private_start, end], parts);
}

/// What the layer above has put there, with where it begins.
type Inner = [(usize, &'static Header)];

/// The headers of the layer above, and what's behind them.
fn payload(title: &str, inner: &Inner, bytes: &[u8], [start, end]: [usize; 2], parts: &mut Vec<Part>) {
    parts.extend(inner.iter().map(|(at, declared)| header(declared, bytes, start + at)));
    let known = inner.last().map_or(0, |(at, header)| at + header.length);
    parts.extend(rest(title, start + known, end));
}

pub(super) fn header(header: &Header, bytes: &[u8], start: usize) -> Part {
    let values = header.fields.iter().map(|field| value(field, bytes, start)).collect();
    Part { title: format!("{}  {}", header.name, header.title), start, length: header.length, values }
}

pub(super) fn raw(title: &str, start: usize, length: usize) -> Part {
    Part { title: title.into(), start, length, values: Vec::new() }
}

pub(super) fn rest(title: &str, start: usize, end: usize) -> Option<Part> {
    (start < end).then(|| raw(title, start, end - start))
}

pub(super) fn value(field: &Field, bytes: &[u8], start: usize) -> Value {
    let header = bytes.get(start..).unwrap_or(&[]);
    let (value, meaning) = match (field.slice(header), field.base, field.read(header)) {
        (None, ..) => (String::new(), "cut: not recorded".into()),
        (Some(part), Base::Address, _) => (address(part), String::new()),
        (_, Base::Dec, Some(number)) => (number.to_string(), (field.meaning)(number)),
        (_, Base::Hex, Some(number)) => {
            (format!("0x{number:0width$x}", width = field.bits.div_ceil(4)), (field.meaning)(number))
        }
        _ => (String::new(), String::new()),
    };
    Value { name: field.name, bit: start * 8 + field.bit, bits: field.bits, value, meaning }
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
