//! How a run went.

use run::ended;
use run::exit::Exit;
use run::recorder::Counts;
use std::fmt;
use std::fs::File;
use std::path::PathBuf;
use std::time::Instant;

/// How one node's program ended.
#[derive(Debug, Clone, Default)]
pub struct Ended {
    /// The node.
    pub name: String,
    /// Whether there was a program to run.
    pub ran: bool,
    /// How it ended, as the shell of its machine has it. None if it was not started, or did not end because its machine was
    /// powered off or the lab gave up.
    pub exit: Option<Exit>,
    /// What `--inspect`'s command printed before the program was started.
    pub before: Vec<String>,
    /// What it printed after the programs had ended; empty if the machine was powered off.
    pub after: Vec<String>,
    /// Whether the machine has put the files that are wanted of it on its drive.
    pub fetched: bool,
}

/// How a run went.
pub struct Outcome {
    /// How each node's program ended; the server is the first.
    pub nodes: Vec<Ended>,
    /// Why the run was no good although each program may have ended well: the lab ended it, or a kernel broke.
    pub trouble: Option<String>,
    /// The signal that has ended the run.
    pub stopped: Option<i32>,
    /// What has crossed the wire.
    pub counts: Counts,
    /// Where the time went.
    pub phases: Phases,
    /// Where the run file and the logs lie. Another run of the same name takes another folder while this is held.
    pub folder: PathBuf,
    /// The folder, locked.
    pub _lock: File,
}

impl Outcome {
    /// The nodes that had a program to run.
    pub fn ran(&self) -> impl Iterator<Item = &Ended> {
        self.nodes.iter().filter(|node| node.ran)
    }

    /// What is told of every run, wherever it ran.
    pub fn told(&self) -> ended::Ended<'_> {
        let exits = self.ran().map(|node| (node.name.as_str(), node.exit)).collect();
        ended::Ended { exits, trouble: self.trouble.as_deref(), counts: &self.counts, file: self.file() }
    }

    /// The run file: packets and log lines.
    pub fn file(&self) -> PathBuf {
        self.folder.join("wire.pcapng")
    }
}

/// The parts of a run, one after the other, each with the moment of its end; the first is the beginning.
pub struct Phases(Vec<(&'static str, Instant)>);

impl Phases {
    /// The run begins.
    pub fn begin() -> Self {
        Self(vec![("", Instant::now())])
    }

    /// What was done since the last call, or the beginning, was this.
    pub fn end(&mut self, name: &'static str) {
        self.0.push((name, Instant::now()));
    }
}

impl fmt::Display for Phases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for pair in self.0.windows(2) {
            write!(f, "{} {} ms, ", pair[1].0, (pair[1].1 - pair[0].1).as_millis())?;
        }
        write!(f, "in all {} ms", (self.0[self.0.len() - 1].1 - self.0[0].1).as_millis())
    }
}
