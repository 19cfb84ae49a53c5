//! The picture of a run: the server's log on the left, the wire in the middle, the client's log on the right.

use crate::outcome::{Entry, What};
use crate::run::Side;
use owo_colors::{AnsiColors, OwoColorize};

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
#[derive(Debug, Clone, Copy)]
pub struct Lanes {
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
    pub fn for_terminal(width: usize, color: bool) -> Self {
        Self { width: width.max(40), color, time: false }
    }

    /// For the file: a fixed width, no color, with the time in milliseconds.
    #[must_use]
    pub fn for_file() -> Self {
        Self { width: FILE_WIDTH, color: false, time: true }
    }

    /// The lines above the first entry.
    #[must_use]
    pub fn heading(&self) -> String {
        if self.width < THREE_LANES {
            return String::new();
        }
        let names = Side::BOTH.map(|side| format!("{}  {}", side.name(), side.address()));
        let cells = [&names[0], "the wire", &names[1]].map(|text| text.to_owned());
        let rule = self.widths().map(|width| "─".repeat(width));
        let [left, wire, right] = rule;
        let mut text = self.row(None, cells.map(Some));
        text.push_str(&format!(
            "{}{left}─┼─{wire}─┼─{right}\n",
            if self.time { "─".repeat(TIME) } else { String::new() }
        ));
        text
    }

    /// One entry, each of its lines ended by a newline; nothing for a frame that is no RoCE packet.
    #[must_use]
    pub fn entry(&self, entry: &Entry) -> String {
        let text = match &entry.what {
            What::Line(line) => without_clock(line),
            What::Note(note) => format!("── {note} ──"),
            What::Frame(_) => match entry.packet() {
                Some(packet) => return self.packet(entry, &packet.summary()),
                None => return String::new(),
            },
        };
        if self.width < THREE_LANES {
            return self.narrow(&format!("{}  ", entry.side.name()), &text, line_color(entry, &text));
        }
        let cell = Some(text);
        let cells = match entry.side {
            Side::Server => [cell, None, None],
            Side::Client => [None, None, cell],
        };
        self.row(Some(entry), cells)
    }

    fn packet(&self, entry: &Entry, summary: &str) -> String {
        let arrow = arrow(entry.side, summary);
        if self.width < THREE_LANES {
            return self.narrow("        ", &arrow, line_color(entry, &arrow));
        }
        self.row(Some(entry), [None, Some(arrow), None])
    }

    fn widths(&self) -> [usize; 3] {
        let sides = self.width - WIRE - 2 * SEPARATOR.chars().count();
        [sides - sides / 2, WIRE, sides / 2]
    }

    /// One row of three cells, as many lines high as its highest cell.
    fn row(&self, entry: Option<&Entry>, texts: [Option<String>; 3]) -> String {
        let widths = self.widths();
        let mut cells = Vec::new();
        for (text, width) in texts.into_iter().zip(widths) {
            let text = text.unwrap_or_default();
            let color = entry.and_then(|entry| line_color(entry, &text));
            cells.push(Cell { lines: wrap(&text, width), width, color });
        }
        let height = cells.iter().map(|cell| cell.lines.len()).max().unwrap_or(1);
        let mut rows = String::new();
        for line in 0..height {
            let drawn: Vec<String> = cells.iter().map(|cell| self.draw(cell, line)).collect();
            let time = if line == 0 { self.time(entry) } else { self.time(None) };
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

    fn time(&self, entry: Option<&Entry>) -> String {
        match (self.time, entry) {
            (false, _) => String::new(),
            (true, None) => " ".repeat(TIME),
            (true, Some(entry)) => format!("{:>width$.1}  ", entry.at.as_secs_f64() * 1000.0, width = TIME - 2),
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
fn arrow(from: Side, text: &str) -> String {
    let mut lines = wrap(text, WIRE - 5).into_iter();
    let first = lines.next().unwrap_or_default();
    let shaft = WIRE - first.chars().count() - 3;
    let (left, right) = ("─".repeat(shaft / 2), "─".repeat(shaft - shaft / 2));
    let mut drawn = match from {
        Side::Server => format!("{left} {first} {right}▶"),
        Side::Client => format!("◀{left} {first} {right}"),
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

/// The color of an entry: that of its tag for a log line.
fn line_color(entry: &Entry, text: &str) -> Option<AnsiColors> {
    match &entry.what {
        What::Frame(_) => Some(AnsiColors::Magenta),
        What::Note(_) => Some(AnsiColors::BrightBlack),
        What::Line(_) => {
            let tag = text.split_once("] ").map_or("", |(_, rest)| rest).split(' ').next().unwrap_or("");
            match tag {
                "SLOW" => Some(AnsiColors::Yellow),
                "FAST" => Some(AnsiColors::Cyan),
                "DATA" => Some(AnsiColors::Green),
                "INFO" => Some(AnsiColors::Blue),
                "ERR" => Some(AnsiColors::Red),
                _ => None,
            }
        }
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
    use std::time::Duration;

    fn line(side: Side, text: &str) -> Entry {
        Entry { at: Duration::from_micros(12_345), side, what: What::Line(text.to_owned()) }
    }

    /// An ACK as it crosses the wire: Ethernet, IPv4, UDP to port 4791, BTH, AETH, ICRC.
    fn acknowledge(side: Side) -> Entry {
        let mut frame = vec![0; 14 + 20 + 8 + 12 + 4 + 4];
        frame[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
        frame[17] = 48;
        frame[23] = 17;
        frame[36..38].copy_from_slice(&4791u16.to_be_bytes());
        frame[39] = 28;
        frame[42] = 0x11;
        frame[53] = 7;
        Entry { at: Duration::ZERO, side, what: What::Frame(frame) }
    }

    #[test]
    fn each_entry_is_in_its_lane() {
        let lanes = Lanes::for_terminal(110, false);
        let server = lanes.entry(&line(Side::Server, "[12:00:00.123 #0007 accept] SLOW  rdma_accept"));
        assert_eq!(server, format!("{:36} │ {:32} │\n", "[#0007 accept] SLOW  rdma_accept", ""));
        let client = lanes.entry(&line(Side::Client, "plain text"));
        assert_eq!(client, format!("{:36} │ {:32} │ plain text\n", "", ""));
        let ack = lanes.entry(&acknowledge(Side::Server));
        assert_eq!(ack, format!("{:36} │ ───────── ACK  psn 7 ──────────▶ │\n", ""));
        assert!(lanes.entry(&acknowledge(Side::Client)).contains("◀───────── ACK  psn 7 ──────────"));
        let arp = Entry { what: What::Frame(vec![0; 60]), ..acknowledge(Side::Client) };
        assert_eq!(lanes.entry(&arp), "");
    }

    #[test]
    fn the_file_has_a_time_and_no_color() {
        let row = Lanes::for_file().entry(&line(Side::Server, "[12:00:00.123 #0007 accept] ERR   x"));
        assert!(row.starts_with("    12.3  [#0007 accept] ERR   x"), "{row}");
        assert_eq!(Lanes::for_file().heading().lines().count(), 2);
    }

    #[test]
    fn long_lines_stay_in_their_lane() {
        let lanes = Lanes::for_terminal(100, false);
        let text = "word ".repeat(30) + &"x".repeat(100);
        for row in lanes.entry(&line(Side::Client, &text)).lines() {
            assert!(row.chars().count() <= 100, "{row}");
            assert!(row.starts_with(&format!("{:31} │ {:32} │ ", "", "")), "{row}");
        }
    }

    #[test]
    fn a_narrow_terminal_gets_one_column() {
        let lanes = Lanes::for_terminal(60, false);
        assert_eq!(lanes.heading(), "");
        assert_eq!(lanes.entry(&line(Side::Client, "hello")), "client  hello\n");
        assert!(lanes.entry(&acknowledge(Side::Client)).starts_with("        ◀───"));
        for row in lanes.entry(&line(Side::Server, &"long ".repeat(40))).lines() {
            assert!(row.chars().count() <= 60, "{row}");
        }
    }

    #[test]
    fn the_tag_gives_the_color() {
        let row = Lanes::for_terminal(60, true).entry(&line(Side::Client, "[12:00:00.123 #0007 accept] ERR   x"));
        assert!(row.contains("\u{1b}[31m"), "{row:?}");
    }

    #[test]
    fn wrapping_prefers_spaces_and_bars() {
        assert_eq!(wrap("access=LOCAL_WRITE|REMOTE_READ", 20), ["access=LOCAL_WRITE|", "    REMOTE_READ"]);
        assert_eq!(wrap("no spaces", 7), ["no", "    spa", "    ces"]);
        assert_eq!(wrap("two\nlines", 7), ["two", "lines"]);
    }
}
