//! `--watch` judges again whenever a file is saved.

use anyhow::Result;
use std::io::{stdout, Write};
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, SystemTime};

/// How often the files are looked at.
const LOOK: Duration = Duration::from_millis(100);

/// When one of these files was saved last.
fn newest(files: Result<Vec<PathBuf>>) -> Option<SystemTime> {
    files.unwrap_or_default().iter().filter_map(|path| path.metadata().ok()?.modified().ok()).max()
}

/// Judges; and if that is wished, until it is good, once each time that one of the files is saved. Ctrl-C ends it.
pub fn judged(
    until_good: bool,
    files: impl Fn() -> Result<Vec<PathBuf>>,
    mut judge: impl FnMut() -> Result<bool>,
) -> Result<bool> {
    loop {
        // A file may be saved while the judge is at work.
        let seen = newest(files());
        let is_good = judge()?;
        if is_good || !until_good {
            return Ok(is_good);
        }
        writeln!(stdout(), "\nWaiting until you save a file; Ctrl-C ends that.")?;
        while newest(files()) == seen {
            sleep(LOOK);
        }
    }
}
