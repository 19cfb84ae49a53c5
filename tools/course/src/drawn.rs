//! Texts and numbers that are drawn by lot.

use crate::expected::{Expected, What};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// What is another in each run, so that nobody knows it beforehand: it stands for `{text}`, `{other}`, `{long}`, `{len}` and `{port}`.
pub(crate) struct Drawn {
    pub(crate) text: String,
    other: String,
    /// Too long for two packets; no part of it looks like another.
    long: String,
    len: String,
}

impl Drawn {
    pub(crate) fn new() -> Self {
        const WORDS: [&str; 8] = ["otter", "maple", "comet", "harbor", "violet", "copper", "meadow", "lantern"];
        // The keys of Rust's hash tables are drawn by lot.
        let lot = RandomState::new().build_hasher().finish();
        let word = |at: u32| WORDS[(lot >> at) as usize % WORDS.len()];
        let text = format!("{}-{}-{:05}", word(0), word(8), lot >> 48);
        let long: String = (0..250).map(|at| format!("-{}-{at}", word(at % 61))).collect();
        Self {
            long: text.clone() + &long,
            text,
            other: format!("{}-{}-{:05}", word(4), word(12), (lot >> 32) & 0xffff),
            len: (100 + (lot >> 20) % 400).to_string(),
        }
    }

    pub(crate) fn fill(&self, text: &str) -> String {
        let Self { text: one, other, long, len } = self;
        let drawn = [("{text}", one), ("{other}", other), ("{long}", long), ("{len}", len), ("{port}", len)];
        drawn.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
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
