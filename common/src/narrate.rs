//! The log: one line for every verbs call, printed *before* the call, so that it precedes the packet it causes.
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
//! | SLOW | what sets up and tears down: CM calls, creating, registering, destroying. System calls, once per connection |
//! | FAST | what arms and waits on the data path: posting a receive, arming the CQ, sleeping until something comes |
//! | DATA | the operation itself: a SEND, WRITE or READ posted, and its completion (WC) |
//! | INFO | decoded dumps: QP, MR, SGE, WR, CM events |
//! | ERR  | what failed, what it means, what to do next |
//!
//! A stage is one function of a lesson: its lines carry its name until it returns. `--stages NAME,…` shows these alone.
//!
//! A text begins with its call, or with what it's about and a colon (`MR:`, `WC:`, `CM event:`). Names in capitals and `key=value`
//! are what the tools read, so they must stay; all other words are for you, and may change.
//!
//! The log goes to standard error. What a lesson was run for (`SUCCESS, …`) goes to standard output.
//!
//! What a run is recorded with asks for the source of each line, by the variable `LOG_SOURCE`. Then each line begins with the place
//! in the lesson that has made the call: `[at lessons/04_rdma_write/src/client.rs:75] `. All functions of this crate that log
//! are `#[track_caller]` for that. What is dropped has no caller: its lines name the place where their stage begins.

use std::io::{IsTerminal, Write};
use std::panic::Location;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use log::{Level, Record};
use owo_colors::{AnsiColors, OwoColorize};

/// Logs one line if its tag is on. If it's off, nothing is evaluated, so a line costs one comparison.
#[doc(hidden)]
#[macro_export]
macro_rules! log_line {
    ($tag:literal, $($arg:tt)+) => {
        if $crate::narrate::is_on($tag) {
            $crate::narrate::line($tag, format_args!($($arg)+));
        }
    };
}
/// Logs one line of the control path.
#[macro_export]
macro_rules! slow { ($($arg:tt)+) => { $crate::log_line!("SLOW", $($arg)+) } }
/// Logs one line of what arms or waits on the data path.
#[macro_export]
macro_rules! fast { ($($arg:tt)+) => { $crate::log_line!("FAST", $($arg)+) } }
/// Logs one data-path operation.
#[macro_export]
macro_rules! data { ($($arg:tt)+) => { $crate::log_line!("DATA", $($arg)+) } }
/// Logs a decoded dump.
#[macro_export]
macro_rules! info { ($($arg:tt)+) => { $crate::log_line!("INFO", $($arg)+) } }
/// Prints a result on standard output.
#[macro_export]
macro_rules! say { ($($arg:tt)+) => { $crate::narrate::result(format_args!($($arg)+)) } }

/// A line of a source.
type Caller = &'static Location<'static>;

struct Narration {
    sequence: u32,
    /// The stages that have begun and not ended, the innermost last, each with the place where it began.
    open: Vec<(&'static str, Caller)>,
    /// The last stages that have begun, whether ended or not.
    begun: Vec<&'static str>,
    /// The stages that are logged; none: all.
    shown: Vec<String>,
}

/// What comes before the first call of [`stage`].
const FIRST_STAGE: &str = "main";

/// How many stages of the past are kept. A server that serves many clients passes the same ones again and again.
const KEPT: usize = 12;

static NARRATION: Mutex<Narration> =
    Mutex::new(Narration { sequence: 0, open: Vec::new(), begun: Vec::new(), shown: Vec::new() });

impl Narration {
    /// The stage that a line belongs to now.
    fn stage(&self) -> &'static str {
        self.open.last().map_or(FIRST_STAGE, |(name, _)| name)
    }

    /// The lesson's line for a caller. A caller within this crate has none, because a drop isn't called by the lesson. Then it's the
    /// place where the stage begins.
    fn place(&self, caller: Caller) -> Option<Caller> {
        let is_own = Path::new(file!()).parent().is_some_and(|own| Path::new(caller.file()).starts_with(own));
        if is_own {
            return self.open.last().map(|(_, place)| *place);
        }
        Some(caller)
    }
}

fn narration() -> MutexGuard<'static, Narration> {
    NARRATION.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The log if a lesson doesn't choose: all of it.
pub const ALL: &str = "info";

/// Starts the log. `RUST_LOG` filters it as usual, but for failures; without it `default` does. `NO_COLOR` turns color off.
pub fn start(default: &str) {
    let color = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let filter = env_logger::Env::default().default_filter_or(default);
    // A second start (two tests in one process) keeps the first log, which is as good.
    let _ = env_logger::Builder::from_env(filter)
        // Somebody who asked only for DATA still wants to know why there's no more of it.
        .filter_module("ERR", log::LevelFilter::Error)
        .format(move |out, record| {
            let (sequence, stage) = next_line();
            let head = head(since_midnight(), sequence, stage);
            let tag = format!("{:<4}", record.target());
            let source = source(record.file().zip(record.line()));
            if color {
                writeln!(out, "{source}{} {}  {}", head.dimmed(), tag.color(tag_color(record.target())), record.args())
            } else {
                writeln!(out, "{source}{head} {tag}  {}", record.args())
            }
        })
        .try_init();
    if default != ALL && std::env::var_os("RUST_LOG").is_none() {
        result(format_args!("the log has {default} alone: with RUST_LOG={ALL} it has a line for each request, too"));
    }
}

/// A stage that has begun. Keep it until the function returns: dropping it ends the stage.
#[must_use = "a stage ends when this is dropped: `let _stage = stage(..)`"]
pub struct Stage(());

/// Begins a stage: the lesson's function, as in `let _stage = stage("accept")`.
#[track_caller]
pub fn stage(name: &'static str) -> Stage {
    let mut narration = narration();
    if narration.begun.len() == KEPT {
        narration.begun.remove(0);
    }
    narration.begun.push(name);
    narration.open.push((name, Location::caller()));
    Stage(())
}

impl Drop for Stage {
    /// What is dropped after this belongs to the function that called this one.
    fn drop(&mut self) {
        narration().open.pop();
    }
}

/// The last stages that have begun, oldest first, as in `main → listen → wait_connect_request → accept`.
fn history() -> String {
    std::iter::once(FIRST_STAGE).chain(narration().begun.iter().copied()).collect::<Vec<_>>().join(" → ")
}

/// The stage that began last, which is where a failure happened even after the stage's function has returned.
pub fn last_stage() -> &'static str {
    narration().begun.last().copied().unwrap_or(FIRST_STAGE)
}

/// From now on only these stages are logged (`--stages`). None: all.
pub fn show_only(stages: Vec<String>) {
    narration().shown = stages;
}

/// Does anybody want to see lines with this tag?
pub fn is_on(tag: &'static str) -> bool {
    log::log_enabled!(target: tag, log::Level::Info)
}

/// One log line; called by the macros.
#[track_caller]
pub fn line(tag: &'static str, text: std::fmt::Arguments) {
    let narration = narration();
    let stage = narration.stage();
    let shown = narration.shown.is_empty() || narration.shown.iter().any(|name| name == stage);
    drop(narration);
    if shown {
        log_at(Location::caller(), Level::Info, tag, text);
    }
}

/// One line about a failure: it passes every filter.
#[track_caller]
pub fn failure(text: &str) {
    log_at(Location::caller(), Level::Error, "ERR", format_args!("{text}"));
}

/// What `log::log!` does, but for the place.
fn log_at(caller: Caller, level: Level, tag: &'static str, text: std::fmt::Arguments) {
    let place = narration().place(caller);
    let mut record = Record::builder();
    record.level(level).target(tag).args(text).file_static(place.map(Location::file)).line(place.map(Location::line));
    log::logger().log(&record.build());
}

/// A failure that ends something, and how it came so far.
#[track_caller]
pub fn failed(text: &str) {
    failure(text);
    failure(&format!("the stages so far: {}", history()));
}

/// One line on standard output; called by [`say!`](crate::say).
#[track_caller]
pub fn result(text: std::fmt::Arguments) {
    let source = source(narration().place(Location::caller()).map(|place| (place.file(), place.line())));
    // We don't fail because a reader has gone away (`… | head -1`).
    let _ = writeln!(std::io::stdout(), "{source}{text}");
}

/// What a line begins with for programs that record it: where it comes from.
fn source(place: Option<(&str, u32)>) -> String {
    static IS_WANTED: OnceLock<bool> = OnceLock::new();
    let is_wanted = *IS_WANTED.get_or_init(|| std::env::var_os("LOG_SOURCE").is_some_and(|value| !value.is_empty()));
    let place = place.filter(|_| is_wanted);
    place.map(|(file, line)| format!("[at {file}:{line}] ")).unwrap_or_default()
}

/// Bytes for people: text in quotes where it is text, else the first and last bytes in hex. Zeroes at the end, which are
/// mostly unused room, are left out. Nothing that a peer sends can disturb the terminal.
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
    (narration.sequence, narration.stage())
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
        "SLOW" => AnsiColors::Magenta,
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
    fn a_stage_ends_with_its_function_and_stays_in_the_history() {
        let outer = stage("serve");
        drop(stage("accept"));
        assert_eq!((next_line().1, last_stage()), ("serve", "accept"));
        assert!(history().ends_with("serve → accept"), "{}", history());
        drop(outer);
        assert_eq!(next_line().1, "main");
    }
}
