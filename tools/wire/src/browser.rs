//! What a page in a browser calls, compiled to WebAssembly: bytes in, JSON out. The other side is tools/book/explain/explain.js.
//!
//! Three functions, and no fourth that gives memory back: the page loads the program again for each capture, and with the old
//! program all goes that it had.

use crate::{explain, packed, play};
use run::capture::{Error, Events};
use serde_json::{json, Value};

/// Memory for a capture of this many bytes, which the page fills. If there isn't that much, the program ends.
#[cfg_attr(target_arch = "wasm32", no_mangle)]
pub extern "C" fn allocate(length: usize) -> *mut u8 {
    Box::leak(vec![0; length].into_boxed_slice()).as_mut_ptr()
}

/// What went wrong in a capture, as JSON; or `{"error": …}`, if it cannot be read. The first four bytes say how many bytes of UTF-8
/// come behind them, little-endian.
///
/// # Safety
/// There are `length` bytes at `capture`, which nobody changes meanwhile.
#[cfg_attr(target_arch = "wasm32", no_mangle)]
pub unsafe extern "C" fn explain(capture: *const u8, length: usize) -> *const u8 {
    // SAFETY: as the caller says; it owns them, and keeps them while this runs.
    let capture = unsafe { std::slice::from_raw_parts(capture, length) };
    let told = packed::reader(capture).and_then(|mut reader| explain::explain(&mut reader));
    answer(&told.map_or_else(error, |told| told.shown()).to_string())
}

/// The capture for the player, as `wire play --data` writes it; or `{"error": …}`. Its length comes before it.
///
/// # Safety
/// There are `length` bytes at `capture`, which nobody changes meanwhile.
#[cfg_attr(target_arch = "wasm32", no_mangle)]
pub unsafe extern "C" fn play(capture: *const u8, length: usize) -> *const u8 {
    // SAFETY: as the caller says; it owns them, and keeps them while this runs.
    let capture = unsafe { std::slice::from_raw_parts(capture, length) };
    let run = packed::reader(capture).map(|reader| Events::most(reader, play::MOST_KEPT));
    answer(&run.map_or_else(|why| error(why).to_string(), |events| play::run(&events, "", None).json()))
}

fn error(error: Error) -> Value {
    json!({ "error": format!("{error:#}") })
}

/// Hands a text over, with its length before it.
fn answer(text: &str) -> *const u8 {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    let bytes = [&length.to_le_bytes(), text.as_bytes()].concat();
    Box::leak(bytes.into_boxed_slice()).as_ptr()
}
