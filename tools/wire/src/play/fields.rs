//! The fields of packets, written small: most packets have the same headers in the same places.

use crate::show::parts::{Part, Value};
use serde::Serialize;
use std::collections::HashMap;
use std::hash::Hash;

/// A header and its place in the frame.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub(super) struct Layout {
    title: String,
    start: usize,
    length: usize,
    /// Name, first bit, bits, and how the value is read from them: `dec`, `hex`, or not at all, `text`.
    fields: Vec<(&'static str, usize, usize, &'static str)>,
}

/// A layout's number; and pairs of a field's place in it and the number of a text about it: what its value means, or, where
/// that is not read from the bits, the value, a tab and the meaning.
pub(super) type Shown = (usize, Vec<usize>);

/// Things that have numbers, from 0.
#[derive(Debug, Default)]
pub(super) struct Numbered<T>(Vec<T>, HashMap<T, usize>);

impl<T: Clone + Eq + Hash> Numbered<T> {
    pub(super) fn number(&mut self, thing: T) -> usize {
        let next = self.0.len();
        let number = *self.1.entry(thing.clone()).or_insert(next);
        if number == next {
            self.0.push(thing);
        }
        number
    }

    pub(super) fn into_inner(self) -> Vec<T> {
        self.0
    }
}

/// All layouts and texts of a run.
#[derive(Debug, Default)]
pub(super) struct Fields {
    pub(super) layouts: Numbered<Layout>,
    pub(super) texts: Numbered<String>,
}

impl Fields {
    pub(super) fn shown(&mut self, part: Part, frame: &[u8]) -> Shown {
        let (mut fields, mut about) = (Vec::new(), Vec::new());
        for (place, value) in part.values.into_iter().enumerate() {
            let way = way(&value, frame);
            let text = if way == "text" { format!("{}\t{}", value.value, value.meaning) } else { value.meaning };
            if !text.is_empty() && text != "\t" {
                about.extend([place, self.texts.number(text)]);
            }
            fields.push((value.name, value.bit, value.bits, way));
        }
        (self.layouts.number(Layout { title: part.title, start: part.start, length: part.length, fields }), about)
    }
}

/// How the value can be had from the frame.
fn way(value: &Value, frame: &[u8]) -> &'static str {
    let (first, end) = value.span();
    let Some(bytes) = frame.get(first..end).filter(|bytes| bytes.len() <= 8) else { return "text" };
    let whole = bytes.iter().fold(0, |whole, byte| whole << 8 | u64::from(*byte));
    let number = whole >> (end * 8 - value.bit - value.bits) & (u64::MAX >> (64 - value.bits.clamp(1, 64)));
    match value.value.strip_prefix("0x") {
        Some(hex) if u64::from_str_radix(hex, 16) == Ok(number) => "hex",
        None if value.value == number.to_string() => "dec",
        _ => "text",
    }
}
