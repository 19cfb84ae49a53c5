//! Random texts and numbers.

use judge::expected::{Expected, What};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// What is another in each run, so that nobody knows it beforehand: it stands for the names in braces that [`Drawn::fill`] has.
pub(crate) struct Drawn {
    pub(crate) text: String,
    other: String,
    /// Too long for two packets; no part of it looks like another.
    long: String,
    /// So long that it fills all of a ConnectReject's private data, without a zero behind it.
    full: String,
    len: String,
    /// One less.
    short: String,
    port: String,
    /// None of these is a number of the run.
    wrong: String,
}

/// Bytes of private data in a ConnectReject.
const REJECT: usize = 148;

impl Drawn {
    pub(crate) fn new() -> Self {
        const WORDS: [&str; 8] = ["otter", "maple", "comet", "harbor", "violet", "copper", "meadow", "lantern"];
        // Rust's hash tables have random keys.
        let lot = RandomState::new().build_hasher().finish();
        let word = |at: u32| WORDS[(lot >> at) as usize % WORDS.len()];
        let text = format!("{}-{}-{:05}", word(0), word(8), lot >> 48);
        let long: String = (0..250).map(|at| format!("-{}-{at}", word(at % 61))).collect();
        let (len, port) = (100 + (lot >> 20) % 400, 20_000 + (lot >> 28) % 20_000);
        Self {
            full: (text.clone() + &long).chars().take(REJECT).collect(),
            long: text.clone() + &long,
            text,
            other: format!("{}-{}-{:05}", word(4), word(12), (lot >> 32) & 0xffff),
            len: len.to_string(),
            short: (len - 1).to_string(),
            wrong: (port + 1).to_string(),
            port: port.to_string(),
        }
    }

    pub(crate) fn fill(&self, text: &str) -> String {
        let Self { text: one, other, long, full, len, short, port, wrong } = self;
        let texts = [("{text}", one), ("{other}", other), ("{long}", long), ("{full}", full)];
        let numbers = [("{len}", len), ("{short}", short), ("{port}", port), ("{wrong}", wrong)];
        let drawn = texts.into_iter().chain(numbers);
        drawn.into_iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    }

    pub(crate) fn filled(&self, expected: &Expected) -> Expected {
        let what = match &expected.what {
            What::Packet(packet) => What::Packet(self.fill(packet)),
            What::Line(line) => What::Line(self.fill(line)),
            What::Printed(text) => What::Printed(self.fill(text)),
            What::Call(call) => What::Call(self.fill(call)),
            What::Note(note) => What::Note(self.fill(note)),
            other => other.clone(),
        };
        Expected { what, hint: self.fill(&expected.hint), ..expected.clone() }
    }
}
