//! All of a capture in memory. Each frame was decoded and tracked as it was read, and whoever goes through the events again takes those
//! sightings: who is the client, and where a receive completes, is known only when all was read.

use super::{Error, Reader};
use crate::file::{Event, Line};
use crate::row::{Row, Rows};
use crate::sighting::{Kept, Sighting};
use anyhow::anyhow;
use roce::track::Connection;
use std::collections::BTreeMap;
use std::io::Read;

/// What a kept event takes beside a frame's bytes, at least.
const EACH: usize = 512;

/// The events of a run or of any capture.
#[derive(Debug, Default)]
pub struct Events {
    kept: Vec<One>,
    /// Connections, each as it was known at some time.
    states: Vec<Connection>,
    /// By connection, the place of its latest state.
    latest: BTreeMap<usize, usize>,
    rows: Rows,
    nodes: Option<Vec<String>>,
    more: u64,
    damage: Option<String>,
}

#[derive(Debug)]
enum One {
    /// With the place of its connection's state.
    Packet(Box<Kept>, Option<usize>),
    Line(Line),
}

impl Events {
    /// Reads a capture.
    ///
    /// # Errors
    /// It isn't a capture. What comes before damage is good, and is kept.
    pub fn read(input: impl Read) -> Result<Events, Error> {
        Ok(Events::most(Reader::new(input)?, usize::MAX))
    }

    /// All that a reader still has. If that's more than this many bytes of memory, only its beginning is kept.
    pub fn most<R: Read>(mut reader: Reader<R>, bytes: usize) -> Events {
        let mut events = Events::ahead(&mut reader, bytes);
        while let Some(event) = events.next(&mut reader) {
            events.rows.see(&event);
            events.more += 1;
        }
        events
    }

    /// Reads on until there are this many bytes in memory, or nothing is left to read.
    pub fn ahead<R: Read>(reader: &mut Reader<R>, bytes: usize) -> Events {
        let (mut events, mut size) = (Events::default(), 0);
        while size < bytes {
            let Some(event) = events.next(reader) else { break };
            let is_line = matches!(event, Event::Line(_));
            size += EACH + events.add(event);
            if is_line && events.nodes.is_none() {
                events.nodes = Some(reader.interfaces().into_iter().filter_map(|(_, name)| name).collect());
            }
        }
        events
    }

    /// The next event of a reader, unless it's at its end or damaged there.
    fn next<'r, R: Read>(&mut self, reader: &'r mut Reader<R>) -> Option<Event<'r>> {
        if self.damage.is_some() {
            return None;
        }
        reader.event().unwrap_or_else(|error| {
            self.damage = Some(format!("{error:#}"));
            None
        })
    }

    /// Keeps an event, and says how many bytes it has.
    fn add(&mut self, event: Event) -> usize {
        self.rows.see(&event);
        match event {
            Event::Line(line) => {
                let size = line.text.len();
                self.kept.push(One::Line(line));
                size
            }
            Event::Packet(sighting) => {
                let state = sighting.seen.zip(sighting.connection);
                let state = state.map(|(seen, connection)| self.state(seen.connection, connection));
                self.kept.push(One::Packet(Box::new(sighting.kept()), state));
                sighting.data.len()
            }
        }
    }

    /// The place of a connection's state; a new one if more is known of it than before.
    fn state(&mut self, number: usize, connection: &Connection) -> usize {
        let known = self.latest.get(&number).copied();
        known.filter(|known| connection.is_as(&self.states[*known])).unwrap_or_else(|| {
            self.states.push(connection.clone());
            self.latest.insert(number, self.states.len() - 1);
            self.states.len() - 1
        })
    }

    /// The events, in their order.
    pub fn iter(&self) -> impl Iterator<Item = Event<'_>> {
        self.kept.iter().map(|one| match one {
            One::Packet(kept, state) => Event::Packet(kept.sighting(state.map(|state| &self.states[state]))),
            One::Line(line) => Event::Line(line.clone()),
        })
    }

    /// The packets and other frames alone.
    pub fn packets(&self) -> impl Iterator<Item = Sighting<'_>> {
        self.iter().filter_map(|event| match event {
            Event::Packet(sighting) => Some(sighting),
            Event::Line(_) => None,
        })
    }

    /// The lines alone.
    pub fn lines(&self) -> impl Iterator<Item = &Line> {
        self.kept.iter().filter_map(|one| match one {
            One::Line(line) => Some(line),
            One::Packet(..) => None,
        })
    }

    /// The nodes of a run file; None for a capture, which has no lines.
    pub fn nodes(&self) -> Option<&[String]> {
        self.nodes.as_deref()
    }

    /// Turns the packets into rows, and knows already who the clients are.
    pub fn rows(&self) -> Rows {
        self.rows.clone()
    }

    /// All packets as rows.
    pub fn drawn(&self) -> Vec<Row> {
        let mut rows = self.rows();
        self.packets().filter_map(|sighting| rows.next(&sighting).ok()).collect()
    }

    /// The connections of the packets, in the order in which they began.
    pub fn connections(&self) -> Vec<Connection> {
        self.latest.values().map(|state| self.states[*state].clone()).collect()
    }

    /// How many events came after those that are kept.
    pub fn more(&self) -> u64 {
        self.more
    }

    /// Why the file was not read to its end.
    ///
    /// # Errors
    /// It is damaged.
    pub fn to_end(&self) -> Result<(), Error> {
        self.damage.as_ref().map_or(Ok(()), |damage| Err(anyhow!("{damage}")))
    }
}
