//! How far somebody has got: a file in a folder of hers with a line for each thing that has happened, "done 01-1-listen".

use anyhow::Result;
use run::files::{read, write};
use std::fmt::Display;
use std::path::PathBuf;

pub struct Progress {
    pub file: PathBuf,
}

impl Progress {
    /// Notes that this has happened, and with what.
    pub fn note(&self, what: &str, with: impl Display) -> Result<()> {
        let before = read(&self.file).unwrap_or_default();
        write(
            &self.file,
            format!("{}{what} {with}\n", before.lines().map(|line| format!("{line}\n")).collect::<String>()),
        )
    }

    pub fn has(&self, what: &str, with: impl Display) -> bool {
        self.times(what, with) > 0
    }

    pub fn times(&self, what: &str, with: impl Display) -> usize {
        let wanted = format!("{what} {with}");
        self.all().iter().filter(|(what, with)| format!("{what} {with}") == wanted).count()
    }

    /// All that has happened, in order: what, and with what.
    pub fn all(&self) -> Vec<(String, String)> {
        let text = read(&self.file).unwrap_or_default();
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.map(|(what, with)| (what.to_owned(), with.to_owned())).collect()
    }
}
