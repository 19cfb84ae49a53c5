//! Reader, decoder, ladder, lanes, stories, comparison and player: whatever the bytes of a capture, nothing panics.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/all/exercise/mod.rs"]
mod exercise;

fuzz_target!(|bytes: &[u8]| exercise::everything(bytes));
