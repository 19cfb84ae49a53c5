//! The log: one line for every verbs call, printed *before* the call, so that it stands before the packet it causes.
//!
//! ```text
//! [12:00:00.123 #0007 accept] SLOW  rdma_accept
//!  time (UTC)   seq   stage   tag   text
//! ```
//!
//! The tag is the log target, so `RUST_LOG=DATA` shows the data path alone:
//!
//! | tag  | what |
//! |------|------|
//! | SLOW | the control path: CM calls, creating, registering and destroying. System calls, once per connection |
//! | FAST | preparing and waiting on the data path: arming, waiting |
//! | DATA | one line per data-path operation: post, poll |
//! | INFO | decoded dumps: QP, MR, SGE, WR, WC, CM events |
//! | ERR  | what failed, what it means, what to do next |
//!
//! The log goes to standard error. What a lesson was run for (`SUCCESS, …`) goes to standard output.

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use owo_colors::{AnsiColors, OwoColorize};

/// Logs one line of the control path.
#[macro_export]
macro_rules! slow { ($($arg:tt)+) => { $crate::narrate::line("SLOW", format_args!($($arg)+)) } }
/// Logs one line of preparing for, or waiting on, the data path.
#[macro_export]
macro_rules! fast { ($($arg:tt)+) => { $crate::narrate::line("FAST", format_args!($($arg)+)) } }
/// Logs one data-path operation.
#[macro_export]
macro_rules! data { ($($arg:tt)+) => { $crate::narrate::line("DATA", format_args!($($arg)+)) } }
/// Logs a decoded dump.
#[macro_export]
macro_rules! info { ($($arg:tt)+) => { $crate::narrate::line("INFO", format_args!($($arg)+)) } }
/// Prints a result on standard output.
#[macro_export]
macro_rules! say { ($($arg:tt)+) => { $crate::narrate::result(format_args!($($arg)+)) } }

struct Narration {
    sequence: u32,
    stages: Vec<&'static str>,
}

/// What comes before the first call of [`stage`].
const FIRST_STAGE: &str = "main";

static NARRATION: Mutex<Narration> = Mutex::new(Narration { sequence: 0, stages: Vec::new() });

fn narration() -> MutexGuard<'static, Narration> {
    NARRATION.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the log. `RUST_LOG` filters it as usual; without it everything is shown. `NO_COLOR` turns color off.
pub fn start() {
    let color = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let filter = env_logger::Env::default().default_filter_or("info");
    // A second start (two tests in one process) keeps the first log, which is as good.
    let _ = env_logger::Builder::from_env(filter)
        .format(move |out, record| {
            let (sequence, stage) = next_line();
            let head = head(since_midnight(), sequence, stage);
            let tag = format!("{:<4}", record.target());
            if color {
                writeln!(out, "{} {}  {}", head.dimmed(), tag.color(tag_color(record.target())), record.args())
            } else {
                writeln!(out, "{head} {tag}  {}", record.args())
            }
        })
        .try_init();
}

/// Names the stage that all lines from here on belong to: the lesson's function, as in `stage("accept")`.
pub fn stage(name: &'static str) {
    let mut narration = narration();
    if narration.stages.len() == 12 {
        narration.stages.remove(0);
    }
    narration.stages.push(name);
}

/// The stages passed so far, oldest first, as in `main → listen → wait_connect_request → accept`.
///
/// A server that serves many clients passes the same stages again and again: only the last twelve are kept.
pub fn history() -> String {
    std::iter::once(FIRST_STAGE).chain(narration().stages.iter().copied()).collect::<Vec<_>>().join(" → ")
}

/// One log line; called by the macros.
pub fn line(tag: &'static str, text: std::fmt::Arguments) {
    log::info!(target: tag, "{text}");
}

/// One line about a failure: it passes every filter but `RUST_LOG=off`.
pub fn failure(text: &str) {
    log::error!(target: "ERR", "{text}");
}

/// One line on standard output; called by [`say!`](crate::say).
pub fn result(text: std::fmt::Arguments) {
    // A reader that has gone away (`… | head -1`) is no reason to fail.
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Bytes for people: text in quotes where it is text, else the first and last bytes in hex. Zeroes at the end, which are
/// mostly room that nobody used, are left out. What a peer sent cannot disturb the terminal.
pub fn preview(bytes: &[u8]) -> String {
    let used = bytes.len() - bytes.iter().rev().take_while(|byte| **byte == 0).count();
    match std::str::from_utf8(&bytes[..used]) {
        Ok(text) if !text.contains('\0') => format!("{text:?}"),
        _ if used <= 24 => hex(&bytes[..used]),
        _ => format!("{} … {}", hex(&bytes[..16]), hex(&bytes[used - 8..used])),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

fn next_line() -> (u32, &'static str) {
    let mut narration = narration();
    narration.sequence += 1;
    (narration.sequence, narration.stages.last().copied().unwrap_or("main"))
}

fn since_midnight() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Duration::from_millis((now.as_millis() % 86_400_000) as u64)
}

fn head(time: Duration, sequence: u32, stage: &str) -> String {
    let seconds = time.as_secs();
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("[{hour:02}:{minute:02}:{second:02}.{:03} #{sequence:04} {stage}]", time.subsec_millis())
}

fn tag_color(tag: &str) -> AnsiColors {
    match tag {
        "SLOW" => AnsiColors::Yellow,
        "FAST" => AnsiColors::Cyan,
        "DATA" => AnsiColors::Green,
        "ERR" => AnsiColors::Red,
        _ => AnsiColors::Blue,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_shows_time_sequence_and_stage() {
        let time = Duration::from_millis(((13 * 60 + 5) * 60 + 9) * 1000 + 42);
        assert_eq!(head(time, 7, "accept"), "[13:05:09.042 #0007 accept]");
    }

    #[test]
    fn a_day_has_no_twenty_fifth_hour() {
        assert!(since_midnight() < Duration::from_secs(86_400));
    }

    #[test]
    fn previews() {
        assert_eq!(preview(b"hello\0\0"), "\"hello\"");
        assert_eq!(preview(b"\x1b[2J"), "\"\\u{1b}[2J\"");
        assert_eq!(preview(&[0, 1, 0xff, 0]), "00 01 ff");
        let pattern: Vec<u8> = (0..=255).collect();
        assert!(preview(&pattern).ends_with("0e 0f … f8 f9 fa fb fc fd fe ff"), "{}", preview(&pattern));
    }

    #[test]
    fn history_lists_stages_in_order() {
        stage("listen");
        stage("accept");
        assert!(history().ends_with("listen → accept"), "{}", history());
    }
}
