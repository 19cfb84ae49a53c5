//! A ladder for people: client left, server right, one line per packet. A comment that the file has for a packet,
//! such as the step of a lesson, stands above it.

use super::row::{Clients, Row, Rows, Sort};
use super::Error;
use crate::capture::Reader;
use owo_colors::{AnsiColors, OwoColorize};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::IpAddr;

/// How to draw.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Colors by kind of packet.
    pub color: bool,
    /// Cut lines to this many columns; None leaves them whole.
    pub width: Option<usize>,
}

/// Columns of the lane between client and server.
const LANE: usize = 42;

/// Draws the ladder of a whole capture, whose [`clients`](super::row::clients) are known.
///
/// # Errors
/// The capture cannot be read to its end, or the output not be written.
pub fn write<R: Read>(
    reader: &mut Reader<R>,
    clients: Clients,
    style: Style,
    out: &mut impl Write,
) -> Result<(), Error> {
    let mut ladder = Ladder { style, pair: None, comment: None };
    let mut rows = Rows::new(clients);
    let mut others: BTreeMap<&str, u64> = BTreeMap::new();
    let mut packets = 0u64;
    while let Some(record) = reader.next()? {
        match rows.next(&record) {
            Ok(row) => {
                packets += 1;
                ladder.row(&row, out)?;
            }
            Err(other) => *others.entry(other.name()).or_default() += 1,
        }
    }
    let others: Vec<String> = others.iter().map(|(name, count)| format!("{count} {name}")).collect();
    let rest = if others.is_empty() { String::new() } else { format!("; not shown: {}", others.join(", ")) };
    writeln!(out, "{packets} RoCEv2 packets{rest}")?;
    out.flush()?;
    Ok(())
}

struct Ladder {
    style: Style,
    /// The client and the server that the heading on the screen is for.
    pair: Option<(IpAddr, IpAddr)>,
    /// The last comment, which holds for the packets below it, too.
    comment: Option<String>,
}

impl Ladder {
    fn row(&mut self, row: &Row, out: &mut impl Write) -> Result<(), Error> {
        if self.pair != Some((row.client, row.server)) {
            self.pair = Some((row.client, row.server));
            self.heading(row.client, row.server, out)?;
        }
        let comment =
            row.comment.as_deref().map(|comment| comment.split("lab: ").next().unwrap_or_default().trim_end());
        if self.comment.as_deref() != comment {
            self.comment = comment.map(String::from);
            if let Some(comment) = comment.filter(|comment| !comment.is_empty()) {
                self.line("", "", &printable(comment), None, out)?;
            }
        }
        let time = row.ms.map_or("-".into(), |ms| format!("{ms:.3}"));
        let start = format!("{:>6} {time:>10}  ", row.frame);
        let words: Vec<&str> = row.words().chain(row.lab()).collect();
        self.line(&start, &arrow(row), &printable(&words.join("  ")), color(row.sort), out)
    }

    fn heading(&self, client: IpAddr, server: IpAddr, out: &mut impl Write) -> Result<(), Error> {
        let (client, server) = (format!("client {client}"), format!("server {server}"));
        let gap = LANE.saturating_sub(client.chars().count());
        let lane = format!("{client} {server:>width$}", width = gap.saturating_sub(1));
        self.line(" frame         ms  ", &lane, "", None, out)
    }

    fn line(
        &self,
        start: &str,
        lane: &str,
        details: &str,
        color: Option<AnsiColors>,
        out: &mut impl Write,
    ) -> Result<(), Error> {
        let used = start.chars().count() + lane.chars().count() + 2;
        let room = self.style.width.map_or(usize::MAX, |width| width.saturating_sub(used));
        let details: String = details.chars().take(room).collect();
        match color.filter(|_| self.style.color) {
            Some(color) => writeln!(out, "{start}{}  {details}", lane.color(color))?,
            None => writeln!(out, "{}", format!("{start}{lane}  {details}").trim_end())?,
        }
        Ok(())
    }
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

/// Whoever wrote the file shall not control the terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

pub(crate) fn color(sort: Sort) -> Option<AnsiColors> {
    match sort {
        Sort::Connection => Some(AnsiColors::Cyan),
        Sort::Send => Some(AnsiColors::Green),
        Sort::Write => Some(AnsiColors::Blue),
        Sort::Read => Some(AnsiColors::Magenta),
        Sort::Notable => Some(AnsiColors::Yellow),
        Sort::Acknowledge => None,
        Sort::Trouble => Some(AnsiColors::Red),
    }
}
