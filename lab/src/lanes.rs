//! The picture of a run: the server's log on the left, the wire in the middle, the client's log on the right.

use crate::run::{address, SERVER};
use owo_colors::{AnsiColors, OwoColorize};
use wire::run::{Event, Line};
use wire::Frame;

/// Below this width three lanes are too narrow to read.
const THREE_LANES: usize = 100;
/// Width of the wire's lane.
const WIRE: usize = 32;
/// Width of the column with the time.
const TIME: usize = 10;
/// Width of the file `timeline.txt`, the time not counted.
const FILE_WIDTH: usize = 150;
const SEPARATOR: &str = " │ ";

/// How to draw.
#[derive(Debug, Clone)]
pub struct Lanes {
    /// The nodes, the server first.
    nodes: Vec<String>,
    /// When the first event was, in nanoseconds.
    began: Option<u64>,
    width: usize,
    color: bool,
    time: bool,
}

/// One piece of a line: text of a certain width, perhaps in color.
struct Cell {
    lines: Vec<String>,
    width: usize,
    color: Option<AnsiColors>,
}

impl Lanes {
    /// For a terminal of `width` columns.
    #[must_use]
    pub fn for_terminal(nodes: &[&str], width: usize, color: bool) -> Self {
        Self { width: width.max(40), color, ..Self::for_file(nodes) }.without_time()
    }

    fn without_time(self) -> Self {
        Self { time: false, ..self }
    }

    /// For the file: a fixed width, no color, with the time in milliseconds.
    #[must_use]
    pub fn for_file(nodes: &[&str]) -> Self {
        let nodes = nodes.iter().map(|name| (*name).to_owned()).collect();
        Self { nodes, began: None, width: FILE_WIDTH, color: false, time: true }
    }

    /// Whether each side has a lane: two nodes, and room enough.
    fn has_lanes(&self) -> bool {
        self.width >= THREE_LANES && self.nodes.len() == 2
    }

    /// The lines above the first entry.
    #[must_use]
    pub fn heading(&self) -> String {
        if !self.has_lanes() {
            return String::new();
        }
        let names = [0, 1].map(|index| format!("{}  {}", self.nodes[index], address(index)));
        let cells = [&names[0], "the wire", &names[1]].map(|text| text.to_owned());
        let rule = self.widths().map(|width| "─".repeat(width));
        let [left, wire, right] = rule;
        let mut text = self.row(None, None, cells.map(Some));
        text.push_str(&format!(
            "{}{left}─┼─{wire}─┼─{right}\n",
            if self.time { "─".repeat(TIME) } else { String::new() }
        ));
        text
    }

    /// One event, each of its lines ended by a newline; nothing for a frame that is no RoCE packet.
    #[must_use]
    pub fn event(&mut self, event: &Event<'_>) -> String {
        let now = time(event);
        let began = *self.began.get_or_insert(now);
        let clock = Some(now.saturating_sub(began));
        let color = line_color(event);
        match event {
            Event::Line(line) => {
                let text = if line.act.is_empty() {
                    without_clock(&line.text)
                } else {
                    format!("── {} ──", line.text)
                };
                if !self.has_lanes() {
                    let name = if line.node.is_empty() { "lab" } else { &line.node };
                    return self.narrow(&format!("{name}  "), &text, color);
                }
                let cell = Some(text);
                self.row(clock, color, if line.node == SERVER { [cell, None, None] } else { [None, None, cell] })
            }
            Event::Packet(record) => {
                let Frame::Roce(packet) = Frame::ethernet(record.data) else { return String::new() };
                let from = record.node.unwrap_or_default();
                if self.nodes.len() > 2 {
                    return self.narrow(
                        &format!("{from}  "),
                        &format!("──▶ {}  {}", packet.datagram.dst, packet.summary()),
                        color,
                    );
                }
                let arrow = arrow(from == SERVER, &packet.summary());
                if !self.has_lanes() {
                    return self.narrow("        ", &arrow, color);
                }
                self.row(clock, color, [None, Some(arrow), None])
            }
        }
    }

    fn widths(&self) -> [usize; 3] {
        let sides = self.width - WIRE - 2 * SEPARATOR.chars().count();
        [sides - sides / 2, WIRE, sides / 2]
    }

    /// One row of three cells, as many lines high as its highest cell.
    fn row(&self, clock: Option<u64>, color: Option<AnsiColors>, texts: [Option<String>; 3]) -> String {
        let widths = self.widths();
        let mut cells = Vec::new();
        for (text, width) in texts.into_iter().zip(widths) {
            let text = text.unwrap_or_default();
            cells.push(Cell { lines: wrap(&text, width), width, color });
        }
        let height = cells.iter().map(|cell| cell.lines.len()).max().unwrap_or(1);
        let mut rows = String::new();
        for line in 0..height {
            let drawn: Vec<String> = cells.iter().map(|cell| self.draw(cell, line)).collect();
            let time = self.time(clock.filter(|_| line == 0));
            rows.push_str(format!("{time}{}", drawn.join(SEPARATOR)).trim_end());
            rows.push('\n');
        }
        rows
    }

    fn draw(&self, cell: &Cell, line: usize) -> String {
        let padded = format!("{:width$}", cell.lines.get(line).map_or("", String::as_str), width = cell.width);
        self.paint(&padded, cell.color)
    }

    fn paint(&self, text: &str, color: Option<AnsiColors>) -> String {
        match color {
            Some(color) if self.color => text.color(color).to_string(),
            _ => text.to_owned(),
        }
    }

    fn time(&self, clock: Option<u64>) -> String {
        match (self.time, clock) {
            (false, _) => String::new(),
            (true, None) => " ".repeat(TIME),
            (true, Some(clock)) => format!("{:>width$.1}  ", clock as f64 / 1e6, width = TIME - 2),
        }
    }

    /// The one-column form: who says it, then the text.
    fn narrow(&self, head: &str, text: &str, color: Option<AnsiColors>) -> String {
        let lines = wrap(text, self.width - head.len());
        let mut drawn = String::new();
        for (index, line) in lines.iter().enumerate() {
            let head = if index == 0 { head.to_owned() } else { " ".repeat(head.len()) };
            drawn.push_str(&format!("{head}{}\n", self.paint(line, color)));
        }
        drawn
    }
}

/// `──── text ────▶` from the server, `◀──── text ────` from the client; what does not fit goes below the arrow.
fn arrow(from_server: bool, text: &str) -> String {
    let mut lines = wrap(text, WIRE - 5).into_iter();
    let first = lines.next().unwrap_or_default();
    let shaft = WIRE - first.chars().count() - 3;
    let (left, right) = ("─".repeat(shaft / 2), "─".repeat(shaft - shaft / 2));
    let mut drawn = match from_server {
        true => format!("{left} {first} {right}▶"),
        false => format!("◀{left} {first} {right}"),
    };
    lines.for_each(|line| drawn.push_str(&format!("\n{line}")));
    drawn
}

/// A lesson's log line without the time of day, which the order of the lanes makes superfluous:
/// `[12:00:00.123 #0007 accept] SLOW  rdma_accept` becomes `[#0007 accept] SLOW  rdma_accept`.
fn without_clock(line: &str) -> String {
    match line.split_once(" #") {
        Some((clock, rest)) if clock.starts_with('[') && clock.ends_with(|c: char| c.is_ascii_digit()) => {
            format!("[#{rest}")
        }
        _ => line.to_owned(),
    }
}

/// When it was, in nanoseconds since 1970.
fn time(event: &Event<'_>) -> u64 {
    match event {
        Event::Packet(record) => record.time_ns.unwrap_or_default(),
        Event::Line(line) => line.time_us * 1000,
    }
}

/// The color of an event: that of its tag for a log line.
fn line_color(event: &Event<'_>) -> Option<AnsiColors> {
    match event {
        Event::Packet(_) => Some(AnsiColors::Magenta),
        Event::Line(line) if line.program == Line::LAB => Some(AnsiColors::BrightBlack),
        Event::Line(line) => match line.tag()? {
            "SLOW" => Some(AnsiColors::Yellow),
            "FAST" => Some(AnsiColors::Cyan),
            "DATA" => Some(AnsiColors::Green),
            "INFO" => Some(AnsiColors::Blue),
            "ERR" => Some(AnsiColors::Red),
            _ => None,
        },
    }
}

/// Cuts text into lines of at most `width` characters, at spaces or after a bar if possible; what is cut off is
/// indented. A newline in the text stays one.
fn wrap(text: &str, width: usize) -> Vec<String> {
    const INDENT: usize = 4;
    let mut lines = Vec::new();
    for part in text.split('\n') {
        let mut rest: Vec<char> = part.chars().collect();
        let mut first = 1;
        while rest.len() > width {
            let breaks = |at: &usize| rest[*at] == ' ' || rest[*at - 1] == '|';
            let cut = (first..=width).rev().find(breaks).unwrap_or(width);
            let tail: String = rest[cut..].iter().collect();
            lines.push(rest[..cut].iter().collect::<String>().trim_end().to_owned());
            rest = format!("{:INDENT$}{}", "", tail.trim_start()).chars().collect();
            // A break further left would leave a line of nothing but the indentation.
            first = INDENT + 1;
        }
        lines.push(rest.into_iter().collect());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapping_prefers_spaces_and_bars() {
        assert_eq!(wrap("access=LOCAL_WRITE|REMOTE_READ", 20), ["access=LOCAL_WRITE|", "    REMOTE_READ"]);
        assert_eq!(wrap("no spaces", 7), ["no", "    spa", "    ces"]);
        assert_eq!(wrap("two\nlines", 7), ["two", "lines"]);
    }
}
