//! Reference tables that are written from the decoder's own tables and the lessons' steps: they cannot say anything else.

use super::page::table;
use super::sources::{files, rows};
use anyhow::Result;
use course::differences;
use roce::aeth::Syndrome;
use roce::cm::{self, Kind};
use roce::opcode::{Opcode, Operation, Service, TABLE};
use run::story::{self, Step, Story};
use std::collections::BTreeSet;
use std::path::Path;

/// Operation codes of RC: name, headers, and the lessons whose captures have one.
pub fn opcodes() -> Result<Vec<String>> {
    let row = |Opcode { code, name, headers, .. }: &Opcode| {
        let headers: Vec<String> = headers.iter().map(|header| format!("{} {}", header.name, header.length)).collect();
        let name = name.trim_start_matches("RC ");
        Ok([format!("0x{code:02x}"), name.to_owned(), headers.join(", "), with(name)?])
    };
    let rows = TABLE.iter().filter(|row| row.service == Service::Rc).map(row).collect::<Result<Vec<_>>>()?;
    Ok(table(&["opcode", "RC packet", "headers after the BTH, with their bytes", "in lesson"], rows))
}

/// The lessons with a packet of this name.
fn with(label: &str) -> Result<String> {
    let mut lessons = BTreeSet::new();
    for path in files("captures", ".pcapng")? {
        if rows(&path)?.iter().any(|row| row.label == label) {
            lessons.extend(path.split(['/', '_']).nth(1).map(String::from));
        }
    }
    Ok(lessons.into_iter().collect::<Vec<_>>().join(", "))
}

/// The connection manager's messages: attribute, names, and the call that sends each in the lessons.
pub fn messages() -> Result<Vec<String>> {
    let stories = story::bundled()?;
    let row = |attribute: u16| {
        let kind = Kind::from(attribute);
        let senders = senders(&stories, kind.name()).unwrap_or("the kernel; in no lesson".into());
        [format!("0x{attribute:04x}"), kind.short().into(), kind.name().into(), senders]
    };
    Ok(table(&["attribute", "message", "Wireshark calls it", "sent by, in lesson"], (0x10..=0x16).map(row)))
}

/// Which side's calls send a message, and the lesson that does so first.
fn senders(stories: &[Story], message: &str) -> Option<String> {
    let sent = |step: &&Step| step.packets == message && !step.device;
    let first = stories.iter().find(|story| story.steps.iter().any(|step| sent(&step)))?;
    let steps = stories.iter().flat_map(|story| &story.steps).filter(sent);
    let calls = steps.filter_map(|step| Some(format!("the {}'s `{}`", step.act.side.name(), step.act.calls.first()?)));
    let calls: BTreeSet<String> = calls.collect();
    Some(format!("{}; {}", calls.into_iter().collect::<Vec<_>>().join(", "), first.number()))
}

/// What the first byte of an AETH can say, and what the requester's completion says then.
pub fn syndromes() -> Vec<String> {
    let words = |byte: u8| Syndrome::from(byte).to_string();
    let ranges = [(0x00, 0x1e), (0x1f, 0x1f), (0x20, 0x20), (0x21, 0x3f)].into_iter().map(|(from, to)| {
        let status = if from < 0x20 { "`IBV_WC_SUCCESS`" } else { "none yet: it tries again" };
        match from == to {
            true => [format!("0x{from:02x}"), words(from), status.into()],
            false => [format!("0x{from:02x}-0x{to:02x}"), format!("{} … {}", words(from), words(to)), status.into()],
        }
    });
    let naks = (0x60..=0x63).map(|byte| {
        let status = match Syndrome::from(byte) {
            Syndrome::Nak(nak) => nak.status(),
            _ => None,
        };
        let link = |status: &str| format!("[`{status}`](completions.md#{})", status.to_lowercase());
        let status = status.map_or("none yet: it sends again from this PSN".into(), link);
        [format!("0x{byte:02x}"), words(byte), status]
    });
    table(&["syndrome", "says", "the requester's completion"], ranges.chain(naks))
}

/// Display filters for each sort of packet.
pub fn filters() -> Vec<String> {
    use roce::opcode::Operation::{Acknowledge, CompareSwap, FetchAdd, ReadRequest, ReadResponse, Send, Write};
    let codes = |of: &[Operation]| {
        let rows = TABLE.iter().filter(|row| row.service == Service::Rc && of.contains(&row.operation));
        let codes: Vec<String> = rows.map(|row| row.code.to_string()).collect();
        format!("infiniband.bth.opcode in {{{}}}", codes.join(", "))
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
    table(&["to see", "filter"], rows.map(|(what, filter)| [what.to_owned(), format!("`{filter}`")]))
}

/// How the device differs from rdma_rxe.
pub fn differences() -> Result<Vec<String>> {
    let rows = differences::rows(Path::new(""))?.into_iter();
    let rows = rows.map(|row| [row.what, row.rxe, row.device, row.specification]);
    Ok(table(&["what", "rdma_rxe", "this device", "the specification"], rows))
}

/// How often `wire explain` was right about each kind of capture, added up from what its long test has printed.
pub fn explain_measured(file: &str) -> Vec<String> {
    const CAPTURES: [(&str, &str); 7] = [
        ("Whole", "whole"),
        ("Short", "96 bytes of each packet"),
        ("Begin", "without its beginning"),
        ("End", "without its end"),
        ("OneWay", "of one direction"),
        ("Twice", "of two places, before and after a router"),
        ("NoAeth", "cut after the BTH"),
    ];
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let measured: Vec<Vec<String>> = file.lines().filter(|line| line.starts_with('|')).map(cells).collect();
    let sum = |kind: &str, column: usize| {
        let of_kind = measured.iter().filter(|cells| cells[1] == kind);
        of_kind.filter_map(|cells| cells.get(column)?.parse::<usize>().ok()).sum::<usize>().to_string()
    };
    let rows = CAPTURES.map(|(kind, says)| [says.to_owned(), sum(kind, 2), sum(kind, 3), sum(kind, 4)]);
    table(&["the capture", "right", "cannot tell", "wrong"], rows)
}

/// What each stage needs, from set-up's own table.
pub fn needs(file: &str) -> Vec<String> {
    let mut rows: Vec<[String; 2]> = Vec::new();
    for line in file.lines().filter(|line| !line.starts_with('#')) {
        let mut cells = line.split('|').map(str::trim);
        let (stage, what) = (cells.next().unwrap_or_default(), cells.next().unwrap_or_default());
        match rows.last_mut() {
            Some([last, things]) if last == stage => *things += &format!(", {what}"),
            _ => rows.push([stage.to_owned(), what.to_owned()]),
        }
    }
    table(&["for", "what"], rows)
}
