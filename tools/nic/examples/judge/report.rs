//! The judge's last word. Whoever starts the judge gives it a line on standard input, a new one each time, and believes only a report
//! that begins with this line. The hole's code runs in this process, but by then the line has been read, and nobody can read it again.

use crate::Verdict;
use std::io::{stdin, stdout, Write};
use std::sync::OnceLock;

static LINE: OnceLock<String> = OnceLock::new();

/// Reads the line, before any of the hole's code runs.
pub fn begin() {
    let mut line = String::new();
    // Without one, nobody waits for a report: a person has started the judge, who reads what it says.
    let _ = stdin().read_line(&mut line);
    LINE.get_or_init(|| line.trim_end().to_owned());
}

/// Says what was seen: the line and whether it's right, and then the words.
pub fn end(verdict: &Verdict) {
    let (word, seen) = match verdict {
        Ok(seen) => ("right", seen),
        Err(seen) => ("wrong", seen),
    };
    let line = LINE.get().map_or("", String::as_str);
    // If the hole has closed standard output, there's no report, and that is noticed.
    let _ = writeln!(stdout(), "{line} {word}\n{seen}");
}
