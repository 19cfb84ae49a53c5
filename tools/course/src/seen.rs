//! Events of a run, as far as a change can expect them, and the names of packets.

use anyhow::{Context, Result};
use run::capture::Reader;
use run::file::{Event, Line};
use run::row::{clients, Row, Rows};
use run::rules;

/// What stands between the things that are said of a packet.
pub(crate) const BETWEEN: &str = "  ";
/// A node's name in a change that stands for any of them.
pub(crate) const ANY: &str = "any";

/// An event, as far as it can be expected.
pub(crate) enum Seen {
    Packet { node: String, row: Row },
    Line(Line),
}

/// Looks at all that happened in a run, in order. Frames that are no RoCE packets are left out.
pub(crate) fn each(run: &[u8], mut look: impl FnMut(Seen)) -> Result<()> {
    let begin = || Reader::new(run).context("this is no run file");
    let (mut rows, mut reader) = (Rows::new(clients(&mut begin()?)), begin()?);
    while let Some(event) = reader.event().context("the run file is damaged")? {
        match event {
            Event::Line(line) => look(Seen::Line(line)),
            Event::Packet(record) => {
                if let Ok(row) = rows.next(&record) {
                    look(Seen::Packet { node: record.node.unwrap_or_default().to_owned(), row });
                }
            }
        }
    }
    Ok(())
}

pub(crate) fn is_node(name: &str, wanted: &str) -> bool {
    wanted == ANY || wanted == name
}

pub(crate) fn is_end(line: &Line) -> bool {
    line.program == Line::LAB && line.act == Line::EXIT
}

/// Whether a packet has this name, and all that stands behind it is said about it.
pub(crate) fn fits(row: &Row, packet: &str) -> bool {
    let said = row.words().chain(row.lab()).collect::<Vec<_>>().join(BETWEEN);
    let mut wanted = packet.split(BETWEEN);
    let is_it = wanted.next().is_some_and(|name| names_of(&row.label).any(|known| known == name));
    is_it && wanted.all(|wanted| said.split(BETWEEN).any(|word| word == wanted))
}

/// A packet's names: a message of the connection manager has a short one and a long one, as `REQ (ConnectRequest)`.
pub(crate) fn names_of(label: &str) -> impl Iterator<Item = &str> {
    let short = label.strip_suffix(')').and_then(|label| label.split_once(" ("));
    short.map_or([label, label], |(short, long)| [short, long]).into_iter()
}

/// Whether there is a packet that `wire show` calls so.
pub(crate) fn is_name(packet: &str) -> bool {
    let name = packet.split(BETWEEN).next().unwrap_or_default();
    rules::known_names().any(|known| known == name) && name != rules::ANY && !name.starts_with("RC ")
}
