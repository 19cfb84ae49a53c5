//! The lanes on standard output, while a run goes on.

use super::{Lanes, Style};
use crate::file::Event;
use std::io::{self, Write};
use std::mem;

/// What is shown of a run; perhaps nothing.
#[derive(Debug)]
pub struct Live {
    lanes: Option<Lanes>,
    /// Stands above the first event.
    heading: String,
}

impl Live {
    /// The lanes of a run of these nodes, unless it is to be silent.
    pub fn new<T: AsRef<str>>(nodes: &[T], is_silent: bool) -> Live {
        let lanes = (!is_silent).then(|| Lanes::new(nodes, Style::of_output()));
        Live { heading: lanes.as_ref().map(Lanes::heading).unwrap_or_default(), lanes }
    }

    /// Shows what happens.
    pub fn event(&mut self, event: &Event<'_>) {
        if let Some(lanes) = &mut self.lanes {
            print(&(mem::take(&mut self.heading) + &lanes.event(event)));
        }
    }
}

/// Prints. A reader that has gone away (`… | head`) does not end the run: its files are still of use.
pub fn print(text: &str) {
    let mut out = io::stdout();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
