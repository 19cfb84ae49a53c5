//! The picture of a run: the client's log on the left, the wire in the middle, the server's log on the right.
//!
//! [`Lanes`] says in order what is to be drawn, and draws it as text: live while it happens, or from a run file, which is
//! the same. A terminal that is too narrow, or a run of more than two nodes, gets one column with the nodes' names.

mod live;
mod svg;
#[cfg(test)]
mod tests;
mod text;
mod told;

pub use crate::look::Style;
pub use live::{print, Live};
pub use text::wrap;

use crate::capture::{Error, Events, Reader};
use crate::file::{Event, Line};
use crate::look::{printable, Sort};
use crate::row::{Row, Rows};
use crate::story::Story;
use roce::track::Side;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::IpAddr;
use std::ops::RangeInclusive;
use told::Teller;

/// So many nodes have a place in the lanes: the lab has ten. Packets of others have their addresses.
const MOST_NODES: usize = 64;
/// So long is a host's name at most (gethostname(2)). A longer one would be repeated in front of each line.
const MOST_NAME: usize = 64;

/// A node's name as it is drawn.
fn named(name: &str) -> String {
    printable(name).chars().take(MOST_NAME).collect()
}

/// The nodes of a run file; None for a capture, which has no lines. A damaged file is reported when it is drawn.
pub fn nodes<R: Read>(reader: &mut Reader<R>) -> Option<Vec<String>> {
    reader.line().ok()??;
    Some(reader.interfaces().into_iter().filter_map(|(_, name)| name).collect())
}

/// Draws all that a reader still has, up to the line of the lab that says that this was all.
pub fn write<R: Read>(reader: &mut Reader<R>, mut lanes: Lanes, out: &mut impl Write) -> Result<(), Error> {
    out.write_all(lanes.heading().as_bytes())?;
    while let Some(event) = reader.event()? {
        out.write_all(lanes.event(&event).as_bytes())?;
        if matches!(&event, Event::Line(line) if line.ends_run()) {
            break;
        }
    }
    Ok(out.flush()?)
}

/// A run, or the part of it with these numbers, as text.
pub fn text(run: &Events, style: Style, part: RangeInclusive<u64>) -> Result<String, Error> {
    let (lanes, entries) = entries(run, style, part)?;
    let drawn = entries.iter().map(|entry| text::entry(style, &lanes.layout(), entry));
    Ok(lanes.heading() + &drawn.collect::<String>())
}

/// A run told as its story: its steps, of which what the lesson adds is open, and what the programs say.
pub fn story(run: &Events, story: &Story, style: Style) -> Result<String, Error> {
    let mut told = Teller::new(Lanes::new(&begin(run).nodes, style), story);
    let mut text = told.lanes.heading();
    text.extend(run.iter().map(|event| told.event(&event)));
    run.to_end()?;
    Ok(text + &told.end())
}

/// The same as a picture in SVG, and what it shows in words.
pub fn picture(run: &Events, part: RangeInclusive<u64>) -> Result<(String, String), Error> {
    let (lanes, entries) = entries(run, Style::FILE, part)?;
    Ok(svg::draw(&lanes, &entries))
}

/// The packets of a run or of any capture as a picture, and what it shows in words.
pub fn ladder(run: &Events) -> Result<(String, String), Error> {
    let (lanes, mut entries) = entries(run, Style::FILE, 0..=u64::MAX)?;
    entries.retain(|entry| entry.to.is_some());
    Ok(svg::draw(&lanes, &entries))
}

/// Lanes for a whole run or capture, whose nodes and clients are known beforehand.
pub fn begin(run: &Events) -> Lanes {
    let rows = run.rows();
    // Without names, and without anything that tells who the client is, the addresses have to do.
    let unnamed = || match rows.guessed() {
        Some(ips) => ips.map(|ip| ip.to_string()),
        None => Side::BOTH.map(|side| side.name().to_owned()),
    };
    let nodes = run.nodes().map_or_else(|| unnamed().to_vec(), <[String]>::to_vec);
    Lanes { rows, ..Lanes::new(&nodes, Style::FILE) }
}

fn entries(run: &Events, style: Style, part: RangeInclusive<u64>) -> Result<(Lanes, Vec<Entry>), Error> {
    let (mut lanes, mut entries) = (Lanes { style, ..begin(run) }, Vec::new());
    for event in run.iter() {
        match lanes.entry(&event) {
            Some(entry) if part.contains(&entry.number) => entries.push(entry),
            // A part of a run tells its stages itself.
            Some(_) => lanes.stages.clear(),
            None => {}
        }
    }
    run.to_end()?;
    Ok((lanes, entries))
}

/// Draws events, one after the other.
#[derive(Debug)]
pub struct Lanes {
    nodes: Vec<String>,
    style: Style,
    rows: Rows,
    /// The node that sends from an address, as far as it has sent something.
    addresses: BTreeMap<IpAddr, String>,
    /// The stage that each node's last line was in: it is said again only when it changes.
    stages: BTreeMap<String, String>,
}

/// What is said about one event.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its number in the run file.
    pub number: u64,
    /// Milliseconds since the first event; None where the file does not tell.
    pub ms: Option<f64>,
    /// Who said or sent it.
    pub node: String,
    /// The node that a packet goes to.
    pub to: Option<String>,
    /// What it says, without what would control a terminal.
    pub text: String,
    /// About a packet: the step of the lesson that it belongs to, and what the lab did to it.
    pub notes: Vec<String>,
    /// What sort of packet or line it is.
    pub sort: Sort,
}

impl Lanes {
    /// Lanes for these nodes, of which one may be called `server`.
    #[must_use]
    pub fn new<T: AsRef<str>>(nodes: &[T], style: Style) -> Lanes {
        Lanes {
            nodes: nodes.iter().take(MOST_NODES).map(|name| named(name.as_ref())).collect(),
            style,
            rows: Rows::default(),
            addresses: BTreeMap::new(),
            stages: BTreeMap::new(),
        }
    }

    /// The lines above the first event: the lanes' names, or why there are none.
    #[must_use]
    pub fn heading(&self) -> String {
        match self.sides() {
            Some(_) if self.style.width < text::LEAST_LANES => {
                format!("{} columns would show the two programs side by side.\n", text::LEAST_LANES)
            }
            _ => text::heading(&self.layout()),
        }
    }

    /// One event, each of its lines ended by a newline; nothing for a frame that holds neither RoCE nor iWARP.
    #[must_use]
    pub fn event(&mut self, event: &Event) -> String {
        let entry = self.entry(event);
        entry.map_or(String::new(), |entry| text::entry(self.style, &self.layout(), &entry))
    }

    fn layout(&self) -> text::Layout<'_> {
        text::Layout::new(self.style, &self.nodes, self.sides())
    }

    /// The nodes on the left and on the right, if there are two.
    pub fn sides(&self) -> Option<[&str; 2]> {
        match self.nodes.as_slice() {
            [one, other] if one == "server" => Some([other, one]),
            [one, other] => Some([one, other]),
            _ => None,
        }
    }

    /// All nodes, the server last.
    pub fn left_to_right(&self) -> Vec<String> {
        let (server, clients): (Vec<_>, Vec<_>) = self.nodes.iter().cloned().partition(|name| name == "server");
        self.sides().map_or_else(|| [clients, server].concat(), |sides| sides.map(String::from).to_vec())
    }

    /// A node's name, and its address if it has sent from one alone.
    pub fn with_address(&self, node: &str) -> String {
        let mut addresses = self.addresses.iter().filter(|(_, name)| *name == node);
        match (addresses.next(), addresses.next()) {
            (Some((address, _)), None) if address.to_string() != node => format!("{node} {address}"),
            _ => node.to_owned(),
        }
    }

    /// What is to be drawn; None for a frame that holds neither RoCE nor iWARP.
    pub fn entry(&mut self, event: &Event) -> Option<Entry> {
        let ms = self.rows.ms(event.time_ns());
        match event {
            Event::Line(line) => Some(self.line(line, ms)),
            Event::Packet(sighting) => {
                let row = self.rows.next(sighting).ok()?;
                let [from, to] = row.ends();
                let sender = sighting.node.map(named).filter(|name| self.nodes.contains(name));
                let sender = sender.unwrap_or_else(|| self.name(from, row.from_client));
                self.addresses.entry(from).or_insert(sender);
                Some(self.packet(&row, from, to, ms))
            }
        }
    }

    /// A line as it is drawn. A lesson's own count and the time of day are left out: each line has its number in the file.
    fn line(&mut self, line: &Line, ms: Option<f64>) -> Entry {
        let node = named(&line.node);
        let (text, sort) = match (line.stage(), line.program.as_str()) {
            (Some(stage), _) => {
                let again = self.stages.insert(node.clone(), stage.to_owned()).is_some_and(|last| last == stage);
                let stage = if again { String::new() } else { format!("[{stage}] ") };
                (stage + line.said(), line.tag().map_or(Sort::Plain, Sort::Tagged))
            }
            (None, Line::KERNEL) => (format!("kernel: {}", line.text), Sort::Aside),
            (None, Line::DEVICE) => (format!("NIC   {}", line.text), Sort::Aside),
            (None, Line::LAB) => (format!("── {}", line.text), Sort::Aside),
            _ => (line.text.clone(), Sort::Plain),
        };
        Entry { number: line.number, ms, node, to: None, text: printable(&text), notes: Vec::new(), sort }
    }

    fn packet(&self, row: &Row, from: IpAddr, to: IpAddr, ms: Option<f64>) -> Entry {
        Entry {
            number: row.frame,
            ms,
            node: self.name(from, row.from_client),
            to: Some(self.name(to, !row.from_client)),
            text: [row.label.as_str()].into_iter().chain(row.words()).collect::<Vec<_>>().join("  "),
            notes: row.step().into_iter().chain(row.lab()).map(printable).collect(),
            sort: if row.lost() { Sort::Lost } else { row.sort },
        }
    }

    /// The node with this address. Before it has sent anything its part in the conversation tells, if there are two nodes.
    fn name(&self, address: IpAddr, is_client: bool) -> String {
        let side = self.sides().map(|[left, right]| if is_client { left } else { right });
        let known = self.addresses.get(&address).map(String::as_str).or(side);
        known.map_or_else(|| address.to_string(), String::from)
    }
}
