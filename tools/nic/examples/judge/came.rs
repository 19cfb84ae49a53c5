//! What the learner's NIC was given last: where it was when it panics, or does not end.

use std::sync::Mutex;
use std::time::Duration;
use std::{panic, process, thread};

/// A hole that takes longer goes in circles: a right one takes a moment.
const DEADLINE: Duration = Duration::from_secs(5);

static LAST: Mutex<String> = Mutex::new(String::new());

/// Notes what it is given now.
pub fn now(what: impl Into<String>) {
    if let Ok(mut last) = LAST.lock() {
        *last = what.into();
    }
}

/// From now on a panic, and whatever does not end, is told with what came last.
pub fn watch() {
    panic::set_hook(Box::new(|panic| eprintln!("{panic}\n{}", last())));
    thread::spawn(|| {
        thread::sleep(DEADLINE);
        println!("It did not end within {} seconds: something goes in circles.\n{}", DEADLINE.as_secs(), last());
        process::exit(1);
    });
}

fn last() -> String {
    match LAST.lock() {
        Ok(last) if !last.is_empty() => format!("What it was given last: {last}."),
        _ => String::new(),
    }
}
