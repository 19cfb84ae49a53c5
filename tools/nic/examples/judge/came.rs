//! What the learner's NIC was given last: where it was when it panics, or does not end.

use crate::report;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Mutex;
use std::time::Duration;
use std::{panic, process, thread};

/// What takes longer over what it was given goes in circles: a right hole takes a moment, on a busy machine a little more.
const SECONDS: u8 = 5;

/// How often it was given something.
static COUNT: AtomicU64 = AtomicU64::new(0);
static LAST: Mutex<String> = Mutex::new(String::new());

/// Notes what it is given now.
pub fn now(what: impl Into<String>) {
    COUNT.fetch_add(1, Relaxed);
    if let Ok(mut last) = LAST.lock() {
        *last = what.into();
    }
}

/// From now on a panic, and whatever does not end, is told with what came last.
pub fn watch() {
    panic::set_hook(Box::new(|panic| eprintln!("{panic}\n{}", last())));
    thread::spawn(|| {
        let (mut seen, mut idle) = (COUNT.load(Relaxed), 0);
        while idle < SECONDS {
            thread::sleep(Duration::from_secs(1));
            let count = COUNT.load(Relaxed);
            idle = if count == seen { idle + 1 } else { 0 };
            seen = count;
        }
        report::end(&Err(format!("It did not end within {SECONDS} seconds: something goes in circles.\n{}", last())));
        process::exit(1);
    });
}

fn last() -> String {
    match LAST.lock() {
        Ok(last) if !last.is_empty() => format!("What it was given last: {last}."),
        _ => String::new(),
    }
}
