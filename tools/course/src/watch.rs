//! `--watch`: judges again whenever a file is saved.

use anyhow::Result;
use std::io::{stdout, Write};
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, SystemTime};

/// How often the files are looked at.
const LOOK: Duration = Duration::from_millis(100);

/// When one of these files was saved last.
pub fn newest(files: Result<Vec<PathBuf>>) -> Option<SystemTime> {
    files.unwrap_or_default().iter().filter_map(|path| path.metadata().ok()?.modified().ok()).max()
}

/// Judges until it is good, once each time that one of the files is saved; Ctrl-C ends it. What was judged last is from the time
/// `seen`: a file may have been saved while that went on.
pub fn until_good(
    mut seen: Option<SystemTime>,
    files: impl Fn() -> Result<Vec<PathBuf>>,
    mut judge: impl FnMut() -> Result<bool>,
) -> Result<bool> {
    loop {
        writeln!(stdout(), "\nWaiting until you save a file; Ctrl-C ends that.")?;
        while newest(files()) == seen {
            sleep(LOOK);
        }
        seen = newest(files());
        if judge()? {
            return Ok(true);
        }
    }
}
