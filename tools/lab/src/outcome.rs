//! How a run went.

use anyhow::{Context, Result};
use roce::{Frame, Packet};
use run::capture::Reader;
use run::file::Event;
use run::recorder::Counts;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// So many bytes of a node's log are read into memory.
const LOG_READ: u64 = 8 << 20;

/// How one node's program ended.
#[derive(Debug, Clone, Default)]
pub struct Ended {
    /// The node.
    pub name: String,
    /// Whether there was a program to run.
    pub ran: bool,
    /// Its exit status, 128 and more for a signal. None if it was not started, or did not end by itself because its
    /// machine was powered off or the lab gave up.
    pub exit: Option<i32>,
    /// The lines it printed, on standard output and standard error, up to 8 MiB; all of them are in the run file.
    pub log: Vec<String>,
    /// What [`crate::Run::inspect`]'s command printed before the program was started.
    pub before: Vec<String>,
    /// What it printed after the programs had ended; empty if the machine was powered off.
    pub after: Vec<String>,
    /// Whether the machine has put the files that are wanted of it on its drive.
    pub(crate) fetched: bool,
}

/// How a run went.
#[derive(Debug)]
pub struct Outcome {
    /// How each node's program ended; the server is the first.
    pub nodes: Vec<Ended>,
    /// Why the run was no good although each program may have ended well: the lab ended it, or a kernel broke.
    pub trouble: Option<String>,
    /// What has crossed the wire.
    pub counts: Counts,
    /// Where the time went.
    pub phases: Phases,
    /// Where the run file and the logs lie. Another run of the same name takes another folder while this is held.
    pub folder: PathBuf,
    /// The folder, locked.
    pub(crate) _lock: File,
}

impl Outcome {
    /// How a run went, as the nodes and the files in the run's folder tell, of which this gets the lock.
    pub(crate) fn read(nodes: Vec<Ended>, trouble: Option<String>, files: (PathBuf, File, Counts)) -> Result<Self> {
        let (folder, _lock, counts) = files;
        let mut outcome = Self { nodes, trouble, counts, phases: Phases::default(), folder, _lock };
        for node in &mut outcome.nodes {
            let path = outcome.folder.join(format!("{}.log", node.name));
            let mut log = Vec::new();
            let read = File::open(&path).and_then(|file| file.take(LOG_READ).read_to_end(&mut log));
            read.with_context(|| format!("cannot read {}", path.display()))?;
            node.log = String::from_utf8_lossy(&log).lines().map(str::to_owned).collect();
        }
        Ok(outcome)
    }

    /// One node's end.
    ///
    /// # Panics
    /// There is no node of that name.
    pub fn node(&self, name: &str) -> &Ended {
        let node = self.nodes.iter().find(|node| node.name == name);
        node.unwrap_or_else(|| panic!("there is no node {name} in this run"))
    }

    /// Whether all programs ended with status 0 and by themselves, and nothing else was wrong.
    pub fn succeeded(&self) -> bool {
        self.trouble.is_none() && self.nodes.iter().all(|node| !node.ran || node.exit == Some(0))
    }

    /// The run file: packets and log lines.
    pub fn file(&self) -> PathBuf {
        self.folder.join("wire.pcapng")
    }

    /// Reads the RoCE packets of the run file, each with the node that sent it.
    pub fn each_packet(&self, mut look: impl FnMut(&str, &Packet<'_>)) -> Result<()> {
        self.each_event(|event| {
            let Event::Packet(record) = event else { return };
            if let Frame::Roce(packet) = Frame::ethernet(record.data) {
                look(record.node.unwrap_or_default(), &packet);
            }
        })
    }

    /// Reads the run file.
    pub fn each_event(&self, mut look: impl FnMut(&Event<'_>)) -> Result<()> {
        let mut attempt = || -> Result<()> {
            let mut reader = Reader::new(File::open(self.file())?)?;
            while let Some(event) = reader.event()? {
                look(&event);
            }
            Ok(())
        };
        attempt().with_context(|| format!("cannot read {}", self.file().display()))
    }
}

/// The parts of a run, one after the other, each with the time that it took.
#[derive(Debug, Clone)]
pub struct Phases {
    ended: Vec<(&'static str, Duration)>,
    since: Instant,
}

impl Default for Phases {
    fn default() -> Self {
        Self { ended: Vec::new(), since: Instant::now() }
    }
}

impl Phases {
    /// What was done since the last call, or the beginning, was this.
    pub(crate) fn end(&mut self, name: &'static str) {
        let now = Instant::now();
        self.ended.push((name, now - std::mem::replace(&mut self.since, now)));
    }
}

impl fmt::Display for Phases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, time) in &self.ended {
            write!(f, "{name} {} ms, ", time.as_millis())?;
        }
        write!(f, "in all {} ms", self.ended.iter().map(|(_, time)| *time).sum::<Duration>().as_millis())
    }
}
