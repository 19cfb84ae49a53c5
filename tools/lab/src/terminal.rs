//! This host's terminal, lent to a shell in a machine: keys go in, what the shell prints comes out, and packets are
//! printed between its lines.
//!
//! While it is lent, the terminal passes on each key as it is, Ctrl-C too (raw mode): the machine's own terminal
//! makes a signal of it, for the program that runs there.

use crate::interrupt::Stopped;
use anyhow::{ensure, Context, Result};
use run::file::{Event, Line};
use run::programs::CLIENT;
use run::words::summary;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::termios::{tcgetattr, tcgetwinsize, tcsetattr, OptionalActions, Termios};
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::BorrowedFd;

/// Ctrl-]: leaves a shell that does not react any more, as it leaves telnet.
const ESCAPE: u8 = 0x1d;
/// A line longer than this, in bytes, is not printed a second time below a packet.
const LONGEST: usize = 4096;
/// Ends colors, shows the cursor, and leaves the second screen that editors use: what a program in the machine
/// would have done, had it been left to end.
const RESET: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1047l";
/// Asks the terminal where its cursor is; it answers as if somebody had typed.
const ASK: &[u8] = b"\x1b[6n";

/// Standard input and output, if both are a terminal. Dropping it gives the terminal back as it was.
#[derive(Debug)]
pub struct Terminal {
    color: bool,
    /// Its settings from before it was lent; None while it is not.
    before: Option<Termios>,
    /// The nodes' names, in the order of their cards' addresses.
    nodes: Vec<String>,
    /// Rows and columns as the machine knows them.
    size: Option<(u16, u16)>,
    /// What stands on the cursor's line: a prompt, and what is being typed.
    line: Vec<u8>,
    /// Keys that the machine has not taken yet.
    keys: Vec<u8>,
}

impl Terminal {
    /// Takes the terminal; nothing about it changes yet.
    pub fn open() -> Result<Self> {
        let both = io::stdin().is_terminal() && io::stdout().is_terminal();
        ensure!(both, "a shell needs a terminal to read from and to print to. Without one, use `lab exec`");
        let color = std::env::var_os("NO_COLOR").is_none();
        Ok(Self { color, before: None, nodes: Vec::new(), size: size(), line: Vec::new(), keys: Vec::new() })
    }

    /// From now on all keys are the client's, which is one of these nodes.
    pub fn lend(&mut self, nodes: Vec<String>) -> Result<()> {
        self.nodes = nodes;
        let before = tcgetattr(io::stdin()).context("cannot read the terminal's settings (tcgetattr)")?;
        let mut raw = before.clone();
        raw.make_raw();
        self.before = Some(before);
        tcsetattr(io::stdin(), OptionalActions::Now, &raw).context("cannot set the terminal to raw mode (tcsetattr)")
    }

    /// The keyboard to wait for: none while the terminal is not lent, or the machine has yet to take earlier keys.
    pub fn keyboard(&self) -> Option<BorrowedFd<'static>> {
        (self.before.is_some() && self.keys.is_empty()).then(rustix::stdio::stdin)
    }

    /// Whether there are keys that the machine has not taken.
    pub fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Reads what was typed, without waiting; false for the key that leaves the shell without its consent.
    pub fn read(&mut self) -> Result<bool> {
        let Some(keyboard) = self.keyboard() else { return Ok(true) };
        // The terminal is shared with the shell that started the lab, so it must not be made non-blocking.
        let mut entry = [PollFd::from_borrowed_fd(keyboard, PollFlags::IN)];
        if poll(&mut entry, Some(&Timespec::default())).unwrap_or(0) == 0 {
            return Ok(true);
        }
        let mut bytes = [0; 4096];
        let count = rustix::io::read(keyboard, &mut bytes).unwrap_or(0);
        // The terminal is gone.
        ensure!(count > 0, Stopped::Interrupted(None));
        self.keys.extend_from_slice(&bytes[..count]);
        Ok(!self.keys.contains(&ESCAPE))
    }

    /// Gives the machine as many keys as it takes.
    pub fn pass_keys(&mut self, port: &mut File) {
        // Keys for a machine that is gone are of no use; that it is gone shows elsewhere.
        while let Ok(count @ 1..) = port.write(&self.keys) {
            self.keys.drain(..count);
        }
    }

    /// Rows and columns, if they have changed since the last call or since the terminal was opened.
    pub fn new_size(&mut self) -> Option<(u16, u16)> {
        let size = size();
        let is_new = size != self.size;
        self.size = size;
        size.filter(|_| is_new)
    }

    /// Prints what the shell printed.
    pub fn show(&mut self, bytes: &[u8]) {
        print(bytes);
        if let Some(newline) = bytes.iter().rposition(|byte| *byte == b'\n') {
            self.line.clear();
            self.line.extend_from_slice(&bytes[newline + 1..]);
        } else {
            self.line.extend_from_slice(bytes);
        }
        // To ask the terminal twice where its cursor is would give two answers.
        while let Some(start) = self.line.windows(ASK.len()).position(|window| window == ASK) {
            self.line.drain(start..start + ASK.len());
        }
    }

    /// Prints what else happens, packets and what others print, above the line that is being typed or printed.
    pub fn insert(&mut self, event: &Event<'_>) {
        let Some(text) = line_for(event, &self.nodes) else { return };
        let columns = self.size.map_or(80, |(_, columns)| usize::from(columns));
        let text: String = text.chars().take(columns.saturating_sub(1)).collect();
        if self.line.len() > LONGEST {
            self.line.clear();
            print(b"\r\n");
        }
        // Dim, and then as before.
        let (dim, plain) = if self.color { ("\x1b[2m", "\x1b[0m") } else { ("", "") };
        print(&[format!("\r\x1b[K{dim}{text}{plain}\r\n").as_bytes(), &self.line].concat());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let Some(before) = self.before.take() else { return };
        print(RESET);
        if !self.line.is_empty() {
            print(b"\r\n");
        }
        // Fails only if the terminal is gone.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &before);
    }
}

/// Rows and columns of the terminal, if it is one that has them.
pub fn size() -> Option<(u16, u16)> {
    let size = tcgetwinsize(io::stdout()).ok()?;
    (size.ws_row > 0 && size.ws_col > 0).then_some((size.ws_row, size.ws_col))
}

/// A terminal that is gone shows when it is read.
fn print(bytes: &[u8]) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(bytes).and_then(|()| out.flush());
}

/// One line about an event. What the shell printed has been shown already, and frames other than RoCE packets are only
/// recorded, as in every run.
fn line_for(event: &Event<'_>, nodes: &[String]) -> Option<String> {
    match event {
        Event::Line(line) if ["start", Line::END].contains(&line.act.as_str()) => None,
        Event::Line(line) if line.node == CLIENT && ![Line::LAB, Line::KERNEL].contains(&line.program.as_str()) => None,
        Event::Line(Line { node, text, .. }) => Some(format!("{node} │ {text}")),
        Event::Packet(sighting) => {
            let (packet, from) = (sighting.packet()?, sighting.node?);
            // The last byte of a card's address is the node's number, from 1.
            let to = nodes.get(usize::from(sighting.data[5]).wrapping_sub(1)).map_or("?", String::as_str);
            let way = if to == CLIENT { format!("{to} ◀── {from}") } else { format!("{from} ──▶ {to}") };
            Some(format!("{way}  {}", summary(packet, from == CLIENT)))
        }
    }
}
