//! A run over time: how much waits in a switch, at which rate data goes on to a node, who is paused, what is marked and lost.
//!
//! [`Plotted`] gathers it from a run file, event by event. [`Plotted::text`] draws it for a terminal, [`Plotted::picture`] as SVG. Both
//! divide the time into this many parts as they have columns: so a picture is as large after a second as after an hour.
//!
//! | | |
//! |---|---|
//! | `series` | what changes over time, by parts of the time |
//! | `text`, `svg` | the drawings |
//! | `units` | numbers for people |

mod series;
mod svg;
#[cfg(test)]
mod tests;
mod text;
pub mod units;

pub use series::{Parts, Steps};
pub use svg::{draw, Curve, Panel};
pub use units::Unit;

use crate::capture::{Error, Reader};
use crate::file::{lab_comment, Event, Line};
use crate::look::{printable, Sort};
use crate::sighting::Sighting;
use crate::switch::{self, Settings, What};
use crate::words;
use anyhow::anyhow;
use std::collections::BTreeMap;
use std::io::Read;
use std::net::IpAddr;

/// So many ports, nodes and flows are told apart. Of a hostile file's others nothing is drawn.
const MOST: usize = 64;
/// A rest that takes more of the run than this share is cut out: else all that happens would share a few pixels.
const REST: f64 = 0.2;
/// So long is a node's name at most.
const MOST_NAME: usize = 64;

/// A time in which nothing happened, and which the drawing leaves out; in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cut {
    begin: u64,
    length: u64,
}

/// What is drawn: rows over a time that begins at 0, in nanoseconds, and from which the cuts are gone.
#[derive(Debug)]
struct Drawn {
    rows: Vec<Series>,
    length: u64,
    /// Where each is in the drawn time, in order.
    cuts: Vec<Cut>,
}

impl Drawn {
    /// How long the run took, rests and all.
    fn whole(&self) -> u64 {
        self.length + self.cuts.iter().map(|cut| cut.length).sum::<u64>()
    }
}

/// What of a run changes over time. Times are nanoseconds since 1970.
#[derive(Clone, Debug, Default)]
pub struct Plotted {
    /// The first event, and the last one that can be drawn.
    span: Option<(u64, u64)>,
    is_drawn: bool,
    /// Bytes that wait for a node, or for the next switch.
    queues: BTreeMap<String, Steps>,
    /// 1 while a neighbour of the switch is paused, and its priorities that are, a bit each.
    pauses: BTreeMap<String, (Steps, u8)>,
    /// Frames with data that were not lost, by who sent them and where they go: when, and how many bytes.
    flows: BTreeMap<(String, IpAddr), Vec<(u64, u64)>>,
    /// Who sends from an address.
    names: BTreeMap<IpAddr, String>,
    marked: Vec<u64>,
    lost: Vec<u64>,
    /// What the switch is like, if the run says so.
    settings: Option<Settings>,
}

/// One thing that changes over time, by parts of the time.
#[derive(Clone, Debug, PartialEq)]
struct Series {
    kind: Kind,
    /// Of which port, flow or node.
    name: String,
    values: Vec<f64>,
    /// The most bytes, all bytes, the share of the time, the number of packets: as the kind is.
    sum: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Bytes, the most in each part of the time.
    Queue,
    /// Bits per second.
    Rate,
    /// The share of the time.
    Paused,
    /// Packets.
    Marked,
    /// Packets.
    Lost,
}

impl Series {
    /// What it is called.
    fn title(&self) -> String {
        let kind = match self.kind {
            Kind::Queue => "waits for",
            Kind::Rate => "rate of",
            Kind::Paused => "paused",
            Kind::Marked => "marked",
            Kind::Lost => "lost",
        };
        format!("{kind} {}", self.name).trim_end().to_owned()
    }

    /// Its sum, in a few words.
    fn said(&self) -> String {
        match self.kind {
            Kind::Queue => format!("max {}", units::with(self.sum, units::bytes(self.sum))),
            Kind::Rate => format!("{} in all", units::with(self.sum, units::bytes(self.sum))),
            Kind::Paused => format!("{:.0} % of time", self.sum * 100.0),
            Kind::Marked | Kind::Lost => format!("{} packets", self.sum),
        }
    }

    /// Both.
    fn told(&self) -> String {
        format!("{}: {}", self.title(), self.said())
    }
}

/// Gathers all that a reader still has. What came before damage is good, and can be drawn.
///
/// # Errors
/// The file is damaged; or nothing in it can be drawn.
pub fn read<R: Read>(reader: &mut Reader<R>) -> (Plotted, Result<(), Error>) {
    let mut seen = Plotted::default();
    loop {
        match reader.event() {
            Ok(Some(event)) => seen.event(&event),
            Ok(None) if seen.is_empty() => return (seen, Err(anyhow!("{NOTHING}"))),
            Ok(None) => return (seen, Ok(())),
            Err(error) => return (seen, Err(error)),
        }
    }
}

const NOTHING: &str = "there is nothing to plot: no packet with data, and no line of a switch";

impl Plotted {
    /// Whether there is nothing to draw.
    pub fn is_empty(&self) -> bool {
        !self.is_drawn
    }

    /// Takes the next event of a run.
    pub fn event(&mut self, event: &Event) {
        let Some(time) = event.time_ns() else { return };
        let is_drawn = match event {
            Event::Packet(sighting) => self.packet(time, sighting),
            Event::Line(line) if line.program == Line::LAB && line.act == Line::WIRE => {
                let (of_switch, _) = switch::split(&line.text);
                self.settings = switch::settings(&of_switch).ok().flatten();
                false
            }
            Event::Line(line) if line.program == Line::LAB => {
                switch::Event::read(&line.act, &line.text).is_some_and(|event| self.switch(time, event))
            }
            Event::Line(_) => false,
        };
        let (begin, end) = self.span.unwrap_or((time, time));
        self.span = Some((begin.min(time), if is_drawn { end.max(time) } else { end }));
        self.is_drawn |= is_drawn;
    }

    fn switch(&mut self, time: u64, event: switch::Event) -> bool {
        let port = named(&event.port);
        match event.what {
            What::Queue(bytes) => {
                let Some(steps) = entry(&mut self.queues, port) else { return true };
                steps.push(time, bytes as f64);
            }
            What::Pause(priority) | What::Resume(priority) => {
                let Some((steps, priorities)) = entry(&mut self.pauses, port) else { return true };
                let bit = 1u8.checked_shl(priority.into()).unwrap_or(0);
                *priorities = if matches!(event.what, What::Pause(_)) { *priorities | bit } else { *priorities & !bit };
                steps.push(time, f64::from(u8::from(*priorities > 0)));
            }
            // Its packet says it as well.
            What::Drop(_) => return false,
        }
        true
    }

    fn packet(&mut self, time: u64, sighting: &Sighting) -> bool {
        let Some(packet) = sighting.packet() else { return false };
        let (from, to) = (packet.datagram.src, packet.datagram.dst);
        let sender = sighting.node.map_or_else(|| from.to_string(), named);
        if let Some(name) = entry(&mut self.names, from) {
            *name = sender.clone();
        }
        if sighting.comment.and_then(lab_comment).is_some_and(|words| words.starts_with("lab: dropped")) {
            self.lost.push(time);
            return true;
        }
        let is_marked = packet.datagram.is_marked();
        self.marked.extend(is_marked.then_some(time));
        let is_data = packet.payload_length() > 0
            && matches!(words::sort(packet), Sort::Send | Sort::Write | Sort::Read | Sort::Notable);
        if let (true, Some(frames)) = (is_data, entry(&mut self.flows, (sender, to))) {
            frames.push((time, sighting.length as u64));
        }
        is_data || is_marked
    }

    /// The first event, and the last one that can be drawn.
    fn span(&self) -> (u64, u64) {
        self.span.unwrap_or_default()
    }

    /// Parts of the time for rates: no more than so many, and each with a few packets of the fastest flow, or its rate were chance.
    fn parts_of_rates(&self, most: usize) -> Parts {
        const PACKETS: u64 = 3;
        let (begin, end) = self.span();
        let gap = |frames: &Vec<(u64, u64)>| {
            let mut gaps: Vec<u64> = frames.windows(2).map(|pair| pair[1].0.saturating_sub(pair[0].0)).collect();
            let middle = gaps.len() / 2;
            (frames.len() as u64 > PACKETS).then(|| *gaps.select_nth_unstable(middle).1)
        };
        let least = self.flows.values().filter_map(gap).min().unwrap_or(0).saturating_mul(PACKETS).max(1);
        let count = end.saturating_sub(begin) / least;
        Parts::new((begin, end), usize::try_from(count).map_or(most, |count| count.clamp(1, most)))
    }

    /// The same without its long rests: times in which nothing waited, nobody was paused, and nothing was sent.
    fn without_rests(&self) -> (Plotted, Vec<Cut>) {
        let cuts = self.rests();
        let moved = |time: u64| {
            let before = cuts.iter().filter(|cut| cut.begin + cut.length <= time);
            time - before.map(|cut| cut.length).sum::<u64>()
        };
        let mut seen = self.clone();
        seen.span = seen.span.map(|(begin, end)| (begin, moved(end)));
        seen.queues.values_mut().chain(seen.pauses.values_mut().map(|(steps, _)| steps)).for_each(|it| it.moved(moved));
        let of_flows = seen.flows.values_mut().flatten().map(|(time, _)| time);
        of_flows.chain(&mut seen.marked).chain(&mut seen.lost).for_each(|time| *time = moved(*time));
        (seen, cuts)
    }

    /// The rests that are long enough to be cut out. A little of each stays, so that one sees that there was one.
    fn rests(&self) -> Vec<Cut> {
        let steps = || self.queues.values().chain(self.pauses.values().map(|(steps, _)| steps));
        let of_flows = self.flows.values().flatten().map(|(time, _)| *time);
        let mut times: Vec<u64> = steps().flat_map(Steps::times).chain(of_flows).collect();
        times.extend(self.marked.iter().chain(&self.lost));
        times.sort_unstable();
        let length = self.span().1.saturating_sub(self.span().0);
        let is_rest = |begin, end| (end - begin) as f64 > REST * length as f64 && steps().all(|it| it.at(begin) == 0.0);
        let rests: Vec<(u64, u64)> =
            times.windows(2).map(|pair| (pair[0], pair[1])).filter(|(begin, end)| is_rest(*begin, *end)).collect();
        let all: u64 = rests.iter().map(|(begin, end)| end - begin).sum();
        let stays = length.saturating_sub(all) / 12;
        let cut =
            |(begin, end): (u64, u64)| Cut { begin: begin + stays / 2, length: (end - begin).saturating_sub(stays) };
        rests.into_iter().map(cut).collect()
    }

    /// What is drawn, in this many parts of the time at most.
    fn drawn(&self, most: usize) -> Drawn {
        let (seen, mut cuts) = self.without_rests();
        let ((begin, end), mut cut_before) = (seen.span(), 0);
        for cut in &mut cuts {
            cut.begin -= begin + cut_before;
            cut_before += cut.length;
        }
        let mut drawn = Drawn { rows: seen.rows(most), length: end.saturating_sub(begin), cuts };
        // Whoever was paused was so for a share of the whole time.
        let share = drawn.length as f64 / drawn.whole().max(1) as f64;
        drawn.rows.iter_mut().filter(|row| row.kind == Kind::Paused).for_each(|row| row.sum *= share);
        drawn
    }

    /// All that is drawn, in this order, and in this many parts of the time at most.
    fn rows(&self, most: usize) -> Vec<Series> {
        let parts = &Parts::new(self.span(), most);
        let queues = self.queues.iter().map(|(port, steps)| {
            let values = steps.highest(parts);
            let sum = values.iter().copied().fold(0.0, f64::max);
            Series { kind: Kind::Queue, name: port.clone(), values, sum }
        });
        let pauses = self.pauses.iter().map(|(node, (steps, _))| {
            let values = steps.means(parts);
            let sum = values.iter().sum::<f64>() / values.len().max(1) as f64;
            Series { kind: Kind::Paused, name: node.clone(), values, sum }
        });
        let packets = [(Kind::Marked, &self.marked), (Kind::Lost, &self.lost)].map(|(kind, times)| {
            let values = parts.sums(times.iter().map(|time| (*time, 1)));
            Series { kind, name: String::new(), values, sum: times.len() as f64 }
        });
        // Acknowledgements also wait, but they're few bytes, and next to data what a receiver says isn't a flow.
        let mut rows = large(queues, 0.02);
        rows.extend(self.rates(&self.parts_of_rates(most)));
        rows.extend(large(pauses, 0.0));
        rows.extend(large(packets.into_iter(), 0.0));
        rows
    }

    /// How much must wait for something to happen: marks, and the end of all room.
    fn levels(&self) -> Vec<(String, f64)> {
        let Some(settings) = &self.settings else { return Vec::new() };
        let marks = settings.ecn.iter().flat_map(|ecn| [("marks begin", ecn.none), ("all are marked", ecn.all)]);
        // With PFC the room is another one for each neighbour.
        let room = (!self.lost.is_empty() && settings.pfc.is_none()).then_some(("no more room", settings.room));
        marks.chain(room).map(|(name, bytes)| (name.to_owned(), bytes as f64)).collect()
    }

    /// A flow is named after its sender, and where it goes if not all go there.
    fn rates(&self, parts: &Parts) -> Vec<Series> {
        let sums = self.flows.values().map(|frames| frames.iter().map(|(_, bytes)| *bytes as f64).sum::<f64>());
        let most = sums.fold(0.0, f64::max);
        let mut to_all: Vec<IpAddr> = Vec::new();
        let mut rows = Vec::new();
        for ((from, to), frames) in &self.flows {
            let sum = frames.iter().map(|(_, bytes)| *bytes as f64).sum::<f64>();
            if sum < most * 0.001 {
                continue;
            }
            to_all.push(*to);
            let values = parts.rates(frames.iter().copied());
            rows.push(Series { kind: Kind::Rate, name: from.clone(), values, sum });
        }
        if to_all.windows(2).any(|pair| pair[0] != pair[1]) {
            let name = |to: &IpAddr| self.names.get(to).cloned().unwrap_or_else(|| to.to_string());
            rows.iter_mut().zip(&to_all).for_each(|(row, to)| row.name += &format!(" to {}", name(to)));
        }
        rows
    }
}

/// Those that are not small beside the largest: as large as this share of it.
fn large(rows: impl Iterator<Item = Series>, share: f64) -> Vec<Series> {
    let mut rows: Vec<Series> = rows.collect();
    let most = rows.iter().map(|row| row.sum).fold(0.0, f64::max);
    rows.retain(|row| row.sum > 0.0 && row.sum >= most * share);
    rows
}

/// The place of a key, which gets one if there is room.
fn entry<K: Ord, V: Default>(map: &mut BTreeMap<K, V>, key: K) -> Option<&mut V> {
    let has_room = map.len() < MOST || map.contains_key(&key);
    has_room.then(|| map.entry(key).or_default())
}

fn named(name: &str) -> String {
    printable(name).chars().take(MOST_NAME).collect()
}
