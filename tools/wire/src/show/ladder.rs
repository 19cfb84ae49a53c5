//! A ladder for people: client left, server right, one line per packet; among more than two hosts each line says from which to
//! which. A comment that the file has for a packet, such as the step of a lesson, is above it.

use crate::reading::Inside;
use owo_colors::{AnsiColors, OwoColorize};
use roce::Others;
use run::capture::{Error, Events, Reader};
use run::file::Event;
use run::look::{printable, Style};
use run::row::{Row, Rows};
use run::sighting::Sighting;
use std::io::{Read, Write};
use std::net::IpAddr;

/// Columns of the lane between client and server.
const LANE: usize = 42;

/// How much of a capture, in bytes of memory, is read before its ladder begins. That shows who the client is and whether there are more
/// than two hosts; what a longer capture tells later holds only from there on.
const AHEAD: usize = 16 << 20;

/// Draws the ladder of a capture.
pub fn write<R: Read>(reader: &mut Reader<R>, style: Style, out: &mut impl Write) -> Result<(), Error> {
    let ahead = Events::ahead(reader, AHEAD);
    let mut ladder = Ladder::new(&ahead, style);
    ahead.packets().try_for_each(|sighting| ladder.frame(&sighting, out))?;
    ahead.to_end()?;
    drop(ahead);
    while let Some(event) = reader.event()? {
        if let Event::Packet(sighting) = event {
            ladder.frame(&sighting, out)?;
        }
    }
    ladder.end(out)
}

/// Draws the ladder of a capture that is in memory.
pub fn of(events: &Events, style: Style, out: &mut impl Write) -> Result<(), Error> {
    let mut ladder = Ladder::new(events, style);
    events.packets().try_for_each(|sighting| ladder.frame(&sighting, out))?;
    events.to_end()?;
    ladder.end(out)
}

struct Ladder {
    style: Style,
    rows: Rows,
    /// The client and the server that the heading on the screen is for.
    pair: Option<(IpAddr, IpAddr)>,
    /// The last comment, which also holds for the packets below it.
    comment: Option<String>,
    packets: u64,
    /// TCP segments of iWARP.
    segments: u64,
    others: Others,
    inside: Inside,
}

impl Ladder {
    fn new(known: &Events, style: Style) -> Ladder {
        let (pair, comment, packets, segments, others, inside) = Default::default();
        Ladder { style, rows: known.rows(), pair, comment, packets, segments, others, inside }
    }

    fn frame(&mut self, sighting: &Sighting, out: &mut impl Write) -> Result<(), Error> {
        match self.rows.next(sighting) {
            Ok(row) => {
                match sighting.iwarp() {
                    Some(_) => self.segments += 1,
                    None => self.packets += 1,
                }
                row.inside.into_iter().for_each(|tunnels| self.inside.see(tunnels));
                out.write_all(self.row(&row).as_bytes())?;
            }
            Err(other) => self.others.see(other),
        }
        Ok(())
    }

    /// What comes below the last packet.
    fn end(self, out: &mut impl Write) -> Result<(), Error> {
        let Ladder { packets, segments, others, inside, .. } = self;
        let rest = if others.is_empty() { String::new() } else { format!("; not shown: {others}") };
        let found = match (packets, segments) {
            (_, 0) => format!("{packets} RoCEv2 packets"),
            (0, _) => format!("{segments} TCP segments of iWARP"),
            _ => format!("{packets} RoCEv2 packets, {segments} TCP segments of iWARP"),
        };
        writeln!(out, "{found}{rest}")?;
        if !inside.is_empty() {
            writeln!(out, "{inside}")?;
        }
        Ok(out.flush()?)
    }

    fn row(&mut self, row: &Row) -> String {
        let mut text = String::new();
        // Among more than two hosts nobody is left or right.
        let is_crowd = self.rows.pairs() > 1;
        if !is_crowd && self.pair != Some((row.client, row.server)) {
            self.pair = Some((row.client, row.server));
            let role = |name: &str| if row.is_known { format!("{name} ") } else { String::new() };
            let client = format!("{}{}", role("client"), row.client);
            let width = LANE.saturating_sub(client.chars().count() + 1);
            let lane = format!("{client} {:>width$}", format!("{}{}", role("server"), row.server));
            text += &self.line(" frame         ms  ", &lane, "", None);
        }
        let comment =
            row.comment.as_deref().map(|comment| comment.split("lab: ").next().unwrap_or_default().trim_end());
        if self.comment.as_deref() != comment {
            self.comment = comment.map(String::from);
            if let Some(comment) = comment.filter(|comment| !comment.is_empty()) {
                text += &self.line("", "", &printable(comment), None);
            }
        }
        let time = row.ms.map_or("-".into(), |ms| format!("{ms:.3}"));
        let start = format!("{:>6} {time:>10}  ", row.frame);
        let words: Vec<&str> = row.words().chain(row.lab()).collect();
        let lane = if is_crowd { from_to(row) } else { arrow(row) };
        text + &self.line(&start, &lane, &printable(&words.join("  ")), row.sort.look().1)
    }

    fn line(&self, start: &str, lane: &str, details: &str, color: Option<AnsiColors>) -> String {
        let room = self.style.width.saturating_sub(start.chars().count() + lane.chars().count() + 2);
        let details: String = details.chars().take(room).collect();
        match color.filter(|_| self.style.color) {
            Some(color) => format!("{start}{}  {details}\n", lane.color(color)),
            None => format!("{start}{lane}  {details}").trim_end().to_owned() + "\n",
        }
    }
}

/// Among many hosts.
fn from_to(row: &Row) -> String {
    let [from, to] = row.ends();
    format!("{from} ─{} {to}  {}", if row.lost() { '✕' } else { '▶' }, row.label)
}

fn arrow(row: &Row) -> String {
    let name = &row.label;
    let fill = "─".repeat(LANE.saturating_sub(name.chars().count() + 6));
    match (row.from_client, row.lost()) {
        (true, false) => format!("── {name} {fill}─▶"),
        (false, false) => format!("◀─{fill} {name} ──"),
        (true, true) => format!("── {name} {fill}─✕"),
        (false, true) => format!("✕─{fill} {name} ──"),
    }
}
