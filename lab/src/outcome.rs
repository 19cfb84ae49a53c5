//! What happened in a run.

use crate::run::Side;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use wire::{Frame, Packet};

/// One thing that happened, in the order of cause and effect: a log line stands before the packet it causes, and a
/// packet before the log line that tells of its arrival.
#[derive(Debug, Clone)]
pub struct Entry {
    /// When the lab saw it, since the programs were started.
    pub at: Duration,
    /// The side that it comes from.
    pub side: Side,
    /// What it is.
    pub what: What,
}

/// The kinds of things that happen.
#[derive(Debug, Clone)]
pub enum What {
    /// The program printed a line.
    Line(String),
    /// The machine sent a frame.
    Frame(Vec<u8>),
    /// The lab has something to tell: the program ended, a fault was set off.
    Note(String),
}

impl Entry {
    /// The RoCE packet, if this is one.
    #[must_use]
    pub fn packet(&self) -> Option<Packet<'_>> {
        match &self.what {
            What::Frame(frame) => match Frame::ethernet(frame) {
                Frame::Roce(packet) => Some(packet),
                Frame::Other(_) => None,
            },
            _ => None,
        }
    }
}

/// How one side's program ended.
#[derive(Debug, Clone, Default)]
pub struct Ended {
    /// Its exit status, 128 and more for a signal. None if it was not started, or did not end by itself because its
    /// machine was powered off or the lab gave up.
    pub exit: Option<i32>,
    /// The lines it printed, on standard output and standard error.
    pub log: Vec<String>,
    /// What [`crate::Run::inspect`]'s command printed before the program was started.
    pub before: Vec<String>,
    /// What it printed after the programs had ended; empty if the machine was powered off.
    pub after: Vec<String>,
}

/// How a run went.
#[derive(Debug)]
pub struct Outcome {
    /// The server's end.
    pub server: Ended,
    /// The client's end.
    pub client: Ended,
    /// All that happened.
    pub timeline: Vec<Entry>,
    /// When the programs were started.
    pub started: SystemTime,
    /// Why the lab ended the run, if it did not end by itself.
    pub trouble: Option<String>,
    /// Where logs, capture and timeline lie.
    pub folder: PathBuf,
}

impl Outcome {
    /// One side's end.
    #[must_use]
    pub fn side(&self, side: Side) -> &Ended {
        match side {
            Side::Server => &self.server,
            Side::Client => &self.client,
        }
    }

    /// The RoCE packets with their senders, in order.
    pub fn packets(&self) -> impl Iterator<Item = (Side, Packet<'_>)> {
        self.timeline.iter().filter_map(|entry| Some((entry.side, entry.packet()?)))
    }

    /// The packets' names, each with how often it occurred, in the order of their first occurrence.
    #[must_use]
    pub fn packet_counts(&self) -> Vec<(&'static str, usize)> {
        let mut counts: Vec<(&'static str, usize)> = Vec::new();
        for (_, packet) in self.packets() {
            match counts.iter_mut().find(|(name, _)| *name == packet.name()) {
                Some((_, count)) => *count += 1,
                None => counts.push((packet.name(), 1)),
            }
        }
        counts
    }

    /// How many frames were no RoCE packets: ARP and the like.
    #[must_use]
    pub fn other_frames(&self) -> usize {
        let frames = self.timeline.iter().filter(|entry| matches!(entry.what, What::Frame(_)));
        frames.filter(|entry| entry.packet().is_none()).count()
    }
}
