//! Reference tables that are written from the decoder's own tables and the lessons' steps: they cannot say anything else.

use super::sources::Sources;
use anyhow::{ensure, Result};
use roce::aeth::Syndrome;
use roce::cm::{self, Kind};
use roce::opcode::{Opcode, Operation, Service, TABLE};
use run::story::{self, Step, Story};
use std::collections::BTreeSet;

/// Operation codes of RC: name, headers, and the lessons whose captures have one.
pub fn opcodes(sources: &Sources) -> Result<Vec<String>> {
    let mut lines = table(&["opcode", "RC packet", "headers after the BTH, with their bytes", "in lesson"]);
    for row in TABLE.iter().filter(|row| row.service == Service::Rc) {
        let headers: Vec<String> =
            row.headers.iter().map(|header| format!("{} {}", header.name, header.length)).collect();
        let Opcode { code, name, .. } = row;
        let name = name.trim_start_matches("RC ");
        lines.push(format!("| 0x{code:02x} | {name} | {} | {} |", headers.join(", "), with(sources, name)?));
    }
    Ok(lines)
}

/// The lessons with a packet of this name.
fn with(sources: &Sources, label: &str) -> Result<String> {
    let mut lessons = BTreeSet::new();
    for path in sources.files("captures", ".pcapng")? {
        if sources.rows(&path)?.iter().any(|row| row.label == label) {
            lessons.extend(path.split(['/', '_']).nth(1).map(String::from));
        }
    }
    Ok(lessons.into_iter().collect::<Vec<_>>().join(", "))
}

/// The connection manager's messages: attribute, names, and the call that sends each in the lessons.
pub fn messages() -> Result<Vec<String>> {
    let stories = story::bundled()?;
    let mut lines = table(&["attribute", "message", "Wireshark calls it", "sent by, in lesson"]);
    for attribute in 0x10..=0x16 {
        let kind = Kind::from(attribute);
        let senders = senders(&stories, kind.name());
        let senders = if senders.is_empty() { "the kernel; in no lesson".into() } else { senders };
        lines.push(format!("| 0x{attribute:04x} | {} | {} | {senders} |", kind.short(), kind.name()));
    }
    Ok(lines)
}

/// Which side's calls send a message, and the lesson that does so first.
fn senders(stories: &[Story], message: &str) -> String {
    let sent = |step: &&Step| step.packets == message && !step.device;
    let mut calls = BTreeSet::new();
    for story in stories {
        calls.extend(
            story.steps.iter().filter(sent).filter_map(|step| Some((step.act.side.name(), step.act.calls.first()?))),
        );
    }
    let first = stories.iter().find(|story| story.steps.iter().any(|step| sent(&step)));
    let calls: Vec<String> = calls.iter().map(|(side, call)| format!("the {side}'s `{call}`")).collect();
    first.map_or(String::new(), |story| format!("{}; {}", calls.join(", "), story.number()))
}

/// What the first byte of an AETH can say, and what the requester's completion says then.
pub fn syndromes() -> Vec<String> {
    let mut lines = table(&["syndrome", "says", "the requester's completion"]);
    let words = |byte: u8| Syndrome::from(byte).to_string();
    for (from, to) in [(0x00, 0x1e), (0x1f, 0x1f), (0x20, 0x20), (0x21, 0x3f)] {
        let (codes, says) = match from == to {
            true => (format!("0x{from:02x}"), words(from)),
            false => (format!("0x{from:02x}-0x{to:02x}"), format!("{} … {}", words(from), words(to))),
        };
        let status = if from < 0x20 { "`IBV_WC_SUCCESS`" } else { "none yet: it tries again" };
        lines.push(format!("| {codes} | {says} | {status} |"));
    }
    for byte in 0x60..=0x63 {
        let status = match Syndrome::from(byte) {
            Syndrome::Nak(nak) => nak.status(),
            _ => None,
        };
        let status = status.map_or("none yet: it sends again from this PSN".into(), |status| {
            format!("[`{status}`](completions.md#{})", status.to_lowercase())
        });
        lines.push(format!("| 0x{byte:02x} | {} | {status} |", words(byte)));
    }
    lines
}

/// How many bytes of private data each message of the connection manager has for programs.
pub fn private_data() -> Vec<String> {
    // In a REQ the RDMA connection manager's own header comes first.
    let ip = cm::ip_cm::HEADER.length;
    let rooms = [
        (Kind::ConnectRequest, ip, "CONNECT_REQUEST, server"),
        (Kind::ConnectReply, 0, "ESTABLISHED, client"),
        (Kind::ConnectReject, 0, "REJECTED, client"),
    ];
    let mut lines = table(&["message", "event, side", "room for you"]);
    for (kind, less, event) in rooms {
        let fields = kind.header().map_or(&[][..], |header| header.fields);
        let room = fields.iter().find(|field| field.name == "PrivateData").map_or(0, |field| field.bits / 8 - less);
        lines.push(format!("| {} | {event} | {room} bytes |", kind.short()));
    }
    lines
}

/// Display filters for each sort of packet.
pub fn filters() -> Vec<String> {
    use roce::opcode::Operation::{Acknowledge, CompareSwap, FetchAdd, ReadRequest, ReadResponse, Send, Write};
    let codes = |of: &[Operation]| {
        let rows = TABLE.iter().filter(|row| row.service == Service::Rc && of.contains(&row.operation));
        ranges(&rows.map(|row| row.code).collect::<Vec<_>>())
    };
    let kind = |syndrome: u8| format!("infiniband.aeth.syndrome.opcode == {}", syndrome >> 5);
    let rows = [
        ("all RoCE packets", "infiniband".into()),
        ("the connection manager's messages", format!("infiniband.mad.mgmtclass == {}", cm::CLASS)),
        ("SENDs", codes(&[Send])),
        ("WRITEs", codes(&[Write])),
        ("READ requests and responses", codes(&[ReadRequest, ReadResponse])),
        ("atomics", codes(&[CompareSwap, FetchAdd])),
        ("ACKs and NAKs", codes(&[Acknowledge])),
        ("NAKs only", kind(0x60)),
        ("receiver not ready", kind(0x20)),
        ("packets that name memory", "infiniband.reth.r_key".into()),
    ];
    let mut lines = table(&["to see", "filter"]);
    lines.extend(rows.iter().map(|(what, filter)| format!("| {what} | `{filter}` |")));
    lines
}

/// A filter for operation codes, neighbours as a range.
fn ranges(codes: &[u8]) -> String {
    let mut ranges: Vec<(u8, u8)> = Vec::new();
    for &code in codes {
        match ranges.last_mut() {
            Some((_, to)) if *to + 1 == code => *to = code,
            _ => ranges.push((code, code)),
        }
    }
    let one = |(from, to): &(u8, u8)| if from == to { from.to_string() } else { format!("{from}..{to}") };
    let list = ranges.iter().map(one).collect::<Vec<_>>().join(",");
    format!("infiniband.bth.opcode in {{{list}}}")
}

/// The loss of a training, round by round, as the server of a recorded run told it.
pub fn loss(sources: &Sources, name: &str) -> Result<Vec<String>> {
    let lines = sources.lines(&format!("captures/{name}.pcapng"), "server")?;
    let (rounds, losses): (Vec<&str>, Vec<&str>) = lines.iter().filter_map(|line| round(&line.text)).unzip();
    ensure!(!rounds.is_empty(), "{name} tells of no rounds");
    Ok([table(&[&["round"], &rounds[..]].concat()), vec![format!("| loss | {} |", losses.join(" | "))]].concat())
}

/// `round 3: loss 0.191443 from workers 1 2 3 …`
fn round(text: &str) -> Option<(&str, &str)> {
    let (round, rest) = text.strip_prefix("round ")?.split_once(": loss ")?;
    Some((round, rest.split(' ').next()?))
}

fn table(columns: &[&str]) -> Vec<String> {
    vec![format!("| {} |", columns.join(" | ")), format!("|{}", "---|".repeat(columns.len()))]
}

#[cfg(test)]
mod tests {
    use super::super::sources::tests::repository;
    use super::*;

    fn has(lines: &[String], row: &str) {
        assert!(lines.iter().any(|line| line == row), "no {row} in {lines:#?}");
    }

    #[test]
    fn tables_say_what_the_decoder_and_the_steps_say() {
        has(&opcodes(repository()).unwrap(), "| 0x06 | RDMA Write First | RETH 16 | 04 |");
        has(&messages().unwrap(), "| 0x0013 | REP | ConnectReply | the server's `rdma_accept`; 02 |");
        has(&syndromes(), "| 0x20 | RNR NAK, wait 655.36 ms | none yet: it tries again |");
        has(&private_data(), "| REQ | CONNECT_REQUEST, server | 56 bytes |");
        assert_eq!(loss(repository(), "09_parameter_server").unwrap().len(), 3);
        assert!(loss(repository(), "04_rdma_write").is_err());
        has(&filters(), "| WRITEs | `infiniband.bth.opcode in {6..11}` |");
        has(&filters(), "| SENDs | `infiniband.bth.opcode in {0..5,22..23}` |");
    }
}
