//! What a ladder says about a TCP segment of an iWARP connection, as [`row`](crate::row) does about a RoCE packet.

use crate::look::Sort;
use roce::iwarp::{terminate, Brought, Crc, Kind, Unit};
use std::net::IpAddr;

/// The client and the server.
pub fn ends(brought: &Brought) -> [IpAddr; 2] {
    let (src, dst) = (brought.segment.src, brought.segment.dst);
    if brought.from_client {
        [src, dst]
    } else {
        [dst, src]
    }
}

/// Its number, in place of a PSN: of its first byte, or of the byte that it waits for.
pub(crate) fn number(brought: &Brought) -> String {
    match brought.segment.length {
        0 => format!("ack {:+}", brought.acknowledged),
        _ => format!("seq {:+}", brought.sequence),
    }
}

/// What is written on its arrow: the units that end in it, or what TCP does by itself.
pub fn label(brought: &Brought) -> String {
    let names: Vec<&str> = brought.units.iter().map(|unit| unit.kind.name()).collect();
    let of_tcp = match brought.segment {
        segment if segment.is_rst => "TCP RST",
        segment if segment.is_syn => "TCP SYN",
        segment if segment.is_fin => "TCP FIN",
        segment if segment.length == 0 => "TCP ACK",
        _ => "TCP segment",
    };
    if names.is_empty() {
        of_tcp.to_owned()
    } else {
        names.join(" + ")
    }
}

pub(crate) fn sort(brought: &Brought) -> Sort {
    let segment = &brought.segment;
    let is_bad = |unit: &Unit| unit.crc == Crc::Bad || unit.is_rejected();
    match brought.units.first().map(|unit| unit.kind) {
        _ if segment.is_rst || brought.units.iter().any(is_bad) => Sort::Trouble,
        Some(Kind::Request | Kind::Reply) => Sort::Connection,
        Some(Kind::Rdmap(0)) => Sort::Write,
        Some(Kind::Rdmap(1 | 2)) => Sort::Read,
        Some(Kind::Rdmap(3..=6)) => Sort::Send,
        Some(Kind::Rdmap(7)) => Sort::Trouble,
        Some(Kind::Rdmap(_)) => Sort::Notable,
        None if segment.is_fin || segment.is_syn => Sort::Connection,
        None if segment.length == 0 => Sort::Acknowledge,
        None => Sort::Notable,
    }
}

pub(crate) fn details(brought: &Brought) -> Vec<String> {
    let mut parts = Vec::new();
    parts.extend(brought.again.then(|| "sent again".to_owned()));
    parts.extend(brought.units.iter().flat_map(of_unit));
    match (brought.segment.length, brought.begun) {
        (0, _) | (_, 0) => {}
        (_, begun) => parts.push(format!("and {begun} bytes of a unit that goes on")),
    }
    parts.extend(brought.doubt.map(|doubt| format!("cannot tell: {}", doubt.words())));
    parts
}

fn of_unit(unit: &Unit) -> Vec<String> {
    let mut parts = Vec::new();
    let length = unit.payload().len();
    let Kind::Rdmap(opcode) = unit.kind else {
        parts.extend(unit.is_rejected().then(|| "rejected".to_owned()));
        parts.extend(unit.reads().map(|[ird, ord]| format!("ird {ird}  ord {ord}")));
        parts.extend((length > 0).then(|| format!("private data of {length} bytes")));
        return parts;
    };
    parts.extend(unit.queued().map(|[_, msn, _]| format!("msn {msn}")));
    match (unit.wanted(), unit.error()) {
        (Some((bytes, (tag, offset), (sink, sink_offset))), _) => {
            parts.push(format!(
                "len {bytes}  from to {offset:#x}  stag {tag:#x}  into to {sink_offset:#x}  stag {sink:#x}"
            ));
        }
        (None, Some([layer, kind, code])) => {
            parts.push(format!("{}: {}", terminate::layer(layer), terminate::error(layer, kind, code)));
        }
        (None, None) => parts.push(format!("len {length}")),
    }
    parts.extend(unit.place().map(|(tag, offset)| format!("to {offset:#x}  stag {tag:#x}")));
    parts.extend(unit.invalidated().map(|tag| format!("invalidates stag {tag:#x}")));
    parts.extend(unit.queued().filter(|[_, _, offset]| *offset > 0).map(|[_, _, offset]| format!("at {offset}")));
    parts.extend((opcode != 7 && !unit.is_last()).then(|| "the message goes on".to_owned()));
    parts.extend((unit.crc == Crc::Bad).then(|| "CRC BAD".to_owned()));
    parts
}
