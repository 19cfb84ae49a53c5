//! The lanes on standard output, while a run goes on.

use super::told::Teller;
use super::{Lanes, Style};
use crate::file::Event;
use crate::story::Story;
use crate::waiting::Notice;
use std::io::{self, Write};
use std::mem;
use std::time::Instant;

/// What is shown of a run; perhaps nothing.
#[derive(Debug)]
pub struct Live<'s> {
    view: View<'s>,
    /// Stands above the first event.
    heading: String,
    /// Tells what is waited for when nothing was shown for a while; None if the terminal is somebody else's.
    notice: Option<Notice>,
    shown: Instant,
}

#[derive(Debug)]
enum View<'s> {
    Silent,
    /// Every event.
    All(Box<Lanes>),
    /// The story, of which a part is open.
    Story(Box<Teller<'s>>),
}

impl<'s> Live<'s> {
    /// The lanes of a run of these nodes, told as a story if there is one, unless it is to be silent.
    pub fn new<T: AsRef<str>>(nodes: &[T], is_silent: bool, story: Option<&'s Story>) -> Live<'s> {
        let lanes = Lanes::new(nodes, Style::of_output());
        let heading = if is_silent { String::new() } else { lanes.heading() };
        let view = match story {
            _ if is_silent => View::Silent,
            None => View::All(Box::new(lanes)),
            Some(story) => View::Story(Box::new(Teller::new(lanes, story))),
        };
        Live { view, heading, notice: Some(Notice::default()), shown: Instant::now() }
    }

    /// The same, for a terminal that is somebody else's, or for somebody who wants to hear nothing.
    #[must_use]
    pub fn unnoticed(self) -> Live<'s> {
        Live { notice: None, ..self }
    }

    /// Tells what is waited for, if nothing was shown for a while.
    pub fn waits(&mut self, what: impl FnOnce() -> String) {
        if let Some(notice) = &mut self.notice {
            notice.look(self.shown, what);
        }
    }

    /// The wait is over: something is to be shown.
    pub fn clear(&mut self) {
        self.shown = Instant::now();
        self.notice.iter_mut().for_each(Notice::clear);
    }

    /// Shows what happens.
    pub fn event(&mut self, event: &Event<'_>) {
        let text = match &mut self.view {
            View::Silent => return,
            View::All(lanes) => lanes.event(event),
            View::Story(told) => told.event(event),
        };
        if !text.is_empty() {
            self.clear();
            print(&(mem::take(&mut self.heading) + &text));
        }
    }

    /// Shows what comes after the last event.
    pub fn end(&mut self) {
        self.clear();
        if let View::Story(told) = &self.view {
            print(&told.end());
        }
    }
}

/// Prints. A reader that has gone away (`… | head`) does not end the run: its files are still of use.
pub fn print(text: &str) {
    let mut out = io::stdout();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
