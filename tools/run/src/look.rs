//! What decides about color, in a terminal and in a picture.

use owo_colors::AnsiColors;
use std::env;
use std::io::{self, IsTerminal};

/// How to draw text.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Columns: what is longer is cut in a ladder, and wrapped in lanes.
    pub width: usize,
    /// Colors by tag, and by kind of packet.
    pub color: bool,
}

impl Style {
    /// For a file that somebody reads on a page.
    pub const FILE: Style = Style { width: 100, color: false };

    /// For standard output: a terminal has its own width, and colors unless `NO_COLOR` is set.
    pub fn of_output() -> Style {
        if !io::stdout().is_terminal() {
            return Style::FILE;
        }
        let width = terminal_size::terminal_size().map_or(Style::FILE.width, |(width, _)| width.0.into());
        Style { width, color: env::var_os("NO_COLOR").map_or(true, |value| value.is_empty()) }
    }
}

/// Sorts of packets and of log lines that are told apart by color.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Of the connection manager.
    Connection,
    /// Data for a posted receive.
    Send,
    /// Data for memory that the sender names.
    Write,
    /// A READ and its data.
    Read,
    /// An atomic operation, or a receiver that is not ready.
    Notable,
    /// All went well.
    Acknowledge,
    /// Refused, congested, or unknown.
    Trouble,
    /// A packet that did not arrive.
    Lost,
    /// A line with this tag.
    Tagged(&'static str),
    /// A line without a tag.
    Plain,
    /// What the lab or a kernel says.
    Aside,
}

impl Sort {
    /// Its class in a picture, and its color in a terminal.
    pub fn look(self) -> (&'static str, Option<AnsiColors>) {
        match self {
            Sort::Connection => ("connection", Some(AnsiColors::Cyan)),
            Sort::Send => ("send", Some(AnsiColors::Green)),
            Sort::Write => ("write", Some(AnsiColors::Blue)),
            Sort::Read => ("read", Some(AnsiColors::Magenta)),
            Sort::Notable => ("notable", Some(AnsiColors::Yellow)),
            Sort::Acknowledge => ("acknowledge", None),
            Sort::Trouble | Sort::Lost => ("trouble", Some(AnsiColors::Red)),
            Sort::Tagged("SLOW") => ("slow", Some(AnsiColors::Magenta)),
            Sort::Tagged("FAST") => ("fast", Some(AnsiColors::Cyan)),
            Sort::Tagged("DATA") => ("data", Some(AnsiColors::Green)),
            Sort::Tagged("INFO") => ("info", Some(AnsiColors::Blue)),
            Sort::Tagged(_) => ("err", Some(AnsiColors::Red)),
            Sort::Plain => ("", None),
            Sort::Aside => ("quiet", Some(AnsiColors::BrightBlack)),
        }
    }
}

/// Whoever wrote the file should neither control the terminal, nor, as U+202E does, reverse what is next to it. Lines become one.
pub fn printable(text: &str) -> String {
    text.replace('\n', " ").chars().filter(|c| !c.is_control() && !turns(*c)).collect()
}

/// The characters that set the direction of text: Unicode Standard Annex 9, section 2.
fn turns(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
