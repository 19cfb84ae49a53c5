//! How a run went.

use crate::phases::Phases;
use anyhow::{Context, Result};
use std::fs::File;
use std::path::PathBuf;
use std::time::SystemTime;
use wire::capture::Reader;
use wire::run::Event;
use wire::{Frame, Packet};

/// So many bytes of a node's log are kept in memory; all of it is in the run file.
const LOG_KEPT: usize = 8 << 20;
/// So many of its kernel's lines.
const KERNEL_KEPT: usize = 1000;

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
    /// The lines it printed, on standard output and standard error, up to 8 MiB.
    pub log: Vec<String>,
    /// How many bytes that is.
    log_bytes: usize,
    /// Whether the machine has put the files that are wanted of it on its drive.
    pub(crate) fetched: bool,
    /// What the machine's kernel said, up to 1000 lines.
    pub kernel: Vec<String>,
    /// What [`crate::Run::inspect`]'s command printed before the program was started.
    pub before: Vec<String>,
    /// What it printed after the programs had ended; empty if the machine was powered off.
    pub after: Vec<String>,
}

impl Ended {
    pub(crate) fn new(name: &str, ran: bool) -> Self {
        Self { name: name.to_owned(), ran, ..Self::default() }
    }

    pub(crate) fn keep_kernels(&mut self, line: &str) {
        if self.kernel.len() < KERNEL_KEPT {
            self.kernel.push(line.to_owned());
        }
    }

    pub(crate) fn keep(&mut self, line: &str) {
        self.log_bytes += line.len();
        if self.log_bytes <= LOG_KEPT {
            self.log.push(line.to_owned());
        }
    }
}

/// How a run went.
#[derive(Debug)]
pub struct Outcome {
    /// How each node's program ended; the server is the first.
    pub nodes: Vec<Ended>,
    /// When the programs were started.
    pub started: SystemTime,
    /// Why the run was no good although each program may have ended well: the lab ended it, or a kernel broke.
    pub trouble: Option<String>,
    /// The RoCE packets' names, each with how often it occurred, in the order of their first occurrence.
    pub packets: Vec<(&'static str, usize)>,
    /// How many frames were no RoCE packets: ARP and the like.
    pub other_frames: usize,
    /// Where the time went.
    pub phases: Phases,
    /// Where the run file and the logs lie. Another run of the same name takes another folder while this is held.
    pub folder: PathBuf,
    /// The folder, locked.
    pub(crate) _lock: File,
}

impl Outcome {
    /// One node's end.
    ///
    /// # Panics
    /// There is no node of that name.
    #[must_use]
    pub fn node(&self, name: &str) -> &Ended {
        let node = self.nodes.iter().find(|node| node.name == name);
        node.unwrap_or_else(|| panic!("there is no node {name} in this run"))
    }

    /// Whether all programs ended with status 0 and by themselves, and nothing else was wrong.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        self.trouble.is_none() && self.nodes.iter().all(|node| !node.ran || node.exit == Some(0))
    }

    /// The run file: packets and log lines.
    #[must_use]
    pub fn file(&self) -> PathBuf {
        self.folder.join("wire.pcapng")
    }

    /// Reads the RoCE packets of the run file, each with the node that sent it.
    ///
    /// # Errors
    /// As for [`Outcome::each_event`].
    pub fn each_packet(&self, mut look: impl FnMut(&str, &Packet<'_>)) -> Result<()> {
        self.each_event(|event| {
            let Event::Packet(record) = event else { return };
            if let Frame::Roce(packet) = Frame::ethernet(record.data) {
                look(record.node.unwrap_or_default(), &packet);
            }
        })
    }

    /// Reads the run file.
    ///
    /// # Errors
    /// It is not there any more, or damaged.
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
