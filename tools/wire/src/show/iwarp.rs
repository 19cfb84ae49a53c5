//! A TCP segment of an iWARP connection in parts, as [`parts`](super::parts) are of a RoCE packet.

use super::parts::{header, raw, rest, value, Part, Value};
use roce::iwarp::headers::crc;
use roce::iwarp::{Brought, Crc, Kind, Unit};
use roce::link::LinkType;
use roce::lower;
use run::capture::Record;

/// All parts of the frame. A unit that began in an earlier frame is named here, and shown where a unit is whole.
pub fn parts(record: &Record, brought: &Brought) -> Vec<Part> {
    let (bytes, segment) = (record.data, &brought.segment);
    let (tcp, payload) = (segment.header_offset, segment.payload_offset);
    let ip_header = if segment.src.is_ipv4() { &lower::ipv4::HEADER } else { &lower::ipv6::HEADER };
    let ip = segment.ip_offset;
    let mut parts = Vec::new();
    match record.link == LinkType::ETHERNET && ip == lower::ethernet::HEADER.length {
        true => parts.push(header(&lower::ethernet::HEADER, bytes, 0)),
        false => parts.extend(rest("Link layer", 0, ip)),
    }
    // What an IP header's fields mean to RoCE's ICRC isn't of interest here.
    let mut ip_part = header(ip_header, bytes, ip);
    ip_part.values.iter_mut().filter(|value| value.meaning.contains("ICRC")).for_each(|value| value.meaning.clear());
    parts.push(ip_part);
    parts.extend(rest("IP options or extension headers", ip + ip_header.length, tcp));
    parts.push(header(&lower::tcp::HEADER, bytes, tcp));
    parts.extend(rest("TCP options", tcp + lower::tcp::HEADER.length, payload));
    let end = payload + segment.length;
    let mut at = payload;
    for unit in &brought.units {
        match unit.start {
            Some(start) => {
                of_unit(unit, bytes, start, &mut parts);
                at = start + unit.bytes.len();
            }
            None => {
                let next = brought.units.iter().find_map(|unit| unit.start).unwrap_or(end - brought.begun);
                let title = format!(
                    "The end of an {} of {} bytes that began in an earlier frame",
                    unit.kind.name(),
                    unit.bytes.len()
                );
                parts.extend(rest(&title, at, next));
                at = next;
            }
        }
    }
    let title = match brought.doubt {
        Some(doubt) => format!("cannot tell: {}", doubt.words()),
        None if brought.again => "Sent again".to_owned(),
        None => "A unit that goes on".to_owned(),
    };
    parts.extend(rest(&title, at, end.min(bytes.len())));
    parts.extend(rest("Ethernet padding", end, bytes.len()));
    parts
}

fn of_unit(unit: &Unit, bytes: &[u8], start: usize, parts: &mut Vec<Part>) {
    parts.extend(unit.headers().into_iter().map(|(at, declared)| header(declared, bytes, start + at)));
    let (payload, end) = (start + unit.payload_offset(), start + unit.end());
    let title = if matches!(unit.kind, Kind::Rdmap(_)) { "Payload" } else { "PrivateData" };
    parts.extend((payload < end).then(|| raw(title, payload, end - payload)));
    if let Kind::Rdmap(_) = unit.kind {
        let sum = start + unit.bytes.len() - crc::HEADER.length;
        parts.extend(rest("Padding", end, sum));
        let meaning = match unit.crc {
            Crc::Unused => "nobody asked for CRCs, so it says nothing",
            Crc::Ok => "ok: it fits the unit",
            Crc::Bad => "bad: it doesn't fit the unit",
        };
        let values =
            crc::HEADER.fields.iter().map(|field| Value { meaning: meaning.into(), ..value(field, bytes, sum) });
        parts.push(Part { values: values.collect(), ..header(&crc::HEADER, bytes, sum) });
    }
}
