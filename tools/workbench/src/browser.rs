//! What a page calls, compiled to WebAssembly: text in, JSON or a run file out. The other side is tools/book/workbench/core.js.
//!
//! Before each answer come four bytes with its length, little-endian. The page gives memory back by loading the program again.

use crate::{challenge, shown};
use serde::Deserialize;

/// What a page asks for.
#[derive(Debug, Deserialize)]
struct Asked {
    script: String,
    /// The name of the challenge that the run is judged by.
    challenge: Option<String>,
}

/// Memory for a request of this many bytes, which the page fills. If there isn't that much, the program ends.
#[cfg_attr(target_arch = "wasm32", no_mangle)]
pub extern "C" fn allocate(length: usize) -> *mut u8 {
    Box::leak(vec![0; length].into_boxed_slice()).as_mut_ptr()
}

/// Runs the script of a request `{"script": …, "challenge": name or null}`, and says all that happened, as JSON; or
/// `{"error": {"line": …, "says": …}}`.
///
/// # Safety
/// There are `length` bytes at `request`, which nobody changes meanwhile.
#[cfg_attr(target_arch = "wasm32", no_mangle)]
pub unsafe extern "C" fn run(request: *const u8, length: usize) -> *const u8 {
    // SAFETY: as the caller says.
    let request = unsafe { std::slice::from_raw_parts(request, length) };
    answer(ran(request).as_bytes())
}

/// The run file of the same run; no bytes if the script isn't understood.
///
/// # Safety
/// There are `length` bytes at `request`, which nobody changes meanwhile.
#[cfg_attr(target_arch = "wasm32", no_mangle)]
pub unsafe extern "C" fn file(request: *const u8, length: usize) -> *const u8 {
    // SAFETY: as the caller says.
    let request = unsafe { std::slice::from_raw_parts(request, length) };
    answer(&run_file(request))
}

/// All challenges, as JSON. What's asked doesn't matter.
#[cfg_attr(target_arch = "wasm32", no_mangle)]
pub extern "C" fn challenges(_request: *const u8, _length: usize) -> *const u8 {
    answer(all_challenges().as_bytes())
}

/// What [`challenges`] answers.
pub fn all_challenges() -> String {
    let all: Vec<serde_json::Value> = challenge::all().iter().map(challenge::Challenge::shown).collect();
    serde_json::Value::from(all).to_string()
}

/// What [`run()`] answers.
pub fn ran(request: &[u8]) -> String {
    match serde_json::from_slice::<Asked>(request) {
        Ok(asked) => shown::shown(&asked.script, asked.challenge.as_deref()),
        Err(error) => serde_json::json!({ "error": { "line": 0, "says": error.to_string() } }).to_string(),
    }
}

/// What [`file()`] answers.
pub fn run_file(request: &[u8]) -> Vec<u8> {
    let asked = serde_json::from_slice::<Asked>(request).ok();
    let run = asked.and_then(|asked| shown::run(&asked.script).ok());
    run.map(|(_, run)| run.record.file).unwrap_or_default()
}

/// Hands bytes over, with their length before them.
fn answer(bytes: &[u8]) -> *const u8 {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let bytes = [&length.to_le_bytes(), bytes].concat();
    Box::leak(bytes.into_boxed_slice()).as_ptr()
}
