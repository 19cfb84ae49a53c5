//! Events of a run, as far as a change can expect them, and the names of packets.

use anyhow::{Context, Result};
use run::capture::Events;
use run::file::{Event, Line};
use run::row::Row;
use run::rules;

/// What is between the things that are said of a packet.
pub const BETWEEN: &str = "  ";
/// How a word begins that is about the bytes of a packet.
const CARRIES: &str = "carries ";
/// A name in a change that stands for any node, or any fact.
pub const ANY: &str = "any";

/// An event, as far as it can be expected.
pub enum Seen {
    Packet { node: String, row: Row, bytes: Vec<u8> },
    Line(Line),
}

/// Reads a run file, once for everybody who looks at it.
pub fn read(run: &[u8]) -> Result<Events> {
    Events::read(run).context("this isn't a run file")
}

/// Looks at all that happened in a run, in order. Frames that hold neither RoCE nor iWARP are left out.
pub fn each(run: &Events, mut look: impl FnMut(Seen)) -> Result<()> {
    let mut rows = run.rows();
    for event in run.iter() {
        match event {
            Event::Line(line) => look(Seen::Line(line)),
            Event::Packet(record) => {
                if let Ok(row) = rows.next(&record) {
                    let node = record.node.unwrap_or_default().to_owned();
                    look(Seen::Packet { node, row, bytes: record.data.to_vec() });
                }
            }
        }
    }
    run.to_end().context("the run file is damaged")
}

pub fn is_node(name: &str, wanted: &str) -> bool {
    wanted == ANY || wanted == name
}

pub fn is_end(line: &Line) -> bool {
    line.ends_program().is_some()
}

/// Whether a program has printed a line by itself, and not the log of `common` for it.
pub fn is_own(line: &Line) -> bool {
    let is_logged = line.tag().is_some_and(|tag| tag != "ERR");
    !is_logged && ![Line::DEVICE, Line::KERNEL, Line::LAB].contains(&line.program.as_str())
}

/// How many receives a device flushes, if a line tells that.
pub fn flushed(line: &Line) -> Option<&str> {
    line.field("receives").filter(|_| line.fact() == Some("flushed"))
}

/// Whether a packet has this name, and all that comes after it is said about it.
pub fn fits(row: &Row, bytes: &[u8], packet: &str) -> bool {
    let said = row.words().chain(row.lab()).collect::<Vec<_>>().join(BETWEEN);
    let mut wanted = packet.split(BETWEEN);
    let is_it = wanted.next().is_some_and(|name| name == rules::ANY || names_of(&row.label).any(|known| known == name));
    let has = |carried: &[u8]| bytes.windows(carried.len().max(1)).any(|part| part == carried);
    let is_said = |wanted: &str| match wanted.strip_prefix(CARRIES) {
        Some(carried) => has(&bytes_of(carried)),
        None => said.split(BETWEEN).any(|word| match wanted.strip_suffix('…') {
            Some(begin) => word.starts_with(begin),
            None => word == wanted,
        }),
    };
    is_it && wanted.all(is_said)
}

/// The bytes of a text; or those that it writes as `0x`, and two digits for each.
fn bytes_of(text: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    let written = text.strip_prefix("0x").and_then(|digits| (2..2 + digits.len()).step_by(2).map(byte).collect());
    written.unwrap_or_else(|| text.as_bytes().to_vec())
}

/// Whether a line of the device tells this system call, and that it has succeeded: its name, and what goes with it.
pub fn calls(line: &Line, call: &str) -> bool {
    line.field("errno").is_none() && is_about(line, "call", call)
}

/// Whether a line of the device tells this event: its name, and what goes with it.
pub fn gets(line: &Line, event: &str) -> bool {
    is_about(line, "event", event)
}

/// Whether a line of the device tells this fact: its name, and what goes with it.
pub fn notes(line: &Line, note: &str) -> bool {
    let mut words = note.split(BETWEEN);
    let is_it = |name: &str| line.fact().is_some_and(|fact| is_node(fact, name));
    words.next().is_some_and(is_it) && words.all(|wanted| has(line, wanted))
}

/// Whether it is a fact of this kind, the field of that name is the first word, and the others are among its fields.
fn is_about(line: &Line, kind: &str, wanted: &str) -> bool {
    let mut words = wanted.split(' ');
    line.fact() == Some(kind) && line.field(kind) == words.next() && words.all(|wanted| has(line, wanted))
}

/// Whether a fact has a field: `freed`, or with this value. A right may be one of several: `access=LOCAL_WRITE|REMOTE_WRITE`. A
/// number may be at least another one: `len=16..`; and a text begins so: `program=lesson_…`.
fn has(line: &Line, wanted: &str) -> bool {
    let (key, wanted) = wanted.split_once('=').map_or((wanted, None), |(key, one)| (key, Some(one)));
    let Some(value) = line.field(key) else { return false };
    let Some(wanted) = wanted else { return true };
    if let Some(least) = wanted.strip_suffix("..").and_then(|least| least.parse::<u64>().ok()) {
        return value.parse::<u64>().is_ok_and(|value| value >= least);
    }
    match wanted.strip_suffix('…') {
        Some(begin) => value.starts_with(begin),
        None => wanted.split('|').all(|one| value.split('|').any(|value| value == one)),
    }
}

/// A packet's names: a message of the connection manager has a short one and a long one, as `REQ (ConnectRequest)`.
pub fn names_of(label: &str) -> impl Iterator<Item = &str> {
    let short = label.strip_suffix(')').and_then(|label| label.split_once(" ("));
    short.map_or([label, label], |(short, long)| [short, long]).into_iter()
}

/// Whether there is a packet that `wire show` calls so, or it's the name for any.
pub fn is_name(packet: &str) -> bool {
    let name = packet.split(BETWEEN).next().unwrap_or_default();
    rules::known_names().any(|known| known == name) && !name.starts_with("RC ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_not_what_a_program_prints() {
        let line = |text: &str| Line::of_program("mine", text.to_owned(), true);
        assert!(!is_own(&line("[12:00:00.000 #0007 main] DATA  WC: wr_id=1 status=IBV_WC_SUCCESS")));
        for own in ["[12:00:00.000 #0007 main] ERR  IBV_WC_REM_ACCESS_ERR", "4 receives came back flushed"] {
            assert!(is_own(&line(own)), "{own}");
        }
    }

    #[test]
    fn a_call_asks_for_this_and_perhaps_for_more() {
        let asked = "call=REG_MR\naddr=0x10\nlen=4096\naccess=LOCAL_WRITE|REMOTE_WRITE";
        let line = Line::of_device(&format!("whatever the sentence is\nfact=call\n{asked}\nmade=handle\nhandle=3"));
        for (wanted, is_it) in [
            ("REG_MR access=REMOTE_WRITE len=4096", true),
            ("REG_MR access=REMOTE_READ", false),
            ("REG_MR len=4096..", true),
            ("REG_MR len=4097..", false),
            ("REG_MR len=1..", true),
            ("DEREG_MR", false),
            ("REG_MR freed", false),
        ] {
            assert_eq!(calls(&line, wanted), is_it, "{wanted}");
        }
    }

    #[test]
    fn bytes_are_written_as_a_text_or_as_numbers() {
        let cases: [(&str, &[u8]); 4] =
            [("0x44470a", &[0x44, 0x47, 10]), ("DG", b"DG"), ("0x1", b"0x1"), ("0xotter", b"0xotter")];
        for (text, bytes) in cases {
            assert_eq!(bytes_of(text), bytes, "{text}");
        }
    }

    #[test]
    fn the_device_counts_what_it_flushes() {
        let fact = "words\nfact=flushed\nqp=17\nsends=1\nreceives=4";
        assert_eq!(flushed(&Line::of_device(fact)), Some("4"));
        assert_eq!(flushed(&Line::of_program("mine", fact.to_owned(), false)), None);
    }
}
