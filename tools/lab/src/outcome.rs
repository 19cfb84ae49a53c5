//! How a run went.

use run::ended;
use run::exit::Exit;
use run::recorder::Counts;
use run::timing::Timing;
use std::fs::File;
use std::path::PathBuf;

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
    pub timing: Timing,
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
